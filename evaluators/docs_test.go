package evaluators_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/evaluators"
	"assay/evaluators/aggregate"
	"assay/internal/testkit"
)

// The page names every evaluator, every setting that an evaluator which computes has of
// its own, every suite and every metric.
func TestThePageOfEvaluatorsIsWhole(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "docs", "evaluators.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	want := func(kind, name string) {
		t.Helper()
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s %s is not on the page", kind, name)
		}
	}
	for _, spec := range evaluators.Table() {
		want("evaluator", spec.Name)
		for _, alias := range spec.Aliases {
			want("alias", alias)
		}
		if spec.NeedsJudge() {
			continue
		}
		for _, s := range spec.Settings {
			if s.Name != "empty_output" && s.Name != "refusals" && s.Name != "truncated" {
				want(spec.Name+"'s setting", s.Name)
			}
		}
	}
	for _, s := range evaluators.Suites() {
		want("suite", s.Name)
	}
	for _, m := range aggregate.Metrics() {
		want("metric", m.Name)
	}
}
