package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metricsql"
	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"assay/internal/monitor"
	"assay/internal/testkit"
)

// deployed reads a file of deploy.
func deployed(t *testing.T, name string) string {
	t.Helper()
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "deploy", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// alertRules are the alerts of rule files by name, the first of each.
func alertRules(t *testing.T, files ...string) map[string]monitor.Rule {
	t.Helper()
	found := map[string]monitor.Rule{}
	for _, r := range rulesIn(t, files...) {
		if _, twice := found[r.Alert]; r.Alert != "" && !twice {
			found[r.Alert] = r
		}
	}
	return found
}

func rulesIn(t *testing.T, files ...string) []monitor.Rule {
	t.Helper()
	var all []monitor.Rule
	for _, text := range files {
		var file monitor.RuleFile
		if err := yaml.UnmarshalWithOptions([]byte(text), &file, yaml.Strict()); err != nil {
			t.Fatal(err)
		}
		for _, g := range file.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

// exported is what `assay alerts export` prints for a checks file.
func exported(t *testing.T, checks string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "assay.yaml")
	if err := os.WriteFile(file, []byte(checks), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := execAssay(t, nil, append([]string{"alerts", "export", file}, args...)...)
	if code != exitDone {
		t.Fatalf("assay alerts export: exit %d\n%s", code, out)
	}
	return out
}

func TestTheDeployedRulesAreRight(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "deploy", "prometheus")
	tests, err := filepath.Glob(filepath.Join(dir, "tests", "*.yml"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("tests of the rules: %v, %v", tests, err)
	}
	for _, args := range [][]string{
		{"check", "rules", "assay.rules.yml"},
		{"check", "config", "prometheus.yml"},
		{"check", "config", "compose.yml"},
		append([]string{"test", "rules"}, tests...),
	} {
		if out, ok := testkit.Promtool(t, dir, args...); !ok {
			t.Errorf("promtool %s:\n%s", strings.Join(args, " "), out)
		}
	}

	// each alert fires somewhere in the tests, and is silent somewhere
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range tests {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Tests []struct {
				AlertRuleTest []struct {
					Alertname string `yaml:"alertname"`
					ExpAlerts []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			} `yaml:"tests"`
		}
		if err := yaml.Unmarshal(raw, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, test := range file.Tests {
			for _, a := range test.AlertRuleTest {
				if len(a.ExpAlerts) > 0 {
					fires[a.Alertname] = true
				} else {
					silent[a.Alertname] = true
				}
			}
		}
	}
	alerts := alertRules(t, deployed(t, "prometheus/assay.rules.yml"))
	if len(alerts) < 10 {
		t.Errorf("only %d alerts", len(alerts))
	}
	for name := range alerts {
		if !fires[name] || !silent[name] {
			t.Errorf("%s: tested firing %t, silent %t; want both", name, fires[name], silent[name])
		}
	}
}

// Whoever gets an alert finds what to do.
func TestEveryAlertHasItsRunbook(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	alerts := alertRules(t, deployed(t, "prometheus/assay.rules.yml"), exported(t, killChecks("http://127.0.0.1:1/v1")))
	for name, r := range alerts {
		page, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if anchor != strings.ToLower(name) || !strings.Contains(string(raw), "\n### "+name+"\n") {
			t.Errorf("%s leads to %s, which has no such heading", name, r.Annotations["runbook_url"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) {
			t.Errorf("%s lacks a text or a severity: %+v", name, r)
		}
		leadsToADashboard(t, name, r.Annotations["dashboard"])
	}
	raw, err := os.ReadFile(filepath.Join(root, "docs", "alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Assay\w+)$`).FindAllStringSubmatch(string(raw), -1) {
		if _, ok := alerts[m[1]]; !ok {
			t.Errorf("docs/alerts.md explains %s, which no rule raises", m[1])
		}
	}
}

func TestEveryAlertIsRoutedByItsSeverity(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(root, "deploy", "alertmanager", "alertmanager.yml")
	if out, ok := testkit.Amtool(t, "check-config", config); !ok {
		t.Fatalf("amtool check-config: %s", out)
	}
	f := func(want string, labels ...string) {
		t.Helper()
		out, ok := testkit.Amtool(t, append([]string{"config", "routes", "test", "--config.file=" + config, "--verify.receivers=" + want}, labels...)...)
		if !ok {
			t.Errorf("%v: want %s: %s", labels, want, out)
		}
	}
	for name, r := range alertRules(t, deployed(t, "prometheus/assay.rules.yml")) {
		f(r.Labels["severity"], "alertname="+name, "severity="+r.Labels["severity"])
	}
	for _, severity := range []string{"page", "ticket"} {
		f(severity, "alertname="+monitor.AlertDrift, "check=facts", "severity="+severity)
		f(severity, "alertname="+monitor.AlertMissing, "check=facts", "severity="+severity)
	}
	f("ticket", "alertname="+monitor.AlertCalibration, "check=facts", "severity=ticket")
}

// What a bigger trouble explains is held back, and nothing else is.
func TestAlertsThatABiggerTroubleExplainsAreHeldBack(t *testing.T) {
	alerts := testkit.StartAlertmanager(t, deployed(t, "alertmanager/alertmanager.yml"))
	alert := func(name string) map[string]string {
		return map[string]string{"alertname": name, "check": "facts", "judge": "main", "topic": "log", "severity": "page"}
	}
	held := func() map[string]string {
		states := map[string]string{}
		for _, a := range alerts.Alerts(t) {
			states[a.Labels["alertname"]] = a.Status.State
		}
		return states
	}
	all := []string{monitor.AlertDrift, monitor.AlertMissing, "AssayCheckSilent", "AssayWatermarkStalled", "AssayLagSeconds", "AssayConservationGap", "AssayDown"}
	suppressed := map[string]bool{}
	f := func(trouble string, explains ...string) {
		t.Helper()
		alerts.Send(t, alert(trouble))
		for _, name := range explains {
			suppressed[name] = true
		}
		testkit.Eventually(t, 20*time.Second, trouble+" holds back what it explains", func() error {
			states := held()
			for _, name := range all {
				if (states[name] == "suppressed") != suppressed[name] {
					return fmt.Errorf("%s is %s in %v", name, states[name], states)
				}
			}
			return nil
		})
	}
	for _, name := range all {
		alerts.Send(t, alert(name))
	}
	f("AssayDown")
	f("AssayJudgeFailing", monitor.AlertMissing, "AssayCheckSilent")
	f("AssaySinkBackedUp", "AssayWatermarkStalled", "AssayLagSeconds", "AssayConservationGap")
	f("AssaySnapshotStale", monitor.AlertDrift)
}

func TestAlertsExportPrintsRulesForPeopleAndPrograms(t *testing.T) {
	checks := killChecks("http://127.0.0.1:1/v1")
	text := exported(t, checks, "--runbooks", "https://wiki.example/alerts", "--grafana-url", "https://grafana.example/")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "q.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, ok := testkit.Promtool(t, dir, "check", "rules", "q.yml"); !ok {
		t.Errorf("promtool check rules: %s", out)
	}
	r := alertRules(t, text)[monitor.AlertDrift]
	if r.Annotations["runbook_url"] != "https://wiki.example/alerts#assayqualitydrift" || r.Annotations["dashboard"] != "https://grafana.example/d/assay-overview?var-check=policy&var-slice=all" {
		t.Errorf("links %q and %q", r.Annotations["runbook_url"], r.Annotations["dashboard"])
	}
	asJSON := exported(t, checks, "--json")
	if !strings.HasPrefix(asJSON, "{") || len(alertRules(t, asJSON)) != 3 {
		t.Errorf("--json prints\n%s", asJSON)
	}

	if out := exported(t, strings.Replace(checks, "target: 0.5", "off: true, target: 0.5", 1)); !strings.Contains(out, "nothing to export") {
		t.Errorf("a file without alerts prints\n%s", out)
	}
	f := func(want string, args ...string) {
		t.Helper()
		if out, code := execAssay(t, nil, append([]string{"alerts"}, args...)...); code != exitUsage || !strings.Contains(out, want) {
			t.Errorf("assay alerts %v: exit %d and\n%s\nwant %d and %q", args, code, out, exitUsage, want)
		}
	}
	f("nothing.yaml", "export", filepath.Join(dir, "nothing.yaml"))
	f("accepts at most 1", "export", "a", "b")
	f("want where Grafana is", "export", "--grafana-url", "grafana.example")
	f("exprot", "exprot")
}

// namesOnlyWhatExists holds every selector of rule files, those in texts included,
// against what a process exports: some series must match each.
func namesOnlyWhatExists(t *testing.T, metrics string, files ...string) {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(metrics))
	if err != nil {
		t.Fatal(err)
	}
	series := map[string][]map[string]string{"up": {{"job": "assay"}}}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			series[name] = append(series[name], labelMap(m))
		}
	}
	rules := rulesIn(t, files...)
	for _, r := range rules {
		if r.Record != "" { // its labels are those of its expression, which is held against the rest
			series[r.Record] = nil
		}
	}
	seen := 0
	for _, r := range rules {
		where := r.Alert + r.Record
		exprs := append([]string{r.Expr}, queriesIn(r.Annotations)...)
		for _, text := range exprs {
			expr, err := metricsql.Parse(text)
			if err != nil {
				t.Errorf("%s: %s: %v", where, text, err)
				continue
			}
			seen += checkExpression(t, where, expr, series)
		}
	}
	if seen < 40 {
		t.Errorf("only %d selectors were looked at", seen)
	}
}

func labelMap(m *dto.Metric) map[string]string {
	labels := map[string]string{"job": "assay", "instance": "x"}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// queriesIn are the expressions that templates ask for. What a template fills in may
// be anything.
func queriesIn(annotations map[string]string) []string {
	var found []string
	query := regexp.MustCompile("printf (\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`)[^|}]*\\| query|query `([^`]*)`")
	for _, text := range annotations {
		for _, m := range query.FindAllStringSubmatch(text, -1) {
			expr := m[2]
			if m[1] != "" {
				expr, _ = strconv.Unquote(m[1])
				expr = strings.ReplaceAll(expr, "=%q", `=~".*"`)
			}
			found = append(found, expr)
		}
	}
	return found
}

// checkExpression returns how many selectors it found.
func checkExpression(t *testing.T, where string, expr metricsql.Expr, series map[string][]map[string]string) (selectors int) {
	t.Helper()
	known := map[string]bool{}
	var grouping []string
	metricsql.VisitAll(expr, func(e metricsql.Expr) {
		switch e := e.(type) {
		case *metricsql.AggrFuncExpr:
			grouping = append(grouping, e.Modifier.Args...)
		case *metricsql.BinaryOpExpr:
			grouping = append(grouping, e.GroupModifier.Args...)
		case *metricsql.MetricExpr:
			selectors++
			for _, filters := range e.LabelFilterss {
				name := filters[0].Value
				all, ok := series[name]
				if !ok {
					t.Errorf("%s names %s, which nothing exports", where, name)
					continue
				}
				if all == nil {
					return
				}
				for _, s := range all {
					for label := range s {
						known[label] = true
					}
				}
				if !slices.ContainsFunc(all, func(s map[string]string) bool { return matchesAll(s, filters[1:]) }) {
					t.Errorf("%s: no series of %s matches %s", where, name, e.AppendString(nil))
				}
			}
		}
	})
	for _, label := range grouping {
		if len(known) > 0 && !known[label] {
			t.Errorf("%s groups by %s, a label of none of its series (%v)", where, label, slices.Sorted(maps.Keys(known)))
		}
	}
	return selectors
}

func matchesAll(labels map[string]string, filters []metricsql.LabelFilter) bool {
	for _, f := range filters {
		ok := labels[f.Label] == f.Value
		if f.IsRegexp {
			ok = regexp.MustCompile("^(?:" + f.Value + ")$").MatchString(labels[f.Label])
		}
		if ok == f.IsNegative {
			return false
		}
	}
	return true
}

// quick makes the minutes that rules wait into halves of a second, all alike, so that
// which alert comes first stays as it is.
func quick(rules string) string {
	return regexp.MustCompile(`(for: )(\d+)m\b`).ReplaceAllStringFunc(rules, func(wait string) string {
		key, minutes, _ := strings.Cut(strings.TrimSuffix(wait, "m"), " ")
		n, err := strconv.Atoi(minutes)
		if err != nil {
			panic(err) // digits
		}
		return fmt.Sprintf("%s %dms", key, 500*n)
	})
}
