package evaluators

// jsonDiff compares JSON values part by part.
func jsonDiff() Spec {
	return graded(Spec{
		Name:     "json_diff",
		Summary:  "How alike are the output and the expected value, as JSON, part by part?",
		Use:      "structured outputs that may be partly right",
		NotFor:   "outputs that are right or wrong as a whole: json_match",
		Required: []string{fieldOutput, fieldExpected},
		Settings: append([]Setting{
			{Name: "dialect", Type: "text", Values: []string{"js", "py"}, Default: "js",
				Help: "py takes true and false for the numbers 1 and 0; js compares them as texts"},
		}, ruleSettings()...),
		variants: []variant{{template: "json_diff/1", dialect: "js"}, {template: "json_diff/1", dialect: "py"}},
	}, .75, func(o *ruleOptions) rule {
		py := o.dialect == "py"
		return rule{measure: bestReference(func(output, expected string) (float64, error) {
			return JSONDiff(valueOf(output), valueOf(expected), py)
		})}
	})
}

// valueOf is the JSON value of a text, or the text where it is none.
func valueOf(text string) any {
	if v, err := parseJSON(text); err == nil {
		return v
	}
	return text
}

// jsonMatch asks whether the output is the expected JSON value.
func jsonMatch() Spec {
	return yesNo(Spec{
		Name:     "json_match",
		Summary:  "Is the output the same JSON value as the expected one? The order of lists counts, that of keys does not.",
		Use:      "structured outputs that must be the same",
		NotFor:   "outputs where a part counts: json_diff",
		Required: []string{fieldOutput, fieldExpected},
		Settings: ruleSettings(),
	}, func(*ruleOptions) rule {
		return rule{measure: func(it Item) finding {
			k := matchingJSON(*it.Output, it.texts(fieldExpected))
			if k < 0 {
				return finding{}
			}
			return finding{score: 1, reference: k + 1}
		}}
	})
}

// validJSON asks whether the output is JSON.
func validJSON() Spec {
	return yesNo(Spec{
		Name:     "valid_json",
		Summary:  "Is the output a JSON object or array, or does it fit a JSON schema?",
		Use:      "outputs that a program reads",
		NotFor:   "whether the values are right: json_diff",
		Required: []string{fieldOutput},
		Settings: append([]Setting{
			{Name: "schema", Type: "object", Help: "a JSON schema; with one, any kind of value that it describes is right"},
		}, ruleSettings()...),
	}, func(o *ruleOptions) rule {
		var schema *Schema
		if text := o.object("schema"); text != nil {
			var err error
			if schema, err = CompileSchema(text); err != nil {
				o.fault("%v", err)
			}
		}
		return rule{measure: func(it Item) finding {
			ok, why := ValidJSON(*it.Output, schema)
			f := finding{score: one(ok)}
			if !ok {
				f.detail = map[string]any{"why": firstRunes(why, 200)}
			}
			return f
		}}
	})
}
