// Package stats holds the formulas: intervals, estimates from weighted samples, the
// drift detector, the check of the sampling itself, and how far a judge's probabilities
// agree with people.
//
// Everything is a pure function or a small value. There is no I/O and no clock here, and
// what draws at random takes its seed as an argument. An estimate that does not exist is
// nil, never NaN and never 0. Inputs that cannot be (a probability outside its range,
// more successes than trials, a number that is not finite) are errors that name the
// index. Sums run in the order of their input, so that the same rows give the same bits.
//
// monitor, evaluators/aggregate and server call it; it imports nothing of ours.
//
// Open sums.go first (a window's sums and its estimates), then wilson.go (the
// interval), esr.go (the detector), delay.go (what the detector can find), sampling.go
// (whether the weights are right), calibration.go and bins.go (judge against people),
// paired.go (two runs over the same items).
package stats
