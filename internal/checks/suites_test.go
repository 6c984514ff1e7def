package checks_test

import (
	"slices"
	"strings"
	"testing"

	"assay/internal/checks"
)

const withoutSuites = `version: 1
sources: [{ topic: t }]
checks: [{ name: c, evaluator: exact_match, reference: { field: expected }, sample: { rate: 1 } }]
`

func TestAFileHasSuitesOfItsOwnBesideTheBuiltInOnes(t *testing.T) {
	plain, err := checks.Parse("assay.yaml", []byte(withoutSuites))
	if err != nil {
		t.Fatal(err)
	}
	file, err := checks.Parse("assay.yaml", []byte(withoutSuites+"suites:\n  ours: [answer_relevance, exact_match]\n  quick: [length]\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.Suite("ours")
	// An alias is listed under its evaluator's name.
	if err != nil || !slices.Equal(s.Evaluators, []string{"answer_relevancy", "exact_match"}) {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := file.Suite("rag"); err != nil || len(s.Evaluators) == 0 {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := file.Suite("our"); err == nil || !strings.Contains(err.Error(), "did you mean ours?") || !strings.Contains(err.Error(), "correctness") {
		t.Errorf("%v", err)
	}
	if _, err := plain.Suite("ours"); err == nil {
		t.Error("a file without suites has one")
	}
	var none *checks.File
	if _, err := none.Suite("rag"); err != nil {
		t.Errorf("without a file: %v", err)
	}
	// They choose what people ask for and change no decision of the stream.
	if file.Hash != plain.Hash {
		t.Error("suites change the file's hash")
	}
}

func TestWrongSuitesSayWhereAndWhatWouldBeRight(t *testing.T) {
	f := func(suites, want string) {
		t.Helper()
		_, err := checks.Parse("assay.yaml", []byte(withoutSuites+"suites: "+suites+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "assay.yaml:4:") {
			t.Errorf("%s: %v, want %q in line 4", suites, err, want)
		}
	}
	f("[factuality]", "want keys with values")
	f("{}", "want at least one")
	f("{ rag: [factuality] }", "a suite of Assay's own")
	f("{ 1x: [factuality] }", "want letters")
	f("{ ours: [] }", "at least one evaluator")
	f("{ ours: factuality }", "want a list")
	f("{ ours: [factualty] }", "did you mean factuality?")
	f("{ ours: [factuality, factuality] }", "twice")
	f("{ ours: [answer_relevancy, answer_relevance] }", "twice")
	f("{ ours: [1] }", "want text")
}
