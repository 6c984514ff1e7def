package evaluators

import "strings"

// tokenF1 compares short answers word by word. On long ones it agrees little with what
// people say.
func tokenF1() Spec {
	return graded(Spec{
		Name:     "token_f1",
		Summary:  "How many words do the output and the expected text share (F1), articles, case and punctuation aside? For short answers.",
		Use:      "answers of a few words",
		NotFor:   "long answers, where it agrees little with people; numbers, whose sign and point it drops",
		Required: []string{fieldOutput, fieldExpected},
		Settings: ruleSettings(),
	}, .5, func(*ruleOptions) rule {
		return rule{measure: bestReference(func(output, expected string) (float64, error) { return tokenF1Of(output, expected), nil })}
	})
}

// TokenF1 is the F1 of the words of a prediction against those of the best reference,
// each counted as often as it occurs, after NormalizeAnswer. No reference is an empty one.
func TokenF1(prediction string, references []string) float64 {
	if len(references) == 0 {
		return tokenF1Of(prediction, "")
	}
	best := 0.0
	for _, r := range references {
		best = max(best, tokenF1Of(prediction, r))
	}
	return best
}

func tokenF1Of(prediction, reference string) float64 {
	p, r := strings.Fields(NormalizeAnswer(prediction)), strings.Fields(NormalizeAnswer(reference))
	if len(p) == 0 || len(r) == 0 {
		return one(len(p) == len(r))
	}
	left := make(map[string]int, len(r))
	for _, w := range r {
		left[w]++
	}
	common := 0
	for _, w := range p {
		if left[w] > 0 {
			left[w]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(p)+len(r))
}
