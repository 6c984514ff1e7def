package evaluators_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"assay/evaluators"
	"assay/evaluators/judge"
)

// A writer is a judge that writes and embeds: the text of a draft is drafts[Vote], a
// vector is that of the text's first letter. It counts what it was asked for.
type writer struct {
	drafts  []string
	vectors map[string][]float32
	p       map[string]float64 // for questions with options

	mu    sync.Mutex // guards asked
	asked []judge.Question
}

func (w *writer) Ask(ctx context.Context, q judge.Question) (judge.Answer, error) {
	w.mu.Lock()
	w.asked = append(w.asked, q)
	w.mu.Unlock()
	a := judge.Answer{Attempts: 1, Usage: judge.Usage{InputTokens: 10}}
	switch q.Kind {
	case judge.Text:
		if q.Vote >= len(w.drafts) {
			return judge.Answer{}, fmt.Errorf("draft %d was not foreseen", q.Vote)
		}
		a.Text, a.Model, a.Method = w.drafts[q.Vote], "chat-1", judge.Logprobs
		return a, nil
	case judge.Vector:
		v, ok := w.vectors[q.Fields[0].Value]
		if !ok {
			return judge.Answer{}, &judge.UnusableError{Reason: judge.ReasonNoVector, Method: judge.Model}
		}
		a.Vector, a.Model, a.Method = v, "embed-1", judge.Model
		return a, nil
	}
	return says(w.p)(ctx, q)
}

func (w *writer) count(kind judge.Kind) int {
	n := 0
	for _, q := range w.asked {
		if q.Kind == kind {
			n++
		}
	}
	return n
}

func drafts(texts ...string) []string {
	list := make([]string, len(texts))
	for i, s := range texts {
		question, evasive, _ := strings.Cut(s, "|")
		list[i] = question + "\nnoncommittal: " + map[string]string{"": "no", "evasive": "yes"}[evasive]
	}
	return list
}

func capital() evaluators.Item {
	return evaluators.Item{Input: text("in"), Output: text("out"), Expected: []string{"far", "near"}, Judgeable: true}
}

// plane are vectors whose cosines with "in" and "out" are known.
func plane() map[string][]float32 {
	return map[string][]float32{
		"in": {2, 0}, "out": {0, 3}, "same": {5, 0}, "right": {0, 1}, "diagonal": {1, 1}, "back": {-4, 0}, "near": {0, 1}, "far": {1, 0}, "down": {0, -1},
	}
}

func TestRelevancyIsTheMeanCosineOfWrittenQuestions(t *testing.T) {
	half := math.Sqrt(.5)
	f := func(dialect string, list []string, cosine, score float64, passed bool) {
		t.Helper()
		w := &writer{drafts: drafts(list...), vectors: plane()}
		e := evaluator(t, "answer_relevancy", evaluators.Settings{Dialect: dialect, Questions: len(list)})
		r := evaluate(t, e, w, capital())
		if r.Status != evaluators.OK || !near(*r.Score, score) || *r.Passed != passed || !near(r.Detail["cosine"].(float64), cosine) {
			t.Fatalf("%s %v: %+v, want cosine %v, score %v", dialect, list, r, cosine, score)
		}
		if r.Confidence != nil || r.Option != "" || r.Method != judge.Model || r.Model != "chat-1 + embed-1" || r.Detail["embedding_model"] != "embed-1" ||
			len(r.Detail["questions"].([]any)) != len(list) || r.Attempts != 2*len(list)+1 {
			t.Errorf("%+v", r)
		}
		if w.count(judge.Text) != len(list) || w.count(judge.Vector) != len(list)+1 {
			t.Errorf("%d drafts and %d vectors asked for", w.count(judge.Text), w.count(judge.Vector))
		}
	}
	f("ragas", []string{"same", "same", "same"}, 1, 1, true)
	f("ragas", []string{"same", "right", "diagonal"}, (1+half)/3, (1+half)/3, false)
	f("autoevals", []string{"same", "diagonal"}, (1+half)/2, (1+half)/2, true)
	f("ragas", []string{"same", "diagonal|evasive"}, (1+half)/2, (1+half)/2, true) // not all of them
	// the cosine may be below 0, the score may not
	f("autoevals", []string{"back"}, -1, 0, false)
	f("ragas", []string{"back", "same", "back"}, -1./3, 0, false)
}

func TestAnEvasiveOutputIsNotRelevant(t *testing.T) {
	f := func(dialect string, list []string) {
		t.Helper()
		w := &writer{drafts: drafts(list...), vectors: plane()}
		r := evaluate(t, evaluator(t, "answer_relevancy", evaluators.Settings{Dialect: dialect}), w, capital())
		if r.Status != evaluators.OK || *r.Score != 0 || *r.Passed || r.Detail["noncommittal"] != true || w.count(judge.Vector) != 0 {
			t.Errorf("%s %v: %+v, %d vectors", dialect, list, r, w.count(judge.Vector))
		}
	}
	f("ragas", []string{"same|evasive", "same|evasive", "same|evasive"})
	f("autoevals", []string{"same", "same|evasive", "same"})
}

// The question is written from the output alone: who has seen the input writes it down.
func TestADraftSeesTheOutputOnly(t *testing.T) {
	e := evaluator(t, "answer_relevancy", evaluators.Settings{Dialect: "ragas"})
	dry, err := evaluators.Dry(t.Context(), e, capital())
	if err != nil || len(dry.Questions) != 3 || !dry.More {
		t.Fatalf("%+v, %v", dry, err)
	}
	for i, q := range dry.Questions {
		if len(q.Fields) != 1 || q.Fields[0].Value != "out" || q.Kind != judge.Text || q.Vote != i {
			t.Errorf("%+v", q)
		}
	}
}

func TestADraftInAnotherFormIsAskedForOnceMore(t *testing.T) {
	f := func(list []string, status evaluators.Status, asked int) {
		t.Helper()
		w := &writer{drafts: list, vectors: plane()}
		r := evaluate(t, evaluator(t, "answer_relevancy", evaluators.Settings{Dialect: "ragas", Questions: 1}), w, capital())
		if r.Status != status || w.count(judge.Text) != asked || status == evaluators.Unscored && (r.Reason != "malformed" || r.Detail["raw"] == "" || r.Attempts != asked) {
			t.Errorf("%q: %+v after %d drafts, want %s after %d", list, r, w.count(judge.Text), status, asked)
		}
	}
	const good = "same\nNoncommittal: NO."
	f([]string{good}, evaluators.OK, 1)
	f([]string{"same\n\n**noncommittal: no**\n"}, evaluators.OK, 1)
	f([]string{"same", good}, evaluators.OK, 2)
	f([]string{"same\nnoncommittal: maybe", good}, evaluators.OK, 2)
	f([]string{"Sure! Here it is:\nsame\nnoncommittal: no", "same"}, evaluators.Unscored, 2)
	f([]string{strings.Repeat("x", 3000) + "\nnoncommittal: no", "same"}, evaluators.Unscored, 2)
}

func TestSimilarityByEmbeddingsIsTheNearestReferences(t *testing.T) {
	e := evaluator(t, "answer_similarity", evaluators.Settings{Dialect: "embeddings"})
	w := &writer{vectors: plane()}
	r := evaluate(t, e, w, capital())
	if r.Status != evaluators.OK || !near(*r.Score, 1) || r.Detail["reference"] != 2 || r.Model != "embed-1" || w.count(judge.Vector) != 3 || len(w.asked) != 3 {
		t.Errorf("%+v", r)
	}
	it := capital()
	it.Expected = []string{"down"}
	if r := evaluate(t, e, w, it); *r.Score != 0 || !near(r.Detail["cosine"].(float64), -1) || *r.Passed {
		t.Errorf("%+v", r)
	}
}

func TestCorrectnessByEmbeddingsBlendsTheCosine(t *testing.T) {
	e := evaluator(t, "answer_correctness", evaluators.Settings{Dialect: "embeddings"})
	it := capital()
	it.Output, it.Expected = text("It is here."), []string{"It is there."}
	w := &writer{vectors: map[string][]float32{"It is here.": {1, 0}, "It is there.": {3, 4}}, p: map[string]float64{"S": .9, "N": .1}}
	r := evaluate(t, e, w, it)
	// F1 is 1; the cosine .6 counts for a quarter
	if r.Status != evaluators.OK || !near(*r.Score, .75+.25*.6) || !near(r.Detail["similarity"].(float64), .6) || r.Detail["embedding_model"] != "embed-1" || !strings.HasSuffix(r.Model, " + embed-1") {
		t.Errorf("%+v", r)
	}
	if d := e.Definition(); !d.Embeddings || d.Similar != "cosine/1" || !d.Similarity {
		t.Errorf("%+v", d)
	}
	// dialect statements has no vectors asked for, whatever the judge could do
	by := evaluator(t, "answer_correctness", evaluators.Settings{Dialect: "statements", Similarity: true})
	if evaluate(t, by, judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if !q.Kind.HasOptions() {
			t.Errorf("asked for %s", q.Kind)
		}
		p := map[string]float64{"S": 1}
		if q.Kind == judge.Score {
			p = map[string]float64{"3": 1}
		}
		return says(p)(ctx, q)
	}), it); by.Definition().Embeddings {
		t.Error("embeddings that nobody named")
	}
}

func TestWithoutAVectorThereIsNoScore(t *testing.T) {
	zero := plane()
	zero["same"] = []float32{0, 0}
	short := plane()
	short["same"] = []float32{1}
	none := plane()
	delete(none, "same")
	for name, vectors := range map[string]map[string][]float32{"zero": zero, "another length": short, "none": none} {
		w := &writer{drafts: drafts("same", "right", "same"), vectors: vectors}
		r := evaluate(t, evaluator(t, "answer_relevancy", evaluators.Settings{Dialect: "ragas"}), w, capital())
		if r.Status != evaluators.Unscored || r.Reason != "no_vector" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// a judge that cannot embed or write says what it would need
	for _, need := range []string{judge.NeedsEmbeddingModel, judge.NeedsLanguageModel} {
		for name, dialect := range map[string]string{"answer_relevancy": "autoevals", "answer_similarity": "embeddings"} {
			r := evaluate(t, evaluator(t, name, evaluators.Settings{Dialect: dialect}), fails(&judge.RefusedError{Reason: need}), capital())
			if r.Status != evaluators.Unscored || r.Reason != need {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	r := evaluate(t, evaluator(t, "answer_similarity", evaluators.Settings{Dialect: "embeddings"}), fails(&judge.ShedError{Reason: "budget"}), capital())
	if r.Status != evaluators.Shed {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := evaluator(t, "answer_similarity", evaluators.Settings{Dialect: "embeddings"}).Evaluate(ctx, fails(ctx.Err()), capital())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestBlankOutputsHaveARuleByEmbeddingsToo(t *testing.T) {
	it := capital()
	it.Output = text("  ")
	for name, dialect := range map[string]string{"answer_relevancy": "ragas", "answer_similarity": "embeddings"} {
		r := evaluate(t, evaluator(t, name, evaluators.Settings{Dialect: dialect, EmptyOutput: evaluators.Fail}), nobody(t), it)
		if r.Status != evaluators.OK || *r.Score != 0 || *r.Passed || r.Method != judge.None || r.Detail["rule"] != "empty_output" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestSettingsOfEmbeddingsBelongToTheirDialect(t *testing.T) {
	for name, s := range map[string]evaluators.Settings{
		"answer_relevancy":   {Questions: 3},
		"closed_qa":          {Questions: 3},
		"answer_similarity":  {Dialect: "embeddings", Orders: 2},
		"answer_correctness": {Dialect: "levels", Weights: []float64{1, 1}},
		"noncommittal":       {Dialect: "embeddings"},
	} {
		if _, err := evaluators.New(name, s); err == nil {
			t.Errorf("%s %+v was taken", name, s)
		}
	}
	if _, err := evaluators.New("answer_relevancy", evaluators.Settings{Dialect: "ragas", Questions: 11}); err == nil || !strings.Contains(err.Error(), "1 to 10") {
		t.Errorf("%v", err)
	}
	levels := evaluator(t, "answer_relevancy", evaluators.Settings{}).Definition()
	seen := map[string]bool{levels.Hash(): true}
	for _, s := range []evaluators.Settings{{Dialect: "ragas"}, {Dialect: "autoevals"}, {Dialect: "ragas", Questions: 4}} {
		h := evaluator(t, "answer_relevancy", s).Definition().Hash()
		if seen[h] {
			t.Errorf("%+v: the version of another", s)
		}
		seen[h] = true
	}
	if levels.Embeddings || levels.Drafts {
		t.Error("levels need a judge and nothing else")
	}
}

// Calls that a dialect announces: drafts, and vectors apart.
func TestCallsByEmbeddings(t *testing.T) {
	f := func(name string, s evaluators.Settings, want evaluators.Calls) {
		t.Helper()
		if got := evaluator(t, name, s).Calls(); got != want {
			t.Errorf("%s %+v: %+v, want %+v", name, s, got, want)
		}
	}
	type calls = evaluators.Calls
	f("answer_relevancy", evaluators.Settings{Dialect: "ragas"}, calls{Min: 3, Max: 6, MinTexts: 3, MaxTexts: 6, Embeddings: 4})
	f("answer_similarity", evaluators.Settings{Dialect: "embeddings"}, calls{Embeddings: 2})
	f("answer_correctness", evaluators.Settings{Dialect: "embeddings", MaxClaims: 2}, calls{Min: 2, Max: 4, Embeddings: 2})
	f("faithfulness", evaluators.Settings{Claims: "extracted"}, calls{Min: 2, Max: 10, MinTexts: 1, MaxTexts: 2})
	f("faithfulness", evaluators.Settings{Claims: "extracted", Orders: 2, MaxClaims: 3}, calls{Min: 3, Max: 8, MinTexts: 1, MaxTexts: 2})

	// a judge by votes writes a text once
	voted := func(name string, s evaluators.Settings, lo, hi int) {
		t.Helper()
		c := evaluator(t, name, s).Calls()
		if got := c.Voted(5); got.Min != lo || got.Max != hi || got.Embeddings != c.Embeddings || c.Voted(1) != c {
			t.Errorf("%s %+v by five votes: %+v, want %d to %d", name, s, got, lo, hi)
		}
	}
	voted("closed_qa", evaluators.Settings{Orders: 2}, 10, 10)
	voted("faithfulness", evaluators.Settings{Claims: "extracted"}, 1+5, 2+8*5)
	voted("answer_relevancy", evaluators.Settings{Dialect: "ragas"}, 3, 6)
}

// Checks that were there before dialects were keep their versions: their verdicts are the
// same. A pass line, a wording or a default that changes is another version.
func TestLevelsHaveTheVersionTheyHadAlone(t *testing.T) {
	for name, hash := range map[string]string{"answer_relevancy": "1dff10f8cef7cc99", "answer_similarity": "8522913ca0f26654"} {
		for _, dialect := range []string{"", "levels"} {
			if got := evaluator(t, name, evaluators.Settings{Dialect: dialect}).Definition().Hash(); got != hash {
				t.Errorf("%s by %q: %s, want %s", name, dialect, got, hash)
			}
		}
	}
}

// Questions that are asked at once may fail at once; each was paid for.
func TestAllFailuresAreInTheCost(t *testing.T) {
	f := func(name, dialect string, kind judge.Kind, it evaluators.Item, failing int) {
		t.Helper()
		w := &writer{drafts: drafts("same", "same", "same"), vectors: plane()}
		var together sync.WaitGroup
		together.Add(failing)
		first := true
		r := evaluate(t, evaluator(t, name, evaluators.Settings{Dialect: dialect}), judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
			if q.Kind != kind || first {
				first = first && q.Kind != kind
				return w.Ask(ctx, q)
			}
			together.Done()
			together.Wait()
			return judge.Answer{}, &judge.UnusableError{Reason: "cut", Spent: judge.Spent{Usage: judge.Usage{InputTokens: 10}, Attempts: 1}}
		}), it)
		asked := len(w.asked) + failing
		if r.Status != evaluators.Unscored || r.Reason != "cut" || r.Attempts != asked || r.Usage.InputTokens != int64(10*asked) {
			t.Errorf("%s: %d calls of 10 tokens, stated are %d of %d in all (%s %s)", name, asked, r.Attempts, r.Usage.InputTokens, r.Status, r.Reason)
		}
	}
	f("answer_relevancy", "ragas", judge.Text, capital(), 2)
	f("answer_similarity", "embeddings", judge.Vector, capital(), 2)
}

// A detector begins anew with a model that it has not met, so evasive answers must not
// look like another judge's.
func TestAnEvasiveOutputNamesNoOtherJudge(t *testing.T) {
	models := make(map[string]bool)
	for _, list := range [][]string{{"same", "same", "same"}, {"same|evasive", "same", "same"}} {
		r := evaluate(t, evaluator(t, "answer_relevancy", evaluators.Settings{Dialect: "autoevals"}), &writer{drafts: drafts(list...), vectors: plane()}, capital())
		if r.Model != "" {
			models[r.Model] = true
		} else if r.Detail["draft_model"] != "chat-1" {
			t.Errorf("%v: nobody knows who found it evasive", r.Detail)
		}
	}
	if len(models) != 1 || !models["chat-1 + embed-1"] {
		t.Errorf("models %v", models)
	}
}
