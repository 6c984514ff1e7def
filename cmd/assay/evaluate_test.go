package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// evaluateFile runs the command in this process.
func evaluateFile(t *testing.T, lines string, o evaluateOptions) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, diagnostics bytes.Buffer
	a := &app{out: &out, err: &diagnostics}
	o.concurrency = 2
	// A judge that cannot be: whoever asks for one fails.
	o.judge = "nobody"
	err := a.evaluate(t.Context(), path, o)
	return out.String() + diagnostics.String(), err
}

func TestAFileIsEvaluatedByRulesWithoutAJudge(t *testing.T) {
	const lines = `{"id":"1","input":"q","output":"Blue ","expected":"blue"}
{"id":"2","input":"q","output":"a deep red","expected":"green"}
`
	out, err := evaluateFile(t, lines, evaluateOptions{evaluators: []string{"exact_match", "length", "regex"}, sets: []string{"length.max=2", "length.unit=words", "regex.must_not=(?i)BLUE"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"exact_match", "50.0%", "length", "regex", "0.500"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	_, err = evaluateFile(t, lines, evaluateOptions{evaluators: []string{"exact_match"}, failUnder: []string{"pass_rate=0.6"}})
	var gate errGate
	if !errors.As(err, &gate) || gate.code != exitGate {
		t.Errorf("half right and gated at .6: %v", err)
	}
}

func TestSettingsOfTheCommandLineAreChecked(t *testing.T) {
	f := func(want string, evaluator string, sets ...string) {
		t.Helper()
		_, err := evaluateFile(t, "{}\n", evaluateOptions{evaluators: []string{evaluator}, sets: sets})
		var usage errUsage
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want a usage error with %q", sets, err, want)
		}
	}
	f("EVALUATOR.SETTING=VALUE", "length", "max")
	f("EVALUATOR.SETTING=VALUE", "length", "max=3")
	f("not among --evaluator", "length", "regex.pattern=x")
	f(`unknown setting "most"`, "length", "length.most=3")
	f("want a number", "length", "length.max=NaN")
	f("want at least one of min, max", "length")
	f("true or false", "contains", "contains.any=a,b", "contains.ignore_case=1")
	f("list of texts", "contains", "contains.any=[1]")
	f("JSON object", "valid_json", "valid_json.schema={")
	f("error parsing", "regex", "regex.pattern=(")
	f("dialect", "exact_match", "exact_match.dialect=mine")
	f("pass", "levenshtein", "levenshtein.pass=2")
	f("unknown option", "factuality", "factuality.pass=C,F")
	f("orders", "closed_qa", "closed_qa.orders=1.5")
	if _, err := evaluateFile(t, "{}\n", evaluateOptions{suite: "ragg"}); err == nil || !strings.Contains(err.Error(), "did you mean rag?") {
		t.Errorf("%v", err)
	}
	if _, err := evaluateFile(t, "{}\n", evaluateOptions{suite: "rag", evaluators: []string{"regex"}}); err == nil || !strings.Contains(err.Error(), "one of the two") {
		t.Errorf("%v", err)
	}
	f("weights", "answer_correctness", "answer_correctness.dialect=statements", "answer_correctness.similarity=true", "answer_correctness.weights=1,x")
}
