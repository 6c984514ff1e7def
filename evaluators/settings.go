package evaluators

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Settings are what a check or a request may set. The zero Settings are the
// defaults of the stream.
type Settings struct {
	PassLine *float64 // boolean and score questions: the least score that passes
	Pass     []string // choice questions: the options that pass
	Coarse   bool     // factuality by two options, agree and disagree
	Dialect  string   // where several ways of judging are in use; empty is the first

	Claims     string    // how claims are found and asked about: single, batched, extracted
	MaxClaims  int       // claims of one text that are judged at most; 8
	Count      string    // hallucination_rate: what counts as hallucinated
	Similarity bool      // answer_correctness by statements: blend in answer_similarity
	Weights    []float64 // of statements and similarity; .75 and .25
	Questions  int       // answer_relevancy by embeddings: questions that are written; 3

	// Options are the settings of a deterministic evaluator's own, by the names of its
	// rows of Settings, as YAML or JSON has them.
	Options map[string]any

	EmptyOutput   string // what becomes of an output that is there but blank
	Refusals      string
	Truncated     string
	MaxInputRunes int // of everything a judge would read; 24,000
	Orders        int // 2 asks with the options in both orders; 1
}

// Values of EmptyOutput, Refusals and Truncated.
const (
	JudgeItem         = "judge"
	NotApplicableItem = "not_applicable"
	Fail              = "fail" // the worst answer, by rule and without a judge
)

const defaultMaxInputRunes = 24_000

// settle checks s against what the evaluator allows and fills in the defaults. All
// faults come at once, by the names of the checks file.
func settle(s Settings, spec Spec, v variant) (Settings, error) {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(spec.Name+": "+format, args...))
	}

	if spec.PassLine == nil && s.PassLine != nil {
		fault("pass: want a list of options (%s), not a number", strings.Join(v.keys(), ", "))
	}
	if spec.PassLine != nil && s.Pass != nil {
		fault("pass: want a number %s, not a list of options", spec.Passes.lineWanted())
	}
	if s.PassLine != nil && !spec.Passes.lineFits(*s.PassLine) {
		fault("pass: %g: want a number %s", *s.PassLine, spec.Passes.lineWanted())
	}
	if spec.PassLine == nil && s.Pass != nil {
		if len(s.Pass) == 0 || len(s.Pass) == len(v.options) {
			fault("pass: %d of %d options: want some that pass and some that do not", len(s.Pass), len(v.options))
		}
		for i, key := range s.Pass {
			if !slices.Contains(v.keys(), key) {
				fault("pass: unknown option %q: want some of %s", key, strings.Join(v.keys(), ", "))
			} else if slices.Contains(s.Pass[:i], key) {
				fault("pass: option %q twice", key)
			}
		}
	}
	one := func(name, value string, want ...string) {
		if value != "" && !slices.Contains(want, value) {
			fault("%s: %q: want %s", name, value, strings.Join(want, " or "))
		}
	}
	one("empty_output", s.EmptyOutput, NotApplicableItem, Fail)
	one("refusals", s.Refusals, JudgeItem, NotApplicableItem, Fail)
	if !spec.takes("refusals") && s.Refusals != "" && s.Refusals != JudgeItem {
		fault("refusals: this evaluator does not read whether the answer declines")
	}
	one("truncated", s.Truncated, JudgeItem, NotApplicableItem)
	if s.MaxInputRunes < 0 || s.MaxInputRunes > 1_000_000 {
		fault("max_input_runes: %d: want 1 to 1000000", s.MaxInputRunes)
	}
	if s.Orders < 0 || s.Orders > 2 {
		fault("orders: %d: want 1 or 2", s.Orders)
	}
	if !spec.takes("orders") && s.Orders != 0 {
		fault("orders: this evaluator shows no options to a judge")
	}
	if !spec.takes("max_input_runes") && s.MaxInputRunes != 0 {
		fault("max_input_runes: no judge reads for this evaluator")
	}
	settleClaims(&s, spec, fault)
	settleVectors(&s, spec, fault)
	switch {
	case spec.rule == nil && len(s.Options) > 0:
		fault("options: of evaluators that compute; this one asks a judge")
	case spec.rule != nil && s.PassLine != nil && *s.PassLine != *spec.PassLine && !spec.takes("pass"):
		fault("pass: it scores 0 or 1, and 1 passes")
	}
	if err := errors.Join(errs...); err != nil {
		return Settings{}, err
	}

	if s.Dialect == "" {
		s.Dialect = v.dialect
	}
	if s.PassLine == nil && spec.PassLine != nil {
		line := *spec.PassLine
		s.PassLine = &line
	}
	if s.Pass == nil {
		s.Pass = slices.Clone(v.pass)
	} else {
		// In declared order: [E, C] and [C, E] are the same check.
		s.Pass = slices.DeleteFunc(v.keys(), func(key string) bool { return !slices.Contains(s.Pass, key) })
	}
	if s.EmptyOutput == "" {
		s.EmptyOutput = NotApplicableItem
	}
	if s.Refusals == "" {
		s.Refusals = JudgeItem
		if spec.refusals != "" {
			s.Refusals = spec.refusals
		}
	}
	if s.Truncated == "" {
		s.Truncated = JudgeItem
	}
	if s.MaxInputRunes == 0 {
		s.MaxInputRunes = defaultMaxInputRunes
	}
	if s.Orders == 0 {
		s.Orders = 1
	}
	return s, nil
}
