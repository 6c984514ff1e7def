package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/evaluators/aggregate"
)

func TestARunIsComparedWithAnEarlierOneItemByItem(t *testing.T) {
	r := newEvaluateRoom(t)
	var before, after []string
	for i := range 40 {
		before = append(before, fmt.Sprintf("good %d", i))
		after = append(after, fmt.Sprintf("%s %d", []string{"good", "bad"}[i%4/3], i)) // a quarter gets worse
	}
	after[39], before[0], after[5] = "bad 39", "bad 0", "broken 5"
	if _, err := r.run(t.Context(), r.write("before.jsonl", before...), false, r.options(func(o *evaluateOptions) { o.out = r.path("old.jsonl") })); err != nil {
		t.Fatal(err)
	}
	o := r.options(func(o *evaluateOptions) { o.against, o.failWorse = r.path("old.jsonl"), .05 })
	in := r.write("after.jsonl", append(after, "good and new")...)
	text, err := r.run(t.Context(), in, true, o)
	var gate errGate
	if !errors.As(err, &gate) || gate.code != exitGate || !strings.Contains(err.Error(), "pass rate fell") {
		t.Errorf("%v", err)
	}
	var got struct{ Against []comparison }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	c := got.Against[0]
	// 39 pairs: one without an answer now, one that is new. 10 got worse, one better.
	if c.Pairs != 39 || c.Unpaired != 2 || c.OnlyBefore != 10 || c.OnlyAfter != 1 || c.Before != 38./39 || c.After != 29./39 {
		t.Errorf("%+v", c)
	}
	if *c.P < .003 || *c.P > .007 || c.Change.Value > -.23 || *c.Change.Upper >= 0 || *c.Change.Lower >= c.Change.Value || *c.MeanP > .01 || c.MeanChange.Value >= 0 {
		t.Errorf("p %v, change %+v, mean %+v", *c.P, c.Change, c.MeanChange)
	}
	if len(c.Worse) != 10 || c.Worse[0] != (worsened{"i3", 4}) || c.Caution != "" {
		t.Errorf("%+v, %q", c.Worse, c.Caution)
	}
	text, err = r.run(t.Context(), in, false, r.options(func(o *evaluateOptions) {
		o.against, o.sets = r.path("old.jsonl"), []string{"closed_qa.pass=0.8"}
	}))
	for _, want := range []string{"39", "97.4% to 74.4%", "points", "10/1", "McNemar", "other settings", "i3 (line 4)"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%q is not in (%v)\n%s", want, err, text)
		}
	}
	// Without a pair there is nothing to say, and a gate says that.
	_, err = r.run(t.Context(), r.write("after.jsonl", "broken"), false, o)
	if !errors.As(err, &gate) || gate.code != exitTooFew {
		t.Errorf("%v", err)
	}
}

// A gate says nothing of a file most of which was not judged: lines that cannot be read,
// or a judge that answers for few of the items it answered for before.
func TestAGateIsNotMetByTheFewThatAreLeft(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0", "good 1", "good 2", "good 3")
	tooFew := func(want string, o evaluateOptions) {
		t.Helper()
		text, err := r.run(t.Context(), in, false, o)
		var gate errGate
		if !errors.As(err, &gate) || gate.code != exitTooFew || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q\n%s", err, want, text)
		}
	}
	old := r.options(func(o *evaluateOptions) { o.out = r.path("old.jsonl") })
	if _, err := r.run(t.Context(), in, false, old); err != nil {
		t.Fatal(err)
	}
	under := r.options(func(o *evaluateOptions) { o.failUnder = []string{"pass_rate=0.9"} })
	worse := r.options(func(o *evaluateOptions) { o.against, o.failWorse = r.path("old.jsonl"), .05 })
	appendTo := func(text string) {
		t.Helper()
		f, err := os.OpenFile(in, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(text)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	appendTo("{torn\n") // one of five is borne
	for _, o := range []evaluateOptions{under, worse} {
		if _, err := r.run(t.Context(), in, false, o); err != nil {
			t.Error(err)
		}
	}
	appendTo("{torn\n")
	tooFew("2 lines could not be read, 4 items could", under)
	tooFew("2 lines could not be read, 4 items could", worse)

	r.write("in.jsonl", "good 0", "good 1", "broken 2", "broken 3")
	tooFew("2 of 4 items with an answer then have none now", worse)
}

// A run that was interrupted may have failed at an item, and then have its answer.
func TestWhatFailedAndWasAskedAgainIsComparedByItsAnswer(t *testing.T) {
	yes, score := true, .9
	failed := lineResult{Line: 1, ID: "a", Item: "x", Evaluator: "e", Status: "error"}
	answered := failed
	answered.Status, answered.Passed, answered.Score = "ok", &yes, &score
	got, err := compareRuns([]string{"e"}, []lineResult{failed, answered}, []lineResult{answered})
	if err != nil || got[0].Pairs != 1 || got[0].Unpaired != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAJUnitReportHasACaseForEachItemAndGate(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0", "bad 1 <&>", "broken 2")
	_, err := r.run(t.Context(), in, false, r.options(func(o *evaluateOptions) {
		o.evaluators = []string{"closed_qa", "exact_match"}
		o.junit, o.failUnder = r.path("report.xml"), []string{"closed_qa.pass_rate=0.4", "closed_qa.mean_score=0.9"}
	}))
	var gate errGate
	if !errors.As(err, &gate) || gate.code != exitTooFew { // a third is missing
		t.Errorf("%v", err)
	}
	raw, err := os.ReadFile(r.path("report.xml"))
	if err != nil {
		t.Fatal(err)
	}
	var report junitReport
	if err := xml.Unmarshal(raw, &report); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if report.Tests != 9 || report.Failures != 3 || report.Errors != 1 || report.Skipped != 3 || len(report.Suites) != 3 {
		t.Errorf("%s", raw)
	}
	judgedSuite := report.Suites[0]
	if c := judgedSuite.Cases[1]; c.Failure == nil || !strings.Contains(c.Failure.Message, "20% yes, score 0.2") || c.Name != "i1" || c.Line != 2 {
		t.Errorf("%+v", c)
	}
	if c := judgedSuite.Cases[2]; c.Error == nil || c.Error.Type != "error" || c.Error.Message != "judge_rejected" {
		t.Errorf("%+v", c)
	}
	if c := report.Suites[1].Cases[0]; c.Skipped == nil || c.Skipped.Message != "missing:expected" {
		t.Errorf("%+v", c)
	}
	if gates := report.Suites[2]; gates.Name != "gates" || gates.Failures != 2 {
		t.Errorf("%+v", gates)
	}
}

func TestCasesOfOneIDHaveNamesOfTheirOwn(t *testing.T) {
	yes, score := true, 1.0
	line := lineResult{Line: 1, ID: "a", Evaluator: "e", Status: "ok", Passed: &yes, Score: &score}
	again := line
	again.Line = 7
	path := filepath.Join(t.TempDir(), "report.xml")
	if err := writeJUnit(path, "in.jsonl", []string{"e"}, []aggregate.Summary{{}}, []lineResult{line, again}, nil); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(raw), `name="a" `) || !strings.Contains(string(raw), `name="a (line 7)"`) {
		t.Errorf("%s %v", raw, err)
	}
}

func TestAGateMayBeAboutOneEvaluator(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0", "bad 1")
	f := func(code int, want string, gates ...string) {
		t.Helper()
		_, err := r.run(t.Context(), in, false, r.options(func(o *evaluateOptions) {
			o.evaluators, o.failUnder, o.sets = []string{"closed_qa", "length"}, gates, []string{"length.max=10"}
		}))
		var gate errGate
		var usage errUsage
		got := exitDone
		switch {
		case errors.As(err, &gate):
			got = gate.code
		case errors.As(err, &usage):
			got = exitUsage
		}
		if got != code || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: exit %d, %v", gates, got, err)
		}
	}
	f(exitDone, "")
	f(exitDone, "", "pass_rate=0.5")
	f(exitGate, "closed_qa: pass_rate 0.5000 is under 0.6000", "pass_rate=0.6")
	f(exitDone, "", "length.pass_rate=1")
	f(exitGate, "closed_qa", "length.pass_rate=1", "closed_qa.mean_score=0.7")
	f(exitUsage, "does not run", "factuality.pass_rate=1")
	f(exitUsage, "did you mean closed_qa", "closed_qs.pass_rate=1")
	f(exitUsage, "want pass_rate=P", "pass=1")
	f(exitUsage, "want pass_rate=P", "pass_rate=NaN")
}

func TestASuiteOfTheChecksFileRunsOverAFile(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0")
	checksFile := r.path("assay.yaml")
	const text = `version: 1
sources: [{ topic: t }]
checks: [{ name: c, evaluator: length, max: 5, sample: { rate: 1 } }]
suites: { ours: [token_f1, refusal] }
`
	if err := os.WriteFile(checksFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{out: &out, err: &out, environ: []string{"ASSAY_CHECKS=" + checksFile}}
	if err := a.evaluate(t.Context(), in, evaluateOptions{suite: "ours", concurrency: 1}); err != nil || !strings.Contains(out.String(), "token_f1") {
		t.Errorf("%v\n%s", err, out.String())
	}
	file, err := loadChecks(checksFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, a.json = range []bool{false, true} {
		out.Reset()
		if err := a.printChecks(file); err != nil || !strings.Contains(out.String(), "ours") || !strings.Contains(out.String(), "refusal") {
			t.Errorf("validate shows no suite: %v\n%s", err, out.String())
		}
	}
	err = a.evaluate(t.Context(), in, evaluateOptions{suite: "our", concurrency: 1})
	var usage errUsage
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "did you mean ours?") {
		t.Errorf("%v", err)
	}
}
