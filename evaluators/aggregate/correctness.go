package aggregate

import (
	"errors"
	"fmt"
	"math"
)

func correctnessMetrics() []Metric {
	type lists struct {
		TP         []float64 `json:"tp"`
		FP         []float64 `json:"fp"`
		FN         []float64 `json:"fn"`
		Similarity []float64 `json:"similarity"`
		Weights    []float64 `json:"weights"`
	}
	type fbeta struct {
		TP   float64  `json:"tp"`
		FP   float64  `json:"fp"`
		FN   float64  `json:"fn"`
		Beta *float64 `json:"beta"`
	}
	type factual struct {
		TP    float64  `json:"tp"`
		FP    float64  `json:"fp"`
		FN    float64  `json:"fn"`
		Mode  string   `json:"mode"`
		Beta  *float64 `json:"beta"`
		Round *int     `json:"round"`
	}
	return []Metric{
		metric("answer_correctness", "the mean F1 of statements, blended with similarity where it is given", nil, func(_ string, a lists) (Value, error) {
			lengths := []int{len(a.TP), len(a.FP), len(a.FN)}
			if a.Similarity != nil {
				lengths = append(lengths, len(a.Similarity))
			}
			if err := sameLength("tp, fp, fn and similarity", lengths...); err != nil {
				return Value{}, err
			}
			weights := []float64{.75, .25}
			if a.Weights != nil {
				weights = a.Weights
			}
			if len(weights) != 2 || !(weights[0] >= 0) || !(weights[1] >= 0) || weights[0]+weights[1] == 0 {
				return Value{}, fmt.Errorf("weights: %v: want two numbers of at least 0, not both 0", weights)
			}
			scores := make([]float64, len(a.TP))
			for i := range a.TP {
				if err := counts(a.TP[i], a.FP[i], a.FN[i]); err != nil {
					return Value{}, err
				}
				scores[i] = 1 // nothing was stated and nothing was to be
				if a.TP[i]+a.FP[i]+a.FN[i] > 0 {
					scores[i] = FBeta(a.TP[i], a.FP[i], a.FN[i], 1)
				}
				if a.Similarity != nil {
					s := a.Similarity[i]
					if !(s >= 0 && s <= 1) {
						return Value{}, fmt.Errorf("similarity: %g: want 0 to 1", s)
					}
					scores[i] = (weights[0]*scores[i] + weights[1]*s) / (weights[0] + weights[1])
				}
			}
			return meanOf(scores)
		}),
		metric("fbeta", "F-beta of true and false positives and false negatives", nil, func(_ string, a fbeta) (Value, error) {
			beta, err := betaOf(a.Beta)
			if err := errors.Join(err, counts(a.TP, a.FP, a.FN)); err != nil {
				return Value{}, err
			}
			return Value{V: FBeta(a.TP, a.FP, a.FN, beta)}, nil
		}),
		metric("factual_correctness", "precision, recall or F of claims, by mode; without claims 0", nil, func(_ string, a factual) (Value, error) {
			beta, err := betaOf(a.Beta)
			if err := errors.Join(err, counts(a.TP, a.FP, a.FN)); err != nil {
				return Value{}, err
			}
			var v float64
			switch or(a.Mode, "f1") {
			case "precision":
				if a.TP > 0 {
					v = a.TP / (a.TP + a.FP)
				}
			case "recall":
				if a.TP > 0 {
					v = a.TP / (a.TP + a.FN)
				}
			case "f1":
				v = FBeta(a.TP, a.FP, a.FN, beta)
			default:
				return Value{}, fmt.Errorf("mode: %q: want precision, recall or f1", a.Mode)
			}
			if a.Round != nil {
				if *a.Round < 0 || *a.Round > 15 {
					return Value{}, fmt.Errorf("round: %d: want 0 to 15", *a.Round)
				}
				scale := math.Pow10(*a.Round)
				v = math.RoundToEven(v*scale) / scale
			}
			return Value{V: v}, nil
		}),
	}
}

// FBeta weighs recall beta times as much as precision; without a true positive it is 0.
func FBeta(tp, fp, fn, beta float64) float64 {
	if tp == 0 {
		return 0
	}
	b := beta * beta
	return (1 + b) * tp / ((1+b)*tp + b*fn + fp)
}

func betaOf(given *float64) (float64, error) {
	switch {
	case given == nil:
		return 1, nil
	case !(*given > 0) || *given > 1e6:
		return 0, fmt.Errorf("beta: %g: want a number above 0", *given)
	}
	return *given, nil
}

func counts(tp, fp, fn float64) error {
	for _, n := range []float64{tp, fp, fn} {
		if !(n >= 0) || n > 1e15 {
			return fmt.Errorf("tp %g, fp %g, fn %g: want counts", tp, fp, fn)
		}
	}
	return nil
}
