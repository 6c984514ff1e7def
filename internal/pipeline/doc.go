// Package pipeline joins the consumer to the sink: it is what happens to a record.
//
// A record is decoded, every interaction in it gets one decision per check, the
// ledger counts all of them, selected ones are judged, and the record is resolved
// when every row it causes is durable in ClickHouse. Nothing is dropped on the way:
// what cannot be decoded becomes a dead letter, what cannot be judged a row with a
// reason, and what is cut off by a revoke or a shutdown stays unresolved, so that
// the next owner reads it again.
//
// A panic while judging costs that one judgement: its row has status error and reason
// panic. A panic while a record is taken apart is the consumer's to handle.
//
// It implements consumer.Handler; only cmd/assay builds one. It owns the goroutines
// that judge, bounds them per judge and serves partitions in turn. It never commits,
// never retries a judge (evaluators/judge does) and never retries an insert (sink
// does).
//
// Open pipeline.go first (what it is made of), then partition.go (the way of one
// record), probe.go (the way of one that no check selects), joins.go (records that wait
// for one another), judging.go (one interaction and one check), unit.go (when a record is
// resolved), letters.go (what becomes of bad records and refused rows), feedback.go (what
// logs say about interactions), rows.go and privacy.go (what is stored), slots.go (who
// may run), and recovery.go (where reading starts after a crash or a rebalance).
package pipeline
