package main

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func aggregateFile(t *testing.T, metric, name, text string, o aggregateOptions) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{out: &out, err: &out}
	err := a.aggregate(metric, path, o)
	return out.String(), err
}

func TestAFileOfVerdictsIsAggregated(t *testing.T) {
	f := func(metric, name, text string, o aggregateOptions, want ...string) {
		t.Helper()
		out, err := aggregateFile(t, metric, name, text, o)
		if err != nil {
			t.Errorf("%s: %v", metric, err)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: %q is not in\n%s", metric, w, out)
			}
		}
	}
	f("faithfulness", "v.jsonl", `{"id":1,"claims":[true,true]}`+"\n"+`{"id":2,"claims":["nei","yes"]}`, aggregateOptions{provenance: "two people"},
		"faithfulness: 0.7500 (95%: ", "n = 2", "items: 2", "made by: two people")
	f("faithfulness", "one.jsonl", `{"claims":[true,false]}`, aggregateOptions{}, "faithfulness: 0.5000", "n = 1")
	f("faithfulness", "args.json", `{"claims":[[true,false],[true]]}`, aggregateOptions{}, "faithfulness: 0.7500")
	f("pass_at_k", "s.jsonl", `{"n_samples":10,"n_correct":3}`+"\n"+`{"n_samples":10,"n_correct":0}`,
		aggregateOptions{fields: map[string]string{"n": "n_samples", "c": "n_correct"}, sets: []string{"k=5"}}, "pass_at_k: 0.4583")
	f("exact_match", "a.jsonl", `{"out":"The Cat","want":"cat"}`+"\n"+`{"out":"dog","want":"cow"}`,
		aggregateOptions{dialect: "squad", fields: map[string]string{"predictions": "out", "references": "want"}}, "exact_match: 0.5000")
	f("abstention_accuracy", "a.jsonl", `{"should_abstain":true,"abstained":true}`, aggregateOptions{sets: []string{"measure=coverage"}}, "coverage", "0.0000", "recall: 1")
	f("abstention_accuracy", "a.jsonl", `{"should_abstain":false,"abstained":false}`, aggregateOptions{sets: []string{"measure=precision"}}, "nothing to say")
}

func TestAFileThatCannotBeAggregatedSaysWhy(t *testing.T) {
	f := func(metric, text string, o aggregateOptions, want string) {
		t.Helper()
		out, err := aggregateFile(t, metric, "f.jsonl", text, o)
		var usage errUsage
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: %v, %q, want a usage error with %q", metric, err, out, want)
		}
	}
	f("faithfullness", "{}", aggregateOptions{}, "nearest is faithfulness")
	f("faithfulness", "", aggregateOptions{}, "no JSON object")
	f("faithfulness", "{}\n[1]", aggregateOptions{}, "object 2")
	f("faithfulness", "null", aggregateOptions{}, "null")
	f("faithfulness", `{"verdicts":[true]}`, aggregateOptions{}, "no object has any of the fields")
	f("faithfulness", `{"claims":[true]}`+"\n{}", aggregateOptions{}, "object 2: field claims")
	f("faithfulness", "{}\n"+`{"claims":[true]}`, aggregateOptions{}, "object 2: field claims")
	f("faithfulness", `{"claims":[true]}`, aggregateOptions{sets: []string{"k=5"}}, "--set k=5")
	f("faithfulness", `{"claims":[true]}`, aggregateOptions{fields: map[string]string{"verdicts": "claims"}}, `no argument "verdicts"`)
	f("faithfulness", `{"claims":[true]}`, aggregateOptions{fields: map[string]string{"claims": "c"}}, "no object has the field c")
	f("faithfulness", `{"claims":["perhaps"]}`, aggregateOptions{}, "no verdict")
	f("brier", `{"p":2,"y":1}`, aggregateOptions{}, "0 to 1")
}

func TestAnAggregateCanBeAGate(t *testing.T) {
	f := func(text string, least float64, code int) {
		t.Helper()
		_, err := aggregateFile(t, "faithfulness", "f.json", text, aggregateOptions{dialect: "ragas", failUnder: least, gated: true})
		var gate errGate
		if (err == nil) != (code == 0) || err != nil && (!errors.As(err, &gate) || gate.code != code) {
			t.Errorf("%s under %v: %v", text, least, err)
		}
	}
	f(`{"claims":[[true,false]]}`, .5, 0)
	f(`{"claims":[[true,false]]}`, .6, exitGate)
	f(`{"claims":[[true,false]]}`, math.NaN(), exitGate) // nothing is as much as no number
	f(`{"claims":[[]]}`, .6, exitTooFew)
}
