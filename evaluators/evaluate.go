package evaluators

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"assay/evaluators/judge"
)

// asking is what evaluators that ask a judge have in common.
type asking struct {
	spec       Spec
	settings   Settings
	definition Definition
	version    string
}

func newAsking(spec Spec, s Settings, d Definition) asking { return asking{spec, s, d, d.Hash()} }

// judged is an evaluator that asks a judge one question. What differs between them
// is in their Spec.
type judged struct{ asking }

func newJudged(spec Spec, v variant, s Settings) *judged {
	return &judged{newAsking(spec, s, definitionOf(spec, v, s))}
}

// definitionOf puts together all that can change a verdict.
func definitionOf(spec Spec, v variant, s Settings) Definition {
	return Definition{
		Evaluator:     spec.Name,
		Template:      v.template,
		Kind:          spec.Kind,
		Text:          v.text,
		Options:       slices.Clone(v.options),
		PassLine:      s.PassLine,
		Pass:          s.Pass,
		Passes:        spec.Passes,
		Coarse:        s.Coarse,
		Dialect:       s.Dialect,
		MaxClaims:     s.MaxClaims,
		Count:         s.Count,
		Similarity:    s.Similarity,
		Weights:       s.Weights,
		EmptyOutput:   s.EmptyOutput,
		Refusals:      s.Refusals,
		Truncated:     s.Truncated,
		MaxInputRunes: s.MaxInputRunes,
		Orders:        s.Orders,
	}
}

// Name implements Evaluator.
func (e *asking) Name() string { return e.spec.Name }

// Definition implements Evaluator.
func (e *asking) Definition() Definition { return e.definition.clone() }

// Applicable implements Evaluator.
func (e *asking) Applicable(it Item) (reason string, ok bool) {
	return applicable(it, e.spec, e.settings)
}

// Questions implements Evaluator.
func (e *judged) Questions(it Item) ([]judge.Question, error) {
	if err := e.complete(it); err != nil {
		return nil, err
	}
	documents, _ := it.fit(e.spec, e.settings.MaxInputRunes)
	return []judge.Question{e.question(it, documents)}, nil
}

// complete is an error that names what a question about the item would lack.
func (e *asking) complete(it Item) error {
	if missing := it.missing(e.spec.Required); len(missing) > 0 {
		return fmt.Errorf("%s: the item has no %v", e.spec.Name, missing)
	}
	return nil
}

// question lays the item out. What is the same for many questions comes first, since
// providers charge less for a prefix they have seen; what is judged comes last.
func (e *judged) question(it Item, documents []string) judge.Question {
	q := e.definition.question()
	for _, name := range fieldOrder {
		if !e.spec.reads(name) {
			continue
		}
		texts := it.texts(name)
		if name == fieldContext {
			texts = documents
		}
		for _, text := range texts {
			q.Fields = append(q.Fields, judge.Field{Name: name, Value: text})
		}
	}
	return q
}

// Evaluate implements Evaluator.
func (e *judged) Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error) {
	return e.run(it, e.definition.Keys(), e.rule, func(r *Result) error { return e.judge(ctx, j, it, r) })
}

// run is the frame of every evaluation: what is not applicable is not judged, what a
// rule decides is given to rule, and the rest to judge, whose error is that of a
// cancelled context.
func (e *asking) run(it Item, names []string, rule func(r *Result, name string), judge func(r *Result) error) (Result, error) {
	start := time.Now()
	r := Result{
		Evaluator:   e.spec.Name,
		Version:     e.version,
		OptionNames: names,
		Detail:      make(map[string]any),
	}
	if e.definition.Coarse {
		r.Detail["coarse"] = true
	}
	if cuts := it.cuts(); len(cuts) > 0 {
		r.Detail["flags"] = cuts
	}
	reason, ok := e.Applicable(it)
	switch {
	case !ok:
		r.Status, r.Reason = NotApplicable, reason
	case e.spec.reads(fieldOutput) && it.blankOutput():
		rule(&r, reasonEmptyOutput)
	case e.spec.reads(fieldOutput) && it.refused() && e.settings.Refusals == Fail:
		rule(&r, reasonRefusal)
	default:
		if err := judge(&r); err != nil {
			return Result{}, fmt.Errorf("%s: %w", e.spec.Name, err)
		}
	}
	r.Latency = time.Since(start)
	return r, nil
}

func (e *judged) judge(ctx context.Context, j judge.Judge, it Item, r *Result) error {
	documents, _ := it.fit(e.spec, e.settings.MaxInputRunes)
	r.noteCut(it, e.spec, len(documents))
	a, err := ask(ctx, j, e.question(it, documents), e.settings.Orders, r)
	if err != nil {
		return r.settleError(ctx, err)
	}
	m, err := e.definition.measure(a.Probabilities)
	if err != nil {
		r.malformed(a, err)
		return nil
	}
	e.fill(r, m, a.Probabilities)
	r.Outside, r.Method, r.Model = a.Outside, a.Method, a.Model
	return nil
}

// ask asks in one order of options or in both, and puts the cost into r at once: a
// second question that fails does not make the first one free.
func ask(ctx context.Context, j judge.Judge, q judge.Question, orders int, r *Result) (judge.Answer, error) {
	var sum judge.Answer
	for order := range orders {
		q.Order = order
		a, err := j.Ask(ctx, q)
		if err != nil {
			return judge.Answer{}, err
		}
		r.spend(judge.Spent{Usage: a.Usage, Attempts: a.Attempts})
		maps.Copy(r.Detail, a.Detail)
		if order == 0 {
			sum = a
			continue
		}
		if len(a.Probabilities) != len(sum.Probabilities) {
			return judge.Answer{}, errors.New("two orders of one question were answered with different options")
		}
		gap := 0.0
		mean := make([]float64, len(a.Probabilities))
		for i, p := range a.Probabilities {
			gap = math.Max(gap, math.Abs(p-sum.Probabilities[i]))
			mean[i] = (p + sum.Probabilities[i]) / 2
		}
		sum.Probabilities = mean
		sum.Outside = (sum.Outside + a.Outside) / 2
		r.Detail["order_gap"] = gap
	}
	return sum, nil
}

// malformed is the result of an answer that is no distribution.
func (r *Result) malformed(a judge.Answer, err error) {
	r.Status, r.Reason = Unscored, judge.ReasonMalformed
	r.Method, r.Model = a.Method, a.Model
	r.Detail["why"] = err.Error()
}

// rule gives the worst answer without a judge.
func (e *judged) rule(r *Result, name string) {
	p := e.definition.worst()
	m, err := e.definition.measure(p)
	if err != nil {
		panic(fmt.Sprintf("%s: rule %s: %v", e.spec.Name, name, err)) // worst is a distribution by construction
	}
	e.fill(r, m, p)
	r.Method = judge.None
	r.Detail["rule"] = name
}

func (e *judged) fill(r *Result, m measurement, p []float64) {
	r.Status = OK
	r.Score, r.Confidence, r.Passed = &m.score, &m.confidence, &m.passed
	r.Option, r.Label = m.option, m.label
	r.Probabilities = slices.Clone(p)
	if e.definition.Kind == judge.Choice {
		r.Detail["expected_score"] = m.expected
	}
}
