package decode

import (
	"strings"

	"assay/internal/interaction"
)

// A turn is one message of a conversation as any dialect of a trace writes it.
type turn struct {
	role    string
	texts   []string
	results []string // what tools answered
	stop    string   // why the provider stopped
	images  int
	calls   bool // of tools
	refused bool
	audio   bool // the text is a transcript
}

// turns reads a list of messages, or a single one.
func (e *element) turns(list value) []turn {
	if list.isObject() {
		return []turn{e.turn(list)}
	}
	var all []turn
	for w := walk(list); w.next(); {
		if w.val.isObject() {
			all = append(all, e.turn(w.val))
		}
	}
	return all
}

// turn reads {role, content} and {role, parts}, with parts in the words of OpenAI,
// Anthropic, Gemini, the Vercel AI SDK and the conventions of OpenTelemetry.
func (e *element) turn(m value) turn {
	t := turn{}
	var inner value
	for w := walk(m); w.next(); {
		switch string(w.key()) {
		case "role":
			t.role = roleOf(e.label(w.val))
		case "type":
			if t.role == "" {
				t.role = roleOf(e.label(w.val))
			}
		case "content", "parts", "contents":
			if !w.val.absent() {
				inner = w.val
			}
		case "finish_reason", "finishReason", "stop_reason":
			t.stop = e.label(w.val)
		case "tool_calls", "toolCalls":
			calls := walk(w.val)
			t.calls = t.calls || w.val.isArray() && calls.next()
		case "function_call":
			t.calls = t.calls || w.val.isObject()
		case "refusal":
			if s := e.str(w.val); !interaction.Blank(s) {
				t.refused = true
				t.texts = append(t.texts, s)
			}
		case "message": // LangChain's and some agents' own wrapping
			if w.val.isObject() && m.member("content") == nil {
				wrapped := e.turn(w.val)
				if wrapped.role == "" {
					wrapped.role = t.role
				}
				t = wrapped
			}
		}
	}
	e.fill(&t, inner)
	if t.role == "" && m.member("parts") != nil {
		t.role = "user" // Gemini leaves it out
	}
	if t.role == "tool" {
		t.results, t.texts = append(t.results, t.texts...), nil
	}
	return t
}

// fill adds a message's content: a text, one part, or a list of them.
func (e *element) fill(t *turn, inner value) {
	switch {
	case inner.absent():
	case inner.isString():
		t.texts = append(t.texts, e.str(inner))
	case inner.isArray():
		for w := walk(inner); w.next(); {
			e.fillPart(t, w.val)
		}
	case inner.isObject():
		e.fillPart(t, inner)
	default:
		s, _ := inner.compact()
		t.texts = append(t.texts, s)
	}
}

func (e *element) fillPart(t *turn, p value) {
	if p.isString() {
		t.texts = append(t.texts, e.str(p))
		return
	}
	kind := strings.ReplaceAll(e.label(p.member("type")), "-", "_")
	text := p.member("text")
	if !text.isString() {
		text = p.member("content")
	}
	switch {
	case strings.Contains(kind, "image"), isText(p.member("modality"), "image"),
		startsText(p.member("mime_type"), "image/"), startsText(p.member("mediaType"), "image/"):
		t.images++
	case kind == "tool_call_response", kind == "tool_result", kind == "tool_response", kind == "function_call_output":
		t.results = append(t.results, e.toolText(p)...)
	case p.member("functionResponse").isObject(), p.member("function_response").isObject():
		for _, name := range []string{"functionResponse", "function_response"} {
			t.results = append(t.results, e.toolText(p.member(name))...)
		}
	case kind == "tool_call", kind == "tool_use", kind == "function_call", p.member("functionCall").isObject(),
		p.member("function_call").isObject(), p.member("toolUse").isObject():
		t.calls = true
	case strings.Contains(kind, "thinking"), strings.Contains(kind, "reasoning"), isTrue(p.member("thought")):
	case kind == "refusal":
		t.refused = true
		if s := p.member("refusal"); s.isString() {
			text = s
		}
		t.texts = append(t.texts, e.str(text))
	case text.isString():
		t.texts = append(t.texts, e.str(text))
	case p.member("message_content").isObject():
		e.fillPart(t, p.member("message_content"))
	case p.member("transcript").isString():
		t.audio = true
		t.texts = append(t.texts, e.str(p.member("transcript")))
	}
}

func isTrue(v value) bool { return string(v) == "true" }

// toolText is what a tool answered: a text, or its structure as it was written.
func (e *element) toolText(p value) []string {
	for _, name := range []string{"response", "result", "output", "content"} {
		v := p.member(name)
		if v.absent() {
			continue
		}
		if inner := v.member("value"); v.isObject() && inner != nil { // {type, value}
			v = inner
		}
		var s string
		switch {
		case v.isString():
			s = e.str(v)
		case v.isArray() && isParts(v):
			s = strings.Join(e.parts(v), "\n")
		default:
			s, _ = v.compact()
		}
		if !interaction.Blank(s) {
			return []string{s}
		}
		return nil
	}
	return nil
}

// roleOf brings the names of roles together.
func roleOf(name string) string {
	switch name = strings.ToLower(name); name {
	case "human":
		return "user"
	case "model", "ai":
		return "assistant"
	case "function":
		return "tool"
	case "text", "message", "input_text", "output_text":
		return "" // the type of a part, not of a speaker
	}
	return name
}

// past takes in the turns before the answer. cut says that the list was cut off: then
// the last turn may be the one cut, or lie behind it. An older turn is never put in
// its place: the question would be another one.
func (e *element) past(turns []turn, cut int) {
	users, last := 0, -1
	for i, t := range turns {
		text := strings.Join(t.texts, "\n")
		e.images += t.images
		switch {
		case t.role == "user":
			if len(t.results) == 0 || len(t.texts) > 0 {
				users++
			}
			e.tools = append(e.tools, t.results...)
			if isRedacted(text) {
				e.redacted = true
			} else if !interaction.Blank(text) {
				last = i
				e.tools = append(e.tools[:0], t.results...)
				e.it.Input = &text
			}
		default:
			e.tools = append(e.tools, t.results...)
		}
		if text != "" {
			e.it.Messages = append(e.it.Messages, interaction.Message{Role: t.role, Text: text})
		} else if len(t.results) > 0 {
			e.it.Messages = append(e.it.Messages, interaction.Message{Role: t.role, Text: strings.Join(t.results, "\n")})
		}
	}
	if users > 1 {
		e.flagCount("turns", users)
	}
	if cut > 0 {
		e.flag("input_truncated")
		if last != len(turns)-1 || cut < 2 || users > 1 {
			e.it.Input = nil
		}
	}
}

// answers takes in the candidates; the first is the answer.
func (e *element) answers(turns []turn, cut int, joint string) {
	if len(turns) == 0 {
		return
	}
	if len(turns) > 1 {
		e.flagCount("choices", len(turns))
	}
	if cut > 0 {
		e.flag("output_truncated")
	}
	t := turns[0]
	e.toolCalls = e.toolCalls || t.calls
	e.refused = e.refused || t.refused
	if t.audio {
		e.flag("from_transcript")
	}
	if t.stop != "" {
		e.stopped(t.stop)
	}
	if len(t.texts) > 0 {
		e.answer(strings.Join(t.texts, joint))
	}
}

// answer sets the output; marks of what is not there are none.
func (e *element) answer(text string) {
	switch {
	case isRedacted(text):
		e.redacted = true
	case text == "FILTERED":
		e.stop = contentFilter
	default:
		e.it.Output = &text
	}
}

// stopped keeps a reason to stop in the words that all dialects are brought to.
func (e *element) stopped(reason string) {
	switch r := strings.ReplaceAll(strings.ToLower(reason), "-", "_"); {
	case r == "", e.stop == contentFilter: // a filter has the last word
	case r == "tool_call", r == "tool_calls", r == "tool_use", r == "function_call":
		e.stop = "tool_calls"
	case r == "length", r == "max_tokens", r == "max_output_tokens", r == "pause_turn":
		e.stop = "length"
	case strings.HasPrefix(r, "content_filter"), r == "safety", r == "prohibited_content", r == "blocklist", r == "guardrail_intervened":
		e.stop = contentFilter
	case r == "refusal":
		e.refused = true
	default:
		e.stop = r
	}
}
