package evaluators

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"assay/evaluators/judge"
)

// Spec is what there is to know about an evaluator before it is made.
type Spec struct {
	Name     string
	Summary  string // one sentence
	Use      string // what it is good for
	NotFor   string // what it is not good for, with what is
	calls    string // of the judge for an item, where it is not one
	Required []string
	Optional []string
	Kind     judge.Kind
	PassLine *float64 // the default; nil where options pass
	Passes   Passes   // which side of the line passes
	Settings []Setting
	Aliases  []string

	variants []variant // the first is the default
	refusals string    // what becomes of refusals by default; judge where empty

	// rule makes what a deterministic evaluator computes; nil where a judge is asked.
	rule func(*ruleOptions) rule

	// build makes the evaluator from settled settings; newJudged where nil.
	build func(Spec, variant, Settings) Evaluator
}

// Setting is a setting an evaluator takes.
type Setting struct {
	Name    string
	Type    string // number, numbers, boolean, text, list (of texts), object
	Values  []string
	Default any
	Help    string
}

// OptionDefinition is an option of an evaluator's question with its score.
type OptionDefinition struct {
	Key   string  `json:"key"`
	Text  string  `json:"text"`
	Score float64 `json:"score"`
}

// A variant is a question an evaluator may ask. Raise the number at the end of
// template with any change of text or options.
type variant struct {
	template string
	dialect  string // that asks it; empty where coarse tells the variants apart, or there is one
	text     string
	options  []OptionDefinition
	pass     []string // options that pass by default; nil where a line does
}

func (v variant) keys() []string {
	keys := make([]string, len(v.options))
	for i, o := range v.options {
		keys[i] = o.Key
	}
	return keys
}

// Table lists the evaluators by name.
func Table() []Spec {
	all := append(deterministic(),
		answerCorrectness(),
		answerRelevancy(),
		answerSimilarity(),
		citationPrecision(),
		citationRecall(),
		claimEvidenceStance(),
		claimSupported(),
		claimVerification(),
		closedQA(),
		factuality(),
		faithfulness(),
		groundedness(),
		hallucination(),
		hallucinationRate(),
		llmJudge(),
		mathEquivalent(),
		noncommittal(),
		shortAnswer(),
	)
	slices.SortFunc(all, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Calls says how often an item asks the judge; orders: 2 doubles it. Answers that the
// cache has are not asked for.
func (s Spec) Calls() string {
	switch {
	case !s.NeedsJudge():
		return "none"
	case s.calls != "":
		return s.calls
	}
	return "1"
}

// reads reports whether the evaluator reads that field of an item.
func (s Spec) reads(field string) bool {
	return slices.Contains(s.Required, field) || slices.Contains(s.Optional, field)
}

// takes reports whether the evaluator has that setting.
func (s Spec) takes(setting string) bool {
	return slices.ContainsFunc(s.Settings, func(t Setting) bool { return t.Name == setting })
}

// Options returns the options of the default question.
func (s Spec) Options() []OptionDefinition { return slices.Clone(s.variants[0].options) }

// DefaultPass returns the options that pass by default; nil where PassLine decides.
func (s Spec) DefaultPass() []string { return slices.Clone(s.variants[0].pass) }

// Coarse returns the options of the coarse question, if the evaluator has one.
func (s Spec) Coarse() ([]OptionDefinition, bool) {
	if len(s.variants) < 2 || s.variants[1].dialect != "" {
		return nil, false
	}
	return slices.Clone(s.variants[1].options), true
}

// Lookup returns the row of the evaluator of that name; the error names the nearest.
func Lookup(name string) (Spec, error) {
	var known []string
	for _, s := range Table() {
		if s.Name == name || slices.Contains(s.Aliases, name) {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Spec{}, fmt.Errorf("unknown evaluator %q: want %s%s", name, strings.Join(known, " or "), didYouMean(name, known))
}

// NeedsSettings reports whether the evaluator does nothing without settings of its own,
// such as a pattern or a bound.
func (s Spec) NeedsSettings() bool {
	_, err := New(s.Name, Settings{})
	return err != nil
}

// New makes the evaluator of that name. The error names every fault.
func New(name string, s Settings) (Evaluator, error) {
	spec, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	v, err := spec.variant(s)
	if err != nil {
		return nil, err
	}
	settled, err := settle(s, spec, v)
	if err != nil {
		return nil, err
	}
	if spec.rule != nil {
		return newRuling(spec, v, settled)
	}
	if spec.build != nil {
		return spec.build(spec, v, settled), nil
	}
	return newJudged(spec, v, settled), nil
}

// variant returns the question that the settings choose.
func (s Spec) variant(settings Settings) (variant, error) {
	if settings.Coarse {
		if _, ok := s.Coarse(); !ok {
			return variant{}, fmt.Errorf("%s: coarse: this evaluator has one question only", s.Name)
		}
		return s.variants[1], nil
	}
	if settings.Dialect == "" {
		return s.variants[0], nil
	}
	var known []string
	for _, v := range s.variants {
		if v.dialect == settings.Dialect {
			return v, nil
		}
		if v.dialect != "" {
			known = append(known, v.dialect)
		}
	}
	if len(known) == 0 {
		return variant{}, fmt.Errorf("%s: dialect: this evaluator has one way only", s.Name)
	}
	return variant{}, fmt.Errorf("%s: dialect: unknown %q: want %s%s", s.Name, settings.Dialect, strings.Join(known, " or "), didYouMean(settings.Dialect, known))
}

// commonSettings are the settings every judged evaluator takes.
func commonSettings() []Setting { return commonSettingsWith(JudgeItem) }

// commonSettingsWith are the same where refusals have another default.
func commonSettingsWith(refusals string) []Setting {
	return []Setting{
		{Name: "empty_output", Type: "text", Values: []string{NotApplicableItem, Fail}, Default: NotApplicableItem,
			Help: "an output that is there but blank: left out, or the worst answer by rule"},
		{Name: "refusals", Type: "text", Values: []string{JudgeItem, NotApplicableItem, Fail}, Default: refusals,
			Help: "an answer that declines"},
		{Name: "truncated", Type: "text", Values: []string{JudgeItem, NotApplicableItem}, Default: JudgeItem,
			Help: "a text that was cut before it was logged or in the log"},
		{Name: "max_input_runes", Type: "number", Default: defaultMaxInputRunes,
			Help: "characters a judge reads at most; context is cut to it, longer items are left out"},
		{Name: "orders", Type: "number", Values: []string{"1", "2"}, Default: 1,
			Help: "2 asks with the options in both orders and averages"},
	}
}

// claimSettings are those of evaluators that read a claim and no output.
func claimSettings() []Setting {
	return slices.DeleteFunc(commonSettings(), func(s Setting) bool { return s.Name == "empty_output" || s.Name == "refusals" })
}

// didYouMean names the nearest of the known names, if one is near.
func didYouMean(name string, known []string) string {
	if len(name) > 100 { // far from every name, and long to compare
		return ""
	}
	best, distance := "", 1+len(name)/2
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}
