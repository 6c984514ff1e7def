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

// judged is an evaluator that asks a judge one question. What differs between them
// is in their Spec.
type judged struct {
	spec       Spec
	settings   Settings
	definition Definition
	version    string
}

func newJudged(spec Spec, v variant, s Settings) *judged {
	d := Definition{
		Evaluator:     spec.Name,
		Template:      v.template,
		Kind:          spec.Kind,
		Text:          v.text,
		Options:       slices.Clone(v.options),
		PassLine:      s.PassLine,
		Pass:          s.Pass,
		Coarse:        s.Coarse,
		EmptyOutput:   s.EmptyOutput,
		Refusals:      s.Refusals,
		Truncated:     s.Truncated,
		MaxInputRunes: s.MaxInputRunes,
		Orders:        s.Orders,
	}
	return &judged{spec, s, d, d.Hash()}
}

// Name implements Evaluator.
func (e *judged) Name() string { return e.spec.Name }

// Definition implements Evaluator.
func (e *judged) Definition() Definition {
	d := e.definition
	d.Options, d.Pass = slices.Clone(d.Options), slices.Clone(d.Pass)
	return d
}

// Applicable implements Evaluator.
func (e *judged) Applicable(it Item) (reason string, ok bool) {
	return applicable(it, e.spec, e.settings)
}

// Question implements Evaluator. The input comes first where there is one, the
// output last but for what it is measured by.
func (e *judged) Question(it Item) (judge.Question, error) {
	if missing := it.missing(e.spec.Required); len(missing) > 0 {
		return judge.Question{}, fmt.Errorf("%s: the item has no %v", e.spec.Name, missing)
	}
	q := judge.Question{Name: e.definition.Template, Kind: e.definition.Kind, Text: e.definition.Text}
	for _, name := range []string{fieldInput, fieldCriteria, fieldExpected, fieldOutput} {
		if !slices.Contains(e.spec.Required, name) && !slices.Contains(e.spec.Optional, name) {
			continue
		}
		for _, text := range it.texts(name) {
			q.Fields = append(q.Fields, judge.Field{Name: name, Value: text})
		}
	}
	for _, o := range e.definition.Options {
		q.Options = append(q.Options, judge.Option{Key: o.Key, Text: o.Text})
	}
	return q, nil
}

// Evaluate implements Evaluator.
func (e *judged) Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error) {
	start := time.Now()
	r := Result{
		Evaluator:   e.spec.Name,
		Version:     e.version,
		OptionNames: e.definition.Keys(),
		Detail:      make(map[string]any),
	}
	if e.definition.Coarse {
		r.Detail["coarse"] = true
	}
	if cuts := it.cuts(); len(cuts) > 0 {
		r.Detail["flags"] = cuts
	}
	err := e.evaluate(ctx, j, it, &r)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", e.spec.Name, err)
	}
	r.Latency = time.Since(start)
	return r, nil
}

func (e *judged) evaluate(ctx context.Context, j judge.Judge, it Item, r *Result) error {
	if reason, ok := e.Applicable(it); !ok {
		r.Status, r.Reason = NotApplicable, reason
		return nil
	}
	switch {
	case it.blankOutput():
		e.rule(r, reasonEmptyOutput)
		return nil
	case it.refused() && e.settings.Refusals == Fail:
		e.rule(r, reasonRefusal)
		return nil
	}
	q, err := e.Question(it)
	if err != nil {
		return err
	}
	a, err := e.ask(ctx, j, q, r)
	if err != nil {
		return r.settleError(ctx, err)
	}
	m, err := e.definition.measure(a.Probabilities)
	if err != nil {
		r.Status, r.Reason = Unscored, judge.ReasonMalformed
		r.Method, r.Model = a.Method, a.Model
		r.Detail["why"] = err.Error()
		return nil
	}
	e.fill(r, m, a.Probabilities)
	r.Outside, r.Method, r.Model = a.Outside, a.Method, a.Model
	return nil
}

// ask asks in one order of options or in both, and puts the cost into r at once: a
// second question that fails does not make the first one free.
func (e *judged) ask(ctx context.Context, j judge.Judge, q judge.Question, r *Result) (judge.Answer, error) {
	var sum judge.Answer
	for order := range e.settings.Orders {
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
