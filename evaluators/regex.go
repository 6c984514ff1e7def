package evaluators

import "strings"

// regexMatch looks for patterns.
func regexMatch() Spec {
	return yesNo(Spec{
		Name:     "regex",
		Summary:  "Does the output match a pattern, or keep clear of one?",
		Use:      "a form that the output must have or must not have",
		NotFor:   "meaning, and negation in the text",
		Required: []string{fieldOutput},
		Settings: append([]Setting{
			{Name: "pattern", Type: "text", Help: "a pattern (RE2) that must be found; (?i) in front ignores case, ^(?s) and $ make it the whole output"},
			{Name: "must_not", Type: "text", Help: "a pattern (RE2) that must not be found"},
		}, ruleSettings()...),
	}, func(o *ruleOptions) rule {
		must, mustNot := o.pattern("pattern", o.text("pattern")), o.pattern("must_not", o.text("must_not"))
		if must == nil && mustNot == nil {
			o.needs("pattern", "must_not")
		}
		return rule{measure: func(it Item) finding {
			if must != nil && !must.MatchString(*it.Output) {
				return finding{detail: map[string]any{"why": "pattern was not found"}}
			}
			if mustNot != nil {
				if at := mustNot.FindStringIndex(*it.Output); at != nil {
					return finding{detail: map[string]any{"why": "must_not was found", "found": firstRunes((*it.Output)[at[0]:at[1]], 100)}}
				}
			}
			return finding{score: 1}
		}}
	})
}

// containsTexts looks for texts.
func containsTexts() Spec {
	return yesNo(Spec{
		Name:     "contains",
		Summary:  "Does the output contain the texts it should, and none that it should not?",
		Use:      "words that must or must not be there",
		NotFor:   "meaning: \"not refundable\" contains refundable",
		Required: []string{fieldOutput},
		Settings: append([]Setting{
			{Name: "any", Type: "list", Help: "texts of which at least one must occur"},
			{Name: "all", Type: "list", Help: "texts that must all occur"},
			{Name: "none", Type: "list", Help: "texts of which none may occur"},
			{Name: "ignore_case", Type: "boolean", Default: false, Help: "upper and lower case are the same"},
		}, ruleSettings()...),
	}, func(o *ruleOptions) rule {
		folded := func(s string) string { return s }
		if o.boolean("ignore_case") {
			folded = lower
		}
		lists := make(map[string][]string)
		for _, name := range []string{"any", "all", "none"} {
			for _, text := range o.list(name) {
				if text == "" {
					o.fault("%s: an empty text is in every output", name)
				}
				lists[name] = append(lists[name], folded(text))
			}
		}
		if len(lists) == 0 {
			o.needs("any", "all", "none")
		}
		return rule{measure: func(it Item) finding {
			output := folded(*it.Output)
			var missing, found []string
			some := len(lists["any"]) == 0
			for _, text := range lists["any"] {
				some = some || strings.Contains(output, text)
			}
			for _, text := range lists["all"] {
				if !strings.Contains(output, text) {
					missing = append(missing, text)
				}
			}
			for _, text := range lists["none"] {
				if strings.Contains(output, text) {
					found = append(found, text)
				}
			}
			f := finding{score: one(some && missing == nil && found == nil), detail: map[string]any{}}
			if !some {
				f.detail["missing_any"] = lists["any"]
			}
			if missing != nil {
				f.detail["missing"] = missing
			}
			if found != nil {
				f.detail["found"] = found
			}
			return f
		}}
	})
}
