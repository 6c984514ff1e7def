// Package decode turns the bytes of a Kafka record into interactions.
//
// Decode is a pure function of the record and its source's settings: the same log
// gives the same interactions with the same ids on every worker and every replay. It
// never panics, never repairs broken JSON, and never guesses a text that the log does
// not carry: what is absent stays absent, with a reason. A record ends as
// interactions, as skips with a reason, as bad elements with a reason, or as a
// mixture of them; nothing is dropped without one.
//
// It reads flat records and OpenAI chat logs, alone, in JSON arrays, one per line or
// one after another, gzipped, in UTF-16 or base64. The shapes of other producers are
// known by their signatures and refused by name (families.go), so that none of them
// is ever misread as a flat record.
//
// A Decoder is safe for concurrent use and holds no state of records. internal/pipeline
// calls it; internal/checks reads its table of format names.
//
// Open decode.go first (a record's way), then framing.go (bytes to JSON), families.go
// (whose object is it), flat.go and chat.go (one family each), finish.go (status and
// defaults).
package decode
