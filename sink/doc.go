// Package sink is Assay's way into and out of ClickHouse: migrations, the batch
// writer, and one reader for each question the other folders ask.
//
// The writer takes rows with a settled function and calls it once, when every row of
// the call is durable, can never be stored, or stays unresolved because the writer
// stops. It promises that no row is dropped in between: a full buffer makes Add wait,
// and Kafka is the spool. One block goes out per flush, with every setting that
// decides about deduplication written out, and with a token that belongs to that block
// alone, so a resend after a lost answer is stored once. It does not promise order
// between calls or tables.
//
// Readers show each row once (the newest of its key), are bounded in time, memory and
// threads, and are named in the server's query log. Everything is UTC.
//
// A server that cannot be worked with is refused when it is opened, with what is wrong and
// what mends it (greet.go).
//
// Open writer.go first (what callers see), then batch.go (one loop per table),
// deliver.go (what is done about a failed insert), classify.go (the only place that
// knows ClickHouse's codes). Tables are described once, in insert_*.go and
// write_labels.go. The pipeline writes; the monitor, the server and the commands read,
// and the last two write what people say of judged interactions.
package sink
