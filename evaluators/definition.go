package evaluators

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"assay/evaluators/judge"
)

// Definition is everything of an evaluator that can change a verdict. It is what
// check_versions keeps, and its hash goes into the check version.
type Definition struct {
	Evaluator     string             `json:"evaluator"`
	Template      string             `json:"template"` // name and number of the wording
	Kind          judge.Kind         `json:"kind"`
	Text          string             `json:"text"`
	Options       []OptionDefinition `json:"options"`
	PassLine      *float64           `json:"pass_line,omitempty"`
	Pass          []string           `json:"pass,omitempty"`
	Passes        Passes             `json:"passes,omitempty"`
	Coarse        bool               `json:"coarse,omitempty"`
	Dialect       string             `json:"dialect,omitempty"`
	MaxClaims     int                `json:"max_claims,omitempty"`
	Count         string             `json:"count,omitempty"`
	Similarity    bool               `json:"similarity,omitempty"`
	Weights       []float64          `json:"weights,omitempty"`
	Similar       string             `json:"similar,omitempty"`    // template of a second question
	Claims        string             `json:"claims,omitempty"`     // how a text is taken apart
	Rule          map[string]any     `json:"rule,omitempty"`       // settings of a rule that are not its defaults
	Embeddings    bool               `json:"embeddings,omitempty"` // the judge is asked for vectors
	Drafts        bool               `json:"drafts,omitempty"`     // the judge is asked to write
	Questions     int                `json:"questions,omitempty"`  // that it writes
	EmptyOutput   string             `json:"empty_output"`
	Refusals      string             `json:"refusals"`
	Truncated     string             `json:"truncated"`
	MaxInputRunes int                `json:"max_input_runes"`
	Orders        int                `json:"orders"`
}

// Hash returns 16 hex digits that change with the definition.
func (d Definition) Hash() string {
	data, err := json.Marshal(d)
	if err != nil {
		// Only NaN cannot be written, and settle lets none in.
		panic(fmt.Sprintf("definition of %s: %v", d.Evaluator, err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// clone returns a definition that its caller may change.
func (d Definition) clone() Definition {
	d.Options, d.Pass, d.Weights = slices.Clone(d.Options), slices.Clone(d.Pass), slices.Clone(d.Weights)
	d.Rule = maps.Clone(d.Rule)
	return d
}

// question returns the question without its fields.
func (d Definition) question() judge.Question {
	q := judge.Question{Name: d.Template, Kind: d.Kind, Text: d.Text}
	for _, o := range d.Options {
		q.Options = append(q.Options, judge.Option{Key: o.Key, Text: o.Text})
	}
	return q
}

// Keys returns the options' keys, as declared.
func (d Definition) Keys() []string {
	keys := make([]string, len(d.Options))
	for i, o := range d.Options {
		keys[i] = o.Key
	}
	return keys
}

// ScoreOf returns the score of an option. An unknown option is an error, never 0.
func (d Definition) ScoreOf(key string) (float64, error) {
	for _, o := range d.Options {
		if o.Key == key {
			return o.Score, nil
		}
	}
	return 0, fmt.Errorf("%s has no option %q", d.Evaluator, key)
}
