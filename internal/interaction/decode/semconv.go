package decode

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// The conventions of OpenTelemetry for generative AI, by generation. From 1.37 on the
// messages are attributes of the span, or of one event that says as much as the span.
// Up to 1.27 the whole prompt and completion were one attribute each, on the span or
// on an event. What lies between is in semconv_events.go.

const detailsEvent = "gen_ai.client.inference.operation.details"

// hasText reports whether what stands around calls carries a text of its own.
func (s *span) hasText(events ptrace.SpanEventSlice) bool {
	for _, key := range []string{"gen_ai.input.messages", "gen_ai.output.messages", "input.value", "output.value", "ai.prompt", "ai.prompt.messages",
		"ai.response.text", "ai.response.object", "traceloop.entity.input", "traceloop.entity.output", "mlflow.spanInputs",
		"mlflow.spanOutputs", "genkit:input", "genkit:output", "langfuse.observation.input", "langfuse.observation.output",
		"pydantic_ai.all_messages", "all_messages_events", "gen_ai.prompt", "gen_ai.completion",
		"ai.observability.record_root.input", "ai.observability.record_root.output"} {
		if s.a.has(key) {
			return true
		}
	}
	for _, ev := range events.All() {
		if isTextEvent(ev.Name()) {
			return true
		}
	}
	return false
}

// genAIMessages reads the messages of 1.37 and later.
func (rd *reading) genAIMessages() {
	from := []attributes{rd.s.a}
	for _, ev := range rd.s.events {
		if ev.name == detailsEvent {
			from = append(from, ev.a)
		}
	}
	for _, a := range from {
		if !rd.in && a.has("gen_ai.input.messages") {
			if system := a.content("gen_ai.system_instructions"); system.value != nil {
				t := turn{role: "system"}
				rd.e.fill(&t, system.value)
				rd.e.past([]turn{t}, 0)
			}
			rd.input(a.content("gen_ai.input.messages"))
		}
		if !rd.out && a.has("gen_ai.output.messages") {
			rd.output(a.content("gen_ai.output.messages"))
		}
	}
}

// joint is what stands between the text parts of one answer: Anthropic splits a
// sentence where a citation begins.
func (rd *reading) joint() string {
	provider := rd.e.label(rd.s.a.first("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"))
	if strings.Contains(strings.ToLower(provider), "anthropic") {
		return ""
	}
	return "\n"
}

// genAIContent reads the prompt and completion of 1.27 and before: a list of messages
// as JSON, or what the instrumentation had at hand.
func (rd *reading) genAIContent() {
	from := []attributes{rd.s.a}
	for _, ev := range rd.s.events {
		if ev.name == "gen_ai.content.prompt" || ev.name == "gen_ai.content.completion" {
			from = append(from, ev.a)
		}
	}
	for _, a := range from {
		if !rd.in && a.has("gen_ai.prompt") {
			rd.input(a.content("gen_ai.prompt"))
		}
		if !rd.out && a.has("gen_ai.completion") {
			rd.output(a.content("gen_ai.completion"))
		}
	}
}
