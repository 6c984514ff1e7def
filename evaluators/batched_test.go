package evaluators_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/testkit"
)

// All claims in one call, through prompt and wire: the numbers are those of single
// calls, at the price of one.
func TestBatchedClaimsCostOneCall(t *testing.T) {
	verdicts := bridgeVerdicts()
	fake := testkit.NewFakeJudge(t, func(r testkit.FakeRequest) testkit.FakeReply {
		var reply testkit.FakeReply
		for _, f := range r.Fields {
			if !strings.HasPrefix(f.Name, "claim") {
				continue
			}
			v, ok := verdicts[f.Value]
			if !ok {
				v = "X"
			}
			p := map[string]float64{"S": .1, "C": .1, "N": .1, "X": .1}
			p[v] = .7
			reply.Parts = append(reply.Parts, p)
		}
		return reply
	})
	j := stack(t, fake, judge.Structured)
	batched := evaluators.Settings{Claims: "batched"}
	f := func(name string, s evaluators.Settings, score float64, label string) {
		t.Helper()
		before := fake.Calls()
		r := evaluate(t, evaluator(t, name, s), j, bridge())
		if r.Status != evaluators.OK || !near(*r.Score, score) || r.Label != label || fake.Calls() != before+1 || r.Attempts != 1 ||
			r.Method != judge.Structured || !near(*r.Confidence, .7) {
			t.Errorf("%s: %s %s %v %q after %d calls", name, r.Status, r.Reason, r.Score, r.Label, fake.Calls()-before)
		}
		if list := r.Detail["claims"].([]any); len(list) != 5 || list[2].(map[string]any)["verdict"] != "C" || list[2].(map[string]any)["text"] != "It is red." {
			t.Errorf("%s: claims %v", name, list)
		}
	}
	f("faithfulness", batched, .5, "2 of 4")
	f("groundedness", batched, (.7/.9*2+.1/.9*2)/4, "44% grounded")
	f("hallucination_rate", evaluators.Settings{Claims: "batched", Count: "contradicted"}, .25, "1 of 4 contradicted")

	it := complete()
	it.Output, it.Expected = text("It is red. It opened in 1937."), []string{"It opened in 1937."}
	before := fake.Calls()
	r := evaluate(t, evaluator(t, "answer_correctness", evaluators.Settings{Dialect: "statements", Claims: "batched"}), j, it)
	if r.Detail["tp"] != 1 || r.Detail["fp"] != 1 || r.Detail["fn"] != 0 || fake.Calls() != before+2 {
		t.Errorf("statements: %v after %d calls", r.Detail, fake.Calls()-before)
	}
}

func TestABatchIsAnsweredWholeOrNotAtAll(t *testing.T) {
	e := evaluator(t, "faithfulness", evaluators.Settings{Claims: "batched"})
	parts := func(n int, p ...float64) judgeFunc {
		return func(context.Context, judge.Question) (judge.Answer, error) {
			a := judge.Answer{Method: judge.Structured, Attempts: 1, Usage: judge.Usage{InputTokens: 9}}
			for range n {
				a.Parts = append(a.Parts, p)
			}
			return a, nil
		}
	}
	for _, j := range []judgeFunc{parts(0), parts(4, 1, 0, 0, 0), parts(6, 1, 0, 0, 0), parts(5, 1, 1, 0, 0), parts(5, 1)} {
		if r := evaluate(t, e, j, bridge()); r.Status != evaluators.Unscored || r.Reason != "malformed" || r.Usage.InputTokens != 9 {
			t.Errorf("%s %s, usage %+v", r.Status, r.Reason, r.Usage)
		}
	}
	if r := evaluate(t, e, fails(&judge.RefusedError{Reason: "needs_structured"}), bridge()); r.Status != evaluators.Unscored || r.Reason != "needs_structured" {
		t.Errorf("%s %s", r.Status, r.Reason)
	}
	if r := evaluate(t, e, parts(5, 0, 0, 0, 1), bridge()); r.Reason != "no_statements" {
		t.Errorf("nothing stated: %s %s", r.Status, r.Reason)
	}
	it := bridge()
	it.Output = text("---")
	if r := evaluate(t, e, nobody(t), it); r.Reason != "no_statements" {
		t.Errorf("no sentences: %s %s", r.Status, r.Reason)
	}
}

func TestABatchIsOneQuestionWithItsOwnVersion(t *testing.T) {
	e := evaluator(t, "faithfulness", evaluators.Settings{Claims: "batched"})
	list, err := e.Questions(bridge())
	if err != nil || len(list) != 1 || list[0].Each != "claim" || list[0].Name != "claims_supported/1" || e.Definition().Template != "claims_supported/1" {
		t.Fatalf("%+v, %v", list, err)
	}
	var names []string
	for _, f := range list[0].Fields {
		names = append(names, f.Name)
		if !strings.Contains(list[0].Text, `"`+f.Name+`"`) {
			t.Errorf("the question does not say what the block %s is", f.Name)
		}
	}
	if want := []string{"context", "context", "input", "output", "claim", "claim", "claim", "claim", "claim"}; !slices.Equal(names, want) {
		t.Errorf("reads %v", names)
	}
	single := evaluator(t, "faithfulness", evaluators.Settings{Claims: "single"}).Definition().Hash()
	if single != evaluator(t, "faithfulness", evaluators.Settings{}).Definition().Hash() || single == e.Definition().Hash() {
		t.Error("the version does not tell how claims are asked about")
	}
	for name, s := range map[string]evaluators.Settings{
		"citation_recall":    {Claims: "batched"},
		"closed_qa":          {Claims: "single"},
		"answer_correctness": {Claims: "batched"},
		"faithfulness":       {Claims: "batched", Orders: 2},
		"groundedness":       {Claims: "guessed"},
	} {
		if _, err := evaluators.New(name, s); err == nil {
			t.Errorf("%s %+v was taken", name, s)
		}
	}
}
