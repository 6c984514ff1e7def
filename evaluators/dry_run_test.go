package evaluators_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"assay/evaluators"
	"assay/evaluators/judge"
)

// Whatever an evaluator asks first, a dry run shows; and where nothing would be asked it
// has the result.
func TestADryRunShowsWhatWouldBeAsked(t *testing.T) {
	for _, spec := range evaluators.Table() {
		if !spec.NeedsJudge() {
			continue
		}
		e := evaluator(t, spec.Name, evaluators.Settings{})
		it := complete()
		it.Output = text("Canberra is the capital [1]. It lies inland [1].")
		dry, err := evaluators.Dry(t.Context(), e, it)
		if err != nil || dry.Result != nil || len(dry.Questions) == 0 {
			t.Fatalf("%s: %+v, %v", spec.Name, dry, err)
		}
		var first judge.Question
		stop := judgeFunc(func(_ context.Context, q judge.Question) (judge.Answer, error) {
			first = q
			return judge.Answer{}, &judge.RejectedError{Err: context.Canceled}
		})
		evaluate(t, e, stop, it)
		if first.Name != dry.Questions[0].Name || first.Text != dry.Questions[0].Text || len(first.Fields) != len(dry.Questions[0].Fields) {
			t.Errorf("%s: the dry run shows %+v, asked was %+v", spec.Name, dry.Questions[0], first)
		}
		if dry.More != (spec.Name == "citation_precision") {
			t.Errorf("%s: more questions %t", spec.Name, dry.More)
		}
	}

	blank := complete()
	blank.Output = text(" ")
	dry, err := evaluators.Dry(t.Context(), evaluator(t, "closed_qa", evaluators.Settings{EmptyOutput: evaluators.Fail}), blank)
	if err != nil || dry.Result == nil || dry.Result.Detail["rule"] != "empty_output" || dry.Questions != nil {
		t.Errorf("a rule decides: %+v, %v", dry, err)
	}
	dry, err = evaluators.Dry(t.Context(), evaluator(t, "factuality", evaluators.Settings{}), evaluators.Item{Output: text("x"), Judgeable: true})
	if err != nil || dry.Result == nil || dry.Result.Reason != "missing:expected" {
		t.Errorf("a missing field: %+v, %v", dry, err)
	}
	dry, err = evaluators.Dry(t.Context(), evaluator(t, "exact_match", evaluators.Settings{}), complete())
	if err != nil || dry.Result == nil || dry.Result.Score == nil || dry.Questions != nil {
		t.Errorf("a rule computes: %+v, %v", dry, err)
	}
}

// The bounds hold whatever the judge says, and some answer reaches each of them.
func TestCallsAreWithinWhatIsAnnounced(t *testing.T) {
	f := func(name string, s evaluators.Settings, want evaluators.Calls) {
		t.Helper()
		e := evaluator(t, name, s)
		if got := e.Calls(); got != want {
			t.Errorf("%s %+v: %+v, want %+v", name, s, got, want)
			return
		}
		most := 0
		for _, output := range []string{"Yes.", "Canberra [1].", strings.Repeat("Canberra is a city [1][2][3]. ", 12)} {
			for _, option := range []string{"S", "N"} {
				it := complete()
				it.Output, it.Expected = &output, []string{strings.Repeat("It is a city. ", 12)}
				it.Context = []string{"a", "b", "c"}
				asked := countingJudge(option)
				if r := evaluate(t, e, asked.judge(), it); r.Status != evaluators.OK {
					t.Fatalf("%s: %+v", name, r)
				}
				n := int(asked.n.Load())
				most = max(most, n)
				if n < want.Min || n > want.Max {
					t.Errorf("%s %+v: %d calls, announced %+v", name, s, n, want)
				}
			}
		}
		if most < want.Max && name != "citation_precision" { // whose most needs answers that change
			t.Errorf("%s %+v: at most %d calls, announced %+v", name, s, most, want)
		}
	}
	type calls = evaluators.Calls
	if got := evaluator(t, "exact_match", evaluators.Settings{}).Calls(); got != (calls{}) {
		t.Errorf("a rule asks %+v", got)
	}
	f("closed_qa", evaluators.Settings{}, calls{Min: 1, Max: 1})
	f("closed_qa", evaluators.Settings{Orders: 2}, calls{Min: 2, Max: 2})
	f("faithfulness", evaluators.Settings{}, calls{Min: 1, Max: 8})
	f("groundedness", evaluators.Settings{MaxClaims: 3, Orders: 2}, calls{Min: 2, Max: 6})
	f("hallucination_rate", evaluators.Settings{Claims: "batched"}, calls{Min: 1, Max: 1})
	f("answer_correctness", evaluators.Settings{}, calls{Min: 1, Max: 1})
	f("answer_correctness", evaluators.Settings{Dialect: "statements"}, calls{Min: 2, Max: 16})
	f("answer_correctness", evaluators.Settings{Dialect: "statements", Similarity: true, MaxClaims: 2}, calls{Min: 3, Max: 5})
	f("answer_correctness", evaluators.Settings{Dialect: "statements", Claims: "batched"}, calls{Min: 2, Max: 2})
	f("citation_recall", evaluators.Settings{}, calls{Max: 8})
	f("citation_precision", evaluators.Settings{MaxClaims: 2}, calls{Max: 14})
}

// A counting judge gives one option of each question, the first one where it has none
// of that key.
type counting struct {
	option string
	n      atomic.Int64
}

func countingJudge(option string) *counting { return &counting{option: option} }

func (c *counting) judge() judgeFunc {
	return func(_ context.Context, q judge.Question) (judge.Answer, error) {
		c.n.Add(1)
		p := make([]float64, len(q.Options))
		p[0] = 1
		for i, o := range q.Options {
			if o.Key == c.option {
				p[0], p[i] = p[i], 1
			}
		}
		a := judge.Answer{Probabilities: p, Method: judge.Simulated, Model: "test/1", Attempts: 1}
		if q.Each != "" {
			a.Probabilities = nil
			for range q.FieldValues(q.Each) {
				a.Parts = append(a.Parts, p)
			}
		}
		return a, nil
	}
}

func TestEveryEvaluatorSaysWhatItIsFor(t *testing.T) {
	for _, spec := range evaluators.Table() {
		if spec.Use == "" || spec.NotFor == "" || spec.Calls() == "" {
			t.Errorf("%s: use %q, not for %q, calls %q", spec.Name, spec.Use, spec.NotFor, spec.Calls())
		}
		wordings := spec.Wordings()
		if (len(wordings) > 0) != spec.NeedsJudge() {
			t.Errorf("%s: %d wordings", spec.Name, len(wordings))
		}
		templates := make(map[string]bool)
		for i, w := range wordings {
			s := evaluators.Settings{Dialect: w.Dialect, Coarse: w.Coarse, Claims: w.Claims}
			if w.Claims != "" && spec.Name == "answer_correctness" {
				s.Dialect = "statements"
			}
			e := evaluator(t, spec.Name, s)
			d := e.Definition()
			if w.Claims == "extracted" { // its claims are asked about as always
				if !d.Drafts || !strings.Contains(d.Claims, w.Template) {
					t.Errorf("%s: %+v", spec.Name, d)
				}
				continue
			}
			if d.Template != w.Template || d.Text != w.Text {
				t.Errorf("%s: wording %d is %s, asked is %s", spec.Name, i, w.Template, d.Template)
			}
			// by embeddings a judge writes, or is asked for nothing but vectors
			if templates[w.Template+w.Dialect] || (len(w.Options) < 2 || w.Text == "") && !d.Embeddings {
				t.Errorf("%s: wording %+v", spec.Name, w)
			}
			templates[w.Template+w.Dialect] = true
		}
	}
}
