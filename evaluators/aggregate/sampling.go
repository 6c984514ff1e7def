package aggregate

import (
	"errors"
	"fmt"
	"strings"

	"assay/evaluators"
)

func samplingMetrics() []Metric {
	type passes struct {
		N []int `json:"n"`
		C []int `json:"c"`
		K int   `json:"k"`
	}
	type vote struct {
		Samples   list   `json:"samples"`
		Normalize string `json:"normalize"`
	}
	type votes struct {
		References []texts `json:"references"`
		Samples    []list  `json:"samples"`
		Normalize  string  `json:"normalize"`
	}
	return []Metric{
		metric("pass_at_k", "the chance that one of k samples is right, from n samples with c right ones for each problem", nil, func(_ string, a passes) (Value, error) {
			if err := sameLength("n and c", len(a.N), len(a.C)); err != nil {
				return Value{}, err
			}
			scores := make([]float64, len(a.N))
			for i := range a.N {
				var err error
				if scores[i], err = PassAtK(a.N[i], a.C[i], a.K); err != nil {
					return Value{}, err
				}
			}
			return meanOf(scores)
		}),
		metric("majority_vote", "the most frequent of several answers", nil, func(_ string, a vote) (Value, error) {
			normal, err := normaliser(a.Normalize)
			if err != nil {
				return Value{}, err
			}
			return plainly(majorityVote(a.Samples, normal))
		}),
		metric("majority_vote_accuracy", "the share of problems whose most frequent answer is right", nil, func(_ string, a votes) (Value, error) {
			if err := sameLength("references and samples", len(a.References), len(a.Samples)); err != nil {
				return Value{}, err
			}
			normal, err := normaliser(a.Normalize)
			if err != nil {
				return Value{}, err
			}
			scores := make([]float64, len(a.Samples))
			for i, samples := range a.Samples {
				voted, err := majorityVote(samples, normal)
				if err != nil {
					return Value{}, fmt.Errorf("samples[%d]: %w", i, err)
				}
				for _, r := range a.References[i] {
					scores[i] = max(scores[i], number(normal(r) == normal(voted)))
				}
			}
			return meanOf(scores)
		}),
	}
}

// PassAtK is the chance that at least one of k samples, drawn from n of which c are
// right, is right. It is a product and no quotient of binomials, which overflow.
func PassAtK(n, c, k int) (float64, error) {
	if n < 1 || c < 0 || c > n || k < 1 || k > n || n > 10_000_000 {
		return 0, fmt.Errorf("n %d, c %d, k %d: want 1 <= k <= n and 0 <= c <= n", n, c, k)
	}
	if n-c < k {
		return 1, nil
	}
	none := 1.0
	for i := n - c + 1; i <= n; i++ {
		none *= 1 - float64(k)/float64(i)
	}
	return 1 - none, nil
}

// majorityVote returns the most frequent answer as it was first given. Of equally
// frequent ones it is the one that came first.
func majorityVote(samples []string, normal func(string) string) (string, error) {
	if len(samples) == 0 {
		return "", errors.New("no samples to vote")
	}
	votes := make(map[string]int, len(samples))
	for _, s := range samples {
		votes[normal(s)]++
	}
	best := samples[0]
	for _, s := range samples {
		if votes[normal(s)] > votes[normal(best)] {
			best = s
		}
	}
	return best, nil
}

// normaliser returns what makes answers equal. NormalizeAnswer takes the sign and the
// point out of numbers, so these have one of their own.
func normaliser(name string) (func(string) string, error) {
	switch name {
	case "", "squad":
		return evaluators.NormalizeAnswer, nil
	case "numeric":
		return func(s string) string {
			s = strings.TrimSpace(s)
			if v, ok := parseRational(s); ok {
				return v.RatString()
			}
			return strings.ToLower(s)
		}, nil
	}
	return nil, fmt.Errorf("normalize: %q: want squad or numeric", name)
}
