package evaluators

// levenshteinSimilarity says how few edits lie between the output and the expected text.
func levenshteinSimilarity() Spec {
	return graded(Spec{
		Name:     "levenshtein",
		Summary:  "How near is the output to the expected text, by edits of single characters?",
		Use:      "transcripts, names and codes that may differ by a letter",
		NotFor:   "meaning: one changed letter can turn it around",
		Required: []string{fieldOutput, fieldExpected},
		Settings: ruleSettings(),
	}, .75, func(*ruleOptions) rule { return rule{measure: bestReference(Levenshtein)} })
}
