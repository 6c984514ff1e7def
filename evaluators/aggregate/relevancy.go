package aggregate

import (
	"errors"
	"fmt"
	"slices"

	"assay/evaluators"
)

func relevancyMetrics() []Metric {
	type answer struct {
		Noncommittal []truth   `json:"noncommittal"`
		Cosines      []float64 `json:"cosines"`
	}
	type scale struct {
		Cosine *float64 `json:"cosine"`
		Min    float64  `json:"expected_min"`
	}
	type vectors struct {
		A []float64 `json:"a"`
		B []float64 `json:"b"`
	}
	return []Metric{
		metric("answer_relevancy", "the mean cosine of questions made from an answer; 0 where all (ragas) or any (autoevals) are noncommittal",
			[]string{"ragas", "autoevals"}, func(dialect string, a answer) (Value, error) {
				if err := sameLength("noncommittal and cosines", len(a.Noncommittal), len(a.Cosines)); err != nil {
					return Value{}, err
				}
				if len(a.Cosines) == 0 {
					return Value{}, errNothing
				}
				for _, c := range a.Cosines {
					if !(c >= -1-1e-9 && c <= 1+1e-9) {
						return Value{}, fmt.Errorf("cosines: %g: want -1 to 1", c)
					}
				}
				evasive := slices.Contains(a.Noncommittal, truth(true))
				if dialect == "ragas" {
					evasive = !slices.Contains(a.Noncommittal, truth(false))
				}
				if evasive {
					return Value{V: 0.0}, nil
				}
				return Value{V: sum(a.Cosines) / float64(len(a.Cosines))}, nil
			}),
		metric("embedding_scale", "a cosine from the least that unrelated texts have upwards, as 0 to 1", nil, func(_ string, a scale) (Value, error) {
			if a.Cosine == nil || !(a.Min >= -1 && a.Min < 1) {
				return Value{}, errors.New("cosine and expected_min: want two numbers, expected_min below 1")
			}
			return Value{V: min(1, max(0, (*a.Cosine-a.Min)/(1-a.Min)))}, nil
		}),
		metric("cosine", "the cosine of two vectors; 0 where one is zero", nil, func(_ string, a vectors) (Value, error) {
			return plainly(evaluators.Cosine(a.A, a.B))
		}),
	}
}
