package stats

// ESRStakes is how many stakes the mixture holds: 2^-j/q0, j = 1 to 7. The largest
// suits a rate that doubles its failures and more, the smallest one that moves by a
// hundredth of itself; nobody has to say beforehand how large the fall will be.
const ESRStakes = 7

// The null rate is kept inside these: below, one failure would decide; above, a
// failure is what the target expects.
const (
	MinNullRate = 0.001
	MaxNullRate = 0.9
)

// esrCap keeps the state a finite number that ClickHouse and Prometheus can carry.
const esrCap = 1e300

// ESR is the drift detector: a mixture of Shiryaev-Roberts sums of e-values, one
// judged row at a time.
//
// While the conditional mean of failure is at most q0, each factor has a mean of at
// most 1, so R_j minus the number of rows is a supermartingale and the mean run until
// M first reaches c is at least c rows, whatever depends on whatever. The price of
// false alarms is therefore known without any model of the traffic. The zero ESR is a
// detector that has just been reset.
type ESR struct {
	R [ESRStakes]float64
}

// NullRate keeps q inside the range a detector can work with.
func NullRate(q float64) float64 { return min(MaxNullRate, max(MinNullRate, q)) }

// Step reads one row: x is 1 for a failure and 0 for a pass (or 1 - score), w its
// weight, wMax the largest weight the rates in force can give, q0 the failure rate
// that is still tolerated. A weight above wMax would stake more than the state has;
// it is clipped, and the caller counts that.
func (e *ESR) Step(x, w, wMax, q0 float64) (clipped bool) {
	share := w / wMax
	if share > 1 {
		share, clipped = 1, true
	}
	stake := 1 / q0
	for j := range e.R {
		stake /= 2
		e.R[j] = min(esrCap, (e.R[j]+1)*(1+stake*share*(x-q0)))
	}
	return clipped
}

// M is the e-value that is held against the limit.
func (e ESR) M() float64 {
	var sum float64
	for _, r := range e.R {
		sum += r / ESRStakes // divided first: seven capped values would overflow
	}
	return sum
}
