package decode

import "strings"

// OpenInference spells a list of messages out, one attribute per leaf:
// llm.input_messages.0.message.role, ....contents.1.message_content.text. Beside them,
// and on chains without a model, input.value and output.value hold whatever the
// application passed around.

func (rd *reading) openInferenceMessages() {
	if turns := rd.e.spelledTurns(rd.s.a.list("llm.input_messages.")); !rd.in && len(turns) > 0 {
		rd.in = true
		rd.e.past(turns, 0)
	}
	if turns := rd.e.spelledTurns(rd.s.a.list("llm.output_messages.")); !rd.out && len(turns) > 0 {
		rd.out = true
		rd.e.answers(turns, 0, rd.joint())
	}
}

func (e *element) spelledTurns(items []attributes) []turn {
	turns := make([]turn, 0, len(items))
	for _, item := range items {
		t := turn{role: roleOf(e.label(item.value("message.role")))}
		if text := item.value("message.content"); text.isString() {
			t.texts = append(t.texts, e.str(text))
		}
		for _, part := range item.list("message.contents.") {
			switch kind := e.label(part.value("message_content.type")); {
			case strings.Contains(kind, "image"):
				t.images++
			case part.has("message_content.text"):
				t.texts = append(t.texts, e.str(part.value("message_content.text")))
			}
		}
		t.calls = len(item.list("message.tool_calls.")) > 0 || item.has("message.function_call_name")
		if t.role == "tool" {
			t.results, t.texts = t.texts, nil
		}
		turns = append(turns, t)
	}
	return turns
}

func (rd *reading) openInferenceValues() {
	if !rd.in && rd.s.a.has("input.value") {
		rd.input(rd.s.a.content("input.value"))
	}
	if !rd.out && rd.s.a.has("output.value") {
		rd.output(rd.s.a.content("output.value"))
	}
}
