package decode

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/interaction"
)

// read is what one record of a family must come out as.
type read struct {
	format, id, input, output string
	status                    interaction.Status
	reason                    string
	flags                     []string
	also                      func(t *testing.T, it interaction.Interaction)
}

func (want read) check(t *testing.T, res Result) {
	t.Helper()
	if len(res.Interactions) != 1 || res.Format != want.format {
		t.Errorf("%+v, want one interaction of %s", res, want.format)
		return
	}
	it := res.Interactions[0]
	if want.status == "" {
		want.status = interaction.OK
	}
	if it.ID != want.id || deref(it.Input) != want.input || deref(it.Output) != want.output || it.Status != want.status || it.SkipReason != want.reason {
		t.Errorf("id %q, input %q, output %q, %s (%s)\nwant %q, %q, %q, %s (%s)", it.ID, deref(it.Input), deref(it.Output), it.Status, it.SkipReason,
			want.id, want.input, want.output, want.status, want.reason)
	}
	for _, flag := range want.flags {
		if !it.HasFlag(flag) {
			t.Errorf("flags %v, want %s", it.Flags, flag)
		}
	}
	if want.also != nil {
		want.also(t, it)
	}
}

func TestPortkeyBodiesAreThoseOfTheProvider(t *testing.T) {
	read{format: "portkey", id: "chatcmpl-1", input: "q", output: "a", also: func(t *testing.T, it interaction.Interaction) {
		if it.App != "faq" || it.SessionID != "s" || it.UserID != "u" || it.TraceID != "tr" || *it.LatencyMS != 812 || *it.InputTokens != 5 {
			t.Errorf("%+v", it)
		}
	}}.check(t, decodeWith(newDecoder(t), `{"request":{"body":{"model":"m","messages":[{"role":"user","content":"q"}]}},`+
		`"response":{"status":200,"response_time":812,"body":{"id":"chatcmpl-1","created":1777888800,"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}},`+
		`"metadata":{"span_name":"faq","session":"s","_user":"u","trace_id":"tr"}}`))
}

func TestCloudflareBodiesOfAnyProvider(t *testing.T) {
	d := newDecoder(t)
	body := func(req, resp string) string {
		return `{"Datetime":"2026-05-04T11:00:00Z","Gateway":"g","Model":"m","StatusCode":200,"Metadata":"{\"userId\":\"u\"}","RequestBody":` + strconv.Quote(req) + `,"ResponseBody":` + strconv.Quote(resp) + `}`
	}
	read{format: "cloudflare", id: "msg_1", input: "q", output: "a", also: func(t *testing.T, it interaction.Interaction) {
		if it.Route != "g" || it.UserID != "u" || *it.InputTokens != 12 {
			t.Errorf("%+v", it)
		}
	}}.check(t, decodeWith(d, body(`{"system":"s","max_tokens":9,"messages":[{"role":"user","content":"q"}]}`,
		`{"id":"msg_1","type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":2,"cache_read_input_tokens":10,"output_tokens":1}}`)))
	read{format: "cloudflare", id: "t/0/7", input: "q", output: "a", flags: []string{"sse_reassembled", "id_derived"}}.check(t, decodeWith(d,
		body(`{"messages":[{"role":"user","content":"q"}]}`, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n")))
}

func TestCloudflareBodiesThatAreEncryptedAreNoText(t *testing.T) {
	read{format: "cloudflare", id: "t/0/7", input: "<absent>", output: "<absent>", status: interaction.NoContent, reason: encryptedText,
		also: func(t *testing.T, it interaction.Interaction) {
			if it.LatencyMS == nil || *it.LatencyMS != 1234 || it.Time.Hour() != 11 || it.Route != "g" {
				t.Errorf("%+v", it)
			}
		}}.check(t, decodeWith(newDecoder(t), `{"Timestamp":"2026-05-04T11:00:00Z","Gateway":"g","Metrics":{"durationMs":1234},`+
		`"RequestBody":{"type":"encrypted","data":"AAAA"},"ResponseBody":{"type":"encrypted","data":"AAAA"}}`))
}

func TestAPISIXBodiesStandInForItsSummary(t *testing.T) {
	read{format: "apisix", id: "c", input: "q", output: "a", also: func(t *testing.T, it interaction.Interaction) {
		if it.App != "svc" || it.Route != "svc" || *it.LatencyMS != 20.5 {
			t.Errorf("%+v", it)
		}
	}}.check(t, decodeWith(newDecoder(t), `{"start_time":1777888800000,"latency":20.5,"apisix_latency":1,"service_id":"svc",`+
		`"request":{"body":"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}","headers":{}},"response":{"status":200,"body":"{\"id\":\"c\",\"choices\":[{\"message\":{\"content\":\"a\"}}]}"}}`))
}

func TestGatewaysSayThatACallFailed(t *testing.T) {
	d := newDecoder(t)
	f := func(code, body string) {
		t.Helper()
		res := decodeWith(d, body)
		if len(res.Interactions) != 1 || res.Interactions[0].SkipReason != providerError || res.Interactions[0].Error.Code != code {
			t.Errorf("%+v, want provider error %s", res, code)
		}
	}

	f("503", `{"x-request-id":"r","route_name":"x","gen_ai.request.model":"m","response_code":503}`)
	f("429", `{"request":{"id":"r"},"latencies":{"request":3},"started_at":1777888800000,"response":{"status":429},"ai":{"proxy":{}}}`)
	f("500", `{"databricks_request_id":"d","status_code":500,"request":"{}","response":null}`)
	f("RateLimitError", `{"id":"l","call_type":"completion","startTime":1777888800.5,"status":"failure","messages":"q","response":null,"error_str":"slow down","error_information":{"error_code":"RateLimitError"}}`)
	f("ThrottlingException", `{"schemaType":"ModelInvocationLog","requestId":"b","modelId":"m","errorCode":"ThrottlingException"}`)
}

func TestDatabricksTellsWhatWasThinnedOutOrTooLarge(t *testing.T) {
	d := newDecoder(t)
	row := func(more string) string {
		return `{"databricks_request_id":"d-1","timestamp_ms":1777888800000,` + more + `"request":"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}","response":"{\"choices\":[{\"message\":{\"content\":\"a\"}}]}"}`
	}
	read{format: "databricks", id: "d-1", input: "q", output: "a", flags: []string{"upstream_sampling:0.05"}}.check(t, decodeWith(d, row(`"sampling_fraction":0.05,`)))
	res := decodeWith(d, row(`"sampling_fraction":1.0,`))
	if slices.ContainsFunc(res.Interactions[0].Flags, func(f string) bool { return strings.HasPrefix(f, "upstream") }) {
		t.Errorf("flags %v", res.Interactions[0].Flags)
	}
	read{format: "databricks", id: "d-2", input: "<absent>", output: "<absent>", status: interaction.NoContent, reason: contentExternal}.check(t,
		decodeWith(d, `{"databricks_request_id":"d-2","request":null,"response":null,"logging_error_codes":["MAX_REQUEST_SIZE_EXCEEDED"]}`))
}

func TestBedrockReadsTheBodiesOfEachMaker(t *testing.T) {
	d := newDecoder(t)
	f := func(model, in, out string, want read) {
		t.Helper()
		want.format, want.id = "bedrock", "b-1"
		want.check(t, decodeWith(d, `{"schemaType":"ModelInvocationLog","timestamp":"2026-05-04T11:00:00Z","requestId":"b-1","modelId":"`+model+`",`+
			`"input":{"inputBodyJson":`+in+`,"inputTokenCount":7},"output":{"outputBodyJson":`+out+`,"outputTokenCount":2}}`))
	}

	f("amazon.titan-text", `{"inputText":"q"}`, `{"results":[{"outputText":"a","completionReason":"FINISH"}]}`, read{input: "q", output: "a"})
	f("amazon.titan-text", `{"inputText":"q"}`, `{"results":[{"outputText":"a","completionReason":"LENGTH"}]}`, read{input: "q", output: "a", status: interaction.Truncated})
	f("cohere.command-r", `{"message":"q","documents":[{"snippet":"d"}]}`, `{"text":"a","finish_reason":"COMPLETE"}`,
		read{input: "q", output: "a", also: func(t *testing.T, it interaction.Interaction) {
			if len(it.Context) != 1 || it.Context[0] != "d" {
				t.Errorf("context %v", it.Context)
			}
		}})
	f("mistral.mistral-7b", `{"prompt":"<s>[INST] first [/INST] x [INST] q [/INST]"}`, `{"outputs":[{"text":" a","stop_reason":"stop"}]}`,
		read{input: "q", output: " a", flags: []string{"chat_template_stripped"}})
	f("anthropic.claude", `{"messages":[{"role":"user","content":"q"}]}`,
		`[{"type":"message_start","message":{"id":"m","usage":{"input_tokens":7}}},{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}},`+
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}},{"type":"message_stop","amazon-bedrock-invocationMetrics":{"invocationLatency":930}}]`,
		read{input: "q", output: "a", flags: []string{"sse_reassembled"}, also: func(t *testing.T, it interaction.Interaction) {
			if it.LatencyMS == nil || *it.LatencyMS != 930 {
				t.Errorf("latency %v", it.LatencyMS)
			}
		}})
	f("meta.llama", `{"prompt":"q"}`, `[{"generation":"a"},{"generation":"b","stop_reason":"length"}]`, read{input: "q", output: "ab", status: interaction.Truncated})
	f("meta.llama", `{"prompt":"q"}`, `[{"generation":"a"}]`, read{input: "q", output: "a", status: interaction.Cancelled, reason: streamIncomplete})
	f("nova", `{"messages":[{"role":"user","content":[{"text":"q"}]}]}`, `{"output":{"message":{"content":[{"text":"a"}]}},"stopReason":"guardrail_intervened"}`,
		read{input: "q", output: "a", status: interaction.Filtered, reason: contentFilter})
	f("nova", `{"messages":[{"role":"user","content":[{"text":"q"}]}]}`, `{"output":{"message":{"content":[{"toolUse":{"name":"x"}}]}},"stopReason":"tool_use"}`,
		read{input: "q", output: "", status: interaction.ToolCall, reason: toolCallOnly})
	if res := decodeWith(d, `{"schemaType":"ModelInvocationLog","modelId":"amazon.titan-embed-text","input":{"inputBodyJson":{"inputText":"q"}}}`); res.Outcome != Skip || res.Skips[0] != notText {
		t.Errorf("%+v", res)
	}
}

// A user's message that only carries results of tools asks nothing.
func TestAnthropicToolResultsAreContextAndNoQuestion(t *testing.T) {
	read{format: anthropic, id: "x", input: "q", output: "It is 14 EUR.", also: func(t *testing.T, it interaction.Interaction) {
		if len(it.Context) != 2 || it.Context[0] != "14 EUR" || it.Context[1] != "in stock" || it.HasFlag("turns:2") {
			t.Errorf("context %q, flags %v", it.Context, it.Flags)
		}
	}}.check(t, decodeWith(newDecoder(t), `{"id":"x","request":{"max_tokens":1,"system":"s","messages":[{"role":"user","content":"q"},`+
		`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"price","input":{}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"14 EUR"},{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"in stock"}]}]}]},`+
		`"response":{"type":"message","content":[{"type":"text","text":"It is "},{"type":"text","text":"14 EUR."}],"stop_reason":"end_turn"}}`))
}

func TestResponsesStreamsAndItems(t *testing.T) {
	d := newDecoder(t)
	call := func(resp string) string {
		return `{"id":"x","request":{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]},{"type":"function_call","name":"f","arguments":"{}"},{"type":"function_call_output","output":"found"}]},"response":` + resp + `}`
	}
	context := func(t *testing.T, it interaction.Interaction) {
		t.Helper()
		if len(it.Context) != 1 || it.Context[0] != "found" {
			t.Errorf("context %v", it.Context)
		}
	}
	done := `{"type":"response.completed","response":{"id":"r","object":"response","status":"completed","output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"message","content":[{"type":"output_text","text":"b"}]}]}}`
	sse := "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"model\":\"m2\"}}\n\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n"
	read{format: responses, id: "x", input: "q", output: "a\nb", also: context}.check(t, decodeWith(d, call(done)))
	read{format: responses, id: "x", input: "q", output: "a\nb", flags: []string{"sse_reassembled"}, also: context}.check(t, decodeWith(d, call(strconv.Quote(sse+"data: "+done+"\n\n"))))
	read{format: responses, id: "x", input: "q", output: "a", status: interaction.Cancelled, reason: streamIncomplete, also: context}.check(t, decodeWith(d, call(strconv.Quote(sse))))
	read{format: responses, id: "x", input: "q", output: "", status: interaction.ToolCall, reason: toolCallOnly}.check(t, decodeWith(d, call(`{"object":"response","status":"completed","output":[{"type":"function_call","name":"f"}]}`)))
	read{format: responses, id: "r", input: "<absent>", output: "a", status: interaction.NoContent, reason: noInput}.check(t,
		decodeWith(d, `{"id":"r","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`))
	if res := decodeWith(d, `{"type":"response.output_text.delta","delta":"a"}`); res.Outcome != Skip || res.Skips[0] != streamFragment {
		t.Errorf("%+v", res)
	}
}

// LangChain writes messages as roles, as types and as serialised constructors, alone or
// one list a prompt.
func TestLangSmithReadsEveryFormOfMessages(t *testing.T) {
	d := newDecoder(t)
	f := func(inputs, outputs string) {
		t.Helper()
		read{format: "langsmith", id: "r-1", input: "q", output: "a", also: func(t *testing.T, it interaction.Interaction) {
			if it.App != "project" || it.SessionID != "th" || it.TraceID != "tr" || !it.HasFlag("time_no_zone") {
				t.Errorf("%+v", it)
			}
		}}.check(t, decodeWith(d, `{"id":"r-1","trace_id":"tr","dotted_order":"x","run_type":"llm","session_id":"5f","session_name":"project","start_time":"2026-05-04T11:00:00.5",`+
			`"extra":{"metadata":{"thread_id":"th","ls_model_name":"m"}},"inputs":`+inputs+`,"outputs":`+outputs+`}`))
	}

	f(`{"messages":[{"role":"user","content":"q"}]}`, `{"choices":[{"message":{"role":"assistant","content":"a"}}]}`)
	f(`{"messages":[[{"type":"human","content":"q"}]]}`, `{"generations":[[{"text":"a"}]]}`)
	f(`{"messages":[[{"lc":1,"type":"constructor","id":["langchain","schema","HumanMessage"],"kwargs":{"content":[{"type":"text","text":"q"}]}}]]}`,
		`{"generations":[[{"text":"","message":{"lc":1,"kwargs":{"content":"a","usage_metadata":{"input_tokens":3}}}}]],"llm_output":{"model_name":"m"}}`)
	f(`{"messages":[{"type":"system","data":{"content":"s"}},{"type":"human","data":{"content":"q"}}]}`, `{"role":"assistant","content":"a"}`)
	f(`{"prompts":["q"],"prompt":"q"}`, `{"output":"a"}`)
}

// Under a chain that takes a question the model's runs would say the same again.
func TestLangSmithEmitsTheRootOrTheModelNeverBoth(t *testing.T) {
	d := newDecoder(t)
	llm := `{"id":"l","trace_id":"tr","parent_run_id":"r","run_type":"llm","start_time":"2026-05-04T11:00:00Z","inputs":{"messages":[{"role":"user","content":"long prompt"}]},"outputs":{"output":"a"}}`
	root := `{"id":"r","trace_id":"tr","run_type":"chain","start_time":"2026-05-04T11:00:00Z","inputs":{"question":"q"},"outputs":{"answer":"a"}}`
	plain := `{"id":"r","trace_id":"tr","run_type":"chain","start_time":"2026-05-04T11:00:00Z","inputs":{"x":1},"outputs":{"y":2}}`
	read{format: "langsmith", id: "r", input: "q", output: "a"}.check(t, decodeWith(d, `{"post":[`+llm+`,`+root+`],"patch":[]}`))
	read{format: "langsmith", id: "l", input: "long prompt", output: "a"}.check(t, decodeWith(d, `{"post":[`+llm+`,`+plain+`],"patch":[]}`))
}

func TestLangSmithPostAndPatchAreOneRun(t *testing.T) {
	j := newDecoder(t).NewJoiner("t")
	feed := func(offset int64, body string) Result {
		return j.Decode(interaction.Record{Topic: "t", Offset: offset, Time: at().Add(time.Duration(offset) * time.Second), Value: []byte(body)})
	}
	post := `{"post":[{"id":"r","trace_id":"tr","run_type":"llm","start_time":"2026-05-04T11:00:00Z","inputs":{"messages":[{"role":"user","content":"q"}]}},` +
		`{"id":"tool","trace_id":"tr","run_type":"tool","inputs":{"x":"y"}}],"patch":[]}`
	if res := feed(1, post); res.Outcome != Partial || res.Held != 1 || len(res.Interactions) != 0 {
		t.Errorf("%+v", res)
	}
	// The tool's patch does not say what it is, and must not wait for ever.
	if res := feed(2, `{"patch":[{"id":"tool","trace_id":"tr","outputs":{"output":"z"}}]}`); res.Held != 0 || res.Outcome != Skip {
		t.Errorf("%+v", res)
	}
	res := feed(3, `{"patch":[{"id":"r","trace_id":"tr","end_time":"2026-05-04T11:00:02Z","outputs":{"output":"a"}}]}`)
	read{format: "langsmith", id: "r", input: "q", output: "a", flags: []string{"joined"}, also: func(t *testing.T, it interaction.Interaction) {
		if *it.LatencyMS != 2000 {
			t.Errorf("latency %v", *it.LatencyMS)
		}
	}}.check(t, res)
	if !slices.Equal(res.Released, []int64{1}) {
		t.Errorf("released %v", res.Released)
	}
}

// Azure cuts long messages into rows; they may come in any order, and twice.
func TestAzureChunksAreOrderedByTheirNumber(t *testing.T) {
	j := newDecoder(t).NewJoiner("t")
	row := func(n int, field, text string) string {
		return `{"records":[{"time":"2026-05-04T11:00:00Z","category":"GatewayLlmLogs","properties":{"CorrelationId":"c","SequenceNumber":` + strconv.Itoa(n) + `,"DeploymentName":"gpt","PromptTokens":5,"` + field + `":` + strconv.Quote(text) + `}}]}`
	}
	var res Result
	for i, body := range []string{
		row(1, "RequestMessages", `{"role":"user","content":"q"}]`), row(0, "RequestMessages", `[`), row(0, "RequestMessages", `[`),
		row(3, "ResponseMessages", `"content":"a"}]`), row(2, "ResponseMessages", `[{"role":"assistant",`),
	} {
		if i > 0 && len(res.Interactions) > 0 {
			t.Fatalf("whole after %d rows", i)
		}
		res = j.Decode(interaction.Record{Topic: "t", Offset: int64(i), Time: at(), Value: []byte(body)})
	}
	read{format: "azure", id: "c", input: "q", output: "a", flags: []string{"joined"}, also: func(t *testing.T, it interaction.Interaction) {
		if it.Route != "gpt" || *it.InputTokens != 5 || it.Time.Hour() != 11 {
			t.Errorf("%+v", it)
		}
	}}.check(t, res)
	if len(res.Released) != 4 {
		t.Errorf("released %v", res.Released)
	}
}

func TestAzureDiagnosticsWithoutTextCountTheCall(t *testing.T) {
	d := newDecoder(t)
	res := decodeWith(d, `{"records":[{"time":"2026-05-04T11:00:00Z","category":"RequestResponse","operationName":"ChatCompletions_Create","correlationId":"c","resultSignature":"200","durationMs":90,"properties":"{\"modelName\":\"m\",\"modelDeploymentName\":\"dep\"}"},`+
		`{"category":"Audit","operationName":"ListKeys"}]}`)
	if len(res.Interactions) != 1 || len(res.Skips) != 1 {
		t.Fatalf("%+v", res)
	}
	if it := res.Interactions[0]; it.ID != "c" || it.Model != "m" || it.Route != "dep" || it.SkipReason != noContent || *it.LatencyMS != 90 {
		t.Errorf("%+v", it)
	}
}

// Feedback is about another record: it is kept as a score whatever came of that one
// (field report ext-39).
func TestFeedbackIsAScoreWithoutItsInteraction(t *testing.T) {
	d := newDecoder(t)
	f := func(body string, want Score, value float64) {
		t.Helper()
		res := decodeWith(d, body)
		if res.Outcome != Scored || len(res.Scores) != 1 {
			t.Errorf("%+v", res)
			return
		}
		got := res.Scores[0]
		if value >= 0 && (got.Value == nil || *got.Value != value) || value < 0 && got.Value != nil {
			t.Errorf("value %v, want %v", got.Value, value)
		}
		got.Value, got.Time = nil, time.Time{}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}

	f(`{"batch":[{"id":"e","type":"score-create","timestamp":"2026-05-04T11:00:00Z","body":{"traceId":"tr","observationId":"g","name":"helpful","value":1,"comment":"thanks"}}]}`,
		Score{InteractionID: "g", TraceID: "tr", Name: "helpful", Comment: "thanks"}, 1)
	f(`{"batch":[{"id":"e","type":"score-create","body":{"traceId":"tr","name":"tone","value":"rude","dataType":"CATEGORICAL"}}]}`,
		Score{TraceID: "tr", Name: "tone", Label: "rude"}, -1)
	f(`{"batch":[{"id":"e","type":"score-create","body":{"traceId":"tr","observationId":"g","name":"fix","value":"In Lyon.","dataType":"CORRECTION"}}]}`,
		Score{InteractionID: "g", TraceID: "tr", Name: "fix", Expected: "In Lyon."}, -1)
	f(`{"id":"f","run_id":"r","trace_id":"tr","key":"user_score","score":true,"comment":"ok","created_at":"2026-05-04T11:00:00","feedback_source":{"type":"app"}}`,
		Score{InteractionID: "r", TraceID: "tr", Name: "user_score", Comment: "ok", Source: "app"}, 1)
}

// Start and end of a call are one interaction, judged once, with the final answer; a
// start without an end is incomplete, not a bad answer (field report ext-19).
func TestStartAndEndOfACallAreJudgedOnce(t *testing.T) {
	j := newDecoder(t).NewJoiner("t")
	feed := func(offset int64, after time.Duration, body string) Result {
		return j.Decode(interaction.Record{Topic: "t", Offset: offset, Time: at().Add(after), Value: []byte(body)})
	}
	start := func(id string) string {
		return `{"batch":[{"id":"e1","type":"generation-create","body":{"id":"` + id + `","traceId":"tr","startTime":"2026-05-04T11:00:00Z","model":"m","input":"q","output":null}}]}`
	}
	if res := feed(1, 0, start("g")); res.Held != 1 || len(res.Interactions) != 0 {
		t.Errorf("%+v", res)
	}
	if res := feed(2, time.Second, start("lost")); res.Held != 1 || len(res.Interactions) != 0 {
		t.Errorf("%+v", res)
	}
	// The trace comes in between; an update leaves out what has not changed.
	feed(3, 2*time.Second, `{"batch":[{"id":"e2","type":"trace-create","body":{"id":"tr","name":"shop","userId":"u","sessionId":"s"}}]}`)
	read{format: "langfuse", id: "g", input: "q", output: "a", flags: []string{"joined"}, also: func(t *testing.T, it interaction.Interaction) {
		if it.App != "shop" || it.UserID != "u" || it.SessionID != "s" || it.Model != "m" || *it.LatencyMS != 3000 {
			t.Errorf("%+v", it)
		}
	}}.check(t, feed(4, 3*time.Second, `{"batch":[{"id":"e3","type":"generation-update","body":{"id":"g","model":null,"output":"a","endTime":"2026-05-04T11:00:03Z"}}]}`))

	res := feed(5, time.Hour, `{"batch":[{"id":"e4","type":"span-create","body":{"id":"x"}}]}`)
	read{format: "langfuse", id: "lost", input: "q", output: "<absent>", status: interaction.NoContent, reason: incompleteHalf}.check(t, res)
}

// A gateway that logs success after a stall has only part of the answer (field report
// ext-20), and one that nests a streamed response has it one level down (ext-22).
func TestCutStreamsAndNestedResponsesOfGateways(t *testing.T) {
	d := newDecoder(t)
	entry := func(response string) string {
		return `{"id":"l-1","call_type":"acompletion","startTime":1777888800.5,"endTime":1777888802.5,"response_time":0.2,"status":"success","messages":[{"role":"user","content":"q"}],"response":` + response + `}`
	}
	read{format: "litellm", id: "l-1", input: "q", output: "It lea", status: interaction.Cancelled, reason: streamIncomplete}.check(t,
		decodeWith(d, entry(strconv.Quote("data: {\"choices\":[{\"delta\":{\"content\":\"It lea\"}}]}\n\n"))))
	read{format: "litellm", id: "l-1", input: "q", output: "a", also: func(t *testing.T, it interaction.Interaction) {
		if *it.LatencyMS != 2000 {
			t.Errorf("latency %v: the time to the first token is no latency", *it.LatencyMS)
		}
	}}.check(t, decodeWith(d, entry(`{"type":"response.completed","response":{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}}`)))
}

// A null value between good ones is skipped and counted (field report ext-25).
func TestTombstonesAmongGoodRecords(t *testing.T) {
	d := newDecoder(t)
	rec := interaction.Record{Topic: "t", Time: at(), Key: []byte(`{"id":"p-1"}`)}
	for i, value := range [][]byte{[]byte(parcel), nil, []byte(`{"schema":{},"payload":null}`), []byte(`{"op":"d","before":{"id":"p-1"},"after":null}`), []byte(parcel)} {
		rec.Offset, rec.Value = int64(i), value
		res := d.Decode(rec)
		if good := i == 0 || i == 4; good != (len(res.Interactions) == 1) || good != (res.Outcome == Records) || len(res.Bad) > 0 {
			t.Errorf("%d: %+v", i, res)
		}
	}
}

// What looks like a credential is gone before anything is kept.
func TestCredentialsOfGatewaysAreNotKept(t *testing.T) {
	d := newDecoder(t)
	for _, body := range []string{
		`{"authorization":"Bearer k-1","heliconeMeta":{"promptId":"p"},"log":{"request":{"id":"h","requestCreatedAt":"2026-05-04T11:00:00Z"},"response":{"status":200}}}`,
		`{"request":{"id":"r","headers":{"authorization":"Bearer k-1","cookie":"k-1"}},"latencies":{"request":3},"started_at":1777888800000,"ai":{"proxy":{}},"x-api-key":"k-1"}`,
	} {
		res := decodeWith(d, body)
		if len(res.Interactions) != 1 {
			t.Fatalf("%+v", res)
		}
		for name, text := range res.Interactions[0].Attributes {
			if strings.Contains(text, "k-1") {
				t.Errorf("attribute %s = %s", name, text)
			}
		}
	}
}

// A judge behind a logged gateway must not be judged: each judgement would cause the
// next.
func TestJudgesCallsAreSkippedInEveryGatewaysLog(t *testing.T) {
	d := newDecoder(t)
	call := strconv.Quote(`{"metadata":{"purpose":"llm_judge"},"messages":[{"role":"user","content":"q"}]}`)
	for _, body := range []string{
		`{"id":"l","call_type":"completion","startTime":1777888800.5,"metadata":{"requester_metadata":{"purpose":"llm_judge"}},"messages":"q","response":"a"}`,
		`{"request":{"id":"k"},"latencies":{"request":1},"started_at":1777888800000,"ai":{"proxy":{"payload":{"request":` + call + `,"response":"{}"}}}}`,
		`{"databricks_request_id":"d","request":` + call + `,"response":"{}"}`,
		`{"Gateway":"g","RequestBody":` + call + `,"ResponseBody":"{}"}`,
		`{"request":{"body":{"metadata":{"purpose":"llm_judge"},"messages":[]}},"response":{"body":{"choices":[]}}}`,
		`{"schemaType":"ModelInvocationLog","requestMetadata":{"purpose":"llm_judge"},"input":{},"output":{}}`,
		`{"batch":[{"type":"generation-create","body":{"id":"g","metadata":{"purpose":"llm_judge"},"input":"q","output":"a","endTime":"2026-05-04T11:00:00Z"}}]}`,
		`{"id":"r","run_type":"llm","inputs":{"input":"q"},"outputs":{"output":"a"},"extra":{"metadata":{"purpose":"llm_judge"}}}`,
	} {
		if res := decodeWith(d, body); res.Outcome != Skip || len(res.Skips) != 1 || res.Skips[0] != judgeTraffic {
			t.Errorf("%s: %+v", body, res)
		}
	}
}

// Vectors are logged on the same topics as answers, and are none.
func TestEmbeddingsAreNoTextGeneration(t *testing.T) {
	d := newDecoder(t)
	vectors := `{"object":"list","data":[{"object":"embedding","embedding":[0.1,0.2]}],"model":"m"}`
	for _, body := range []string{
		`{"id":"x","request":{"model":"m","input":"q"},"response":` + vectors + `}`,
		`{"request":{"id":"k"},"latencies":{"request":1},"started_at":1777888800000,"ai":{"proxy":{"payload":{"request":"{}","response":` + strconv.Quote(vectors) + `}}}}`,
		`{"request":{"body":{"input":"q"}},"response":{"body":` + vectors + `}}`,
		`{"request_id":"h","request_created_at":"2026-05-04T11:00:00Z","request_body":{"input":"q"},"response_body":` + vectors + `}`,
	} {
		if res := decodeWith(d, body); res.Outcome != Skip || res.Skips[0] != notText {
			t.Errorf("%s: %+v", body, res)
		}
	}
}
