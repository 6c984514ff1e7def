package evaluators

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// numericDiff says how near a number is to the expected one.
func numericDiff() Spec {
	return graded(Spec{
		Name:     "numeric_diff",
		Summary:  "How near is the output, a number, to the expected one, relative to their size?",
		Use:      "numbers that may be a little off",
		NotFor:   "numbers inside text: extract them first",
		Required: []string{fieldOutput, fieldExpected},
		Settings: ruleSettings(),
	}, .95, func(*ruleOptions) rule {
		return rule{
			applies: func(it Item) (string, bool) {
				for _, e := range it.texts(fieldExpected) {
					if _, err := parseNumber(e); err != nil {
						return "expected_not_a_number", false
					}
				}
				return "", true
			},
			measure: func(it Item) finding {
				output, err := parseNumber(*it.Output)
				if err != nil {
					// An answer that is no number is an answer, and as far off as any.
					return finding{detail: map[string]any{"why": "the output is not a number"}}
				}
				return best(it, func(expected string) (float64, error) {
					e, err := parseNumber(expected)
					if err != nil {
						return 0, err
					}
					return NumericDiff(output, e)
				})
			},
		}
	})
}

// parseNumber reads a text that is one finite decimal number. Thousands separators and
// units make it none: what they mean is a matter of the place.
func parseNumber(text string) (float64, error) {
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || strings.ContainsAny(text, "xXpP_") {
		return 0, fmt.Errorf("%q is not a number", firstRunes(text, 40))
	}
	return v, nil
}
