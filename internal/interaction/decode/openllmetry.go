package decode

import "slices"

// OpenLLMetry up to 0.54 spells messages out as gen_ai.prompt.N.role and .content,
// candidates as gen_ai.completion.N.*. Content that is a list of parts is dumped into
// the attribute as JSON. Its first versions wrote llm.prompts and llm.completions.

func (rd *reading) openLLMetry() {
	for _, prefix := range []string{"gen_ai.prompt.", "llm.prompts."} {
		if items := rd.s.a.list(prefix); !rd.in && len(items) > 0 {
			rd.in = true
			turns := rd.e.dumpedTurns(items)
			if len(turns) == 1 && turns[0].role == "" {
				turns[0].role = "user" // a text completion has no speakers
			}
			rd.e.past(turns, 0)
		}
	}
	for _, prefix := range []string{"gen_ai.completion.", "llm.completions."} {
		if items := rd.s.a.list(prefix); !rd.out && len(items) > 0 {
			rd.out = true
			rd.e.answers(rd.e.dumpedTurns(items), 0, rd.joint())
		}
	}
}

func (e *element) dumpedTurns(items []attributes) []turn {
	turns := make([]turn, 0, len(items))
	for _, item := range items {
		t := turn{role: roleOf(e.label(item.value("role"))), stop: e.label(item.value("finish_reason"))}
		t.calls = len(item.list("tool_calls.")) > 0 || item.has("function_call.name")
		c := item.content("content")
		if w := walk(c.value); c.value.isArray() && w.next() && w.val.isObject() && w.val.member("type").isString() {
			if c.cut > 0 {
				e.flag("input_truncated")
			}
			e.fill(&t, c.value)
		} else if text := item.value("content"); !text.absent() {
			t.texts = append(t.texts, e.str(text))
		}
		if t.role == "tool" {
			t.results, t.texts = slices.Concat(t.results, t.texts), nil
		}
		turns = append(turns, t)
	}
	return turns
}
