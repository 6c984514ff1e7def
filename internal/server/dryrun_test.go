package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"assay/evaluators/judge"
)

func nobody(t *testing.T) judge.Judge {
	return judgeFunc(func(context.Context, judge.Question) (judge.Answer, error) {
		t.Error("the judge was asked")
		return judge.Answer{}, errors.New("no")
	})
}

func TestADryRunShowsTheQuestionsAndAsksNobody(t *testing.T) {
	w := start(t, withJudge(nobody(t)), func(_ *Config, d *Deps) {
		d.Prompts = map[string]func(judge.Question) []judge.Message{"main": func(q judge.Question) []judge.Message {
			return []judge.Message{{Role: "system", Text: "s"}, {Role: "user", Text: "about " + q.Name}}
		}}
	})
	a := w.evaluate(`{"dry_run":true,"evaluators":["closed_qa","exact_match","factuality","faithfulness"],
		"input":"the input","output":"One. Two.","criteria":"the criteria","context":"c","options":{"faithfulness":{"max_claims":4}}}`)
	var got evaluateBody
	a.into(t, &got)
	if a.status != 200 || got.Judge != "main" || got.Results != nil || len(got.DryRun) != 4 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	closed, exact, facts, claims := got.DryRun[0], got.DryRun[1], got.DryRun[2], got.DryRun[3]
	if closed.Result != nil || len(closed.Questions) != 1 || closed.Calls != (callsBody{1, 1, 0}) {
		t.Fatalf("%s", a.body)
	}
	q := closed.Questions[0]
	fields := map[string]string{}
	for _, f := range q.Fields {
		fields[f.Name] = f.Value
	}
	if q.Kind != "boolean" || fields["input"] != "the input" || fields["criteria"] != "the criteria" || fields["output"] != "One. Two." ||
		len(q.Options) != 2 || q.Options[0].Key != "yes" || q.Text == "" || len(q.Prompt) != 2 || q.Prompt[1].Text != "about "+q.Name {
		t.Errorf("%+v", q)
	}
	// What takes no judge is there already: a field that is missing, and a rule.
	for _, d := range []dryRunBody{exact, facts} {
		if d.Result == nil || d.Result.Status != "not_applicable" || *d.Result.Reason != "missing:expected" || len(d.Questions) != 0 {
			t.Errorf("%+v", d)
		}
	}
	if len(claims.Questions) != 2 || claims.Calls != (callsBody{1, 4, 0}) {
		t.Errorf("%+v", claims)
	}
}

func TestADryRunOfABatchKeepsItsItems(t *testing.T) {
	w := start(t, withJudges(map[string]judge.Judge{"main": nobody(t), "other": nobody(t)}))
	// No judge needs to be named: none is asked.
	a := w.evaluate(`{"dry_run":true,"evaluators":["factuality","length"],"options":{"length":{"max":1}},"items":[{"id":"a","output":"o","expected":"x"},{"output":"","expected":"x"}]}`)
	var got evaluateBody
	a.into(t, &got)
	if a.status != 200 || len(got.Items) != 2 || got.Items[0].ID != "a" || got.Aggregates != nil || got.Judge != "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if q := got.Items[0].DryRun[0].Questions; len(q) != 1 || q[0].Prompt != nil {
		t.Errorf("%s", a.body)
	}
	if r := got.Items[0].DryRun[1].Result; r == nil || r.Status != "ok" || *r.Score != 1 {
		t.Errorf("%s", a.body)
	}
	// An empty answer is the worst one by a rule.
	if r := got.Items[1].DryRun[0].Result; r == nil || *r.Score != 0 {
		t.Errorf("%s", a.body)
	}
	if a := w.evaluate(`{"dry_run":1,"evaluators":["factuality"]}`); a.status != 400 || !strings.Contains(string(a.body), "want true or false") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestAnEvaluatorIsShownWithItsQuestions(t *testing.T) {
	w := start(t)
	f := func(name string) (d evaluatorDetail) {
		t.Helper()
		a := w.get("/api/v1/evaluators/" + name)
		if a.status != 200 {
			t.Fatalf("%s: %d %s", name, a.status, a.body)
		}
		a.into(t, &d)
		return d
	}
	facts := f("factuality")
	if facts.Name != "factuality" || len(facts.Questions) != 2 || !facts.Questions[1].Coarse || len(facts.Questions[0].Options) != 5 || facts.Questions[0].Options[2].Score != 1 ||
		!strings.Contains(facts.Questions[0].Text, "expected") || !strings.Contains(facts.Mapping, "most probable option") || facts.Use == "" || len(facts.Suites) == 0 || facts.Required[0] != "output" {
		t.Errorf("%+v", facts)
	}
	if alias := f("answer_relevance"); alias.Name != "answer_relevancy" {
		t.Errorf("%+v", alias)
	}
	if rule := f("length"); len(rule.Questions) != 0 || rule.Question != "none" || !strings.Contains(rule.Mapping, "computed") {
		t.Errorf("%+v", rule)
	}
	a := w.get("/api/v1/evaluators/factualty")
	if a.status != 404 || !strings.Contains(string(a.body), "did you mean factuality?") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestASuiteOfTheChecksFileIsLikeABuiltInOne(t *testing.T) {
	w := start(t, withJudge(sure(.9)), func(_ *Config, d *Deps) {
		d.Checks = parseChecks(t, checksFile+"suites: { ours: [factuality, exact_match] }\n")
	})
	a := w.evaluate(`{"suite":"ours","output":"o","expected":"o"}`)
	var got evaluateBody
	a.into(t, &got)
	if a.status != 200 || len(got.Results) != 2 || got.Results[1].Evaluator != "exact_match" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := w.evaluate(`{"suite":"our","output":"o"}`); a.status != 400 || !strings.Contains(string(a.body), "did you mean ours?") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for _, path := range []string{"/api/v1/evaluators", "/openapi.json"} {
		if body := string(w.get(path).body); !strings.Contains(body, `"ours"`) {
			t.Errorf("%s does not name the suite", path)
		}
	}
}
