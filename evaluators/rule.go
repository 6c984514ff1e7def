package evaluators

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"assay/evaluators/judge"
)

// deterministic lists the evaluators that compute and ask nobody.
func deterministic() []Spec {
	return []Spec{
		containsTexts(), exactMatch(), fuzzyMatch(), jsonDiff(), jsonMatch(), languageOf(), latency(), length(), levenshteinSimilarity(),
		listContains(), numericDiff(), numericRange(), refusal(), regexMatch(), tokenF1(), tokens(), validJSON(),
	}
}

// A rule is what a deterministic evaluator computes. It is a pure function of the item.
type rule struct {
	applies func(it Item) (reason string, ok bool) // beyond the required fields; may be nil
	measure func(it Item) finding                  // of an item whose required fields are there
}

// A finding is what a rule says of an item.
type finding struct {
	score     float64
	reference int    // which of the expected texts it rests on, from 1; 0 where none
	reason    string // why it says nothing; the score is then none
	detail    map[string]any
}

// yesNo completes the row of a rule that scores 0 or 1.
func yesNo(spec Spec, make func(*ruleOptions) rule) Spec {
	line := 1.0
	spec.PassLine = &line
	return ruled(spec, make)
}

// graded completes the row of a rule that scores between 0 and 1.
func graded(spec Spec, line float64, make func(*ruleOptions) rule) Spec {
	spec.PassLine = &line
	spec.Settings = append([]Setting{
		{Name: "pass", Type: "number", Default: line, Help: "least score that passes; above 0, up to 1"},
	}, spec.Settings...)
	return ruled(spec, make)
}

func ruled(spec Spec, make func(*ruleOptions) rule) Spec {
	if spec.variants == nil {
		spec.variants = []variant{{template: spec.Name + "/1"}}
	}
	spec.rule = make
	return spec
}

// ruleSettings are the settings of every rule that reads an output.
func ruleSettings() []Setting {
	common := commonSettings()
	var settings []Setting
	for _, s := range common {
		switch s.Name {
		case "empty_output", "refusals", "truncated":
			settings = append(settings, s)
		}
	}
	return settings
}

// NeedsJudge reports whether the evaluator asks a judge. One that does not is given none.
func (s Spec) NeedsJudge() bool { return s.rule == nil }

// ruling is an evaluator with a rule.
type ruling struct {
	spec       Spec
	settings   Settings
	definition Definition
	version    string
	rule       rule
}

func newRuling(spec Spec, v variant, s Settings) (Evaluator, error) {
	o := readOptions(spec, s)
	r := spec.rule(o)
	if err := errors.Join(o.faults...); err != nil {
		return nil, err
	}
	s.MaxInputRunes, s.Orders = 0, 0
	d := definitionOf(spec, v, s)
	d.Rule = o.settled
	// No judge reads the item: rules bound their own time.
	s.MaxInputRunes = math.MaxInt
	return &ruling{spec, s, d, d.Hash(), r}, nil
}

// Name implements Evaluator.
func (e *ruling) Name() string { return e.spec.Name }

// Definition implements Evaluator.
func (e *ruling) Definition() Definition { return e.definition.clone() }

// Questions implements Evaluator: there are none.
func (e *ruling) Questions(Item) ([]judge.Question, error) { return nil, nil }

// Applicable implements Evaluator.
func (e *ruling) Applicable(it Item) (reason string, ok bool) {
	if reason, ok := applicable(it, e.spec, e.settings); !ok || e.rule.applies == nil || it.blankOutput() {
		return reason, ok
	}
	return e.rule.applies(it)
}

// Evaluate implements Evaluator. The judge may be nil.
func (e *ruling) Evaluate(ctx context.Context, _ judge.Judge, it Item) (Result, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return Result{}, fmt.Errorf("%s: %w", e.spec.Name, context.Cause(ctx))
	}
	start := time.Now()
	r := Result{Evaluator: e.spec.Name, Version: e.version, Detail: make(map[string]any)}
	if cuts := it.cuts(); len(cuts) > 0 {
		r.Detail["flags"] = cuts
	}
	e.evaluate(it, &r)
	r.Latency = time.Since(start)
	return r, nil
}

func (e *ruling) evaluate(it Item, r *Result) {
	reason, ok := e.Applicable(it)
	var f finding
	switch {
	case !ok:
		f.reason = reason
	case it.blankOutput():
		r.Detail["rule"] = reasonEmptyOutput
	case it.refused() && e.settings.Refusals == Fail:
		r.Detail["rule"] = reasonRefusal
	default:
		f = e.rule.measure(it)
	}
	for k, v := range f.detail {
		r.Detail[k] = v
	}
	if f.reason != "" {
		r.Status, r.Reason = NotApplicable, f.reason
		return
	}
	if f.reference > 0 && len(it.texts(fieldExpected)) > 1 {
		r.Detail["reference"] = f.reference
	}
	score, passed := f.score, e.definition.Passes.passed(f.score, *e.definition.PassLine)
	r.Status, r.Score, r.Passed = OK, &score, &passed
	r.Label = strconv.FormatFloat(score, 'f', 2, 64)
}

// bestReference is the measure of a rule that compares with one expected text at a time.
func bestReference(compare func(output, expected string) (float64, error)) func(Item) finding {
	return func(it Item) finding {
		return best(it, func(expected string) (float64, error) { return compare(*it.Output, expected) })
	}
}

func best(it Item, compare func(expected string) (float64, error)) finding {
	references := it.texts(fieldExpected)
	return bestOf(len(references), func(i int) (float64, error) { return compare(references[i]) })
}

// bestOf takes the best of n comparisons, the first of equal ones. One that cannot be
// made leaves it unknown which is the best.
func bestOf(n int, compare func(i int) (float64, error)) finding {
	f := finding{score: -1}
	for i := range n {
		score, err := compare(i)
		switch {
		case errors.Is(err, ErrTooLong):
			return finding{reason: reasonTooLong, detail: map[string]any{"why": err.Error()}}
		case err != nil:
			return finding{reason: "not_comparable", detail: map[string]any{"why": err.Error()}}
		case score > f.score:
			f.score, f.reference = score, i+1
		}
		if score == 1 {
			break
		}
	}
	return f
}
