package decode

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/interaction"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// span reads a call of a model, or what stands around calls, into the element.
func (e *element) span(s *span) {
	it := &e.it
	it.TraceID = s.trace
	if s.trace != "" && s.id != "" {
		it.ID = s.trace + "/" + s.id
	}
	e.setTime(nanos(s.start), nil)
	if s.start > 0 && s.end >= s.start {
		it.LatencyMS = e.bounded(float64(s.end-s.start)/float64(time.Millisecond), "latency_ms")
	}
	e.responseID = e.label(s.a.first("gen_ai.response.id", "ai.response.id"))
	it.Model = e.label(s.a.first("gen_ai.response.model", "ai.response.model", "gen_ai.request.model", "llm.model_name",
		"ai.model.id", "langfuse.observation.model.name", "ai.observability.cost.model"))
	e.spanLabels(s)
	e.spanTokens(s)
	e.spanError(s)
	if v := s.a.first("ai.observability.record_root.ground_truth_output"); v != nil {
		it.Expected = e.texts(v)
	}
	e.spanFeedback(s)
	e.spanAttributes(s)

	for _, v := range walkAll(s.a.content("gen_ai.response.finish_reasons").value) {
		e.stopped(e.label(v))
		break
	}
	rd := reading{e: e, s: s}
	for _, dialect := range dialects() {
		dialect(&rd)
		if rd.in && rd.out {
			break
		}
	}
	if !rd.in && s.a.has("gen_ai.input.messages_ref") || !rd.out && s.a.has("gen_ai.output.messages_ref") {
		e.withheld = contentExternal
	}
}

// A reading is a span whose texts are being looked for. Input and output are looked
// for on their own: a stream of spans in the middle of an upgrade has one by the old
// convention and one by the new.
type reading struct {
	e       *element
	s       *span
	in, out bool // something was found, be it a text that is cut, redacted or blank
}

// dialects in the order in which they are asked: what says most comes first.
func dialects() []func(*reading) {
	return []func(*reading){
		(*reading).genAIMessages, (*reading).openInferenceMessages, (*reading).openLLMetry, (*reading).vercel,
		(*reading).genAIEvents, (*reading).genAIContent, (*reading).openInferenceValues, (*reading).pydantic, (*reading).others,
	}
}

func nanos(t pcommon.Timestamp) value {
	if t == 0 {
		return nil
	}
	return strconv.AppendUint(nil, uint64(t), 10)
}

func walkAll(list value) []value {
	var all []value
	for w := walk(list); !w.obj && w.next(); {
		all = append(all, w.val)
	}
	return all
}

// Names of what a span says beside its texts, first the newest.
func appKeys() []string {
	return []string{"gen_ai.agent.name", "gen_ai.workflow.name", "traceloop.workflow.name", "traceloop.entity.name",
		"ai.telemetry.functionId", "agent.name", "agent_name", "langfuse.trace.name"}
}

func sessionKeys() []string {
	return []string{"gen_ai.conversation.id", "session.id", "langfuse.session.id", "traceloop.association.properties.session_id",
		"traceloop.association.properties.conversation_id", "traceloop.association.properties.thread_id",
		"ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.session_id", "ai.settings.context.sessionId",
		"gcp.vertex.agent.session_id", "mlflow.trace.session", "thread_id"}
}

func userKeys() []string {
	return []string{"user.id", "enduser.id", "langfuse.user.id", "traceloop.association.properties.user_id",
		"ai.telemetry.metadata.userId", "ai.telemetry.metadata.user_id", "ai.settings.context.userId", "mlflow.trace.user"}
}

func (s *span) promptVersion(e *element) string {
	name := e.label(s.a.first("gen_ai.prompt.name", "traceloop.prompt.key", "langfuse.observation.prompt.name",
		"llm.prompt_template.name", "ai.telemetry.metadata.promptName", "ai.telemetry.metadata.prompt_name"))
	version := e.label(s.a.first("gen_ai.prompt.version", "traceloop.prompt.version", "langfuse.observation.prompt.version",
		"llm.prompt_template.version", "ai.telemetry.metadata.promptVersion", "ai.telemetry.metadata.prompt_version",
		"traceloop.association.properties.prompt_version"))
	if name != "" && version != "" {
		return name + "@" + version
	}
	return version
}

// spanLabels reads who, where and which version. What the call itself lacks, the
// nearest of the spans around it may say.
func (e *element) spanLabels(s *span) {
	it := &e.it
	it.App = e.label(s.a.first(appKeys()...))
	it.Tenant = e.label(s.a.first("tenant.id", "tenant", "tenant_id", "traceloop.association.properties.tenant_id",
		"traceloop.association.properties.tenant", "ai.telemetry.metadata.tenant"))
	it.Environment = e.label(s.resource.first("deployment.environment.name", "deployment.environment"))
	for up, n := s, 0; up != nil && n < maxAncestors; up, n = up.up, n+1 {
		fill := func(field *string, text string) {
			if *field == "" {
				*field = text
			}
		}
		fill(&it.SessionID, e.unquoted(up.a.first(sessionKeys()...)))
		fill(&it.UserID, e.unquoted(up.a.first(userKeys()...)))
		fill(&it.PromptVersion, up.promptVersion(e))
		if up != s && up.job == parentJob {
			fill(&it.Route, e.label(up.a.first(appKeys()...)))
		}
	}
	if it.App == "" {
		it.App = e.label(s.resource.first("service.name"))
	}
	if it.App == "" {
		it.App = it.Route
	}
	purpose := s.a.first("traceloop.association.properties.purpose", "ai.telemetry.metadata.purpose", "metadata.purpose")
	if purpose == nil {
		purpose = s.a.content("metadata").value.member("purpose")
	}
	if isText(purpose, JudgeMark) || it.App == "evaluator" {
		e.skipReason = judgeTraffic
	}
}

// unquoted reads a label that some exporters write as JSON inside the string.
func (e *element) unquoted(v value) string {
	s := e.label(v)
	if len(s) > 1 && s[0] == '"' {
		if end, err := scanString([]byte(s), 0); err == nil && end == len(s) {
			return e.label(value(s))
		}
	}
	return s
}

// spanTokens reads token counts; the input's is the total with what was cached.
func (e *element) spanTokens(s *span) {
	it := &e.it
	it.InputTokens = e.count(s.a.first("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
		"llm.usage.prompt_tokens", "ai.usage.inputTokens", "ai.usage.promptTokens", "ai.observability.cost.num_prompt_tokens"), "input_tokens")
	it.OutputTokens = e.count(s.a.first("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
		"llm.usage.completion_tokens", "ai.usage.outputTokens", "ai.usage.completionTokens",
		"ai.observability.cost.num_completion_tokens"), "output_tokens")
	e.usage(s.a.content("mlflow.chat.tokenUsage").value)
	details := s.a.content("langfuse.observation.usage_details").value
	if it.InputTokens == nil {
		it.InputTokens = e.count(details.member("input"), "input_tokens")
	}
	if it.OutputTokens == nil {
		it.OutputTokens = e.count(details.member("output"), "output_tokens")
	}
}

// spanError reads a failed call from the status, else from the exception it recorded.
func (e *element) spanError(s *span) {
	kind := e.label(s.a.first("error.type"))
	if !s.failed && kind == "" {
		return
	}
	p := &interaction.ProviderError{Type: kind, Message: strings.ToValidUTF8(s.message, "\ufffd")}
	for _, ev := range s.events {
		if ev.name != "exception" {
			continue
		}
		if p.Type == "" {
			p.Type = e.label(ev.a.first("exception.type"))
		}
		if p.Message == "" {
			p.Message = e.label(ev.a.first("exception.message"))
		}
	}
	// A prompt that the provider's filter refused comes as a failed call.
	if p.Type == contentFilter || strings.Contains(p.Message, "ResponsibleAIPolicyViolation") ||
		strings.Contains(p.Message, "'code': 'content_filter'") || strings.Contains(p.Message, `"code":"content_filter"`) {
		e.stop = contentFilter
	}
	e.it.Error = p
}

// spanAttributes keeps what filters and dimensions may name: metadata first, then the
// short attributes of the span, then those of its resource.
func (e *element) spanAttributes(s *span) {
	cfg := &e.r.d.cfg
	kept := 0
	take := func(name string, v value) {
		if v.absent() || v.isObject() || v.isArray() || len(v) > maxAttribute || name == "" || len(name) > 128 ||
			len(e.it.Attributes) >= cfg.MaxAttributes || kept+len(name)+len(v) > int(cfg.AttributeBytes) || isSecret([]byte(name)) {
			return
		}
		if e.it.Attributes == nil {
			e.it.Attributes = make(map[string]string)
		}
		name = strings.ToValidUTF8(name, "\ufffd")
		if _, ok := e.it.Attributes[name]; !ok {
			text := e.label(v)
			e.it.Attributes[name] = text
			kept += len(name) + len(text)
		}
	}
	for w := walk(s.a.content("metadata").value); w.obj && w.next(); {
		take(string(w.key()), w.val)
	}
	if it := &e.it; it.Tenant == "" {
		it.Tenant = it.Attributes["tenant"]
	}
	names := slices.Sorted(maps.Keys(s.a)) // the bound must not cut at random
	for _, prefix := range []string{"traceloop.association.properties.", "ai.telemetry.metadata.", "ai.settings.context.", "langfuse.trace.metadata."} {
		for _, key := range names {
			if name, ok := strings.CutPrefix(key, prefix); ok {
				take(name, s.a.short(key))
			}
		}
	}
	for _, key := range names {
		if !isTextKey(key) {
			take(key, s.a.short(key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.resource)) {
		take(key, s.resource.short(key))
	}
}

// isTextKey sees attributes that carry the texts themselves, or were read already.
func isTextKey(key string) bool {
	for _, prefix := range []string{"gen_ai.prompt", "gen_ai.completion", "gen_ai.input.", "gen_ai.output.", "gen_ai.system_instructions",
		"gen_ai.usage.", "gen_ai.response.id", "llm.input_messages.", "llm.output_messages.", "llm.prompts.", "llm.completions.",
		"llm.token_count.", "llm.usage.", "input.", "output.", "retrieval.documents.", "evaluations.", "annotations.", "ai.prompt",
		"ai.response.", "ai.result.", "ai.usage.", "traceloop.entity.input", "traceloop.entity.output", "traceloop.association.properties.",
		"ai.telemetry.metadata.", "ai.settings.context.", "mlflow.span", "genkit:input", "genkit:output", "langfuse.observation.input",
		"langfuse.observation.output", "langfuse.trace.", "pydantic_ai.", "gcp.vertex.agent.llm_", "ai.observability.record_root."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return key == "metadata"
}

// spanFeedback reads a reaction that was written on the span: the first of its
// evaluations or annotations with a value.
func (e *element) spanFeedback(s *span) {
	for _, kind := range []string{"evaluation", "annotation"} {
		for _, item := range s.a.list(kind + "s.") {
			score := item.value(kind + ".score")
			if score == nil {
				continue
			}
			n, ok := e.number(score, "feedback")
			if !ok || math.IsNaN(n) {
				continue
			}
			e.it.Feedback = &interaction.Feedback{Name: e.label(item.value(kind + ".name")), Value: n,
				Label: e.label(item.value(kind + ".label")), Comment: e.label(item.value(kind + ".explanation")),
				Source: e.label(item.value(kind + ".annotator_kind"))}
			return
		}
	}
}
