package sink

import (
	"fmt"
	"time"
)

func deadLettersTable() table[DeadLetter] {
	type D = DeadLetter
	return table[D]{
		name: "dead_letters",
		columns: []column[D]{
			dictionary("kafka_topic", func(r *D) string { return r.Topic }),
			plain("kafka_partition", "UInt32", func(r *D) uint32 { return r.Partition }),
			plain("kafka_offset", "UInt64", func(r *D) uint64 { return r.Offset }),
			moment("log_time", func(r *D) time.Time { return r.LogTime }),
			dictionary("reason", func(r *D) string { return r.Reason }),
			plain("error", "String", func(r *D) string { return r.Error }),
			plain("attempts", "UInt16", func(r *D) uint16 { return r.Attempts }),
			moment("first_failure", func(r *D) time.Time { return r.FirstFailure }),
			dictionary("assay_version", func(r *D) string { return r.AssayVersion }),
			dictionaryMap("headers", "Map(String, String)", func(r *D) map[string]string { return r.Headers }),
			plain("key", "String", func(r *D) string { return string(r.Key) }),
			plain("body", "String", func(r *D) string { return string(r.Body) }),
			plain("body_bytes", "UInt64", func(r *D) uint64 { return r.BodyBytes }),
			plain("body_sha256", "FixedString(32)", func(r *D) string { return string(r.BodySHA256[:]) }),
			plain("stub", "UInt8", func(r *D) uint8 { return flag(r.Stub) }),
		},
		// A dead letter is the last way out of the log, so it is stored as it is: a time
		// before 1970 becomes 1970 and every other value fits its column.
		validate: func(r *D) error { return storable("log time", notBeforeEpoch(r.LogTime)) },
		part:     func(r *D) int64 { return day(notBeforeEpoch(r.LogTime)) },
		size:     func(r *D) int { return 128 + len(r.Key) + len(r.Body) + len(r.Error) + textSize(r.Headers) },
		label: func(r *D) string {
			return fmt.Sprintf("%s/%d/%d dead letter (%s)", r.Topic, r.Partition, r.Offset, r.Reason)
		},
	}
}
