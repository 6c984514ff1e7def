// Package consumer reads records from Kafka and knows which of them are finished.
//
// It hands every record to a Handler once per generation, in offset order within a
// partition, with a way to resolve it. It promises that the committed offset is the
// partition's watermark: every offset below it is resolved. Nothing is committed for
// a partition that is not held, nothing backwards (but where the user chose to reset
// a partition whose log was replaced), and what a handler counted below a watermark
// is durable before that watermark is committed. A full window stops fetching and
// nothing else: heartbeats go on. Offsets lost to retention, a replaced log and a
// partition that cannot go on are counted and shown, never passed over in silence.
//
// A record that its handler holds for another one keeps its offset and nothing else: no
// room in the window, no age, no bytes.
//
// It does not promise an order of completion, and after a crash a record may come
// again: from the watermark on.
//
// One exception to "nothing is committed for a partition that is not held": with the
// start policy `latest` the group's leader makes the very first commit of a topic for
// all its partitions in one request (start.go says why).
//
// Open consumer.go first (what is put in, Run), then group.go (a generation's life),
// partition.go (one loop per partition, its drain), tracker.go (the watermark) and
// committer.go. cluster.go, response.go and batch.go are the way from the socket to a
// record. Lock order: tracker, then the process's budget; no I/O under either.
// internal/pipeline is the handler; only cmd/assay calls New and Run. An Inspector
// (inspect.go) is for `assay doctor`: it looks at brokers and changes nothing.
package consumer
