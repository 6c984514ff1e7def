package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"assay/evaluators/judge"
)

// Two judges, neither of which a rule needs.
func twoJudgesNobodyAsks(t *testing.T) setting {
	j := judgeFunc(func(context.Context, judge.Question) (judge.Answer, error) {
		t.Error("a judge was asked")
		return judge.Answer{}, errors.New("no")
	})
	return withJudges(map[string]judge.Judge{"main": j, "other": j})
}

func TestARequestOfRulesNeedsNoJudge(t *testing.T) {
	w := start(t, twoJudgesNobodyAsks(t))
	f := func(body string, score float64, passed bool) {
		t.Helper()
		a := w.evaluate(body)
		var got evaluateBody
		a.into(t, &got)
		r := got.Results[0]
		if a.status != 200 || got.Judge != "" || r.Status != "ok" || *r.Score != score || *r.Passed != passed || r.Confidence != nil || r.Method != nil ||
			r.Option != nil || r.Probabilities != nil || len(r.Version) != 16 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	f(`{"evaluators":["exact_match"],"output":" A b","expected":["x","a B"]}`, 1, true)
	f(`{"evaluators":["exact_match"],"output":"the b","expected":"B!","options":{"exact_match":{"dialect":"squad"}}}`, 1, true)
	f(`{"evaluators":["levenshtein"],"output":"ab","expected":"ax","options":{"levenshtein":{"pass":0.5}}}`, .5, true)
	f(`{"evaluators":["exact_match"],"output":"","expected":"x"}`, 0, false)
	f(`{"evaluators":["length"],"output":"abc","options":{"length":{"max":3}}}`, 1, true)
	f(`{"evaluators":["contains"],"output":"abc","options":{"contains":{"all":["A"],"ignore_case":true}}}`, 1, true)
	f(`{"evaluators":["valid_json"],"output":"{\"n\":1.5}","options":{"valid_json":{"schema":{"properties":{"n":{"type":"integer"}}}}}}`, 0, false)
	f(`{"evaluators":["latency"],"latency_ms":20.5,"options":{"latency":{"max":20}}}`, 0, false)
	f(`{"evaluators":["tokens"],"input_tokens":5,"output_tokens":6,"options":{"tokens":{"max":11}}}`, 1, true)
	f(`{"evaluators":["numeric_range"],"attributes":{"n":"3"},"options":{"numeric_range":{"field":"attributes.n","max":3}}}`, 1, true)
}

func TestABatchOfRulesHasAggregates(t *testing.T) {
	w := start(t, twoJudgesNobodyAsks(t))
	a := w.evaluate(`{"evaluators":["token_f1"],"items":[{"output":"red car","expected":"a red car"},{"output":"blue","expected":"red"},{"output":"x"}]}`)
	var got evaluateBody
	a.into(t, &got)
	if a.status != 200 || len(got.Aggregates) != 1 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s := got.Aggregates[0]
	if *s.MeanScore != .5 || s.PassRate.N != 2 || s.PassRate.Value != .5 || s.Statuses["not_applicable"] != 1 || len(s.Options) != 0 {
		t.Errorf("%s", a.body)
	}
}

func TestWrongRulesNameTheirField(t *testing.T) {
	w := start(t, twoJudgesNobodyAsks(t))
	f := func(body string, want ...string) {
		t.Helper()
		a := w.evaluate(body)
		if a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
		for _, s := range want {
			if !strings.Contains(string(a.body), s) {
				t.Errorf("%s: %s does not say %q", body, a.body, s)
			}
		}
	}
	f(`{"evaluators":["regex"],"output":"x"}`, "options.regex", "want at least one of pattern, must_not")
	f(`{"evaluators":["regex"],"output":"x","options":{"regex":{"pattern":1}}}`, "options.regex.pattern", "want a string, not a number")
	f(`{"evaluators":["regex"],"output":"x","options":{"regex":{"pattern":"("}}}`, "options.regex", "error parsing")
	f(`{"evaluators":["contains"],"output":"x","options":{"contains":{"any":["a",2]}}}`, "options.contains.any[1]")
	f(`{"evaluators":["valid_json"],"output":"x","options":{"valid_json":{"schema":{"$ref":"http://h/x"}}}}`, "its own parts only")
	f(`{"evaluators":["latency"],"latency_ms":"5","options":{"latency":{"max":20}}}`, "latency_ms", "want a number")
	f(`{"evaluators":["tokens"],"input_tokens":1.5,"options":{"tokens":{"max":20}}}`, "input_tokens", "whole number")
	f(`{"evaluators":["exact_match"],"attributes":{"a":1},"output":"x","expected":"x"}`, "attributes.a")
	f(`{"evaluators":["exact_match"],"output":"x","expected":"x","judge":"nobody"}`, "unknown judge")
	f(`{"evaluators":["exact_match","noncommittal"],"output":"x","expected":"x"}`, "judge", "missing; want one of main, other")
}

func TestASuiteIsItsEvaluators(t *testing.T) {
	w := start(t, withJudge(sure(.9)))
	a := w.evaluate(`{"suite":"correctness","input":"q","output":"o","expected":"o","criteria":"c","options":{"levenshtein":{"pass":0.9}}}`)
	var got evaluateBody
	a.into(t, &got)
	if a.status != 200 || len(got.Results) != 7 || got.Judge != "main" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, r := range got.Results {
		if r.Status != "ok" {
			t.Errorf("%s: %s %v", r.Evaluator, r.Status, r.Reason)
		}
	}
	a = w.evaluate(`{"suite":"everything","input":"q","output":"o [1].","context":["d"]}`)
	a.into(t, &got)
	if a.status != 200 || len(got.Results) < 20 {
		t.Fatalf("%d %s", a.status, a.body)
	}
}
