package decode

import "strings"

// readFlat reads a record that has its texts at the top under one of the usual names.
func readFlat(e *element, o *object) {
	e.common(o)
	e.it.Input = e.flatInput(o)
	e.it.Output = e.flatOutput(o)
	e.timing(o)
}

func (e *element) flatInput(o *object) *string {
	for _, k := range inputKeys() {
		v := o.first(k)
		switch {
		case v.absent(), k == kRequest && !isPlain(v):
			continue
		case isConversation(v):
			e.conversation(v, false)
			return e.it.Input
		case isConversation(v.member("messages")):
			e.conversation(v.member("messages"), false)
			return e.it.Input
		}
		return e.text(v, "input")
	}
	if v := question(o.first(kVars)); v != nil {
		return e.text(v, "input")
	}
	if v := o.first(kMessages); isConversation(v) {
		e.conversation(v, false)
	}
	return e.it.Input
}

// question is the variable of a templated prompt that holds what was asked.
func question(vars value) value {
	for _, name := range []string{"question", "input", "query", "prompt"} {
		if v := vars.member(name); !v.absent() {
			return v
		}
	}
	return nil
}

func (e *element) flatOutput(o *object) *string {
	for _, k := range outputKeys() {
		v := o.first(k)
		switch {
		case v.absent(), k == kResponse && !isPlain(v):
			continue
		case v.isObject() && v.member("choices").isArray():
			e.chatResponse(v)
			return e.it.Output
		case v.isObject() && v.member("role").isString() && v.member("content") != nil:
			e.message(v)
			return e.it.Output
		case isConversation(v):
			return e.lastAnswer(v)
		case isParts(v):
			return e.joined(v)
		}
		return e.text(v, "output")
	}
	return nil
}

// joined reads a list of text parts as one text.
func (e *element) joined(v value) *string {
	s := strings.Join(e.parts(v), "\n")
	return &s
}
