package decode

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/interaction"
)

// A probing is a way of asking the fast path: a source's settings and a plan.
type probing struct {
	source Source
	plan   Plan
}

func allLabels() []string {
	return []string{"app", "model", "route", "prompt_version", "tenant", "environment", "session_id", "user_id", "trace_id"}
}

func probings() []probing {
	return []probing{
		{Source{}, Plan{Labels: []string{"app", "model"}, TextBytes: 24_000}},
		{Source{Fields: map[string]string{"app": "metadata.app", "expected": "metadata.reference"}}, Plan{Labels: []string{"app", "route"}, TextBytes: Unbounded}},
		{Source{}, Plan{Labels: allLabels(), Numbers: true, Attributes: []string{"tier", "claim", "key", "region", "value"}, Refusals: true, TextBytes: 300}},
		{Source{Format: flat}, Plan{Labels: allLabels(), TextBytes: Unbounded}},
		{Source{Format: openAIChat, ToolResults: "ignore"}, Plan{Numbers: true, TextBytes: Unbounded}},
		{Source{Format: anthropic}, Plan{Labels: allLabels(), Numbers: true, Refusals: true, TextBytes: 2000}},
		{Source{Format: litellm, Fields: map[string]string{"app": "metadata.user_api_key_team_alias"}}, Plan{Labels: allLabels(), Numbers: true, Attributes: []string{"user_agent"}, TextBytes: Unbounded}},
		{Source{Fields: map[string]string{
			"id": "metadata.ticket", "time": "metadata.at", "input": "metadata.q", "output": "response.choices[0].message.content",
			"criteria": "rubric", "context": "docs", "tenant": "header:tenant", "user_id": "key", "attributes.tier": `metadata.customer\.tier`,
			"latency_ms": "metadata.took", "input_tokens": "response.usage.total_tokens", "model": "metadata.m.id",
		}}, Plan{Labels: allLabels(), Numbers: true, Attributes: []string{"tier"}, TextBytes: Unbounded}},
	}
}

// A pair of readers of one source.
type readers struct {
	d    *Decoder
	p    *Prober
	plan Plan
}

func (r probing) open(t testing.TB, topic string) readers {
	t.Helper()
	r.source.Topic = topic
	d := newDecoder(t, r.source)
	p := d.Prober(topic, r.plan)
	if p == nil {
		t.Fatalf("no prober for %+v", r)
	}
	return readers{d, p, r.plan}
}

// agree probes a record and holds the answer against Decode's. It is false where the
// fast path declines.
func (r readers) agree(t testing.TB, rec interaction.Record) bool {
	t.Helper()
	r.p.pause, r.p.misses = 0, 0
	fast, ok := r.p.Probe(rec)
	if !ok {
		return false
	}
	full := r.d.Decode(rec)
	if differs := r.differences(fast, full); len(differs) > 0 {
		t.Fatalf("the fast path reads otherwise than Decode\nrecord %s\nplan %+v\n%s", rec.Value, r.plan, strings.Join(differs, "\n"))
	}
	return true
}

// presence is what decisions see of a text.
func presence(s *string) string {
	switch {
	case s == nil:
		return "absent"
	case interaction.Blank(*s):
		return "blank"
	}
	return "there"
}

func (r readers) differences(fast, full Result) (all []string) {
	same := func(what string, a, b any) {
		if fmt.Sprint(a) != fmt.Sprint(b) {
			all = append(all, fmt.Sprintf("%s: fast %v, full %v", what, a, b))
		}
	}
	same("interactions", len(fast.Interactions), len(full.Interactions))
	same("others", len(fast.Bad)+len(fast.Skips)+len(fast.Scores)+fast.Held, len(full.Bad)+len(full.Skips)+len(full.Scores)+full.Held)
	same("format", fast.Format, full.Format)
	same("envelope", fast.Envelope, full.Envelope)
	same("outcome", fast.Outcome, full.Outcome)
	if len(all) > 0 {
		return all
	}
	a, b := &fast.Interactions[0], &full.Interactions[0]
	same("id", a.ID, b.ID)
	same("time", a.Time.Format(time.RFC3339Nano), b.Time.Format(time.RFC3339Nano))
	same("position", a.Position, b.Position)
	same("status", a.Status, b.Status)
	same("judgeable", a.Judgeable, b.Judgeable)
	same("skip reason", a.SkipReason, b.SkipReason)
	same("input", presence(a.Input) == "there", presence(b.Input) == "there")
	same("output", presence(a.Output), presence(b.Output))
	same("expected", len(a.Expected) > 0, len(b.Expected) > 0)
	same("criteria", presence(a.Criteria), presence(b.Criteria))
	same("context", len(a.Context) > 0, len(b.Context) > 0)
	labels := func(it *interaction.Interaction) map[string]string {
		return map[string]string{"app": it.App, "model": it.Model, "route": it.Route, "prompt_version": it.PromptVersion, "tenant": it.Tenant,
			"environment": it.Environment, "session_id": it.SessionID, "user_id": it.UserID, "trace_id": it.TraceID}
	}
	for _, name := range r.plan.Labels {
		same(name, labels(a)[name], labels(b)[name])
	}
	for _, name := range r.plan.Attributes {
		va, oka := a.Attributes[name]
		vb, okb := b.Attributes[name]
		same("attributes."+name, []any{va, oka}, []any{vb, okb})
	}
	if r.plan.Numbers {
		numbers := func(it *interaction.Interaction) string {
			s := ""
			for _, n := range []*int64{it.InputTokens, it.OutputTokens} {
				if n != nil {
					s += strconv.FormatInt(*n, 10)
				}
				s += "/"
			}
			if it.LatencyMS != nil {
				s += strconv.FormatFloat(*it.LatencyMS, 'g', -1, 64)
			}
			if it.Feedback != nil {
				s += fmt.Sprintf("/%+v", *it.Feedback)
			}
			return s
		}
		same("numbers", numbers(a), numbers(b))
	}
	same("feedback", fmt.Sprint(a.Feedback != nil), fmt.Sprint(b.Feedback != nil))
	if r.plan.Refusals {
		same("refusal_like", a.HasFlag("refusal_like"), b.HasFlag("refusal_like"))
	}
	for _, cut := range []string{"input_cut", "output_cut"} {
		same(cut, a.HasFlag(cut), b.HasFlag(cut))
	}
	size := 0
	for _, text := range []*string{b.Input, b.Output, b.Criteria} {
		if text != nil {
			size += len(*text)
		}
	}
	for _, texts := range [][]string{b.Expected, b.Context} {
		for _, text := range texts {
			size += len(text)
		}
	}
	if size > r.plan.TextBytes {
		all = append(all, fmt.Sprintf("%d bytes of text, the plan allows %d", size, r.plan.TextBytes))
	}
	return all
}

// fastSeeds are records in many shapes that people log, good and bad.
func fastSeeds() []string {
	return []string{
		string(chatLog()),
		`{"id":"a-1","ts":1777888800,"input":"Where is it?","output":"On its way.","expected":"It is on its way","app":"parcels","model":"m-1","metadata":{"tier":"gold","reference":"near","q":"why?","at":"2026-05-04T09:00:00Z"},"claim":"x"}`,
		`{"question":"How long?","answer":"Three days.","contexts":["The parcel takes three days.",""],"ground_truth":["3","three"],"criteria":["short","kind"],"latency":"1.5s","status":"ok"}`,
		`{"prompt":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hello?"}],"completion":"Good day.","trace_id":"t","userId":7}`,
		`{"query":"q","prediction":"I'm sorry, but I can't help with that.","user_id":"u","session":{"name":"s"},"feedback":{"name":"thumb","value":1},"input_tokens":"1,200"}`,
		`{"messages":[{"role":"user","content":"One?"},{"role":"assistant","content":"Two."}],"model":"m","_id":{"$oid":"65"},"time":"2026-05-04 10:00:00"}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]},{"role":"tool","content":"A kettle."}],"input":"not read"}`,
		`{"request":{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","content":"42"}],"user":"u-2","metadata":{"session_id":"s-3"}},"response":{"id":"r","created":1777888800,"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"b"},"finish_reason":"length"}],"usage":{"prompt_tokens":4,"completion_tokens":5,"total_tokens":9}},"app":{"name":"desk"}}`,
		`{"req":{"prompt":"Once","model":"old"},"resp":{"choices":[{"text":" upon a time","finish_reason":"stop"}],"created":1777888800}}`,
		`{"request":{"messages":[{"role":"user","content":"a"}]},"response":{"object":"chat.completion","choices":[{"message":{"content":"","tool_calls":[{"id":"x"}]},"finish_reason":"tool_calls"}]}}`,
		`{"request":{"messages":[{"role":"user","content":"a"}]},"response":{"error":{"code":"content_filter","message":"no"},"choices":[]}}`,
		`{"request":"What?","response":"That.","status_code":500,"error":"upstream"}`,
		`{"request":{"model":"a","system":"Be kind.","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"metadata":{"user_id":"u-5"}},"response":{"id":"m-1","type":"message","role":"assistant","model":"a-2","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"Hello."}],"stop_reason":"max_tokens","usage":{"input_tokens":3,"cache_read_input_tokens":2,"output_tokens":4}}}`,
		`{"request":"Hi","response":{"type":"message","content":"Hello","stop_reason":"tool_use","model":"a"}}`,
		`{"id":"l-1","trace_id":"t-1","call_type":"acompletion","status":"success","startTime":1777888800.123,"endTime":1777888801.623,"prompt_tokens":5,"completion_tokens":6,"model":"g","end_user":"u-6","user_agent":"curl","metadata":{"user_api_key_alias":"key-1","user_api_key_team_alias":"team","requester_metadata":{"session_id":"s-6","app":"desk","prompt_version":"2"},"prompt_management_metadata":{"prompt_id":"p"}},"messages":[{"role":"user","content":"Open?"}],"response":{"id":"r","object":"chat.completion","created":1777888800,"model":"g-1","choices":[{"message":{"role":"assistant","content":"Until six."},"finish_reason":"stop"}],"usage":{"prompt_tokens":7}},"error_str":null,"error_information":null}`,
		`{"id":"l-2","call_type":"completion","status":"failure","startTime":1777888800,"messages":"Open?","response":"Until six.","error_str":"down","error_information":{"error_code":"429","error_class":"RateLimitError"}}`,
		`{"request":{"messages":[{"role":"user","content":"json please"}]},"response":"plain answer","rubric":""}`,
		`{"input":"q","output":"{\"error\":{\"message\":\"quota\"}}"}`,
		`{"input":"q","output":" {\"total\": 3}"}`,
		`{"input":"__REDACTED__","output":"FILTERED"}`,
		`{"input":"\u200b\n","output":"[REDACTED]","attributes":{"tier":"silver","value":3}}`,
		`{"input":"q","output":"\u00a0\ud83d\ude00 \"fine\"","created_at":"1777888800.25","environment":"prod","tenant_id":9}`,
		`{"input":"q","output":"a","metadata":{"purpose":"llm_judge"}}`,
		`{"input":"q","output":"a","tier":"` + strings.Repeat("t", 255) + `","region":"` + strings.Repeat("r", 254) + `"}`,
		`{"messages":[{"role":"user","content":"a"},{"role":"tool","content":"old"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}]}`,
	}
}

func fastRecord(body []byte) interaction.Record {
	return interaction.Record{Topic: "t", Partition: 3, Offset: 41, Time: at(), Key: []byte("k-7"), Value: body,
		Headers: []interaction.Header{{Key: "tenant", Value: []byte("north")}}}
}
