package monitor

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/testkit"
)

const rulesChecks = `
version: 1
dimensions: [app, model, prompt_version]
slices: [{ app: support }, { app: support, model: m1 }]
sources: [{ topic: log }]
judges: { small: { kind: embedded } }
checks:
  - name: facts
    evaluator: factuality
    coarse: true
    reference: { field: expected }
    judge: small
    sample: { rate: 0.5 }
    alert: { target: 0.9, tolerance: 0.03, severity: page, labels: { team: billing } }
  - name: sure
    evaluator: factuality
    coarse: true
    reference: { field: expected }
    judge: small
    sample: { rate: 0.5, salt: other }
    alert: { target: 0.95, close: manual }
  - name: unwatched
    evaluator: factuality
    coarse: true
    reference: { field: expected }
    judge: small
    sample: { rate: 0.1 }
`

func rulesOf(t *testing.T, text string, o RuleOptions) (RuleFile, error) {
	t.Helper()
	file, err := checks.Parse("assay.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Rules(file, o)
}

// The golden file is what promtool tests in testdata/quality.test.yml.
// ASSAY_GOLDEN=1 writes it anew.
func TestTheRulesOfAChecksFile(t *testing.T) {
	rules, err := rulesOf(t, rulesChecks, RuleOptions{Runbooks: "docs/alerts.md", Grafana: "https://grafana.example"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := rules.YAML()
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "quality.rules.yml")
	if os.Getenv("ASSAY_GOLDEN") != "" {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the rules differ from %s:\n%s", golden, got)
	}
	if out, ok := testkit.Promtool(t, ".", "check", "rules", golden); !ok {
		t.Errorf("promtool check rules: %s", out)
	}
	if out, ok := testkit.Promtool(t, "testdata", "test", "rules", "quality.test.yml"); !ok {
		t.Errorf("promtool test rules: %s", out)
	}
}

// Values of slices and labels come from people: whatever they hold, the rules stay
// valid and show the value as it is.
func TestRulesSurviveAnyValueOfASlice(t *testing.T) {
	file, err := checks.Parse("assay.yaml", []byte(rulesChecks))
	if err != nil {
		t.Fatal(err)
	}
	const team = "{{ it's `all`\n\"hers\" }}"
	file.Checks = file.Checks[:1]
	file.Checks[0].Alert.Labels = map[string]string{"team": team}
	file.Slices = nil
	var series, alerts, doubts strings.Builder
	for _, value := range []string{`it's`, "100%", "back`tick", `"quoted"`, `{{ printf "%s" "x" }}`, "{{ broken", `a\b`, `\x60`, "two\nlines", "Zürich 🚲", "%q", "'", "$labels"} {
		file.Slices = append(file.Slices, interaction.Slice{"app": value})
		of := `{check="facts",check_version="v",app=` + strconv.Quote(value) + `}`
		for metric, v := range map[string]string{
			`assay_drift_alarm`: "1", `assay_quality_current`: "1", `assay_quality_samples{window="24h"}`: "40", `assay_quality_pass_rate{window="24h"}`: "0.5",
			`assay_calibration_p_value{window="7d",origin="sampled"}`: "0", `assay_calibration_labels{window="7d",origin="sampled"}`: "120",
			`assay_calibration_agreement{window="7d",origin="sampled"}`: "0.5",
		} {
			name, extra, _ := strings.Cut(strings.TrimSuffix(metric, "}"), "{")
			if extra != "" {
				extra = "," + extra
			}
			fmt.Fprintf(&series, "      - { series: %s, values: %q }\n", strconv.Quote(name+strings.TrimSuffix(of, "}")+extra+"}"), v+"x70")
		}
		slice := strconv.Quote("app=" + value)
		link := strconv.Quote("/d/assay-overview?var-check=facts&var-slice=" + url.QueryEscape("app="+value))
		fmt.Fprintf(&doubts, `
          - exp_labels: { check: facts, severity: ticket, origin: sampled, app: %s, team: %s }
            exp_annotations:
              summary: %s
              description: "Over 7 days 120 labels (sampled) are further from the judge's scores than chance explains (p = 0); judge and people agree on 50%%. The rate is the judge's and may be off: pass rate 50%% in the last 24h, 95%% interval unknown to unknown, 40 judged."
              slice: %s
              rate: 50%%
              interval: unknown to unknown
              n: "40"
              window: 24h
              runbook_url: "#assaycalibrationshift"
              dashboard: %s`,
			strconv.Quote(value), strconv.Quote(team), strconv.Quote("facts on app="+value+": the judge's scores are not what people say"), slice, link)
		fmt.Fprintf(&alerts, `
          - exp_labels: { check: facts, severity: page, app: %s, team: %s }
            exp_annotations:
              summary: %s
              description: "pass rate 50%% in the last 24h, 95%% interval unknown to unknown, 40 judged (target 90.0%% less a tolerance of 3.0%%). It ends by itself once what came since is above that line for sure."
              slice: %s
              rate: 50%%
              interval: unknown to unknown
              n: "40"
              window: 24h
              runbook_url: "#assayqualitydrift"
              dashboard: %s`,
			strconv.Quote(value), strconv.Quote(team), strconv.Quote("facts on app="+value+": the pass rate has fallen below 87.0%"), slice, link)
	}
	rules, err := Rules(file, RuleOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := rules.YAML()
	if err != nil {
		t.Fatal(err)
	}
	test := "rule_files: [r.yml]\ntests:\n  - interval: 1m\n    input_series:\n" + series.String() +
		"    alert_rule_test:\n      - eval_time: 1m\n        alertname: AssayQualityDrift\n        exp_alerts:" + alerts.String() +
		"\n      - eval_time: 65m\n        alertname: AssayCalibrationShift\n        exp_alerts:" + doubts.String() + "\n"
	dir := t.TempDir()
	for name, content := range map[string]string{"r.yml": string(text), "t.yml": test} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "r.yml"}, {"test", "rules", "t.yml"}} {
		if out, ok := testkit.Promtool(t, dir, args...); !ok {
			t.Errorf("promtool %v: %s", args, out)
		}
	}
}

func TestRulesOfAFileWithoutAlertsAreEmpty(t *testing.T) {
	_, rest, _ := strings.Cut(rulesChecks, "  - name: unwatched")
	head, _, _ := strings.Cut(rulesChecks, "  - name: facts")
	rules, err := rulesOf(t, head+"  - name: unwatched"+rest, RuleOptions{})
	if err != nil || len(rules.Groups) != 0 {
		t.Fatalf("%+v, %v", rules, err)
	}
	text, err := rules.YAML()
	if err != nil || strings.TrimSpace(string(text)) != "groups: []" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestALabelThatWouldHideASliceIsRefused(t *testing.T) {
	f := func(label string, refused bool) {
		t.Helper()
		_, err := rulesOf(t, strings.Replace(rulesChecks, "{ team: billing }", "{ "+label+": billing }", 1), RuleOptions{})
		if (err != nil) != refused {
			t.Errorf("label %s: %v, want refused: %t", label, err, refused)
		}
		if err != nil && (!strings.Contains(err.Error(), "check facts") || !strings.Contains(err.Error(), label)) {
			t.Errorf("label %s: %v names neither", label, err)
		}
	}
	f("team", false)
	f("app", true)
	f("prompt_version", false) // a dimension, but no declared slice fixes it
}

// Every check and declared slice has all alerts, each with its own labels. A judge that
// people contradict is a ticket, however urgent the check is.
func TestEverySliceHasItsAlerts(t *testing.T) {
	rules, err := rulesOf(t, rulesChecks, RuleOptions{Runbooks: "r"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rules.Groups[0].Rules {
		if r.Alert == "" {
			continue
		}
		got = append(got, strings.Join([]string{r.Alert, r.Labels["check"], r.Annotations["slice"], r.Labels["severity"], r.Labels["team"]}, " "))
		if link := r.Annotations["dashboard"]; link != "/d/assay-overview?var-check="+r.Labels["check"]+"&var-slice="+url.QueryEscape(r.Annotations["slice"]) {
			t.Errorf("%s of %s leads to %s", r.Alert, r.Annotations["slice"], link)
		}
	}
	var want []string
	for _, check := range []string{"facts %s page billing", "sure %s ticket "} {
		for _, slice := range []string{"all", "app=support", "app=support,model=m1"} {
			for _, alert := range []string{AlertDrift, AlertMissing, AlertCalibration} {
				line := alert + " " + strings.Replace(check, "%s", slice, 1)
				if alert == AlertCalibration {
					line = strings.Replace(line, " page ", " ticket ", 1)
				}
				want = append(want, line)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("alerts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
