package evaluators

import "fmt"

// faithfulness is the share of an output's claims that the context supports.
func faithfulness() Spec {
	return overClaims(Spec{
		Name:     "faithfulness",
		Summary:  "What share of the output's claims does the context support?",
		Use:      "answers that may say only what their documents say",
		NotFor:   "whether the documents are right; answers that rest on general knowledge",
		PassLine: new(1.0),
		Settings: []Setting{passLevel(1)},
	}, func(_ Settings, claims []verdict) (float64, string) {
		n := count(claims, claimSupports)
		return float64(n) / float64(len(claims)), fmt.Sprintf("%d of %d", n, len(claims))
	})
}
