package decode

import (
	"strings"

	"assay/internal/interaction"
)

// An attribute of a trace may hold anything: a list of messages, a provider's request,
// the arguments of a function, a text. What follows finds the question and the answer
// in it by the names that are in use, and takes the whole as it stands where none is.

// maxNesting bounds how many wrappers are opened on the way to a text.
const maxNesting = 4

func questionKeys() []string {
	return []string{"query", "question", "input", "prompt", "text", "user_input"}
}
func answerKeys() []string { return []string{"answer", "output", "response", "text", "result"} }

// input takes c as what was asked.
func (rd *reading) input(c content) {
	if c.value.absent() {
		return
	}
	rd.in = true
	if c.cut > 0 {
		rd.e.flag("input_truncated")
	}
	if !rd.e.asked(c, maxNesting) && rd.e.it.Input == nil && c.cut == 0 {
		rd.e.it.Input = rd.e.asWritten(c.value)
	}
}

// output takes c as what was answered.
func (rd *reading) output(c content) {
	if c.value.absent() {
		return
	}
	rd.out = true
	if c.cut > 0 {
		rd.e.flag("output_truncated")
	}
	if !rd.e.answered(c, rd.joint(), maxNesting) {
		if s := rd.e.asWritten(c.value); s != nil && rd.e.it.Output == nil {
			rd.e.answer(*s)
		}
	}
}

// asWritten is JSON that nobody knows, as a text.
func (e *element) asWritten(v value) *string {
	if v.isString() {
		return e.text(v, "")
	}
	s, lossy := v.compact()
	if lossy {
		e.flag("lossy_utf8")
	}
	return &s
}

// member descends into c. Of what was cut, only the last member of the value was.
func (c content) member(name string) content {
	var found content
	for w := walk(c.value); w.obj && w.next(); {
		found.cut = 0 // another member follows: the one before it is whole
		if string(w.key()) == name {
			found = content{value: w.val, cut: max(c.cut-1, 0)}
		}
	}
	return found
}

// asked looks for the question in c. It reports whether it knew the shape, be its text
// cut off or missing.
func (e *element) asked(c content, nesting int) bool {
	v := c.value
	switch {
	case v.isString():
		e.it.Input = e.text(v, "input")
		return true
	case nesting == 0:
		return false
	case v.isArray():
		w := walk(v)
		if !w.next() {
			return false
		}
		switch {
		case w.val.isArray(): // a batch of one conversation
			next := walk(v)
			next.next()
			return e.asked(content{value: next.val, cut: max(c.cut-1, 0)}, nesting-1)
		case isTurn(w.val):
			e.past(e.turns(v), c.cut)
			return true
		case w.val.isObject() && w.val.member("text").isString(): // parts of one message
			t := turn{role: "user"}
			e.fill(&t, v)
			e.past([]turn{t}, 0)
			return true
		}
		return false
	case !v.isObject():
		return false
	case isTurn(v):
		e.past(e.turns(v), 0)
		return true
	}
	for _, name := range []string{"messages", "contents"} {
		if list := c.member(name); list.value.isArray() {
			if system := v.member("system"); !system.absent() {
				t := turn{role: "system"}
				e.fill(&t, system)
				e.past([]turn{t}, 0)
			}
			if e.asked(list, nesting-1) {
				return true
			}
		}
	}
	for _, name := range append(questionKeys(), "inputs", "kwargs", "args", "message", "state") {
		inner := c.member(name)
		if inner.value.absent() {
			continue
		}
		if opened := nestedJSON(inner.value); opened != nil && e.asked(content{value: opened}, nesting-1) {
			return true
		}
		if name == "args" && inner.value.isArray() { // of a function: the first is the question
			if w := walk(inner.value); w.next() && w.val.isString() {
				inner = content{value: w.val}
			}
		}
		if e.asked(inner, nesting-1) {
			return true
		}
	}
	return false
}

// isTurn reports whether v is a message: somebody's words, not some object.
func isTurn(v value) bool {
	if !v.isObject() {
		return false
	}
	kind := v.member("type")
	switch {
	case v.member("content") == nil && v.member("parts") == nil && v.member("contents") == nil &&
		v.member("tool_calls") == nil && !v.member("message").isObject():
		return false
	case v.member("role").isString(), isText(kind, "human"), isText(kind, "ai"), isText(kind, "system"), isText(kind, "tool"):
		return true
	}
	return v.member("parts").isArray() && kind == nil // Gemini leaves the user's role out
}

// answered looks for the answer in c.
func (e *element) answered(c content, joint string, nesting int) bool {
	v := c.value
	switch {
	case v.isString():
		if s := e.text(v, "output"); s != nil {
			e.answer(*s)
		}
		return true
	case nesting == 0:
		return false
	case v.isArray():
		w := walk(v)
		switch {
		case !w.next():
			return false
		case w.val.isArray():
			return e.answered(content{value: w.val, cut: max(c.cut-1, 0)}, joint, nesting-1)
		case isTurn(w.val):
			e.answers(e.turns(v), c.cut, joint)
			return true
		case w.val.member("message") != nil, w.val.member("text").isString():
			return e.answered(content{value: w.val}, joint, nesting-1)
		}
		return false
	case !v.isObject():
		return false
	}
	if e.providerBody(v) {
		return true
	}
	if list := v.member("candidates"); list.isArray() {
		e.answers(e.candidates(list), c.cut, joint)
		return true
	}
	if isTurn(v) {
		e.answers(e.turns(v), 0, joint)
		return true
	}
	if reason := v.member("finishReason"); reason.isString() {
		e.stopped(e.label(reason))
	}
	// A whole conversation: the answer is its last turn.
	if list := v.member("messages"); list.isArray() {
		if t, ok := lastAnswerOf(e.turns(list)); ok {
			e.answers([]turn{t}, 0, joint)
			return true
		}
	}
	for _, name := range append(answerKeys(), "message", "generations", "outputs", "content", "completion", "return_values") {
		inner := c.member(name)
		switch {
		case inner.value.absent():
		case inner.value.isArray() && name == "content":
			t := turn{role: "assistant"}
			e.fill(&t, inner.value)
			e.answers([]turn{t}, 0, joint)
			return true
		case e.answered(inner, joint, nesting-1):
			return true
		}
	}
	return false
}

// providerBody reads a provider's whole response.
func (e *element) providerBody(v value) bool {
	switch ofResponse(v) {
	case openAIChat:
		e.chatResponse(v)
	case responses:
		e.response(v)
	case anthropic:
		e.anthropicResponse(v)
	}
	return e.it.Output != nil || e.toolCalls || e.noChoices
}

// candidates are Gemini's: {content: {role, parts}, finishReason}.
func (e *element) candidates(list value) []turn {
	var all []turn
	for w := walk(list); w.next(); {
		t := e.turn(w.val.member("content"))
		t.stop = e.label(w.val.member("finishReason"))
		all = append(all, t)
	}
	return all
}

func lastAnswerOf(turns []turn) (turn, bool) {
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].role == "assistant" && !interaction.Blank(strings.Join(turns[i].texts, "")) {
			return turns[i], true
		}
	}
	return turn{}, false
}
