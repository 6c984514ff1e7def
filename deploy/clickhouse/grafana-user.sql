-- The user of Grafana's dashboards: it reads Assay's database and changes nothing.
-- readonly = 2 and not 1, because each query states its own limits as settings.
CREATE USER IF NOT EXISTS grafana IDENTIFIED WITH sha256_password BY 'grafana' SETTINGS readonly = 2;
GRANT SELECT ON assay.* TO grafana;
