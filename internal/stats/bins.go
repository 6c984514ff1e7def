package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Bin is the number of the equal-width bin that p falls into. Bins are closed on the
// left, the last one on both sides: scores heap on values such as .7 and .9, so the rule
// at the edges decides more than their number.
func Bin(p float64, bins int) (int, error) {
	switch {
	case bins < 1:
		return 0, fmt.Errorf("%d bins: want at least 1", bins)
	case !(p >= 0 && p <= 1):
		return 0, fmt.Errorf("probability %v: want 0 to 1", p)
	}
	return min(int(math.Floor(p*float64(bins))), bins-1), nil
}

// EqualMass returns the upper edges of bins that hold as many rows each as they can:
// halfway between neighbours, the last one 1. A row is in the first bin with p <= edge.
// Where rows share a value there are fewer bins.
func EqualMass(p []float64, bins int) ([]float64, error) {
	if bins < 1 {
		return nil, fmt.Errorf("%d bins: want at least 1", bins)
	}
	for i := range p {
		if !(p[i] >= 0 && p[i] <= 1) {
			return nil, fmt.Errorf("probability %d is %v: want 0 to 1", i, p[i])
		}
	}
	sorted := slices.Sorted(slices.Values(p))
	bins = min(bins, max(1, len(sorted)))
	var edges []float64
	next, longer := 0, len(sorted)%bins // the first bins hold one row more
	for b := range bins - 1 {
		next += len(sorted) / bins
		if b < longer {
			next++
		}
		edges = append(edges, (sorted[next-1]+sorted[next])/2)
	}
	return slices.Compact(append(edges, 1)), nil
}

// A Reliability holds what judge and people said of the same rows, by bins of the
// judge's probability.
type Reliability struct {
	Bins []ReliabilityBin
	of   []int // each row's bin
}

// A ReliabilityBin is one bin's rows.
type ReliabilityBin struct {
	N          uint64
	W, W2      float64 // sums of the weights and of their squares
	WP, WY     float64 // of weight times probability, and times outcome
	MeanP      float64 // 0 without rows
	MeanY      float64
	EffectiveN float64 // Kish's
}

// EqualWidthReliability sorts rows into bins of equal width.
func EqualWidthReliability(p, y, w []float64, bins int) (Reliability, error) {
	if bins < 1 {
		return Reliability{}, fmt.Errorf("%d bins: want at least 1", bins)
	}
	return reliability(p, y, w, bins, func(p float64) int {
		b, _ := Bin(p, bins) // columns has seen that p is a probability
		return b
	})
}

// EdgesReliability sorts rows into bins with these upper edges, ascending, as EqualMass
// returns them.
func EdgesReliability(p, y, w, edges []float64) (Reliability, error) {
	if len(edges) == 0 || edges[len(edges)-1] != 1 || !slices.IsSorted(edges) {
		return Reliability{}, fmt.Errorf("edges %v: want them ascending to 1", edges)
	}
	return reliability(p, y, w, len(edges), func(p float64) int {
		b, _ := slices.BinarySearch(edges, p)
		return b
	})
}

func reliability(p, y, w []float64, bins int, bin func(p float64) int) (Reliability, error) {
	if err := columns(p, y, w); err != nil {
		return Reliability{}, err
	}
	r := Reliability{Bins: make([]ReliabilityBin, bins), of: make([]int, len(p))}
	for i := range p {
		r.of[i] = bin(p[i])
		b, weight := &r.Bins[r.of[i]], weightAt(w, i)
		b.N++
		b.W += weight
		b.W2 += weight * weight
		b.WP += weight * p[i]
		b.WY += weight * y[i]
	}
	for i := range r.Bins {
		if b := &r.Bins[i]; b.N > 0 {
			b.MeanP, b.MeanY, b.EffectiveN = b.WP/b.W, b.WY/b.W, b.W*b.W/b.W2
		}
	}
	return r, nil
}

// ECE is the mean distance between what was said and what came true, over the bins by
// weight, and the largest one. Both are biased upwards, the more the fewer rows there
// are: they are for comparisons with others' figures, and no alarm stands on them. Nil
// without rows.
func (r Reliability) ECE() (ece, mce *float64) {
	var sum, most, total float64
	for _, b := range r.Bins {
		d := math.Abs(b.MeanP - b.MeanY)
		sum += b.W * d
		most = max(most, d)
		total += b.W
	}
	if total == 0 {
		return nil, nil
	}
	sum /= total
	return &sum, &most
}

// enough is the effective n from which a bin says anything about its own noise.
const enough = 2

// Debiased is the mean squared distance between what was said and what came true, less
// what the noise of so few rows adds to it: 0 on average for a perfect judge, and below
// 0 by chance. Bins of fewer than two effective rows add nothing; nil when that is all
// of them.
func (r Reliability) Debiased() *float64 {
	means := make([]float64, len(r.Bins))
	for i, b := range r.Bins {
		means[i] = b.MeanY
	}
	return r.debiased(means)
}

func (r Reliability) debiased(means []float64) *float64 {
	var sum, total float64
	some := false
	for i, b := range r.Bins {
		total += b.W
		if b.EffectiveN < enough {
			continue
		}
		some = true
		d := b.MeanP - means[i]
		sum += b.W * (d*d - means[i]*(1-means[i])/(b.EffectiveN-1))
	}
	if !some {
		return nil
	}
	sum /= total
	return &sum
}

// CalibrationP is how often outcomes drawn from the probabilities themselves are at
// least as far from them as the real ones, by Debiased: small values say that the
// judge's probabilities do not mean what they say. The same rows and seed give the same
// value. p and w are the columns that r was made of. Nil where Debiased is.
func (r Reliability) CalibrationP(p, w []float64, draws int, seed uint64) (*float64, error) {
	if draws < 1 {
		return nil, fmt.Errorf("%d draws: want at least 1", draws)
	}
	if len(p) != len(r.of) || (w != nil && len(w) != len(p)) {
		return nil, fmt.Errorf("%d probabilities and %d weights for %d rows: %w", len(p), len(w), len(r.of), errLengths)
	}
	seen := r.Debiased()
	if seen == nil {
		return nil, nil
	}
	random := rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	sums := make([]float64, len(r.Bins))
	extreme := 1
	for range draws {
		clear(sums)
		for i, bin := range r.of {
			if random.Float64() < p[i] {
				sums[bin] += weightAt(w, i)
			}
		}
		for b := range sums {
			if r.Bins[b].W > 0 {
				// sums in another order may leave a share a hair above 1
				sums[b] = min(1, sums[b]/r.Bins[b].W)
			}
		}
		if *r.debiased(sums) >= *seen {
			extreme++
		}
	}
	share := float64(extreme) / float64(draws+1)
	return &share, nil
}
