package decode

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/interaction"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// testSpan is a span of a test. Its trace is the first byte of an id, its own id and
// its parent's the last of theirs.
type testSpan struct {
	trace, id, parent byte
	name              string
	at                time.Duration
	failed            string
	a                 map[string]any
	events            []testEvent
}

type testEvent struct {
	name string
	a    map[string]any
}

func traceHex(n byte) string { return fmt.Sprintf("%02x%030x", n, 0) }
func spanHex(n byte) string  { return fmt.Sprintf("%016x", n) }

func batch(t testing.TB, spans ...testSpan) ptrace.Traces {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "garden-help")
	rs.Resource().Attributes().PutStr("deployment.environment.name", "prod")
	list := rs.ScopeSpans().AppendEmpty().Spans()
	for _, s := range spans {
		sp := list.AppendEmpty()
		sp.SetTraceID(pcommon.TraceID{s.trace})
		sp.SetSpanID(pcommon.SpanID{7: s.id})
		sp.SetParentSpanID(pcommon.SpanID{7: s.parent})
		sp.SetName(s.name)
		start := joinStart.Add(s.at)
		sp.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		sp.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(1500 * time.Millisecond)))
		if s.failed != "" {
			sp.Status().SetCode(ptrace.StatusCodeError)
			sp.Status().SetMessage(s.failed)
		}
		if err := sp.Attributes().FromRaw(s.a); err != nil {
			t.Fatal(err)
		}
		for _, ev := range s.events {
			e := sp.Events().AppendEmpty()
			e.SetName(ev.name)
			if err := e.Attributes().FromRaw(ev.a); err != nil {
				t.Fatal(err)
			}
		}
	}
	return td
}

// decodeSpans decodes a batch in both encodings, which must say the same.
func decodeSpans(t testing.TB, d *Decoder, spans ...testSpan) Result {
	t.Helper()
	td := batch(t, spans...)
	proto, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	rec := interaction.Record{Topic: "traces", Offset: 9, Time: joinStart, Value: proto}
	got := d.Decode(rec)
	if got.Format != otlpProto {
		t.Errorf("format %s, want %s", got.Format, otlpProto)
	}
	rec.Value = doc
	same := d.Decode(rec)
	same.Format = got.Format
	if !reflect.DeepEqual(got, same) {
		t.Errorf("as Protobuf\n%+v\nas JSON\n%+v", got, same)
	}
	return got
}

func soleOf(t testing.TB, got Result) *interaction.Interaction {
	t.Helper()
	if len(got.Interactions) != 1 || len(got.Bad) > 0 {
		t.Fatalf("%+v; want one interaction", got)
	}
	return &got.Interactions[0]
}

const (
	asksWatering = `[{"role":"user","parts":[{"type":"text","content":"How often do I water a fern?"}]}]`
	saysWatering = `[{"role":"assistant","parts":[{"type":"text","content":"Every third day."}],"finish_reason":"stop"}]`
)

func chatSpan(trace, id, parent byte) testSpan {
	return testSpan{trace: trace, id: id, parent: parent, name: "chat", a: map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "fern-1",
		"gen_ai.usage.input_tokens": 11, "gen_ai.usage.output_tokens": 4,
		"gen_ai.input.messages": asksWatering, "gen_ai.output.messages": saysWatering}}
}

func texts(it *interaction.Interaction) string {
	show := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	return show(it.Input) + " > " + show(it.Output)
}

// Every dialect says the same call in its own words.
func TestOTLPDialectsReadTheSameCall(t *testing.T) {
	d := newDecoder(t)
	f := func(a map[string]any, events ...testEvent) *interaction.Interaction {
		t.Helper()
		it := soleOf(t, decodeSpans(t, d, testSpan{trace: 1, id: 2, a: a, events: events}))
		if texts(it) != "How often do I water a fern? > Every third day." {
			t.Errorf("%v: read %s", a, texts(it))
		}
		if it.ID != traceHex(1)+"/"+spanHex(2) || !it.Judgeable || it.App == "" {
			t.Errorf("%v: %+v", a, it)
		}
		return it
	}
	const asks, says = "How often do I water a fern?", "Every third day."

	// 1.27 and before: events on the span, or attributes
	f(map[string]any{"gen_ai.system": "openai", "gen_ai.request.model": "fern-1"},
		testEvent{"gen_ai.content.prompt", map[string]any{"gen_ai.prompt": `[{"role":"user","content":"How often do I water a fern?"}]`}},
		testEvent{"gen_ai.content.completion", map[string]any{"gen_ai.completion": `[{"role":"assistant","content":"Every third day."}]`}})
	f(map[string]any{"gen_ai.prompt": asks, "gen_ai.completion": says})
	// 1.28 to 1.36 as events of the span
	f(map[string]any{"gen_ai.operation.name": "chat"},
		testEvent{"gen_ai.system.message", map[string]any{"content": "Be brief."}},
		testEvent{"gen_ai.user.message", map[string]any{"gen_ai.event.content": `{"role":"user","content":"How often do I water a fern?"}`}},
		testEvent{"gen_ai.choice", map[string]any{"index": 0, "finish_reason": "stop", "message": `{"role":"assistant","content":"Every third day."}`}})
	// 1.37 with the messages on an event
	f(map[string]any{"gen_ai.operation.name": "chat"},
		testEvent{detailsEvent, map[string]any{"gen_ai.input.messages": asksWatering, "gen_ai.output.messages": saysWatering}})
	// OpenLLMetry, with ten turns so that the order is the number's and not the text's
	turns := map[string]any{"llm.request.type": "chat", "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": says,
		"traceloop.workflow.name": "plants"}
	for i := range 10 {
		turns[fmt.Sprintf("gen_ai.prompt.%d.role", i)] = []string{"user", "assistant"}[i%2]
		turns[fmt.Sprintf("gen_ai.prompt.%d.content", i)] = "earlier"
	}
	turns["gen_ai.prompt.10.role"], turns["gen_ai.prompt.10.content"] = "user", asks
	if it := f(turns); it.App != "plants" || !it.HasFlag("turns:6") {
		t.Errorf("OpenLLMetry: app %s, flags %v", it.App, it.Flags)
	}
	// OpenInference: parts, and a provider's bodies as values
	f(map[string]any{"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user",
		"llm.input_messages.0.message.contents.0.message_content.type": "text",
		"llm.input_messages.0.message.contents.0.message_content.text": asks,
		"llm.output_messages.0.message.role":                           "assistant", "llm.output_messages.0.message.content": says})
	f(map[string]any{"openinference.span.kind": "LLM",
		"input.value":  `{"model":"fern-1","messages":[{"role":"user","content":"How often do I water a fern?"}]}`,
		"output.value": `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"Every third day."},"finish_reason":"stop"}]}`})
	f(map[string]any{"openinference.span.kind": "LLM", "input.value": `{"input":"How often do I water a fern?","model":"fern-1"}`,
		"output.value": `{"object":"response","output":[{"type":"reasoning"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Every third day."}]}]}`})
	f(map[string]any{"openinference.span.kind": "LLM", "input.value": `{"messages":[{"role":"user","content":[{"type":"text","text":"How often do I water a fern?"}]}]}`,
		"output.value": `{"type":"message","role":"assistant","content":[{"type":"text","text":"Every third "},{"type":"text","text":"day."}],"stop_reason":"end_turn"}`})
	f(map[string]any{"openinference.span.kind": "LLM", "input.value": `{"contents":[{"parts":[{"text":"How often do I water a fern?"}]}]}`,
		"output.value": `{"candidates":[{"content":{"role":"model","parts":[{"thought":true,"text":"Hm"},{"text":"Every third day."}]},"finishReason":"STOP"}]}`})
	// Vercel AI SDK 3, 5
	f(map[string]any{"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": `[{"role":"user","content":[{"type":"text","text":"How often do I water a fern?"}]}]`,
		"ai.result.text": says, "ai.finishReason": "stop"})
	f(map[string]any{"ai.operationId": "ai.streamText.doStream", "ai.prompt.messages": []any{map[string]any{"role": "user", "content": asks}},
		"ai.response.text": says, "ai.usage.inputTokens": 11})
	// others
	f(map[string]any{"mlflow.spanType": `"CHAT_MODEL"`, "mlflow.spanInputs": `{"messages":[{"role":"user","content":"How often do I water a fern?"}]}`,
		"mlflow.spanOutputs": `"Every third day."`})
	f(map[string]any{"genkit:metadata:subtype": "model", "genkit:input": `{"messages":[{"role":"user","content":[{"text":"How often do I water a fern?"}]}]}`,
		"genkit:output": `{"message":{"role":"model","content":[{"text":"Every third day."}]},"finishReason":"stop"}`})
	f(map[string]any{"langfuse.observation.type": "generation", "langfuse.observation.input": `[{"role":"user","content":"How often do I water a fern?"}]`,
		"langfuse.observation.output": says})
	f(map[string]any{"gcp.vertex.agent.llm_request": `{"model":"g","contents":[{"role":"user","parts":[{"text":"How often do I water a fern?"}]}]}`,
		"gcp.vertex.agent.llm_response": `{"content":{"role":"model","parts":[{"text":"Every third day."}]},"finishReason":"STOP"}`})
	f(map[string]any{"gen_ai.operation.name": "chat", "events": `[{"event.name":"gen_ai.user.message","role":"user","content":"How often do I water a fern?"},
		{"event.name":"gen_ai.choice","index":0,"message":{"role":"assistant","content":"Every third day."}}]`})
	f(map[string]any{"langsmith.span.kind": "llm", "gen_ai.prompt": `{"messages":[[{"type":"human","content":"How often do I water a fern?"}]]}`,
		"gen_ai.completion": `{"generations":[[{"text":"Every third day.","message":{"type":"ai","content":"Every third day."}}]]}`})
	f(map[string]any{"ai.observability.span_type": "record_root", "ai.observability.record_root.input": asks, "ai.observability.record_root.output": says})
	f(map[string]any{"traceloop.span.kind": "workflow", "traceloop.entity.input": `{"inputs":{"question":"How often do I water a fern?"}}`,
		"traceloop.entity.output": `{"outputs":{"answer":"Every third day."}}`})
	f(map[string]any{"gen_ai.operation.name": "invoke_agent", "agent_name": "greenhouse", "final_result": says,
		"pydantic_ai.all_messages": `[{"role":"user","parts":[{"type":"text","content":"How often do I water a fern?"}]},{"role":"assistant","parts":[{"type":"text","content":"Every third day."}]}]`})
}

func TestOTLPFieldsOfACall(t *testing.T) {
	s := chatSpan(1, 2, 0)
	for k, v := range map[string]any{"gen_ai.response.model": "fern-1-large", "gen_ai.response.id": "r-9", "gen_ai.conversation.id": "conv",
		"user.id": "u", "gen_ai.prompt.name": "care", "gen_ai.prompt.version": "7", "http.request.header.authorization": "Bearer x",
		"metadata": `{"tenant":"north","channel":"web"}`, "gen_ai.request.temperature": 0.5} {
		s.a[k] = v
	}
	it := soleOf(t, decodeSpans(t, newDecoder(t), s))
	if it.Model != "fern-1-large" || it.SessionID != "conv" || it.UserID != "u" || it.PromptVersion != "care@7" || it.Tenant != "north" ||
		it.Environment != "prod" || it.App != "garden-help" || *it.InputTokens != 11 || *it.OutputTokens != 4 || *it.LatencyMS != 1500 ||
		!it.Time.Equal(joinStart) || it.TraceID != traceHex(1) {
		t.Errorf("%+v", it)
	}
	if it.Attributes["channel"] != "web" || it.Attributes["gen_ai.request.temperature"] != "0.5" {
		t.Errorf("attributes %v", it.Attributes)
	}
	for name, text := range it.Attributes {
		if strings.Contains(name, "authorization") || strings.Contains(text, "water") {
			t.Errorf("attribute %s = %s: neither secrets nor texts belong there", name, text)
		}
	}
}

func TestOTLPStatuses(t *testing.T) {
	f := func(change map[string]any, failed string, want interaction.Status, reason string) {
		t.Helper()
		s := chatSpan(1, 2, 0)
		s.failed = failed
		for k, v := range change {
			s.a[k] = v
			if v == nil {
				delete(s.a, k)
			}
		}
		it := soleOf(t, decodeSpans(t, newDecoder(t), s))
		if it.Status != want || it.SkipReason != reason {
			t.Errorf("%v %s: %s (%s), want %s (%s)", change, failed, it.Status, it.SkipReason, want, reason)
		}
	}
	answer := func(parts, stop string) map[string]any {
		return map[string]any{"gen_ai.output.messages": fmt.Sprintf(`[{"role":"assistant","parts":[%s],"finish_reason":%q}]`, parts, stop)}
	}
	f(answer(`{"type":"text","content":"Every"}`, "length"), "", interaction.Truncated, "")
	f(answer(`{"type":"text","content":""}`, "stop"), "", interaction.Empty, emptyOutput)
	f(answer(`{"type":"reasoning","content":"Hmm."},{"type":"text","content":"Every day."}`, "stop"), "", interaction.OK, "")
	f(answer(`{"type":"text","content":"Let me see."},{"type":"tool_call","id":"c","name":"look","arguments":{}}`, "tool_call"), "", interaction.ToolCall, toolCallOnly)
	f(answer(`{"type":"refusal","refusal":"I will not say."}`, "stop"), "", interaction.Refusal, "")
	f(answer(`{"type":"text","content":"x"}`, "content_filter"), "", interaction.Filtered, contentFilter)
	f(map[string]any{"error.type": "Timeout"}, "deadline", interaction.Errored, providerError)
	f(nil, "Error code: 400 - {'error': {'code': 'content_filter'}}", interaction.Filtered, contentFilter)
	f(map[string]any{"gen_ai.output.messages": nil}, "", interaction.NoContent, noOutput)
	f(map[string]any{"gen_ai.input.messages": nil}, "", interaction.NoContent, noInput)
	f(map[string]any{"gen_ai.output.messages": "[REDACTED]"}, "", interaction.Redacted, redactedText)
	f(map[string]any{"gen_ai.output.messages": nil, "gen_ai.output.messages_ref": "s3://b/o"}, "", interaction.NoContent, contentExternal)
}

// The call that a tool's answer led to is judged against that answer.
func TestOTLPToolResultsAreContext(t *testing.T) {
	s := chatSpan(1, 2, 0)
	s.a["gen_ai.input.messages"] = `[{"role":"user","parts":[{"type":"text","content":"Old?"}]},
		{"role":"tool","parts":[{"type":"tool_call_response","id":"a","response":"stale"}]},
		{"role":"user","parts":[{"type":"text","content":"How often do I water a fern?"}]},
		{"role":"assistant","parts":[{"type":"tool_call","id":"b","name":"look","arguments":{"plant":"fern"}}]},
		{"role":"tool","parts":[{"type":"tool_call_response","id":"b","response":{"days":3}}]}]`
	it := soleOf(t, decodeSpans(t, newDecoder(t), s))
	if !slices.Equal(it.Context, []string{`{"days":3}`}) || *it.Input != "How often do I water a fern?" || !it.HasFlag("turns:2") {
		t.Errorf("context %q, input %q, flags %v", it.Context, *it.Input, it.Flags)
	}
	ignore := newDecoder(t, Source{Topic: "traces", ToolResults: "ignore"})
	if it := soleOf(t, decodeSpans(t, ignore, s)); len(it.Context) != 0 {
		t.Errorf("ignored: context %q", it.Context)
	}
}

func TestOTLPUnitIsTheCallOrWhatStandsAroundIt(t *testing.T) {
	agent := testSpan{trace: 1, id: 1, name: "invoke_agent", a: map[string]any{"gen_ai.operation.name": "invoke_agent",
		"gen_ai.agent.name": "greenhouse", "gen_ai.conversation.id": "conv", "gen_ai.input.messages": asksWatering,
		"gen_ai.output.messages": saysWatering, "gen_ai.usage.input_tokens": 40}}
	step := chatSpan(1, 2, 1)
	step.a["gen_ai.output.messages"] = `[{"role":"assistant","parts":[{"type":"tool_call","name":"look"}],"finish_reason":"tool_call"}]`
	last := chatSpan(1, 3, 1)

	got := decodeSpans(t, newDecoder(t), agent, step, last)
	if len(got.Interactions) != 2 || got.Interactions[0].Status != interaction.ToolCall || !got.Interactions[1].Judgeable {
		t.Fatalf("leaf: %+v", got)
	}
	if it := got.Interactions[1]; it.Route != "greenhouse" || it.App != "garden-help" || it.SessionID != "conv" || *it.InputTokens != 11 {
		t.Errorf("leaf takes what it lacks and nothing else: %+v", it)
	}
	if got.Interactions[0].Element == got.Interactions[1].Element {
		t.Error("two interactions of a record have one element")
	}
	root := newDecoder(t, Source{Topic: "traces", Unit: "root"})
	if it := soleOf(t, decodeSpans(t, root, agent, step, last)); it.ID != traceHex(1)+"/"+spanHex(1) || *it.InputTokens != 40 || it.App != "greenhouse" {
		t.Errorf("root: %+v", it)
	}
	// the trace's calls are in another record: the topmost stands for itself
	chain := testSpan{trace: 2, id: 1, a: map[string]any{"openinference.span.kind": "CHAIN", "input.value": "How often do I water a fern?", "output.value": "Every third day."}}
	inner := testSpan{trace: 2, id: 2, parent: 1, a: map[string]any{"openinference.span.kind": "CHAIN", "input.value": "water fern", "output.value": "3"}}
	if it := soleOf(t, decodeSpans(t, newDecoder(t), inner, chain)); it.ID != traceHex(2)+"/"+spanHex(1) {
		t.Errorf("topmost: %+v", it)
	}
}

func TestOTLPSpansThatAreNoCalls(t *testing.T) {
	f := func(want string, spans ...testSpan) {
		t.Helper()
		if got := decodeSpans(t, newDecoder(t), spans...); got.Outcome != Skip || !slices.Equal(got.Skips, []string{want}) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	f(notText, testSpan{trace: 1, id: 1, name: "GET /", a: map[string]any{"http.request.method": "GET"}})
	f(notText, testSpan{trace: 1, id: 1, a: map[string]any{"gen_ai.operation.name": "embeddings", "gen_ai.system": "openai", "gen_ai.request.model": "e"}})
	f(notText, testSpan{trace: 1, id: 1, a: map[string]any{"ai.operationId": "ai.embed.doEmbed", "gen_ai.request.model": "e"}})
	f(notText, testSpan{trace: 1, id: 1, a: map[string]any{"openinference.span.kind": "RERANKER", "input.value": "x"}})
	f(notText, testSpan{trace: 1, id: 1, a: map[string]any{"gen_ai.operation.name": "invoke_agent"}})
	f(toolSpan, testSpan{trace: 1, id: 1, a: map[string]any{"gen_ai.operation.name": "execute_tool"}})
	f(judgeTraffic, func() testSpan {
		s := chatSpan(1, 1, 0)
		s.a["metadata"] = `{"purpose":"llm_judge"}`
		return s
	}())
}

// An operation of a name that is not known yet is a call where it carries a text.
func TestOTLPCallsOfUnknownOperations(t *testing.T) {
	s := chatSpan(1, 1, 0)
	s.a["gen_ai.operation.name"] = "converse"
	if it := soleOf(t, decodeSpans(t, newDecoder(t), s)); !it.Judgeable {
		t.Errorf("%+v", it)
	}
}

// Documents of a later search do not belong to an earlier answer.
func TestOTLPRetrievalBeforeTheCallIsItsContext(t *testing.T) {
	search := func(id byte, at time.Duration, text string) testSpan {
		return testSpan{trace: 1, id: id, at: at, a: map[string]any{"openinference.span.kind": "RETRIEVER",
			"retrieval.documents.0.document.content": text, "retrieval.documents.1.document.id": "empty"}}
	}
	first, second := chatSpan(1, 2, 0), chatSpan(1, 4, 0)
	first.at, second.at = time.Second, 3*time.Second
	got := decodeSpans(t, newDecoder(t), search(1, 0, "Ferns like it damp."), first, search(3, 2*time.Second, "Cacti do not."), second)
	if len(got.Interactions) != 2 || !slices.Equal(got.Interactions[0].Context, []string{"Ferns like it damp."}) ||
		!slices.Equal(got.Interactions[1].Context, []string{"Ferns like it damp.", "Cacti do not."}) {
		t.Errorf("%+v", got)
	}
	if !got.Interactions[0].HasFlag("context_without_text:1") {
		t.Errorf("flags %v", got.Interactions[0].Flags)
	}
}

func TestOTLPOverridesNameSpanAndResource(t *testing.T) {
	d := newDecoder(t, Source{Topic: "traces", Fields: map[string]string{
		"expected": "span.app.reference", "tenant": "resource.service.name", "attributes.tier": `span["app.tier"]`, "criteria": "span.app.rules.first"}})
	s := chatSpan(1, 2, 0)
	s.a["app.reference"], s.a["app.tier"], s.a["app.rules"] = "Every three days.", "gold", `{"first":"Is brief."}`
	it := soleOf(t, decodeSpans(t, d, s))
	if !slices.Equal(it.Expected, []string{"Every three days."}) || it.Tenant != "garden-help" || it.Attributes["tier"] != "gold" ||
		it.Criteria == nil || *it.Criteria != "Is brief." {
		t.Errorf("%+v", it)
	}
}

// Protobuf's own JSON writes bytes in base64. Some exporters write that, and one of the
// fields in snake case, and integers as numbers.
func TestOTLPJSONOfOtherWriters(t *testing.T) {
	trace := base64.StdEncoding.EncodeToString([]byte{15: 5})
	id := base64.StdEncoding.EncodeToString([]byte{7: 6})
	doc := fmt.Sprintf(`{"resource_spans":[{"scope_spans":[{"spans":[{"trace_id":%q,"span_id":%q,"start_time_unix_nano":%d,
		"attributes":[{"key":"gen_ai.operation.name","value":{"string_value":"chat"}},{"key":"gen_ai.usage.input_tokens","value":{"int_value":7}},
		{"key":"gen_ai.prompt","value":{"string_value":"Hi?"}},{"key":"gen_ai.completion","value":{"string_value":"Ho."}},
		{"key":"temperature","value":{"double_value":NaN}}]}]}]}]}`, trace, id, joinStart.UnixNano())
	it := soleOf(t, newDecoder(t).Decode(interaction.Record{Topic: "t", Time: joinStart, Value: []byte(doc)}))
	want := hex.EncodeToString([]byte{15: 5}) + "/" + hex.EncodeToString([]byte{7: 6})
	if it.ID != want || !it.HasFlag("base64_ids") || *it.InputTokens != 7 || texts(it) != "Hi? > Ho." {
		t.Errorf("%+v %s", it, texts(it))
	}
}

func TestOTLPLogsOfOtherThingsAreSkipped(t *testing.T) {
	doc := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","body":{"stringValue":"started"}}]}]}]}`
	if got := newDecoder(t).Decode(interaction.Record{Topic: "t", Time: joinStart, Value: []byte(doc)}); !slices.Equal(got.Skips, []string{notText}) {
		t.Errorf("%+v", got)
	}
}

// An evaluation may stand on the span of the call, or on one of its own.
func TestOTLPEvaluationsAreScores(t *testing.T) {
	event := testEvent{evaluationEvent, map[string]any{"gen_ai.evaluation.name": "fit", "gen_ai.evaluation.score.value": 0.25,
		"gen_ai.evaluation.score.label": "poor", "gen_ai.evaluation.explanation": "Too often."}}
	call := chatSpan(1, 2, 0)
	call.a["gen_ai.response.id"] = "r"
	call.events = []testEvent{event}
	got := decodeSpans(t, newDecoder(t), call)
	if len(got.Interactions) != 1 || len(got.Scores) != 1 || got.Outcome != Records {
		t.Fatalf("%+v", got)
	}
	if s := got.Scores[0]; s.Name != "fit" || *s.Value != 0.25 || s.Label != "poor" || s.Comment != "Too often." || s.ResponseID != "r" ||
		s.InteractionID != got.Interactions[0].ID || !s.Time.Equal(joinStart) {
		t.Errorf("%+v", s)
	}
	alone := testSpan{trace: 1, id: 9, a: map[string]any{"openinference.span.kind": "EVALUATOR"}, events: []testEvent{event}}
	if got := decodeSpans(t, newDecoder(t), alone); got.Outcome != Scored || len(got.Scores) != 1 || len(got.Skips) != 0 {
		t.Errorf("%+v", got)
	}
}

// A batch whose first part is 123 bytes long begins with a line feed and a brace.
func TestOTLPProtobufThatLooksLikeJSON(t *testing.T) {
	for pad := range 400 {
		s := testSpan{trace: 1, id: 1, name: strings.Repeat("n", pad), a: map[string]any{"gen_ai.prompt": "q", "gen_ai.completion": "a"}}
		b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(batch(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if c := b[1]; c != '{' && c != '[' && c != '"' && pad > 0 {
			continue
		}
		soleOf(t, newDecoder(t).Decode(interaction.Record{Topic: "t", Time: joinStart, Value: b}))
	}
}

// Two bytes make a span and a deep value ends a process: both are refused before they
// are unmarshalled.
func TestOTLPBatchesAreBounded(t *testing.T) {
	f := func(b []byte, want string) {
		t.Helper()
		got := newDecoder(t).Decode(interaction.Record{Topic: "t", Time: joinStart, Value: b})
		if len(got.Bad) != 1 || got.Bad[0].Reason != want {
			t.Errorf("%+v, want %s", got.Bad, want)
		}
	}
	field := func(n byte, inner []byte) []byte {
		return append(binary.AppendUvarint([]byte{n<<3 | 2}, uint64(len(inner))), inner...)
	}
	f(field(1, field(2, slices.Repeat([]byte{0x12, 0}, 20_000))), tooManyElements)
	deep := field(1, []byte("x"))
	for range 2000 {
		deep = field(5, field(1, deep)) // a list in a list
	}
	pair := append(field(1, []byte("k")), field(2, deep)...)
	f(field(1, field(2, field(2, append(field(1, make([]byte, 16)), field(9, pair)...)))), tooDeep)
	f([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[`+strings.Repeat("{},", 20_000)+`{}]}]}]}`), tooManyElements)
	// a span of empty attributes, in both encodings
	f(field(1, field(2, field(2, append(field(1, make([]byte, 16)), slices.Repeat([]byte{0x4a, 0}, 600_000)...)))), tooManyElements)
	f([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[`+strings.Repeat("{},", 600_000)+`{}]}]}]}]}`), tooManyElements)
	// metrics are neither
	f(field(1, field(2, field(2, field(1, []byte("cpu"))))), badProtobuf)
}
