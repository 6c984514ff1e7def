package evaluators

import "strings"

// fuzzyMatch asks whether the output holds the expected text or is part of it.
func fuzzyMatch() Spec {
	return yesNo(Spec{
		Name:     "fuzzy_match",
		Summary:  "Does the output contain the expected text or the other way round, articles, case and punctuation aside?",
		Use:      "a short answer that may stand inside a sentence",
		NotFor:   "parts of words, which match too; numbers",
		Required: []string{fieldOutput, fieldExpected},
		Settings: ruleSettings(),
	}, func(*ruleOptions) rule {
		return rule{measure: bestReference(func(output, expected string) (float64, error) { return one(FuzzyMatch(output, expected)), nil })}
	})
}

// FuzzyMatch reports whether one text contains the other after NormalizeAnswer. An empty
// one is in nothing but an empty one. Parts of words count: hello is in othello.
func FuzzyMatch(a, b string) bool {
	a, b = NormalizeAnswer(a), NormalizeAnswer(b)
	if a == "" || b == "" {
		return a == b
	}
	return strings.Contains(a, b) || strings.Contains(b, a)
}
