package evaluators

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"assay/evaluators/judge"
)

// Two probabilities nearer than this are equal: sums of floats in another order may
// differ by less, and a replay must choose the same option.
const tie = 1e-12

// A measurement is what a distribution over a definition's options says.
type measurement struct {
	score      float64
	option     string
	label      string
	confidence float64
	passed     bool
	expected   float64 // the mean score under the distribution
}

// measure maps a distribution to numbers. It refuses what is no distribution.
func (d Definition) measure(p []float64) (measurement, error) {
	if err := checkDistribution(p, len(d.Options)); err != nil {
		return measurement{}, err
	}
	chosen := d.chosen(p)
	m := measurement{option: d.Options[chosen].Key}
	for i, o := range d.Options {
		m.expected += p[i] * o.Score
	}
	switch d.Kind {
	case judge.Boolean:
		yes := p[slices.Index(d.Keys(), "yes")]
		m.score = yes
		m.confidence = math.Abs(yes-0.5) * 2
		m.label = fmt.Sprintf("%d%% yes", halfUp(100*yes))
		m.passed = d.Passes.passed(yes, *d.PassLine)
	case judge.Choice:
		m.score = d.Options[chosen].Score
		m.confidence = p[chosen]
		m.label = m.option
		m.passed = slices.Contains(d.Pass, m.option)
	case judge.Score:
		top := len(d.Options) - 1
		m.score = min(max(m.expected, 0), 1)
		m.confidence = slices.Max(p)
		m.label = fmt.Sprintf("%.1f / %d", math.Floor(m.score*float64(top)*10+0.5+1e-9)/10, top)
		m.passed = d.Passes.passed(m.score, *d.PassLine)
	default:
		return measurement{}, fmt.Errorf("no measure for a %s question", d.Kind)
	}
	return m, nil
}

// chosen returns the index of the largest probability. Of equal ones it is the worse:
// doubt never flatters. Of those that score alike, the first key.
func (d Definition) chosen(p []float64) int {
	largest := slices.Max(p)
	best := -1
	for i := range p {
		if p[i] < largest-tie {
			continue
		}
		if best < 0 || d.worse(i, best) ||
			(d.Options[i].Score == d.Options[best].Score && d.Options[i].Key < d.Options[best].Key) {
			best = i
		}
	}
	return best
}

// worst is the distribution of a rule: all on the worst option.
func (d Definition) worst() []float64 {
	p := make([]float64, len(d.Options))
	worst := 0
	for i := range d.Options {
		if d.worse(i, worst) {
			worst = i
		}
	}
	p[worst] = 1
	return p
}

// worse reports whether option i is worse than option k.
func (d Definition) worse(i, k int) bool {
	if d.Passes.lessIsBetter() {
		i, k = k, i
	}
	return d.Options[i].Score < d.Options[k].Score
}

func checkDistribution(p []float64, options int) error {
	if len(p) != options {
		return fmt.Errorf("%d probabilities for %d options", len(p), options)
	}
	sum := 0.0
	for _, v := range p {
		if math.IsNaN(v) || v < 0 || v > 1+1e-9 {
			return errors.New("a probability that is none")
		}
		sum += v
	}
	if math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("probabilities sum to %g", sum)
	}
	return nil
}

// halfUp rounds. The slack lets 28.5 be 29 although 100 * 0.285 is a little less.
func halfUp(v float64) int { return int(math.Floor(v + 0.5 + 1e-9)) }
