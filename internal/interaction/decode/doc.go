// Package decode turns the bytes of a Kafka record into interactions.
//
// Decode is a pure function of the record, its source's settings and, for logs that
// write a call in halves, of what a Joiner holds: the same log gives the same
// interactions with the same ids on every worker and every replay. It never panics,
// never repairs broken JSON, and never guesses a text that the log does not carry: what
// is absent stays absent, with a reason. A record ends as interactions, as scores about
// others, as skips with a reason, as bad elements with a reason, as a half that waits,
// or as a mixture of them; nothing is dropped without one.
//
// What stands around a record is peeled first, in any order: gzip, UTF-16, base64,
// arrays, lines, JSON in strings, Kafka Connect, Debezium, CloudEvents, CloudWatch, and
// the framings of schema registries. Then the first family of a table that knows the
// object reads it. docs/formats.md says what is read from where.
//
// The one thing that is asked of the outside is a schema, by id, of a registry or a
// file, and only where a source names one.
//
// At low rates nearly every record is selected by no check. A Prober reads of such a
// record only what decides that, an order of magnitude quicker, or declines: what it
// reads is what Decode reads, which the tests hold it to. A rule of a family that it
// knows therefore stands twice, here and in fast_*.go.
//
// A Decoder is safe for concurrent use and holds no state of records; a Joiner and a
// Prober belong to one partition. internal/pipeline calls them; internal/checks reads
// the tables of names and says what decisions read.
//
// Open decode.go first (a record's way), then framing.go (bytes to JSON), envelopes.go
// (what is taken off an object), families.go (whose object is it), flat.go and chat.go
// (one family each; every other has a file of its name), otlp.go (traces and logs;
// otlp_spans.go says which spans count, otlp_read.go what is read of one), join.go
// (halves), finish.go (status and defaults). registry.go, avro.go and protobuf.go are the binary forms.
// fast.go is the quick way round all of it (fast_tape.go: the document; fast_object.go: whose
// it is; fast_fields.go, fast_texts.go and fast_litellm.go: what is read of it).
// fingerprint.go says when a change here must raise the version that counts stand under.
package decode
