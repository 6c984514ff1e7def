package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/testkit"
)

// A ClickHouse server as people have them: TLS with an authority of their own, passwords
// in files, one user who may make tables and another who may only fill them. Over either
// protocol everything is judged and counted once, and doctor says the true reason where
// it is not let in.
func TestAssayOnASecuredClickHouseServer(t *testing.T) {
	inParallel(t)
	server := testkit.StartClickHouse(t, testkit.ClickHouseServerOptions{Accounts: []testkit.ClickHouseAccount{
		{Name: "owner", Password: "owner's", Grants: []string{"GRANT CREATE DATABASE, CREATE TABLE, ALTER TABLE, SELECT, INSERT ON *.*", "GRANT TABLE ENGINE ON ReplacingMergeTree"}},
		{Name: "worker", Password: "worker's", Grants: []string{"GRANT SELECT, INSERT ON native.*", "GRANT SELECT, INSERT ON http.*"}},
	}})
	secret := func(text string) string {
		path := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const records = 400
	start := time.Now().UTC().Add(-time.Hour)
	for protocol, addr := range map[string]string{"native": server.NativeTLS, "http": server.HTTPS} {
		t.Run(protocol, func(t *testing.T) {
			kafka, err := demo.StartKafka(demo.KafkaOptions{Partitions: 2, Topics: []string{killTopic}})
			if err != nil {
				t.Fatal(err)
			}
			defer kafka.Close()
			var all []interaction.Record
			for i := range records {
				all = append(all, flatRecord(i, start.Add(time.Duration(i)*50*time.Millisecond)))
			}
			produceAll(t, kafka.Addrs(), killTopic, all)
			w := newWorkers(t, kafka.Addrs())
			w.options.Engine = nil
			w.options = with(w.options, map[string]string{
				"ASSAY_CLICKHOUSE_ADDR": addr, "ASSAY_CLICKHOUSE_PROTOCOL": protocol, "ASSAY_CLICKHOUSE_DATABASE": protocol,
				"ASSAY_CLICKHOUSE_TLS": "true", "ASSAY_CLICKHOUSE_TLS_CA": server.Certificates.CA,
				"ASSAY_CLICKHOUSE_USERNAME": "worker", "ASSAY_CLICKHOUSE_PASSWORD_FILE": secret("worker's"),
			})
			w.conn = onServer(t, server, protocol)

			migrate := with(w.options, map[string]string{"ASSAY_CLICKHOUSE_USERNAME": "owner", "ASSAY_CLICKHOUSE_PASSWORD_FILE": secret("owner's")})
			migrate.Args = []string{"migrate"}
			if m := testkit.StartAssay(t, migrate); m.Wait(t, time.Minute) != 0 {
				t.Fatalf("assay migrate:\n%s", m.Output())
			}
			if f := doctorFinds(t, w.options, "clickhouse")["clickhouse"]; f.State != "ok" || !strings.Contains(f.Says, addr) {
				t.Errorf("doctor: %+v", f)
			}
			a := testkit.StartAssay(t, w.options)
			w.awaitCounted(t, records, 2*time.Minute)
			stopAll(t, a)
			if got := audit(t, w.conn, kafka.Addrs(), realGroup, killTopic, "policy", 0.5); got.logged != records || got.lost != 0 || got.doubled != 0 {
				t.Errorf("%d records, %d judgements lost, %d doubled", got.logged, got.lost, got.doubled)
			}

			run := testkit.StartAssay(t, with(w.options, map[string]string{"ASSAY_CLICKHOUSE_TLS_CA": ""}))
			if code := run.Wait(t, time.Minute); code != exitUsage || !strings.Contains(lastLine(run.Output()), "set ASSAY_CLICKHOUSE_TLS_CA") {
				t.Errorf("assay run ended with %d:\n%s", code, run.Output())
			}
			for name, c := range map[string]struct {
				change map[string]string
				says   string
			}{
				"authority not known": {map[string]string{"ASSAY_CLICKHOUSE_TLS_CA": ""}, "ASSAY_CLICKHOUSE_TLS_CA"},
				"without TLS":         {map[string]string{"ASSAY_CLICKHOUSE_TLS": "false", "ASSAY_CLICKHOUSE_TLS_CA": ""}, "ASSAY_CLICKHOUSE_TLS=true"},
				"the other protocol":  {map[string]string{"ASSAY_CLICKHOUSE_PROTOCOL": map[string]string{"native": "http", "http": "native"}[protocol]}, "ASSAY_CLICKHOUSE_PROTOCOL=" + protocol},
			} {
				if f := doctorFinds(t, with(w.options, c.change), "clickhouse")["clickhouse"]; f.State != "fail" || !strings.Contains(f.Says, c.says) || f.Fix == "" {
					t.Errorf("%s: doctor: %+v, want %q and a fix", name, f, c.says)
				}
			}
		})
	}
}

// onServer opens the driver on a database of the server, past Assay, for what a test
// wants to see.
func onServer(t *testing.T, s *testkit.ClickHouseServer, database string) clickhouse.Conn {
	t.Helper()
	pem, err := os.ReadFile(s.Certificates.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	options := &clickhouse.Options{
		Addr: []string{s.NativeTLS}, TLS: &tls.Config{RootCAs: roots},
		Auth: clickhouse.Auth{Username: testkit.ClickHouseUser, Password: testkit.ClickHousePassword},
	}
	first, err := clickhouse.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := first.Exec(t.Context(), "CREATE DATABASE IF NOT EXISTS "+database); err != nil {
		t.Fatal(err)
	}
	options.Auth.Database = database
	conn, err := clickhouse.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
