package evaluators

import (
	"math"
	"slices"
	"strings"
)

// The numeric fields of an item. Attributes are read as numbers where they are some.
const (
	fieldLatency      = "latency_ms"
	fieldInputTokens  = "input_tokens"
	fieldOutputTokens = "output_tokens"
	fieldTotalTokens  = "total_tokens"
	fieldFeedback     = "feedback"
	attributePrefix   = "attributes."
)

// numericRange holds any numeric field of the interaction against bounds.
func numericRange() Spec {
	fields := []string{fieldLatency, fieldInputTokens, fieldOutputTokens, fieldTotalTokens, fieldFeedback}
	return yesNo(Spec{
		Name:    "numeric_range",
		Summary: "Is a number of the interaction within bounds?",
		Use:     "any number that the log carries",
		NotFor:  "numbers in the output's text: regex",
		Settings: append(boundSettings("value"), Setting{
			Name: "field", Type: "text", Help: "the number: " + strings.Join(fields, ", ") + " or " + attributePrefix + "NAME",
		}),
	}, func(o *ruleOptions) rule {
		field := o.text("field")
		name, attribute := strings.CutPrefix(field, attributePrefix)
		if !slices.Contains(fields, field) && !(attribute && name != "") {
			o.fault("field: %q: want %s or %sNAME", field, strings.Join(fields, ", "), attributePrefix)
		}
		return within(field, o.bounds())
	})
}

// latency holds the time an answer took against bounds.
func latency() Spec {
	return yesNo(Spec{
		Name:     "latency",
		Summary:  "Did the answer take as long as it may, in milliseconds?",
		Use:      "a limit of waiting time per answer",
		NotFor:   "percentiles: a pass rate says how many were within the limit",
		Settings: boundSettings("milliseconds"),
	}, func(o *ruleOptions) rule { return within(fieldLatency, o.bounds()) })
}

// tokens holds the tokens of an interaction against bounds.
func tokens() Spec {
	return yesNo(Spec{
		Name:    "tokens",
		Summary: "Did the interaction use as many tokens as it may?",
		Use:     "a limit of size or cost per answer",
		NotFor:  "the number of words: length",
		Settings: append(boundSettings("tokens"), Setting{
			Name: "of", Type: "text", Values: []string{"input", "output", "total"}, Default: "total", Help: "which tokens are counted",
		}),
	}, func(o *ruleOptions) rule { return within(o.text("of")+"_tokens", o.bounds()) })
}

func within(field string, b bounds) rule {
	return rule{
		applies: func(it Item) (string, bool) {
			if _, ok := it.number(field); !ok {
				return reasonMissing + field, false
			}
			return "", true
		},
		measure: func(it Item) finding {
			v, _ := it.number(field)
			return b.finding(v, field)
		},
	}
}

// number returns a numeric field of the item.
func (it Item) number(field string) (float64, bool) {
	whole := func(n *int64) (float64, bool) {
		if n == nil {
			return 0, false
		}
		return float64(*n), true
	}
	decimal := func(v *float64) (float64, bool) {
		if v == nil {
			return 0, false
		}
		return *v, !math.IsNaN(*v)
	}
	switch field {
	case fieldLatency:
		return decimal(it.LatencyMS)
	case fieldInputTokens:
		return whole(it.InputTokens)
	case fieldOutputTokens:
		return whole(it.OutputTokens)
	case fieldTotalTokens:
		in, hasIn := whole(it.InputTokens)
		out, hasOut := whole(it.OutputTokens)
		return in + out, hasIn && hasOut
	case fieldFeedback:
		return decimal(it.Feedback)
	}
	text, ok := it.Attributes[strings.TrimPrefix(field, attributePrefix)]
	if !ok {
		return 0, false
	}
	v, err := parseNumber(text)
	return v, err == nil
}
