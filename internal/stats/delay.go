package stats

import "math"

// KL is the divergence of a failure rate q1 from q0, in nats per row.
func KL(q1, q0 float64) float64 {
	term := func(p, q float64) float64 {
		if p == 0 {
			return 0
		}
		return p * math.Log(p/q)
	}
	return term(q1, q0) + term(1-q1, 1-q0)
}

// DetectionDelay is about how many judged rows the detector with limit c needs to find
// that the failure rate rose from at most q0 to q1. It is false when it would never.
func DetectionDelay(q1, q0, c float64) (rows float64, ok bool) {
	if q1 <= q0 || q1 > 1 || q0 <= 0 || q0 >= 1 {
		return 0, false
	}
	kl := KL(q1, q0)
	if c*kl <= math.E {
		// below, the formula would fall with KL; it is continued by what it is there
		return 1 / kl, true
	}
	return math.Log(c*kl) / kl, true
}

// SmallestDrop is the smallest fall of the pass rate, counted from 1 - q, that the
// detector finds within the given rows. q is the failure rate that is aimed at, q0 the
// tolerated one. It is false when even a rate of 0 takes longer.
func SmallestDrop(rows, c, q, q0 float64) (drop float64, ok bool) {
	found := func(q1 float64) bool {
		d, ok := DetectionDelay(q1, q0, c)
		return ok && d <= rows
	}
	lo, hi := q0, 1.0
	if q0 <= 0 || q0 >= 1 || !found(hi) {
		return 0, false
	}
	for range 60 { // each halves: far below any rate that could be shown
		mid := (lo + hi) / 2
		if found(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return max(0, hi-q), true
}
