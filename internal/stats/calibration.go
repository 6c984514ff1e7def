package stats

import (
	"fmt"
	"math"
)

// The calibration functions take columns: p is the probability that a judge gave the
// event, y what people said (0 or 1, or the share of raters who said so), and w the
// rows' weights, nil for equal ones. An empty column has no estimate: nil.

// Brier is the mean squared distance of probability and outcome.
func Brier(p, y, w []float64) (*float64, error) {
	if err := columns(p, y, w); err != nil {
		return nil, err
	}
	return weightedMean(w, len(p), func(i int) float64 { return (p[i] - y[i]) * (p[i] - y[i]) }), nil
}

// BrierSkill is the share of the outcomes' own spread that the probabilities explain:
// 1 is perfect, 0 no better than always saying the mean. It is nil where every
// outcome is the same, since then there is nothing to explain.
func BrierSkill(p, y, w []float64) (*float64, error) {
	bs, err := Brier(p, y, w)
	if err != nil || bs == nil {
		return nil, err
	}
	mean := weightedMean(w, len(y), func(i int) float64 { return y[i] })
	if spread := *mean * (1 - *mean); spread > 0 {
		skill := 1 - *bs/spread
		return &skill, nil
	}
	return nil, nil
}

// LogLoss is the mean negative natural logarithm of the probability that the outcome
// was given. Probabilities are cut to [eps, 1-eps]: one sure mistake would otherwise
// be infinite and hide every other row.
func LogLoss(p, y, w []float64, eps float64) (*float64, error) {
	if !(eps > 0 && eps < .5) {
		return nil, fmt.Errorf("eps %v: want above 0, below 0.5", eps)
	}
	if err := columns(p, y, w); err != nil {
		return nil, err
	}
	return weightedMean(w, len(p), func(i int) float64 {
		q := min(max(p[i], eps), 1-eps)
		return -(y[i]*math.Log(q) + (1-y[i])*math.Log1p(-q))
	}), nil
}

// A Confusion is the weight of rows by what a judge and people said.
type Confusion struct {
	TP float64 // both passed it
	FP float64 // the judge alone
	FN float64 // people alone
	TN float64 // neither
}

// Kappa is Cohen's: the agreement beyond what two raters with these pass rates would
// have by chance, as a share of what is left to reach. It is nil without rows, and where
// chance alone agrees on everything.
func (c Confusion) Kappa() (*float64, error) {
	for _, x := range []float64{c.TP, c.FP, c.FN, c.TN} {
		if !finite(x) || x < 0 {
			return nil, fmt.Errorf("confusion %+v: want finite numbers of at least 0", c)
		}
	}
	n := c.TP + c.FP + c.FN + c.TN
	if n <= 0 {
		return nil, nil
	}
	judge, people := (c.TP+c.FP)/n, (c.TP+c.FN)/n
	// Chance agrees on everything when both always say the same: then this is 0 exactly.
	left := judge*(1-people) + people*(1-judge)
	if left <= 0 {
		return nil, nil
	}
	kappa := 1 - (c.FP+c.FN)/n/left
	return &kappa, nil
}

func columns(p, y, w []float64) error {
	if len(p) != len(y) || (w != nil && len(w) != len(p)) {
		return fmt.Errorf("%d probabilities, %d outcomes, %d weights: %w", len(p), len(y), len(w), errLengths)
	}
	for i := range p {
		switch {
		case !(p[i] >= 0 && p[i] <= 1):
			return fmt.Errorf("probability %d is %v: want 0 to 1", i, p[i])
		case !(y[i] >= 0 && y[i] <= 1):
			return fmt.Errorf("outcome %d is %v: want 0 to 1", i, y[i])
		case w != nil && !(w[i] > 0 && finite(w[i])):
			return fmt.Errorf("weight %d is %v: want a finite number above 0", i, w[i])
		}
	}
	return nil
}

func weightAt(w []float64, i int) float64 {
	if w == nil {
		return 1
	}
	return w[i]
}

func weightedMean(w []float64, n int, value func(i int) float64) *float64 {
	if n == 0 {
		return nil
	}
	var sum, weights float64
	for i := range n {
		sum += weightAt(w, i) * value(i)
		weights += weightAt(w, i)
	}
	mean := sum / weights
	return &mean
}
