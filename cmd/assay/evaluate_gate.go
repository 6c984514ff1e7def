package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"assay/evaluators"
	"assay/evaluators/aggregate"
)

// A gate is a --fail-under condition.
type gate struct {
	evaluator string // empty: each of them
	measure   string
	least     float64
}

// The measures that a gate may hold.
const (
	passRate  = "pass_rate"
	meanScore = "mean_score"
)

func parseGates(texts, chosen []string) ([]gate, error) {
	var gates []gate
	var errs []error
	for _, s := range texts {
		g, err := parseGate(s)
		if err == nil && g.evaluator != "" {
			err = among(&g.evaluator, chosen)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--fail-under %s: %w", s, err))
			continue
		}
		gates = append(gates, g)
	}
	return gates, errors.Join(errs...)
}

func parseGate(s string) (gate, error) {
	path, value, ok := strings.Cut(s, "=")
	evaluator, measure, dotted := strings.Cut(path, ".")
	if !dotted {
		evaluator, measure = "", path
	}
	least, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil || !(least >= 0 && least <= 1) || (measure != passRate && measure != meanScore) {
		return gate{}, errors.New("want pass_rate=P or mean_score=P with P from 0 to 1, or EVALUATOR.pass_rate=P")
	}
	return gate{evaluator, measure, least}, nil
}

// among settles an alias and refuses an evaluator that does not run.
func among(name *string, chosen []string) error {
	spec, err := evaluators.Lookup(*name)
	if err != nil {
		return err
	}
	*name = spec.Name
	for _, c := range chosen {
		if c == spec.Name {
			return nil
		}
	}
	return fmt.Errorf("%s does not run; want one of %s", *name, strings.Join(chosen, ", "))
}

// maxMissing is the share of failed judgements above which a gate says nothing: a judge
// that is down must not let a build pass on the few answers it gave.
const maxMissing = 0.2

// hold holds an evaluator's numbers against the gate; nil when it is met.
func (g gate) hold(s aggregate.Summary, name string) error {
	if s.PassRate == nil || s.MeanScore == nil {
		return errGate{fmt.Errorf("%s: no %s: nothing was judged", name, g.measure), exitTooFew}
	}
	if s.Missing > maxMissing {
		return errGate{fmt.Errorf("%s: %s of the judgements are missing: too little to hold %s against", name, percent(s.Missing), g.measure), exitTooFew}
	}
	value := s.PassRate.Value
	if g.measure == meanScore {
		value = *s.MeanScore
	}
	if value < g.least {
		return errGate{fmt.Errorf("%s: %s %.4f is under %.4f", name, g.measure, value, g.least), exitGate}
	}
	return nil
}

// A held gate is a condition on one evaluator with how it came out.
type heldGate struct {
	evaluator string
	condition string
	err       error // nil when it is met
}

// holdAll holds every gate against every evaluator that it is about.
func holdAll(gates []gate, sums []aggregate.Summary, names []string) []heldGate {
	var held []heldGate
	for i, name := range names {
		for _, g := range gates {
			if g.evaluator == "" || g.evaluator == name {
				held = append(held, heldGate{name, fmt.Sprintf("%s at least %g", g.measure, g.least), g.hold(sums[i], name)})
			}
		}
	}
	return held
}

// holdReadable is the condition under which gates say something of the file: most of its
// lines could be read.
func holdReadable(items, bad int) heldGate {
	h := heldGate{evaluator: "lines", condition: fmt.Sprintf("at most %s unreadable", percent(maxMissing))}
	if float64(bad) > maxMissing*float64(items+bad) {
		h.err = errGate{fmt.Errorf("%d lines could not be read, %d items could: too little to hold a gate against", bad, items), exitTooFew}
	}
	return h
}

// gatesError is one error of all gates. Too little to say about one is more than a gate
// that another did not meet: nobody should read the second as the whole story.
func gatesError(held []heldGate) error {
	code := exitDone
	var errs []error
	for _, h := range held {
		var g errGate
		if errors.As(h.err, &g) {
			errs = append(errs, h.err)
			code = max(code, g.code)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errGate{errors.Join(errs...), code}
}
