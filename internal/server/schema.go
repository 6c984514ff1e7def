package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"assay/evaluators"
)

// requestSchema describes the body of an evaluate request. It is written from the table
// that parse reads by.
func (s *Server) requestSchema() *huma.RequestBody {
	var names []string // aliases too
	options := map[string]*huma.Schema{}
	for _, spec := range evaluators.Table() {
		settings := map[string]*huma.Schema{}
		for _, setting := range spec.Settings {
			settings[setting.Name] = settingSchema(setting)
		}
		options[spec.Name] = closed(settings)
		names = append(append(names, spec.Name), spec.Aliases...)
		for _, alias := range spec.Aliases {
			options[alias] = options[spec.Name]
		}
	}
	text := &huma.Schema{Type: huma.TypeString}
	list := &huma.Schema{Type: huma.TypeArray, Items: text}
	none := 0.0
	oneOrMore := func(what string) *huma.Schema {
		return &huma.Schema{OneOf: []*huma.Schema{text, list}, Description: what}
	}
	described := func(what string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: what} }
	item := func() map[string]*huma.Schema {
		return map[string]*huma.Schema{
			"input":    described("What the assistant was asked"),
			"output":   described("What it answered"),
			"expected": oneOrMore("Reference answers, any of which is right"),
			"criteria": described("What an answer has to meet"),
			"context":  oneOrMore("Documents that the answer may rest on"),
			"claim":    described("A statement to be checked by itself"),
			"evidence": oneOrMore("What the statement is to be held against"),

			"latency_ms":    {Type: huma.TypeNumber, Description: "How long the answer took"},
			"input_tokens":  {Type: huma.TypeInteger, Minimum: &none},
			"output_tokens": {Type: huma.TypeInteger, Minimum: &none},
			"attributes":    {Type: huma.TypeObject, AdditionalProperties: orAbsent(&huma.Schema{Type: huma.TypeString}), Description: "Values for numeric_range, as texts"},
		}
	}
	one, most := 1, maxItems
	body := item()
	body["evaluators"] = &huma.Schema{
		Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Enum: enum(names)}, MinItems: &one, UniqueItems: true,
	}
	body["suite"] = &huma.Schema{Type: huma.TypeString, Enum: enum(s.suiteNames()), Description: "In place of evaluators: those that are usually wanted together"}
	body["options"] = closed(options)
	body["options"].Description = "Settings by evaluator"
	body["judge"] = described(fmt.Sprintf("A judge of the checks file; may be left out where there is only one, or where no evaluator asks one. Here: %s", strings.Join(s.judgeNames(), ", ")))
	body["judge"].Enum = enum(s.judgeNames())
	body["dry_run"] = &huma.Schema{Type: huma.TypeBoolean, Default: false, Description: "Ask nobody: the answer holds the questions that a judge would be asked, and what is not applicable"}
	ofBatch := item()
	ofBatch["id"] = described("Comes back with the item's results")
	body["items"] = &huma.Schema{
		Type: huma.TypeArray, Items: closed(ofBatch), MinItems: &one, MaxItems: &most,
		Description: "A batch, in place of the item's own fields",
	}
	schema := closed(body)
	// One of the two, and not both.
	given := func(name, kind string) *huma.Schema {
		return &huma.Schema{Required: []string{name}, Properties: map[string]*huma.Schema{name: {Type: kind}}}
	}
	schema.OneOf = []*huma.Schema{given("evaluators", huma.TypeArray), given("suite", huma.TypeString)}
	return &huma.RequestBody{
		Required: true,
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: schema,
			Example: map[string]any{
				"evaluators": []string{"closed_qa"},
				"input":      "Can I return opened headphones?",
				"output":     "Yes, within 14 days, as long as the ear pads are unused.",
				"criteria":   "Names the number of days and the condition.",
			},
		}},
	}
}

func settingSchema(setting evaluators.Setting) *huma.Schema {
	var s *huma.Schema
	values := make([]any, 0, len(setting.Values))
	for _, v := range setting.Values {
		values = append(values, v)
	}
	switch setting.Type {
	case "number":
		s = &huma.Schema{Type: huma.TypeNumber}
	case "boolean":
		s = &huma.Schema{Type: huma.TypeBoolean}
	case "numbers":
		s = &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeNumber}}
	case "list":
		s = &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}
	case "object":
		s = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	default:
		s = &huma.Schema{Type: huma.TypeString}
		if len(values) > 0 {
			s.Enum = values
		}
	}
	s.Description = setting.Help
	s.Default = setting.Default
	if setting.Name == "empty_output" {
		s.Default = evaluators.Fail // see options
	}
	return s
}

// closed is an object with these properties and no others. What is not required may be
// null, which means the same as leaving it out.
func closed(properties map[string]*huma.Schema, required ...string) *huma.Schema {
	for name, s := range properties {
		if !slices.Contains(required, name) {
			orAbsent(s)
		}
	}
	return &huma.Schema{Type: huma.TypeObject, Properties: properties, AdditionalProperties: false, Required: required}
}

func orAbsent(s *huma.Schema) *huma.Schema {
	switch {
	case len(s.OneOf) > 0:
		s.OneOf = append(s.OneOf, &huma.Schema{Type: "null"})
	case !s.Nullable:
		s.Nullable = true
		if len(s.Enum) > 0 {
			s.Enum = append(slices.Clip(s.Enum), nil)
		}
	}
	return s
}

func enum(names []string) []any {
	values := make([]any, len(names))
	for i, n := range names {
		values[i] = n
	}
	return values
}
