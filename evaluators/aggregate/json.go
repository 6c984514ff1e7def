package aggregate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"assay/evaluators"
)

func jsonMetrics() []Metric {
	type numbers struct {
		Output   *float64 `json:"output"`
		Expected *float64 `json:"expected"`
	}
	type lists struct {
		Output   list `json:"output"`
		Expected list `json:"expected"`
		Extra    bool `json:"allow_extra"`
	}
	type values struct {
		Output   json.RawMessage `json:"output"`
		Expected json.RawMessage `json:"expected"`
	}
	type validity struct {
		Output json.RawMessage `json:"output"`
		Schema json.RawMessage `json:"schema"`
	}
	type outputs struct {
		Outputs list   `json:"outputs"`
		Mode    string `json:"mode"`
	}
	type match struct {
		Output     *string `json:"output"`
		References list    `json:"references"`
	}
	return []Metric{
		metric("numeric_diff", "how near two numbers are, relative to their size", nil, func(_ string, a numbers) (Value, error) {
			if a.Output == nil || a.Expected == nil {
				return Value{}, errors.New("output and expected: want two numbers")
			}
			return plainly(evaluators.NumericDiff(*a.Output, *a.Expected))
		}),
		metric("list_contains", "how well two lists of texts match, order aside", nil, func(_ string, a lists) (Value, error) {
			if a.Output == nil || a.Expected == nil {
				return Value{}, errors.New("output and expected: want two lists of texts")
			}
			return plainly(evaluators.ListContains(a.Output, a.Expected, a.Extra))
		}),
		metric("json_diff", "how alike two JSON values are", []string{"js", "py"}, func(dialect string, a values) (Value, error) {
			if a.Output == nil || a.Expected == nil {
				return Value{}, errors.New("output and expected: want two JSON values")
			}
			var x, y any
			if err := errors.Join(json.Unmarshal(a.Output, &x), json.Unmarshal(a.Expected, &y)); err != nil {
				return Value{}, err
			}
			return plainly(evaluators.JSONDiff(x, y, dialect == "py"))
		}),
		metric("valid_json", "whether an output is a JSON object or array, or fits a schema", []string{"assay", "js"}, func(_ string, a validity) (Value, error) {
			if a.Output == nil {
				return Value{}, errors.New("output: want a value")
			}
			var schema *evaluators.Schema
			if a.Schema != nil && string(a.Schema) != "null" {
				var err error
				if schema, err = evaluators.CompileSchema(a.Schema); err != nil {
					return Value{}, err
				}
			}
			text := string(a.Output)
			var inner string
			if json.Unmarshal(a.Output, &inner) == nil && !strings.HasPrefix(text, "null") {
				text = inner
			}
			valid, _ := evaluators.ValidJSON(text, schema)
			return Value{V: number(valid)}, nil
		}),
		metric("json_validity", "the share of outputs that are a JSON object or array", nil, func(_ string, a outputs) (Value, error) {
			scores := make([]float64, len(a.Outputs))
			for i, text := range a.Outputs {
				switch a.Mode {
				case "", "strict":
				case "lenient":
					text = evaluators.LenientJSON(text)
				default:
					return Value{}, fmt.Errorf("mode: %q: want strict or lenient", a.Mode)
				}
				valid, _ := evaluators.ValidJSON(text, nil)
				scores[i] = number(valid)
			}
			return meanOf(scores)
		}),
		metric("json_match", "whether an output is the same JSON value as any of the references", nil, func(_ string, a match) (Value, error) {
			if a.Output == nil || len(a.References) == 0 {
				return Value{}, errors.New("output and references: want a text and at least one reference")
			}
			return Value{V: number(evaluators.JSONMatch(*a.Output, a.References))}, nil
		}),
	}
}
