package evaluators

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"

	"assay/evaluators/judge"
)

// vectorTemplate names how texts are compared by their embeddings.
const vectorTemplate = "cosine/1"

// Cosine is the cosine of two vectors, 0 where one of them is zero.
func Cosine(a, b []float64) (float64, error) {
	if len(a) == 0 || len(a) != len(b) {
		return 0, fmt.Errorf("vectors of %d and %d numbers: want as many in both", len(a), len(b))
	}
	// Scaled first, since squares of large numbers have no float.
	x, y := scaled(a), scaled(b)
	if x == nil || y == nil {
		return 0, nil
	}
	var dot, normA, normB float64
	for i := range x {
		dot += x[i] * y[i]
		normA += x[i] * x[i]
		normB += y[i] * y[i]
	}
	return dot / math.Sqrt(normA) / math.Sqrt(normB), nil
}

// scaled has 1 as its largest magnitude; nil for a zero vector.
func scaled(v []float64) []float64 {
	largest := 0.0
	for _, x := range v {
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return nil
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x / largest
	}
	return out
}

// An embedded text is a text with its vector.
type embedded struct {
	vector []float64
	model  string
}

// vectors asks for the vector of each text. It returns false where r has become the
// result of the first that has none: a mean over the others would be another number.
func vectors(ctx context.Context, j judge.Judge, texts []string, r *Result) ([]embedded, bool, error) {
	list := make([]embedded, len(texts))
	errs := make([]error, len(texts))
	var mu sync.Mutex // guards what is spent in r
	inTurn(len(texts), func(i int) bool {
		a, err := j.Ask(ctx, judge.VectorQuestion(texts[i]))
		errs[i] = err
		if err != nil {
			return false
		}
		mu.Lock()
		r.spend(judge.Spent{Usage: a.Usage, Attempts: a.Attempts})
		mu.Unlock()
		list[i] = embedded{doubles(a.Vector), a.Model}
		return true
	})
	if ok, err := r.settleFirst(ctx, errs); err != nil || !ok {
		return nil, false, err
	}
	for _, e := range list {
		if scaled(e.vector) == nil || len(e.vector) != len(list[0].vector) {
			r.Status, r.Reason, r.Method, r.Model = Unscored, judge.ReasonNoVector, judge.Model, e.model
			return nil, false, nil
		}
	}
	return list, true, nil
}

func doubles(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}

// fillCosine puts a cosine into r. Everything that reads scores takes 0 to 1, so texts
// that point away from each other score 0; the cosine itself is kept.
func (e *asking) fillCosine(r *Result, cosine float64, model string) {
	score := min(max(cosine, 0), 1)
	e.fillNumber(r, score)
	r.Method, r.Model = judge.Model, model
	r.Detail["cosine"] = cosine
	if r.Attempts == 0 {
		r.Detail["cached"] = true // every answer was
	}
}

// fillNumber puts a score without a distribution into r: it has no confidence.
func (e *asking) fillNumber(r *Result, score float64) {
	passed := e.definition.Passes.passed(score, *e.definition.PassLine)
	r.Status, r.Score, r.Passed = OK, &score, &passed
	r.Label = strconv.FormatFloat(score, 'f', 2, 64)
}

// ruleNumber is the worst number without a judge.
func (e *asking) ruleNumber(r *Result, name string) {
	e.fillNumber(r, 0)
	r.Method = judge.None
	r.Detail["rule"] = name
}

// byVectors is answer_similarity by embeddings: the cosine of the output and the expected
// text that is nearest to it.
type byVectors struct{ asking }

func newByVectors(spec Spec, v variant, s Settings) *byVectors {
	d := definitionOf(spec, v, s)
	d.Kind, d.Embeddings = "", true
	return &byVectors{newAsking(spec, s, d)}
}

// Calls implements Evaluator; the embeddings are for one expected answer.
func (e *byVectors) Calls() Calls { return Calls{Embeddings: 2} }

// Questions implements Evaluator.
func (e *byVectors) Questions(it Item) ([]judge.Question, error) {
	if err := e.complete(it); err != nil {
		return nil, err
	}
	var list []judge.Question
	for _, text := range e.texts(it) {
		list = append(list, judge.VectorQuestion(text))
	}
	return list, nil
}

func (e *byVectors) texts(it Item) []string {
	return append([]string{*it.Output}, it.texts(fieldExpected)...)
}

// Evaluate implements Evaluator.
func (e *byVectors) Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error) {
	return e.run(it, nil, e.ruleNumber, func(r *Result) error {
		cosine, model, ok, err := e.compare(ctx, j, it, r, "reference")
		if err == nil && ok {
			e.fillCosine(r, cosine, model)
		}
		return err
	})
}

// compare returns the cosine with the nearest expected text; which of several it is, is
// kept in the detail under that name.
func (e *byVectors) compare(ctx context.Context, j judge.Judge, it Item, r *Result, name string) (cosine float64, model string, ok bool, err error) {
	list, ok, err := vectors(ctx, j, e.texts(it), r)
	if err != nil || !ok {
		return 0, "", false, err
	}
	nearest := 0
	for i, v := range list[1:] {
		c, err := Cosine(list[0].vector, v.vector)
		if err != nil {
			return 0, "", false, err // vectors made sure that they compare
		}
		if i == 0 || c > cosine {
			cosine, nearest = c, i+1
		}
	}
	if len(list) > 2 {
		r.Detail[name] = nearest
	}
	return cosine, list[0].model, true, nil
}

// similar implements similarity.
func (e *byVectors) similar(ctx context.Context, j judge.Judge, it Item, r *Result) (float64, bool, error) {
	cosine, model, ok, err := e.compare(ctx, j, it, r, "similar_reference")
	if err != nil || !ok {
		return 0, false, err
	}
	r.Detail["cosine"], r.Detail["embedding_model"] = cosine, model
	return min(max(cosine, 0), 1), true, nil
}
