package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// McNemar tests whether two verdicts about the same items differ: b items passed only
// the first time, c only the second. Items with the same verdict twice say nothing about
// it. p is exact and two-sided; midP counts half of what is as likely as the data, and is
// nearer to its level when there are few.
func McNemar(b, c int) (p, midP float64, err error) {
	if b < 0 || c < 0 {
		return 0, 0, fmt.Errorf("b %d, c %d: want counts of at least 0", b, c)
	}
	n, most := b+c, max(b, c)
	if n == 0 {
		return 1, 1, nil
	}
	coin := distuv.Binomial{N: float64(n), P: .5}
	beyond := 0.0 // from the far end: the smallest terms first
	for k := n; k > most; k-- {
		beyond += coin.Prob(float64(k))
	}
	at := coin.Prob(float64(most))
	return min(1, 2*(beyond+at)), min(1, 2*beyond+at), nil
}

// PairedRates are two pass rates over the same items.
type PairedRates struct {
	Both, OnlyFirst, OnlySecond, Neither int
}

// N is how many items there are.
func (t PairedRates) N() int { return t.Both + t.OnlyFirst + t.OnlySecond + t.Neither }

// Difference is the second rate less the first with its interval: Newcombe's tenth
// method, which puts the Wilson limits of both together by how far the verdicts go
// along with each other. It is nil without items.
func (t PairedRates) Difference(conf float64) (*Difference, error) {
	if t.Both < 0 || t.OnlyFirst < 0 || t.OnlySecond < 0 || t.Neither < 0 {
		return nil, fmt.Errorf("%+v: want counts of at least 0", t)
	}
	n := float64(t.N())
	if n == 0 {
		return nil, nil
	}
	first, second := float64(t.Both+t.OnlyFirst), float64(t.Both+t.OnlySecond)
	l1, u1, err := Wilson(first, n, conf)
	if err != nil {
		return nil, err
	}
	l2, u2, err := Wilson(second, n, conf)
	if err != nil {
		return nil, err
	}
	p1, p2, phi := first/n, second/n, t.phi()
	side := func(a, b float64) float64 { return math.Sqrt(max(0, a*a-2*phi*a*b+b*b)) }
	d := p2 - p1
	return &Difference{
		Value: d,
		Lower: max(-1, d-side(p2-l2, u1-p1)),
		Upper: min(1, d+side(u2-p2, p1-l1)),
	}, nil
}

// phi is the correlation of the two verdicts, drawn towards 0 by half an item.
func (t PairedRates) phi() float64 {
	a, b, c, d := float64(t.Both), float64(t.OnlyFirst), float64(t.OnlySecond), float64(t.Neither)
	margins := (a + b) * (c + d) * (a + c) * (b + d)
	if margins == 0 {
		return 0
	}
	excess := a*d - b*c
	if excess > 0 {
		excess = max(0, excess-float64(t.N())/2)
	}
	return excess / math.Sqrt(margins)
}

// Difference is an estimate of how far one number is above another.
type Difference struct{ Value, Lower, Upper float64 }

// PairedMeans is the mean of differences with its interval and the p value of the paired
// t test. Both are absent where all differences are the same, and with fewer than two:
// then nothing shows how far the mean may be off.
func PairedMeans(differences []float64, conf float64) (mean float64, interval *Difference, p *float64, err error) {
	if !(conf > 0 && conf < 1) {
		return 0, nil, nil, fmt.Errorf("confidence %v: want a number between 0 and 1", conf)
	}
	n := float64(len(differences))
	if n == 0 {
		return 0, nil, nil, fmt.Errorf("no pairs")
	}
	for i, d := range differences {
		if !finite(d) {
			return 0, nil, nil, fmt.Errorf("difference %d: %v: want a finite number", i, d)
		}
		mean += d / n
	}
	squares := 0.0
	for _, d := range differences {
		squares += (d - mean) * (d - mean)
	}
	if n < 2 || squares <= 1e-24*n {
		return mean, nil, nil, nil
	}
	se := math.Sqrt(squares / (n - 1) / n)
	t := distuv.StudentsT{Sigma: 1, Nu: n - 1}
	half := t.Quantile((1+conf)/2) * se
	v := 2 * t.Survival(math.Abs(mean)/se)
	return mean, &Difference{mean, mean - half, mean + half}, &v, nil
}
