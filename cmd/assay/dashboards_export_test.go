package main

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"assay/dashboards"
	"assay/internal/testkit"
)

// What assay dashboards export writes is what Grafana's provisioning names, and a
// person's changes survive.
func TestDashboardsExportWritesWhatGrafanaReads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "grafana")
	export := func(args ...string) (string, int) {
		return execAssay(t, nil, append([]string{"dashboards", "export", "--dir", dir}, args...)...)
	}
	out, code := export()
	if code != exitDone {
		t.Fatalf("exit %d\n%s", code, out)
	}
	files := dashboards.Grafana()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or other bytes", name, err)
		}
		if !strings.Contains(out, filepath.Join(dir, filepath.FromSlash(name))+"\n") {
			t.Errorf("%s is not listed:\n%s", name, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if out, code := export("--json"); code != exitDone || !strings.Contains(out, `"assay-overview.json"`) {
		t.Errorf("exported again: exit %d\n%s", code, out)
	}
	changed := filepath.Join(dir, "assay-overview.json")
	if err := os.WriteFile(changed, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := export(); code != exitFailed || !strings.Contains(out, "assay-overview.json") || !strings.Contains(out, "--force") {
		t.Errorf("over a changed file: exit %d\n%s", code, out)
	}
	if raw, err := os.ReadFile(changed); err != nil || string(raw) != "{}" {
		t.Errorf("the changed file became %.20s, %v", raw, err)
	}
	if out, code := export("--force"); code != exitDone {
		t.Errorf("--force: exit %d\n%s", code, out)
	}
	if raw, err := os.ReadFile(changed); err != nil || string(raw) == "{}" {
		t.Errorf("--force left %.20s, %v", raw, err)
	}
	if out, code := execAssay(t, nil, "dashboards", "export", "here"); code != exitUsage || !strings.Contains(out, "--help") {
		t.Errorf("an argument: exit %d\n%s", code, out)
	}
}

// The provisioning files, and what compose.yaml gives Grafana, fit each other.
func TestComposeProvisionsTheDashboards(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Image       string
			Environment map[string]string
			Volumes     []string
			Ports       []string
		}
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	grafana := compose.Services["grafana"]
	var providers struct {
		Providers []struct {
			Folder  string
			Options struct{ Path string }
		}
	}
	var sources struct {
		Datasources []struct {
			UID, Type string
		}
	}
	read := func(name string, into any) string {
		raw, err := fs.ReadFile(dashboards.Grafana(), path.Join("provisioning", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return string(raw)
	}
	read("dashboards/assay.yaml", &providers)
	text := read("datasources/assay.yaml", &sources)
	if len(providers.Providers) != 1 || providers.Providers[0].Folder != "Assay" ||
		!slices.ContainsFunc(grafana.Volumes, func(v string) bool {
			return strings.HasPrefix(v, "../dashboards/grafana:"+providers.Providers[0].Options.Path)
		}) {
		t.Errorf("providers %+v, volumes %v", providers, grafana.Volumes)
	}
	var types []string
	for _, s := range sources.Datasources {
		types = append(types, s.Type)
	}
	if !slices.Equal(types, []string{"prometheus", "grafana-clickhouse-datasource"}) {
		t.Errorf("data sources %v", types)
	}
	for _, m := range regexp.MustCompile(`"\$\{(\w+)\}"`).FindAllStringSubmatch(text, -1) {
		if grafana.Environment[m[1]] == "" {
			t.Errorf("compose.yaml gives Grafana no %s", m[1])
		}
	}
	if !strings.Contains(grafana.Environment["GF_PLUGINS_PREINSTALL"], "grafana-clickhouse-datasource") {
		t.Errorf("plugins %q", grafana.Environment["GF_PLUGINS_PREINSTALL"])
	}
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range compose.Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s listens on %s, beyond this machine", name, p)
			}
		}
		for _, v := range s.Volumes {
			host, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(host, ".") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, "deploy", filepath.FromSlash(host))); err != nil {
				t.Errorf("%s mounts %s: %v", name, host, err)
			}
		}
	}
}
