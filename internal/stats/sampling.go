package stats

import (
	"fmt"
	"math"
)

// SamplingZ compares the weight of everything that was selected with the population
// the ledger counted, in standard errors of the sampling itself: sw is the sum of
// 1/pi over selected rows, varSum the sum of (1-pi)/pi^2. A wrong pi, double counting
// and a hole all show here.
//
// At pi = 1 nothing is random and varSum is 0: a difference is then counted in rows,
// so that six lost ones still are more than five.
func SamplingZ(sw, varSum, population float64) (float64, error) {
	for _, v := range []float64{sw, varSum, population} {
		if !finite(v) || v < 0 {
			return 0, fmt.Errorf("selected weight %v, variance %v, population %v: want finite numbers of at least 0", sw, varSum, population)
		}
	}
	if varSum == 0 {
		varSum = 1
	}
	return (sw - population) / math.Sqrt(varSum), nil
}
