package evaluators

import "fmt"

// groundedness is the mean probability with which the context supports a claim. Where
// faithfulness counts verdicts, a doubtful claim here counts for what it is.
func groundedness() Spec {
	return overClaims(Spec{
		Name:     "groundedness",
		Summary:  "With what probability does the context support the output's claims, on average?",
		Use:      "answers that may say only what their documents say, as a degree: how sure the judge is of each claim's support",
		NotFor:   "a count of unsupported claims: hallucination_rate",
		PassLine: new(.5),
		Settings: []Setting{passLevel(.5)},
	}, func(_ Settings, claims []verdict) (float64, string) {
		sum := 0.0
		for _, c := range claims {
			sum += c.supported()
		}
		mean := sum / float64(len(claims))
		return mean, fmt.Sprintf("%d%% grounded", halfUp(100*mean))
	})
}
