// Package monitor turns stored judgements into what people act on: pass rates with
// intervals, drift alarms, and the numbers that say whether either can be believed.
//
// It works in rounds. Each recomputes the minutes that got new rows, reads the rows of
// newly closed minutes into the drift detectors, opens and closes alarms, holds the judge
// against people's labels, and builds a Snapshot that never changes; the exporter, the
// page and the commands read only that. A round that fails leaves the snapshot of the
// round before, which disappears from the exporter when it grows old, and changes no
// detector.
//
// It promises: the same rows give the same numbers, after any restart and beside any
// second monitor (keys are deterministic, tables replace). A detector reads a row at
// most once and only from a closed minute. Missing judgements never move a rate. An
// alarm without new data stays open.
//
// It does not judge or sample, and keeps no state of its own that ClickHouse does not
// hold. Only cmd/assay calls New and Run; server reads Snapshot and Series.
//
// Open monitor.go first (a round), then closed.go (which minutes are finished),
// rollup.go, detector.go (one detector), drift.go (all of them), alarms.go (opening and
// closing), windows.go (estimates), calibration.go (the judge against people), integrity.go (the checks on ourselves), snapshot.go
// and exporter.go (what is shown).
package monitor
