package stats

import (
	"errors"
	"fmt"
	"math"
)

// Z is the standard normal quantile at q, for q inside (0, 1).
func Z(q float64) float64 { return math.Sqrt2 * math.Erfinv(2*q-1) }

// zOf is the two-sided z of confidence conf.
func zOf(conf float64) (float64, error) {
	if !(conf > 0 && conf < 1) {
		return 0, fmt.Errorf("confidence %v: want a number between 0 and 1", conf)
	}
	return Z((1 + conf) / 2), nil
}

// Wilson is the score interval of x successes in n trials. Both may be fractional:
// a weighted sample enters with its effective n. No trials say nothing, so n = 0 gives
// [0, 1]. The ends are exact at x = 0 and x = n, where rounding would leave a limit
// a hair away from what cannot be excluded.
func Wilson(x, n, conf float64) (lo, hi float64, err error) {
	z, err := zOf(conf)
	if err != nil {
		return 0, 0, err
	}
	if !finite(x) || !finite(n) || x < 0 || n < 0 || x > n {
		return 0, 0, fmt.Errorf("x %v of n %v: want 0 <= x <= n, both finite", x, n)
	}
	if n == 0 {
		return 0, 1, nil
	}
	p := x / n
	d := 1 + z*z/n
	centre := (p + z*z/(2*n)) / d
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n)) / d
	lo, hi = max(0, centre-half), min(1, centre+half)
	if x == 0 {
		lo = 0
	}
	if x == n {
		hi = 1
	}
	return lo, hi, nil
}

// errLengths is returned for columns of unequal length.
var errLengths = errors.New("columns of unequal length")

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
