// Package sampler decides, for every interaction and check, whether it is judged, and
// counts the decisions.
//
// A Decision is a pure function of the interaction and the checks file: filter, then
// applicability, then the hash of the id against the rate. The same interaction gets
// the same decision on every worker, retry and replay, and a higher rate keeps every
// member of a lower one. What was not selected is counted with its reason, so that the
// estimates of the selected part stay honest.
//
// A Ledger counts a partition's decisions by blocks of the log, as a pure function of
// the log and the file: counts are cumulative and restart with their block, so nothing
// is doubled by redelivery. It never tells of an offset that could still be lost.
//
// internal/pipeline decides and counts; internal/monitor asks for rates.
//
// Open sampler.go first, then hash.go, then ledger.go (its type comment is the design).
package sampler
