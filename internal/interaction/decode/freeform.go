package decode

// Stores of traces keep whatever an application passed in and gave back. What follows
// finds the question and the answer in it; what has no usual shape is kept as JSON.

// freeInput reads what went into a call.
func (e *element) freeInput(v value) {
	switch {
	case v.absent():
	case isConversation(v):
		e.conversation(v, false)
	case v.isObject():
		if m := v.member("messages"); m.isArray() {
			e.conversation(langchainMessages(m), false)
			return
		}
		if q := usual(v, "question", "query", "input", "prompt", "user_input", "text"); q != nil {
			e.freeInput(q)
			return
		}
		e.it.Input = e.text(v, "input")
	default:
		e.it.Input = e.text(v, "input")
	}
}

// freeOutput reads what came out of a call.
func (e *element) freeOutput(v value) {
	switch {
	case v.absent():
	case isConversation(v):
		e.lastAnswer(v)
	case v.isObject():
		switch ofResponse(v) {
		case openAIChat:
			e.chatResponse(v)
			return
		case responses:
			e.response(v)
			return
		case anthropic:
			e.anthropicResponse(v)
			return
		}
		if v.member("role").isString() && (v.member("content") != nil || v.member("tool_calls") != nil) {
			e.message(v)
			return
		}
		if a := usual(v, "answer", "output", "response", "text", "result", "content"); a != nil {
			e.freeOutput(a)
			return
		}
		e.it.Output = e.text(v, "output")
	default:
		e.it.Output = e.text(v, "output")
	}
}

// usual returns the first of the names that says something.
func usual(v value, names ...string) value {
	for _, name := range names {
		if inner := v.member(name); !inner.absent() {
			return inner
		}
	}
	return nil
}
