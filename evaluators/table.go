package evaluators

import (
	"fmt"
	"slices"
	"strings"

	"assay/evaluators/judge"
)

// Spec is what there is to know about an evaluator before it is made.
type Spec struct {
	Name     string
	Summary  string // one sentence
	Required []string
	Optional []string
	Kind     judge.Kind
	PassLine *float64 // the default; nil where options pass
	Settings []Setting

	variants []variant // the first is the default
}

// Setting is a setting an evaluator takes.
type Setting struct {
	Name    string
	Type    string // number, list, boolean, text
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
func Table() []Spec { return []Spec{closedQA(), factuality()} }

// Options returns the options of the default question.
func (s Spec) Options() []OptionDefinition { return slices.Clone(s.variants[0].options) }

// DefaultPass returns the options that pass by default; nil where PassLine decides.
func (s Spec) DefaultPass() []string { return slices.Clone(s.variants[0].pass) }

// Coarse returns the options of the coarse question, if the evaluator has one.
func (s Spec) Coarse() ([]OptionDefinition, bool) {
	if len(s.variants) < 2 {
		return nil, false
	}
	return slices.Clone(s.variants[1].options), true
}

// Lookup returns the row of the evaluator of that name; the error names the nearest.
func Lookup(name string) (Spec, error) {
	var known []string
	for _, s := range Table() {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Spec{}, fmt.Errorf("unknown evaluator %q: want %s%s", name, strings.Join(known, " or "), didYouMean(name, known))
}

// New makes the evaluator of that name. The error names every fault.
func New(name string, s Settings) (Evaluator, error) {
	spec, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	v := spec.variants[0]
	if s.Coarse {
		if len(spec.variants) < 2 {
			return nil, fmt.Errorf("%s: coarse: this evaluator has one question only", name)
		}
		v = spec.variants[1]
	}
	settled, err := settle(s, spec, v)
	if err != nil {
		return nil, err
	}
	return newJudged(spec, v, settled), nil
}

// commonSettings are the settings every judged evaluator takes.
func commonSettings() []Setting {
	return []Setting{
		{Name: "empty_output", Type: "text", Values: []string{NotApplicableItem, Fail}, Default: NotApplicableItem,
			Help: "an output that is there but blank: left out, or the worst answer by rule"},
		{Name: "refusals", Type: "text", Values: []string{JudgeItem, NotApplicableItem, Fail}, Default: JudgeItem,
			Help: "an answer that declines"},
		{Name: "truncated", Type: "text", Values: []string{JudgeItem, NotApplicableItem}, Default: JudgeItem,
			Help: "a text that was cut before it was logged or in the log"},
		{Name: "max_input_runes", Type: "number", Default: defaultMaxInputRunes,
			Help: "characters a judge reads at most; longer items are left out"},
		{Name: "orders", Type: "number", Values: []string{"1", "2"}, Default: 1,
			Help: "2 asks with the options in both orders and averages"},
	}
}

// didYouMean names the nearest of the known names, if one is near.
func didYouMean(name string, known []string) string {
	best, distance := "", 1+len(name)/2
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// editDistance is Levenshtein's, in runes. Names are short; longer ones are far.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 100 || len(y) > 100 {
		return max(len(x), len(y))
	}
	row := make([]int, len(y)+1)
	for k := range row {
		row[k] = k
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for k := range y {
			cost := 1
			if x[i] == y[k] {
				cost = 0
			}
			diagonal, row[k+1] = row[k+1], min(row[k+1]+1, row[k]+1, diagonal+cost)
		}
	}
	return row[len(y)]
}
