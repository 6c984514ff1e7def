// Package stats holds the formulas: intervals, estimates from weighted samples, the
// drift detector and the check of the sampling itself.
//
// Everything is a pure function or a small value. There is no I/O, no clock and no
// randomness here. An estimate that does not exist is nil, never NaN and never 0.
// Inputs that cannot be (a probability outside its range, more successes than trials,
// a number that is not finite) are errors that name the index. Sums run in the order
// of their input, so that the same rows give the same bits.
//
// monitor, evaluators/aggregate and server call it; it imports nothing of ours.
//
// Open sums.go first (a window's sums and its estimates), then wilson.go (the
// interval), esr.go (the detector), delay.go (what the detector can find) and
// sampling.go (whether the weights are right).
package stats
