package aggregate

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"assay/evaluators"
)

type exactArgs struct {
	Output       json.RawMessage `json:"output"`
	Expected     json.RawMessage `json:"expected"`
	OutputText   *string         `json:"output_json_text"`   // raw JSON, whose order of keys counts
	ExpectedText *string         `json:"expected_json_text"` // the same
	Prediction   *string         `json:"prediction"`
	Predictions  list            `json:"predictions"`
	References   list            `json:"references"`
	Options      foldingArgs     `json:"options"`
	Aggregate    string          `json:"aggregate"`
}

type foldingArgs struct {
	Regexes     list `json:"regexes_to_ignore"`
	Case        bool `json:"ignore_case"`
	Punctuation bool `json:"ignore_punctuation"`
	Numbers     bool `json:"ignore_numbers"`
}

func textMetrics() []Metric {
	type pair struct {
		Output   *string `json:"output"`
		Expected *string `json:"expected"`
	}
	type prediction struct {
		Prediction  *string `json:"prediction"`
		Predictions list    `json:"predictions"`
		References  []texts `json:"references"`
	}
	type two struct {
		A *string `json:"a"`
		B *string `json:"b"`
	}
	type text struct {
		Text *string `json:"text"`
	}
	return []Metric{
		metric("exact_match", "the share of outputs that are the expected text",
			[]string{"assay", "jeval", "autoevals", "squad", "squad_v2", "hf_evaluate"}, exactMatch),
		metric("levenshtein", "1 less the edit distance over the longer length", []string{"codepoint"}, func(_ string, a pair) (Value, error) {
			if a.Output == nil || a.Expected == nil {
				return Value{}, errors.New("output and expected: want two texts")
			}
			return plainly(evaluators.Levenshtein(*a.Output, *a.Expected))
		}),
		metric("token_f1", "the mean F1 of the words of predictions against those of their best reference", nil, func(_ string, a prediction) (Value, error) {
			if a.Prediction != nil && a.Predictions == nil {
				var all []string
				for _, r := range a.References {
					all = append(all, r...)
				}
				return Value{V: evaluators.TokenF1(*a.Prediction, all)}, nil
			}
			if err := sameLength("predictions and references", len(a.Predictions), len(a.References)); err != nil {
				return Value{}, err
			}
			scores := make([]float64, len(a.Predictions))
			for i, p := range a.Predictions {
				scores[i] = evaluators.TokenF1(p, a.References[i])
			}
			return meanOf(scores)
		}),
		metric("fuzzy_match", "whether one text contains the other", nil, func(_ string, a two) (Value, error) {
			if a.A == nil || a.B == nil {
				return Value{}, errors.New("a and b: want two texts")
			}
			return Value{V: evaluators.FuzzyMatch(*a.A, *a.B)}, nil
		}),
		metric("normalize_answer", "a short answer without case, punctuation and articles", nil, func(_ string, a text) (Value, error) {
			if a.Text == nil {
				return Value{}, errors.New("text: want a text")
			}
			return Value{V: evaluators.NormalizeAnswer(*a.Text)}, nil
		}),
	}
}

// exactMatch has a form for one pair, one for a prediction with its references, and one
// for lists.
func exactMatch(dialect string, a exactArgs) (Value, error) {
	same, err := sameText(dialect, a.Options)
	if err != nil {
		return Value{}, err
	}
	switch {
	case a.Predictions != nil:
		if a.Aggregate != "" && a.Aggregate != "mean" {
			return Value{}, fmt.Errorf("aggregate: %q: want mean", a.Aggregate)
		}
		if err := sameLength("predictions and references", len(a.Predictions), len(a.References)); err != nil {
			return Value{}, err
		}
		scores := make([]float64, len(a.Predictions))
		for i, p := range a.Predictions {
			scores[i] = number(same(p, a.References[i]))
		}
		return meanOf(scores)
	case a.Prediction != nil:
		references := a.References
		if len(references) == 0 {
			if dialect != "squad_v2" {
				return Value{}, errors.New("references: want at least one")
			}
			references = []string{""} // a question without an answer wants an empty one
		}
		best := 0.0
		for _, r := range references {
			best = max(best, number(same(*a.Prediction, r)))
		}
		return Value{V: best}, nil
	}
	output, expected := a.Output, a.Expected
	if a.OutputText != nil && a.ExpectedText != nil {
		output, expected = json.RawMessage(*a.OutputText), json.RawMessage(*a.ExpectedText)
	}
	if output == nil || expected == nil {
		return Value{}, errors.New("want output and expected, prediction and references, or predictions and references")
	}
	if dialect == "autoevals" {
		ok, err := evaluators.ExactMatchJSON(output, expected)
		return plainly(number(ok), err)
	}
	var x, y *string
	if json.Unmarshal(output, &x) != nil || json.Unmarshal(expected, &y) != nil || x == nil || y == nil {
		return Value{}, fmt.Errorf("output and expected: dialect %s compares texts", dialect)
	}
	return Value{V: number(same(*x, *y))}, nil
}

func sameText(dialect string, o foldingArgs) (func(a, b string) bool, error) {
	switch dialect {
	case "autoevals":
		return func(a, b string) bool { return a == b }, nil
	case "squad", "squad_v2":
		return func(a, b string) bool { return evaluators.NormalizeAnswer(a) == evaluators.NormalizeAnswer(b) }, nil
	case "hf_evaluate":
		f := evaluators.Folding{IgnoreCase: o.Case, IgnorePunctuation: o.Punctuation, IgnoreNumbers: o.Numbers}
		for _, p := range o.Regexes {
			re, err := regexp.Compile(p)
			if err != nil {
				return nil, fmt.Errorf("options.regexes_to_ignore: %w", err)
			}
			f.Remove = append(f.Remove, re)
		}
		return f.Equal, nil
	}
	return evaluators.ExactMatch, nil
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
