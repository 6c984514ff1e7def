package decode

import (
	"encoding/hex"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// The names of the two encodings of OTLP; a source may name either.
const (
	otlpJSON  = "otlp_json"
	otlpProto = "otlp_proto"
)

// One record of OTLP is one batch: many services, many traces, spans that are no calls
// of a model, and one trace over several records unless the producer partitions by it.
// What a batch becomes is decided in otlp_spans.go and otlp_logs.go.

func isOTLPObject(o *object) bool { return o.has(kResourceSpans) || o.has(kResourceLogs) }

// readOTLP reads a batch in JSON.
func readOTLP(r *record, o *object) {
	if !isOTLPObject(o) {
		r.bad(r.take(), unknownShape, "an object without resourceSpans and resourceLogs")
		return
	}
	if c := jsonCost(o.raw); c.over(r.d.cfg.MaxElements) {
		r.tooMany()
		return
	}
	raw, base64IDs := plainOTLP(o.raw, r.nonfinite)
	if base64IDs {
		r.flags = append(r.flags[:len(r.flags):len(r.flags)], "base64_ids")
	}
	// The key decides, not the unmarshaler: one of traces reads a batch of logs as an
	// empty one.
	if o.has(kResourceSpans) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(raw)
		if err != nil {
			r.bad(r.take(), schemaMismatch, "no OTLP traces: %v", err)
		} else {
			r.traces(td)
		}
	}
	if o.has(kResourceLogs) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(raw)
		if err != nil {
			r.bad(r.take(), schemaMismatch, "no OTLP logs: %v", err)
		} else {
			r.logs(ld, otlpJSON)
		}
	}
}

// otlpBytes reads a batch in Protobuf.
func (r *record) otlpBytes(b []byte) {
	r.named(otlpProto)
	c := protoCost(b, r.d.cfg.MaxElements, r.d.cfg.MaxDepth)
	switch {
	case c.over(r.d.cfg.MaxElements):
		r.tooMany()
		return
	case c.deep:
		r.bad(r.take(), tooDeep, "attributes deeper than %d levels", r.d.cfg.MaxDepth)
		return
	}
	// Neither encoding says which signal it is. A span's first field is 16 bytes of
	// trace id where a log record has a time.
	td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(b)
	if err == nil && (td.SpanCount() == 0 || hasTraceID(td)) {
		if c.records == 0 || td.SpanCount() > 0 {
			r.traces(td)
			return
		}
	}
	ld, logErr := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(b)
	if logErr == nil {
		r.logs(ld, otlpProto)
		return
	}
	if err == nil {
		err = logErr
	}
	r.bad(r.take(), badProtobuf, "neither OTLP traces nor logs: %v", err)
}

func (r *record) tooMany() {
	r.bad(r.take(), tooManyElements, "a batch of more than %d spans or log records, or %d attributes, events and values",
		r.d.cfg.MaxElements, messagesPerElement*r.d.cfg.MaxElements)
}

func hasTraceID(td ptrace.Traces) bool {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				return !s.TraceID().IsEmpty()
			}
		}
	}
	return false
}

// A span is one span, or a log event that says as much as one.
type span struct {
	trace, id, parent string
	name              string
	a, resource       attributes
	events            []spanEvent
	start, end        pcommon.Timestamp
	failed            bool
	message           string // of its status
	job               job
	speaks            bool  // it carries a text
	up                *span // its parent, when that is in the record
	element           *element
}

type spanEvent struct {
	name string
	a    attributes
	body value // of a log event
	time pcommon.Timestamp
}

func traceID(id pcommon.TraceID) string {
	if id.IsEmpty() {
		return ""
	}
	return hex.EncodeToString(id[:])
}

func spanID(id pcommon.SpanID) string {
	if id.IsEmpty() {
		return ""
	}
	return hex.EncodeToString(id[:])
}
