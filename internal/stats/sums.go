package stats

import (
	"fmt"
	"math"
)

// Sums are what a window needs of its rows, and they add: over minutes, slices and
// processes. T is the verdict (0 or 1) or the score in [0, 1], the weight W is 1/pi.
type Sums struct {
	N    uint64
	SW   float64 // sum of w
	SW2  float64 // sum of w^2
	SWT  float64 // sum of w t
	SW2T float64 // sum of w^2 t
	// Of t^2; for a verdict they equal the two above.
	SWT2  float64
	SW2T2 float64
}

// NewSums sums the rows with values t and inclusion probabilities pi.
func NewSums(t, pi []float64) (Sums, error) {
	if len(t) != len(pi) {
		return Sums{}, fmt.Errorf("%d values, %d inclusion probabilities: %w", len(t), len(pi), errLengths)
	}
	var s Sums
	for i := range t {
		if !(t[i] >= 0 && t[i] <= 1) {
			return Sums{}, fmt.Errorf("value %d is %v: want 0 to 1", i, t[i])
		}
		if !(pi[i] > 0 && pi[i] <= 1) {
			return Sums{}, fmt.Errorf("inclusion probability %d is %v: want above 0, at most 1", i, pi[i])
		}
		w := 1 / pi[i]
		s.N++
		s.SW += w
		s.SW2 += w * w
		s.SWT += w * t[i]
		s.SW2T += w * w * t[i]
		s.SWT2 += w * t[i] * t[i]
		s.SW2T2 += w * w * t[i] * t[i]
	}
	return s, nil
}

// Merge is the sums of both sets of rows.
func (s Sums) Merge(o Sums) Sums {
	return Sums{
		N: s.N + o.N, SW: s.SW + o.SW, SW2: s.SW2 + o.SW2,
		SWT: s.SWT + o.SWT, SW2T: s.SW2T + o.SW2T,
		SWT2: s.SWT2 + o.SWT2, SW2T2: s.SW2T2 + o.SW2T2,
	}
}

// Kish is the effective n of the weights alone.
func (s Sums) Kish() float64 {
	if s.SW2 <= 0 {
		return 0
	}
	return s.SW * s.SW / s.SW2
}

// An Estimate is a mean with the interval that belongs to it. Without rows Mean is
// nil, NEff 0 and the interval [0, 1]: nothing is known and nothing may fire.
type Estimate struct {
	Mean   *float64
	Var    float64 // of the Hájek mean, for the process and not this window's traffic
	NEff   float64 // the n behind the interval
	Lo, Hi float64
}

// PassRate is the Hájek rate of verdicts with the Wilson interval at the smaller of
// two effective n: Kish's, and the one that the variance implies. Each alone is too
// narrow somewhere (few rows of unequal weight; rare failures that carry it all).
func (s Sums) PassRate(conf float64) (Estimate, error) {
	m, v, ok, err := s.hajek()
	if err != nil || !ok {
		return Estimate{Hi: 1}, err
	}
	n := s.Kish()
	if nv, ok := s.varianceN(m, v); ok {
		n = min(n, nv)
	}
	return estimate(m, v, n, conf)
}

// MeanScore is the Hájek mean of scores in [0, 1]. Its interval stands at Kish's n,
// as wide as a verdict's, until ten effective rows lie on each side: only then is
// the variance of the scores known well enough to be believed.
func (s Sums) MeanScore(conf float64) (Estimate, error) {
	m, v, ok, err := s.hajek()
	if err != nil || !ok {
		return Estimate{Hi: 1}, err
	}
	n := s.Kish()
	if nv, ok := s.varianceN(m, v); ok && min(n*m, n*(1-m)) >= 10 {
		n = nv
	}
	return estimate(m, v, n, conf)
}

// hajek returns the weighted mean and its variance, and whether there are rows.
func (s Sums) hajek() (m, v float64, ok bool, err error) {
	for _, x := range []float64{s.SW, s.SW2, s.SWT, s.SW2T, s.SWT2, s.SW2T2} {
		if !finite(x) || x < 0 {
			return 0, 0, false, fmt.Errorf("sums %+v: want finite numbers of at least 0", s)
		}
	}
	if s.N == 0 || s.SW == 0 {
		return 0, 0, false, nil
	}
	// sums that were added in another order may leave a mean a hair outside
	m = min(1, max(0, s.SWT/s.SW))
	v = max(0, (s.SW2T2-2*m*s.SW2T+m*m*s.SW2)/(s.SW*s.SW))
	return m, v, true, nil
}

// varianceN is the n at which a plain sample would have the variance v.
func (s Sums) varianceN(m, v float64) (float64, bool) {
	if s.N < 2 || v <= 0 || m <= 0 || m >= 1 {
		return 0, false
	}
	n := float64(s.N)
	nv := m * (1 - m) / (v * n / (n - 1))
	return nv, finite(nv) && nv > 0
}

func estimate(m, v, n, conf float64) (Estimate, error) {
	lo, hi, err := Wilson(min(m*n, n), n, conf)
	if err != nil {
		return Estimate{Hi: 1}, fmt.Errorf("mean %v at effective n %v: %w", m, n, err)
	}
	return Estimate{Mean: &m, Var: v, NEff: n, Lo: lo, Hi: hi}, nil
}

// Bounds hold the rate whatever the missing judgements would have been.
type Bounds struct {
	Share  float64 // weighted share without a usable answer
	Lo, Hi float64 // all missing failed; all missing passed
	// The same with sampling error: the lower limit at Lo and the upper at Hi.
	LimitLo, LimitHi float64
}

// MissingBounds bounds the rate for selected rows of weight missing that ended
// without a usable answer. They are not missing at random (long answers time out), so
// no estimate fills them in. The limits stand at the judged rows' effective n: weights
// of missing rows are kept as a sum only, and a guess at theirs could only narrow. It
// is nil when nothing was selected.
func (s Sums) MissingBounds(missing, conf float64) (*Bounds, error) {
	if !finite(missing) || missing < 0 {
		return nil, fmt.Errorf("missing weight %v: want a finite number of at least 0", missing)
	}
	total := s.SW + missing
	if total <= 0 {
		return nil, nil
	}
	b := Bounds{
		Share: missing / total,
		Lo:    min(1, s.SWT/total),
		Hi:    min(1, (s.SWT+missing)/total),
	}
	e, err := s.PassRate(conf)
	if err != nil {
		return nil, err
	}
	if b.LimitLo, _, err = Wilson(b.Lo*e.NEff, e.NEff, conf); err != nil {
		return nil, err
	}
	if _, b.LimitHi, err = Wilson(math.Min(b.Hi*e.NEff, e.NEff), e.NEff, conf); err != nil {
		return nil, err
	}
	return &b, nil
}
