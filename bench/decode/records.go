package main

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// loggedChat is the chat log as a program that knows its shape would read it.
type loggedChat struct {
	ID        string            `json:"id"`
	Timestamp time.Time         `json:"timestamp"`
	App       string            `json:"app"`
	SessionID string            `json:"session_id"`
	UserID    string            `json:"user_id"`
	Version   string            `json:"prompt_version"`
	LatencyMS float64           `json:"latency_ms"`
	Metadata  map[string]string `json:"metadata"`
	Request   struct {
		Model    string        `json:"model"`
		Messages []chatMessage `json:"messages"`
	} `json:"request"`
	Response struct {
		ID      string `json:"id"`
		Created int64  `json:"created"`
		Model   string `json:"model"`
		Choices []struct {
			Index        int         `json:"index"`
			Message      chatMessage `json:"message"`
			FinishReason string      `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			PromptTokens     int64 `json:"prompt_tokens"`
			CompletionTokens int64 `json:"completion_tokens"`
			TotalTokens      int64 `json:"total_tokens"`
		} `json:"usage"`
	} `json:"response"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// chatLog is a logged call of about 2 kB; as real texts do, these have line ends, quotes
// and letters beyond ASCII.
func chatLog() []byte {
	long := strings.Repeat("The parcel left the warehouse on Tuesday and reaches you within three days. ", 8)
	return fmt.Appendf(nil, `{"id":"log-1","timestamp":"2026-06-01T10:00:00.5Z","app":"parcels","session_id":"s-9","user_id":"u-4","prompt_version":"3","latency_ms":1200,`+
		`"metadata":{"tier":"gold","region":"north","reference":"within three days"},"request":{"model":"m-1","messages":[{"role":"system","content":%q},`+
		`{"role":"user","content":"Where is it?"},{"role":"assistant","content":"Which one?"},{"role":"user","content":%q}],"temperature":0},`+
		`"response":{"id":"c-1","object":"chat.completion","created":1780000000,"model":"m-1-2026","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":310,"completion_tokens":80,"total_tokens":390}}}`,
		"You answer about parcels.\n\n"+long, "The \"blue\" one, for Zoë. "+long[:300], "It is on its way.\n\n"+long[:400])
}

const (
	spansInBatch = 20
	callsInBatch = 4
)

// loggedSpans is an OTLP document as far as its structure goes; what the attributes mean
// is left to whoever reads it further.
type loggedSpans struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []spanAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []struct {
			Spans []struct {
				TraceID           string          `json:"traceId"`
				SpanID            string          `json:"spanId"`
				ParentSpanID      string          `json:"parentSpanId"`
				Name              string          `json:"name"`
				StartTimeUnixNano string          `json:"startTimeUnixNano"`
				EndTimeUnixNano   string          `json:"endTimeUnixNano"`
				Attributes        []spanAttribute `json:"attributes"`
			} `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type spanAttribute struct {
	Key   string `json:"key"`
	Value struct {
		StringValue *string `json:"stringValue"`
		IntValue    *string `json:"intValue"`
	} `json:"value"`
}

// batch is what a collector sends: a call of a model among the spans of a web service.
func batch() ptrace.Traces {
	traces := ptrace.NewTraces()
	rs := traces.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "garden-help")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	start := time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)
	for i := range byte(spansInBatch) {
		s := spans.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{15: i/5 + 1})
		s.SetSpanID(pcommon.SpanID{7: i + 1})
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(1500 * time.Millisecond)))
		a := s.Attributes()
		if i%5 != 0 {
			s.SetName("GET /stock")
			a.PutStr("http.request.method", "GET")
			a.PutStr("http.route", "/stock")
			a.PutInt("http.response.status_code", 200)
			a.PutStr("server.address", "stock")
			continue
		}
		s.SetName("chat m-1")
		a.PutStr("gen_ai.operation.name", "chat")
		a.PutStr("gen_ai.request.model", "m-1")
		a.PutStr("gen_ai.response.id", fmt.Sprint("r-", i))
		a.PutInt("gen_ai.usage.input_tokens", 310)
		a.PutInt("gen_ai.usage.output_tokens", 80)
		a.PutStr("gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"How often do I water a fern?"}]}]`)
		a.PutStr("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"Twice a week, and more often in a dry room."}],"finish_reason":"stop"}]`)
	}
	return traces
}

func protoBatch() []byte {
	b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(batch())
	if err != nil {
		panic(err) // the batch is ours
	}
	return b
}

func jsonBatch() []byte {
	b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(batch())
	if err != nil {
		panic(err)
	}
	return b
}
