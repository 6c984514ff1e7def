// Package aggregate turns a set of results into the numbers people compare: pass rate
// with its interval, mean score, which options, what failed and why, what it cost.
//
// A result without a usable answer is counted beside the numbers and is never inside
// them. What cannot be said (no result, a ratio of nothing) is absent, not 0.
//
// It takes unweighted sets: files, batches, golden runs. Estimates from samples of the
// stream need weights and are made elsewhere. Open summary.go first.
package aggregate
