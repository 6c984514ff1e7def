// Package aggregate turns a set of results into the numbers people compare: pass rate
// with its interval, mean score, which options, what failed and why, what it cost. It
// also computes metrics over verdicts, labels and texts that somebody already has, by
// name and from JSON arguments.
//
// A result without a usable answer is counted beside the numbers and is never inside
// them. What cannot be said (no result, a ratio of nothing) is absent, not 0. Arguments
// that make no sense, or that nothing reads, are an error and never a number. Where
// known implementations disagree, the rule is the dialect, and one is the default.
//
// It takes unweighted sets: files, batches, golden runs. Estimates from samples of the
// stream need weights and are made elsewhere. Intervals stand at the number of items:
// claims of one answer are not independent of one another.
//
// Open summary.go first, then metric.go (the table of metrics); each family of metrics
// has its file.
package aggregate
