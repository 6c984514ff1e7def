package evaluators

import "fmt"

// hallucinationRate is the share of an output's claims that the context does not
// support, or that it contradicts.
func hallucinationRate() Spec {
	return overClaims(Spec{
		Name:     "hallucination_rate",
		Summary:  "What share of the output's claims does the context not support? Less is better.",
		Use:      "the share of claims that the documents do not support, or contradict",
		NotFor:   "answers without documents: hallucination",
		PassLine: new(0.0),
		Passes:   AtMost,
		Settings: []Setting{
			{Name: "pass", Type: "number", Default: 0.0, Help: "largest rate that passes; from 0, below 1"},
			{Name: "count", Type: "text", Values: []string{countUnsupported, countContradicted}, Default: countUnsupported,
				Help: "unsupported counts claims that the context does not bear out, contradicted only those it speaks against"},
		},
	}, func(s Settings, claims []verdict) (float64, string) {
		n := len(claims) - count(claims, claimSupports)
		if s.Count == countContradicted {
			n = count(claims, claimContradicts)
		}
		return float64(n) / float64(len(claims)), fmt.Sprintf("%d of %d %s", n, len(claims), s.Count)
	})
}
