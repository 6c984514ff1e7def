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
		fault("pass: want a number above 0, up to 1, not a list of options")
	}
	if s.PassLine != nil && !(*s.PassLine > 0 && *s.PassLine <= 1) {
		fault("pass: %g: want a number above 0, up to 1", *s.PassLine)
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
	one("truncated", s.Truncated, JudgeItem, NotApplicableItem)
	if s.MaxInputRunes < 0 || s.MaxInputRunes > 1_000_000 {
		fault("max_input_runes: %d: want 1 to 1000000", s.MaxInputRunes)
	}
	if s.Orders < 0 || s.Orders > 2 {
		fault("orders: %d: want 1 or 2", s.Orders)
	}
	if err := errors.Join(errs...); err != nil {
		return Settings{}, err
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
