// Package checks reads the checks file (assay.yaml): what to judge, with which
// judge, how often, and what to alarm on.
//
// Load is strict. Unknown keys, wrong types, bad filters, unknown evaluators and
// judges, a judge whose bill is unbounded: each is an error with file:line:column,
// what is wrong and what would be right; all of a file's faults come at once. A File
// that Load returned needs no further checking and never changes.
//
// It gives every check its version: a hash of what can change a verdict. It does not
// judge, sample or read the environment. cmd/assay loads; sampler, pipeline, monitor
// and server read.
//
// Open checks.go first (the shape), then load.go (from YAML), filter.go (CEL),
// version.go (the hash), plan.go (what decisions read of an interaction).
package checks
