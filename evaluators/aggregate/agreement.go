package aggregate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

func agreementMetrics() []Metric {
	type brier struct {
		P []float64 `json:"p"`
		Y []truth   `json:"y"`
	}
	type levels struct {
		Predicted []float64 `json:"pred"`
		Gold      []float64 `json:"gold"`
	}
	type raters struct {
		A list `json:"a"`
		B list `json:"b"`
	}
	type labels struct {
		Predicted list `json:"pred"`
		Gold      list `json:"gold"`
	}
	type positive struct {
		Predicted list   `json:"pred"`
		Gold      list   `json:"gold"`
		Positive  string `json:"positive"`
		Measure   string `json:"measure"`
	}
	return []Metric{
		metric("brier", "the mean squared distance of probabilities from what was true", nil, func(_ string, a brier) (Value, error) {
			if err := sameLength("p and y", len(a.P), len(a.Y)); err != nil {
				return Value{}, err
			}
			distances := make([]float64, len(a.P))
			for i, p := range a.P {
				if !(p >= 0 && p <= 1) {
					return Value{}, fmt.Errorf("p: %g: want 0 to 1", p)
				}
				d := p - number(bool(a.Y[i]))
				distances[i] = d * d
			}
			return meanOf(distances)
		}),
		metric("mae", "the mean distance of levels", nil, func(_ string, a levels) (Value, error) {
			if err := sameLength("pred and gold", len(a.Predicted), len(a.Gold)); err != nil {
				return Value{}, err
			}
			if len(a.Gold) == 0 {
				return Value{}, errNothing
			}
			total := 0.0
			for i := range a.Gold {
				total += math.Abs(a.Predicted[i] - a.Gold[i])
			}
			return Value{V: total / float64(len(a.Gold))}, nil
		}),
		metric("judge_agreement_kappa", "how far two raters agree beyond chance (Cohen); nothing where chance alone would agree always", nil,
			func(_ string, a raters) (Value, error) {
				if err := sameLength("a and b", len(a.A), len(a.B)); err != nil {
					return Value{}, err
				}
				if len(a.A) == 0 {
					return Value{}, errNothing
				}
				v, ok := Kappa(a.A, a.B)
				if !ok {
					return Value{}, nil
				}
				return Value{V: v}, nil
			}),
		metric("accuracy", "the share of labels that are right", nil, func(_ string, a labels) (Value, error) {
			c, err := NewConfusion(a.Predicted, a.Gold)
			if err != nil {
				return Value{}, err
			}
			right, n := 0, 0
			for gold, row := range c {
				for predicted, k := range row {
					n += k
					right += k * int(number(gold == predicted))
				}
			}
			return of(right, n), nil
		}),
		metric("confusion", "how often each right label got each label", nil, func(_ string, a labels) (Value, error) {
			c, err := NewConfusion(a.Predicted, a.Gold)
			return plainly(c, err)
		}),
		metric("precision_recall_f1", "precision, recall and f1 of one label", nil, func(_ string, a positive) (Value, error) {
			c, err := NewConfusion(a.Predicted, a.Gold)
			if err != nil {
				return Value{}, err
			}
			if a.Positive == "" {
				return Value{}, errors.New("positive: want the label that is looked for")
			}
			return pick(c.precisionRecall(a.Positive), or(a.Measure, "f1"))
		}),
	}
}

// A Confusion counts labels: by the right one, then by the given one.
type Confusion map[string]map[string]int

// NewConfusion counts the labels of items.
func NewConfusion(predicted, gold []string) (Confusion, error) {
	if err := sameLength("pred and gold", len(predicted), len(gold)); err != nil {
		return nil, err
	}
	if len(gold) == 0 {
		return nil, errNothing
	}
	c := make(Confusion)
	for i, g := range gold {
		if c[g] == nil {
			c[g] = make(map[string]int)
		}
		c[g][predicted[i]]++
	}
	return c, nil
}

func (c Confusion) precisionRecall(label string) map[string]Value {
	both := c[label][label]
	given, right := 0, 0
	for gold, row := range c {
		given += row[label]
		if gold == label {
			for _, n := range row {
				right += n
			}
		}
	}
	return map[string]Value{
		"precision": of(both, given), "recall": of(both, right), "f1": {V: ratio(2*float64(both), float64(given+right))},
	}
}

// Kappa is Cohen's. It is false where chance alone would agree always.
func Kappa(a, b []string) (float64, bool) {
	n := float64(len(a))
	ofA, ofB := make(map[string]float64), make(map[string]float64)
	agreed := 0.0
	for i := range a {
		ofA[a[i]]++
		ofB[b[i]]++
		agreed += number(a[i] == b[i])
	}
	chance := 0.0
	for _, label := range slices.Sorted(maps.Keys(ofA)) {
		chance += ofA[label] / n * ofB[label] / n
	}
	if chance >= 1-1e-12 {
		return 0, false
	}
	return (agreed/n - chance) / (1 - chance), true
}
