package sink

import (
	"errors"
	"fmt"
	"time"
)

func interactionsTable() table[Text] {
	type T = Text
	stores := set("full", "excerpt", "none")
	return table[T]{
		name: "interactions",
		columns: []column[T]{
			moment("ts", func(r *T) time.Time { return r.Time }),
			plain("interaction_id", "String", func(r *T) string { return r.InteractionID }),
			dictionary("kafka_topic", func(r *T) string { return r.Topic }),
			plain("kafka_partition", "UInt32", func(r *T) uint32 { return r.Partition }),
			plain("kafka_offset", "UInt64", func(r *T) uint64 { return r.Offset }),
			plain("element", "UInt16", func(r *T) uint16 { return r.Element }),
			plain("input", "String", func(r *T) string { return r.Input }),
			plain("output", "String", func(r *T) string { return r.Output }),
			each("expected", "Array(String)", func(r *T) []string { return r.Expected }),
			plain("criteria", "String", func(r *T) string { return r.Criteria }),
			each("context", "Array(String)", func(r *T) []string { return r.Context }),
			plain("messages", "String", func(r *T) string { return r.Messages }),
			dictionary("tenant", func(r *T) string { return r.Tenant }),
			dictionary("app", func(r *T) string { return r.App }),
			dictionary("model", func(r *T) string { return r.Model }),
			dictionary("route", func(r *T) string { return r.Route }),
			dictionary("prompt_version", func(r *T) string { return r.PromptVersion }),
			dictionary("environment", func(r *T) string { return r.Environment }),
			plain("session_id", "String", func(r *T) string { return r.SessionID }),
			plain("user_id", "String", func(r *T) string { return r.UserID }),
			plain("trace_id", "String", func(r *T) string { return r.TraceID }),
			plain("input_tokens", "UInt32", func(r *T) uint32 { return r.InputTokens }),
			plain("output_tokens", "UInt32", func(r *T) uint32 { return r.OutputTokens }),
			plain("latency_ms", "UInt32", func(r *T) uint32 { return r.LatencyMS }),
			plain("feedback", "Nullable(Float32)", func(r *T) *float32 { return r.Feedback }),
			dictionary("status", func(r *T) string { return r.Status }),
			each("flags", "Array(LowCardinality(String))", func(r *T) []string { return r.Flags }),
			dictionaryMap("attributes", "Map(LowCardinality(String), String)", func(r *T) map[string]string { return r.Attributes }),
			plain("text_store", "Enum8('full' = 1, 'excerpt' = 2, 'none' = 3)", func(r *T) string { return r.Store }),
			plain("redactions", "UInt16", func(r *T) uint16 { return r.Redactions }),
		},
		validate: func(r *T) error {
			if r.InteractionID == "" {
				return errors.New("interaction id must not be empty")
			}
			return errors.Join(oneOf("text store", r.Store, stores), storable("time", r.Time))
		},
		part: func(r *T) int64 { return day(r.Time) },
		size: func(r *T) int {
			return 192 + len(r.InteractionID) + len(r.Input) + len(r.Output) + len(r.Criteria) + len(r.Messages) +
				textSize(r.Attributes, r.Expected, r.Context, r.Flags)
		},
		label: func(r *T) string {
			return fmt.Sprintf("%s/%d/%d#%d text of interaction %s", r.Topic, r.Partition, r.Offset, r.Element, r.InteractionID)
		},
	}
}
