package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"assay/internal/testkit"
)

// What the panel of pass rates draws where a window knows little: a grey point with a
// grey band below 5 effective rows and nothing else, a mark where the window is not
// covered or misses much, and plain points elsewhere.
func TestThePassRatePanelShowsItsDoubts(t *testing.T) {
	all, _ := boards(t)
	queries := map[string]string{}
	for _, p := range all["assay-overview.json"].Panels {
		if strings.HasPrefix(p.Title, "Pass rate over the last") {
			for _, target := range p.Targets {
				queries[target.RefID] = fillVariables(target.Expr, overviewValues("all"))
			}
		}
	}
	// 4 windows: few rows; little covered; much missing; all well. Other slices, windows and
	// versions say other things.
	of := `{check="answers_policy",check_version="v",window="1h"`
	series := map[string]string{
		"assay_quality_pass_rate" + of + "}":                             "0.5 0.6 0.7 0.8",
		"assay_quality_pass_rate_lower" + of + `,level="0.95"}`:          "0.1 0.2 0.3 0.4",
		"assay_quality_pass_rate_upper" + of + `,level="0.95"}`:          "0.9 0.91 0.92 0.93",
		"assay_quality_effective_samples" + of + "}":                     "4.9 5 50 50",
		"assay_quality_coverage_ratio" + of + "}":                        "0.9 0.4 0.9 0.9",
		"assay_quality_missing_ratio" + of + "}":                         "0 0 0.3 0.1",
		`assay_quality_target{check="answers_policy",check_version="v"}`: "0.93x3",
	}
	for name := range maps.Clone(series) {
		other := strings.Replace(name, "{", `{app="support",`, 1)
		series[other] = "1x3"
		if strings.Contains(name, `window="1h"`) {
			series[strings.Replace(name, `window="1h"`, `window="24h"`, 1)] = "1x3"
		}
		series[strings.Replace(name, `check_version="v"`, `check_version="old"`, 1)] = "1x3"
	}
	series[`assay_quality_current{check="answers_policy",check_version="v",slice="all"}`] = "1x3"
	series[`assay_quality_current{app="support",check="answers_policy",check_version="v",slice="app=support"}`] = "1x3"
	series[`assay_quality_current{check="answers_policy",check_version="old",slice="all"}`] = "0x3"

	var test strings.Builder
	test.WriteString("evaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n")
	for name, values := range series {
		fmt.Fprintf(&test, "      - { series: %s, values: %q }\n", strconv.Quote(name), values)
	}
	test.WriteString("    promql_expr_test:\n")
	want := map[string][4]string{
		"Rate": {"", "0.6", "0.7", "0.8"}, "Lower": {"", "0.2", "0.3", "0.4"}, "Upper": {"", "0.91", "0.92", "0.93"},
		"DoubtRate": {"0.5"}, "DoubtLower": {"0.1"}, "DoubtUpper": {"0.9"},
		"DoubtCover": {"", "1", "1", ""}, "Target": {"0.93", "0.93", "0.93", "0.93"},
	}
	if len(want) != len(queries) {
		t.Errorf("queries %v", queries)
	}
	for ref, values := range want {
		for minute, v := range values {
			fmt.Fprintf(&test, "      - expr: %s\n        eval_time: %dm\n        exp_samples: [", strconv.Quote(queries[ref]), minute)
			if v != "" {
				fmt.Fprintf(&test, "{ labels: '{}', value: %s }", v)
			}
			test.WriteString("]\n")
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.yml"), []byte(test.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, ok := testkit.Promtool(t, dir, "test", "rules", "t.yml"); !ok {
		t.Errorf("promtool: %s\n%s", out, test.String())
	}
}
