package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/testkit"
)

// an evaluateRoom is a folder to run the command in, with a model that passes what
// outputs say: good, bad, or broken.
type evaluateRoom struct {
	t    *testing.T
	dir  string
	fake *testkit.FakeJudge
}

func newEvaluateRoom(t *testing.T) *evaluateRoom {
	r := &evaluateRoom{t: t, dir: t.TempDir()}
	r.fake = testkit.NewFakeJudge(t, func(q testkit.FakeRequest) testkit.FakeReply {
		switch output := q.Field("output"); {
		case strings.HasPrefix(output, "good"):
			return testkit.FakeReply{Probabilities: map[string]float64{"yes": .9, "no": .1}}
		case strings.HasPrefix(output, "broken"):
			return testkit.FakeReply{Fault: testkit.Rejected}
		case strings.HasPrefix(output, "hang"):
			return testkit.FakeReply{Fault: testkit.Hang}
		}
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": .2, "no": .8}}
	})
	return r
}

func (r *evaluateRoom) path(name string) string { return filepath.Join(r.dir, name) }

// write writes a file of items with ids 0, 1, ... and these outputs.
func (r *evaluateRoom) write(name string, outputs ...string) string {
	r.t.Helper()
	var b strings.Builder
	for i, o := range outputs {
		fmt.Fprintf(&b, `{"id":"i%d","input":"q","output":%q,"criteria":"c"}`+"\n", i, o)
	}
	if err := os.WriteFile(r.path(name), []byte(b.String()), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return r.path(name)
}

func (r *evaluateRoom) options(change func(*evaluateOptions)) evaluateOptions {
	o := evaluateOptions{evaluators: []string{"closed_qa"}, url: r.fake.URL, model: "m", method: "logprobs", concurrency: 2}
	if change != nil {
		change(&o)
	}
	return o
}

func (r *evaluateRoom) run(ctx context.Context, path string, asJSON bool, o evaluateOptions) (string, error) {
	r.t.Helper()
	var out bytes.Buffer
	a := &app{out: &out, err: &out, json: asJSON, args: []string{"evaluate", path, "--out", "a file.jsonl"}}
	err := a.evaluate(ctx, path, o)
	return out.String(), err
}

func (r *evaluateRoom) lines(name string) (lines []lineResult) {
	r.t.Helper()
	_, lines, err := readResults(r.path(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return lines
}

func TestARunGoesOnFromWhatItsFileHolds(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0", "bad 1", "broken 2", "good 3")
	out := r.path("out.jsonl")
	o := r.options(func(o *evaluateOptions) { o.out = out })
	if _, err := r.run(t.Context(), in, false, o); err != nil {
		t.Fatal(err)
	}
	first := r.lines("out.jsonl")
	// The end leaves the order of the items, whatever the order of the answers.
	for i, l := range first {
		if l.ID != fmt.Sprintf("i%d", i) || l.Line != i+1 {
			t.Errorf("line %d is %+v", i, l)
		}
	}
	if len(first) != 4 || first[2].Status != "error" || first[0].Usage.InputTokens == 0 {
		t.Fatalf("%+v", first)
	}

	// Only what failed is asked again.
	asked := r.fake.Calls()
	text, err := r.run(t.Context(), in, false, o)
	if err != nil || r.fake.Calls() != asked+1 || !strings.Contains(text, "3 of 4 judgements were in") {
		t.Errorf("%d calls, %v\n%s", r.fake.Calls()-asked, err, text)
	}
	if second := r.lines("out.jsonl"); len(second) != 4 || *second[3].Score != *first[3].Score || second[0].Probabilities["yes"] != first[0].Probabilities["yes"] {
		t.Errorf("%+v", second)
	}

	// A text that changed, a line that is new: two calls and the one that fails.
	asked = r.fake.Calls()
	in = r.write("in.jsonl", "good 0", "good now", "broken 2", "good 3", "bad 4")
	if _, err := r.run(t.Context(), in, false, o); err != nil || r.fake.Calls() != asked+3 {
		t.Errorf("%d calls, %v", r.fake.Calls()-asked, err)
	}
	if lines := r.lines("out.jsonl"); len(lines) != 5 || !*lines[1].Passed {
		t.Errorf("%+v", lines)
	}

	// Another version of the evaluator knows nothing of these answers; --fresh wants none.
	for name, change := range map[string]func(*evaluateOptions){
		"another pass line": func(o *evaluateOptions) { o.sets = []string{"closed_qa.orders=2"} },
		"fresh":             func(o *evaluateOptions) { o.fresh = true },
	} {
		asked = r.fake.Calls()
		again := o
		change(&again)
		if _, err := r.run(t.Context(), in, false, again); err != nil || r.fake.Calls() < asked+5 {
			t.Errorf("%s: %d calls, %v", name, r.fake.Calls()-asked, err)
		}
	}
}

func TestALineThatWasCutWhileItWasWrittenIsJudgedAgain(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0", "bad 1", "good 2")
	o := r.options(func(o *evaluateOptions) { o.out = r.path("out.jsonl") })
	if _, err := r.run(t.Context(), in, false, o); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.out, raw[:len(raw)-40], 0o600); err != nil {
		t.Fatal(err)
	}
	asked := r.fake.Calls()
	if _, err := r.run(t.Context(), in, false, o); err != nil || r.fake.Calls() != asked+1 {
		t.Errorf("%d calls, %v", r.fake.Calls()-asked, err)
	}
	if len(r.lines("out.jsonl")) != 3 {
		t.Error("not three lines")
	}
}

// A file of something else is not written over, whether it has whole lines or not.
func TestAFileOfSomethingElseIsNotWrittenOver(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0")
	for _, text := range []string{"notes\n", "notes", `{"id":"i0"}`, `{"line":1}` + "\n"} {
		other := r.path("other")
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := r.run(t.Context(), in, false, r.options(func(o *evaluateOptions) { o.out = other }))
		if err == nil || !strings.Contains(err.Error(), "other:1: is no line of results") {
			t.Errorf("%q: %v", text, err)
		}
		if kept, err := os.ReadFile(other); err != nil || string(kept) != text {
			t.Errorf("%q is %q now, %v", text, kept, err)
		}
	}
	// What was cut in the first bytes of its first line is a file of results.
	if err := os.WriteFile(r.path("cut"), []byte(`{"li`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run(t.Context(), in, false, r.options(func(o *evaluateOptions) { o.out = r.path("cut") })); err != nil || len(r.lines("cut")) != 1 {
		t.Errorf("%v", err)
	}
	// The file that is judged is not written over even afresh.
	for name, change := range map[string]func(*evaluateOptions){
		"out":   func(o *evaluateOptions) { o.out, o.fresh = in, true },
		"junit": func(o *evaluateOptions) { o.junit = in },
	} {
		_, err := r.run(t.Context(), in, false, r.options(change))
		var usage errUsage
		if raw, readErr := os.ReadFile(in); !errors.As(err, &usage) || readErr != nil || !strings.HasPrefix(string(raw), `{"id":"i0","input"`) {
			t.Errorf("--%s: %v, %s", name, err, raw)
		}
	}
}

func TestAnInterruptionKeepsWhatIsDoneAndSaysHowToGoOn(t *testing.T) {
	r := newEvaluateRoom(t)
	outputs := []string{"good 0", "good 1", "good 2", "hang 3", "hang 4", "good 5"}
	in := r.write("in.jsonl", outputs...)
	o := r.options(func(o *evaluateOptions) { o.out = r.path("out.jsonl") })
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		_, err := r.run(ctx, in, false, o)
		ended <- err
	}()
	testkit.Eventually(t, time.Minute, "two questions hang", func() error {
		hanging := 0
		for _, q := range r.fake.Requests() {
			if strings.HasPrefix(q.Field("output"), "hang") {
				hanging++
			}
		}
		if hanging < 2 {
			return fmt.Errorf("%d hang", hanging)
		}
		return nil
	})
	interrupt()
	err := <-ended
	if err == nil || !strings.Contains(err.Error(), "3 of 6 judgements are in") || !strings.Contains(err.Error(), "assay evaluate "+in+" --out 'a file.jsonl'") {
		t.Fatalf("%v", err)
	}
	var gate errGate
	if errors.As(err, &gate) {
		t.Error("an interruption is no gate")
	}
	if kept := r.lines("out.jsonl"); len(kept) != 3 {
		t.Errorf("%d lines are kept", len(kept))
	}
	for i := range outputs {
		outputs[i] = strings.Replace(outputs[i], "hang", "good", 1)
	}
	asked := r.fake.Calls()
	if _, err := r.run(t.Context(), r.write("in.jsonl", outputs...), false, o); err != nil || r.fake.Calls() != asked+3 {
		t.Errorf("%d calls, %v", r.fake.Calls()-asked, err)
	}
	if len(r.lines("out.jsonl")) != 6 {
		t.Error("not six lines")
	}
}

func TestALinkToAResultsFileStaysALink(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0")
	if err := os.Symlink(r.path("real.jsonl"), r.path("link.jsonl")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.run(t.Context(), in, false, r.options(func(o *evaluateOptions) { o.out = r.path("link.jsonl") })); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(r.path("link.jsonl")); err != nil || info.Mode()&os.ModeSymlink == 0 {
			// The first run makes the file that the link names.
			t.Fatalf("%v, %v", info, err)
		}
		if len(r.lines("real.jsonl")) != 1 {
			t.Error("not one line")
		}
	}
}

func TestADryRunOfAFileAsksNobodyAndWritesNothing(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0", "", "bad 2")
	o := r.options(func(o *evaluateOptions) {
		o.evaluators, o.dryRun, o.out = []string{"closed_qa", "exact_match"}, true, r.path("out.jsonl")
	})
	text, err := r.run(t.Context(), in, true, o)
	if err != nil || r.fake.Calls() != 0 {
		t.Fatalf("%d calls, %v", r.fake.Calls(), err)
	}
	if _, err := os.Stat(o.out); err == nil {
		t.Error("a file was written")
	}
	var got struct{ Evaluators []dryEvaluator }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	closed, exact := got.Evaluators[0], got.Evaluators[1]
	if closed.Asked != 2 || closed.Questions != 2 || closed.WithoutJudge["ok"] != 1 || closed.InputTokens < 200 || closed.OutputTokens != 2 ||
		closed.First == nil || closed.First.ID != "i0" || !strings.Contains(closed.First.Prompt[len(closed.First.Prompt)-1].Text, "good 0") {
		t.Errorf("%+v", closed)
	}
	if exact.Asked != 0 || exact.WithoutJudge["not_applicable"] != 3 || exact.First != nil {
		t.Errorf("%+v", exact)
	}
	// What --out has is not counted; --fresh does not empty it here.
	run := o
	run.dryRun = false
	if _, err := r.run(t.Context(), in, false, run); err != nil {
		t.Fatal(err)
	}
	text, err = r.run(t.Context(), in, false, o)
	if err != nil || !strings.Contains(text, "nothing was asked") || strings.Contains(text, "good 0") {
		t.Errorf("%v\n%s", err, text)
	}
	o.fresh = true
	if text, err = r.run(t.Context(), in, false, o); err != nil || !strings.Contains(text, "good 0") || len(r.lines("out.jsonl")) != 6 {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestWhatTheEmbeddedJudgeCannotSayIsNoted(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0")
	f := func(want bool, change func(*evaluateOptions)) {
		t.Helper()
		o := evaluateOptions{evaluators: []string{"exact_match", "factuality"}, judge: "embedded", concurrency: 1, dryRun: true}
		change(&o)
		text, err := r.run(t.Context(), in, false, o)
		if err != nil || strings.Contains(text, "add --coarse") != want {
			t.Errorf("%v\n%s", err, text)
		}
	}
	f(true, func(*evaluateOptions) {})
	// It computes: what it is asked costs nothing.
	text, err := r.run(t.Context(), in, true, evaluateOptions{evaluators: []string{"closed_qa"}, judge: "embedded", concurrency: 1, dryRun: true})
	if err != nil || !strings.Contains(text, `"asked": 1,`) || !strings.Contains(text, `"input_tokens_about": 0,`) {
		t.Errorf("%v\n%s", err, text)
	}
	f(false, func(o *evaluateOptions) { o.coarse = true })
	f(false, func(o *evaluateOptions) { o.evaluators = o.evaluators[:1] })
	f(false, func(o *evaluateOptions) { o.url, o.model, o.method = r.fake.URL, "m", "logprobs" })
}

func TestFlagsOfEvaluateThatNeedEachOther(t *testing.T) {
	r := newEvaluateRoom(t)
	in := r.write("in.jsonl", "good 0")
	f := func(want string, change func(*evaluateOptions)) {
		t.Helper()
		_, err := r.run(t.Context(), in, false, r.options(change))
		var usage errUsage
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a usage error with %q", err, want)
		}
	}
	f("--fresh: is about --out", func(o *evaluateOptions) { o.fresh = true })
	f("--fail-worse: needs --against", func(o *evaluateOptions) { o.failWorse = .05 })
	f("--fail-worse 2", func(o *evaluateOptions) { o.failWorse = 2 })
	f("--against", func(o *evaluateOptions) { o.against = r.path("nothing.jsonl") })
	f("is a directory", func(o *evaluateOptions) { o.out = r.dir })
	f("closed_qa stands there twice", func(o *evaluateOptions) { o.evaluators = []string{"closed_qa", "closed_qa"} })
	f("answer_relevance stands there twice", func(o *evaluateOptions) { o.evaluators = []string{"answer_relevancy", "answer_relevance"} })
	f("did you mean closed_qa", func(o *evaluateOptions) { o.evaluators = []string{"closed_qs"} })
	f("its folder is not there", func(o *evaluateOptions) { o.junit = r.path("nowhere/report.xml") })
	f("--concurrency 0", func(o *evaluateOptions) { o.concurrency = 0 })
}
