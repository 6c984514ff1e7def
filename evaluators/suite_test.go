package evaluators_test

import (
	"slices"
	"strings"
	"testing"

	"assay/evaluators"
)

func TestEverySuiteIsMadeOfEvaluatorsThatRunAsTheyAre(t *testing.T) {
	for _, s := range evaluators.Suites() {
		if s.Summary == "" || len(s.Evaluators) < 7 {
			t.Errorf("%+v", s)
		}
		for i, name := range s.Evaluators {
			if slices.Contains(s.Evaluators[:i], name) {
				t.Errorf("%s has %s twice", s.Name, name)
			}
			evaluator(t, name, evaluators.Settings{})
		}
	}
	all, err := evaluators.LookupSuite("everything")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range evaluators.Table() {
		if slices.Contains(all.Evaluators, spec.Name) == spec.NeedsSettings() {
			t.Errorf("everything and %s", spec.Name)
		}
	}
	if _, err := evaluators.LookupSuite("corectness"); err == nil || !strings.Contains(err.Error(), "did you mean correctness?") {
		t.Errorf("%v", err)
	}
}
