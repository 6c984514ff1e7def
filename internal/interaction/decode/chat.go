package decode

import (
	"strings"

	"assay/internal/interaction"
)

// readPair reads a call to a provider: a request and its answer in a home-made
// envelope, the answer alone, or a list of messages that ends with the answer.
func readPair(e *element, o *object) {
	p := o.pair()
	e.common(o)
	model := e.it.Model
	e.it.Model = ""
	e.exchange(p)
	if e.it.Model == "" {
		e.it.Model = model
	}
	if e.skipReason == "" {
		e.timing(o)
	}
}

// exchange reads a provider's request and answer, of whichever provider.
func (e *element) exchange(p *pair) {
	if p.nested {
		e.flag("nested_json:1")
	}
	if isEmbeddings(p.resp) {
		e.skipReason = notText
		return
	}
	switch p.provider {
	case anthropic:
		e.anthropicPair(p)
	case responses:
		e.responsesPair(p)
	default:
		e.chatPair(p)
	}
}

// bodies reads a request and an answer that some gateway logged: objects, JSON in
// strings, server-sent events, or plain texts.
func (e *element) bodies(req, resp value) {
	p := &pair{}
	if !req.absent() {
		p.req, _ = p.body(req)
	}
	if !resp.absent() {
		p.resp, _ = p.body(resp)
	}
	// Some gateways log the messages alone, without the body around them.
	if inner := nestedJSON(p.req); isConversation(inner) {
		p.req, p.nested = inner, true
	}
	if inner := nestedJSON(p.resp); isConversation(inner) {
		p.resp, p.nested = inner, true
	}
	if p.provider = ofResponse(p.resp); p.provider == "" {
		p.provider = ofRequest(p.req)
	}
	e.exchange(p)
}

// isEmbeddings knows an answer that is a list of vectors, which gateways log on the same
// topic.
func isEmbeddings(resp value) bool {
	w := walk(resp.member("data"))
	return !w.obj && w.next() && w.val.member("embedding") != nil
}

func (e *element) chatPair(p *pair) {
	switch {
	case p.req.isString():
		e.it.Input = e.text(p.req, "input")
	case p.req.isObject():
		e.chatRequest(p.req, p.resp == nil)
	case isConversation(p.req):
		e.conversation(p.req, false)
	}
	switch {
	case p.resp.isString() && isStream(p.resp):
		e.stream(p.resp)
	case p.resp.isString():
		e.it.Output = e.text(p.resp, "output")
	case isConversation(p.resp):
		e.lastAnswer(p.resp)
	case p.resp.isArray():
		e.chunks(p.resp)
	case p.resp.isObject():
		if isText(p.resp.member("object"), "chat.completion.chunk") {
			e.skipReason = streamFragment
			return
		}
		e.chatResponse(p.resp)
	}
}

// chatRequest reads a request body. With answered, its messages may end with the answer.
func (e *element) chatRequest(req value, answered bool) {
	if isText(req.member("metadata").member("purpose"), JudgeMark) {
		e.skipReason = judgeTraffic
		return
	}
	for w := walk(req); w.next(); {
		switch string(w.key()) {
		case "model":
			if e.it.Model == "" {
				e.it.Model = e.label(w.val)
			}
		case "messages":
			e.conversation(w.val, answered)
		case "prompt":
			if e.it.Input == nil && !w.val.isObject() {
				if t := e.parts(w.val); len(t) > 0 {
					s := strings.Join(t, "\n")
					e.it.Input = &s
				}
			}
		case "user":
			if e.it.UserID == "" {
				e.it.UserID = e.label(w.val)
			}
		case "metadata":
			if e.it.UserID == "" {
				e.it.UserID = e.label(w.val.member("user_id"))
			}
			if e.it.SessionID == "" {
				e.it.SessionID = e.label(w.val.member("session_id"))
			}
		}
	}
}

// chatResponse reads a response body.
func (e *element) chatResponse(resp value) {
	for w := walk(resp); w.next(); {
		switch string(w.key()) {
		case "id":
			e.responseID = e.id(w.val)
		case "created":
			e.responseTime = w.val
		case "model":
			if model := e.label(w.val); model != "" {
				e.it.Model = model
			}
		case "usage":
			e.usage(w.val)
		case "error":
			e.setError(w.val)
		case "choices":
			e.choices(w.val)
		}
	}
}

func (e *element) choices(list value) {
	var first value
	n := 0
	for w := walk(list); w.next(); n++ {
		if n == 0 {
			first = w.val
		}
	}
	if n == 0 {
		e.noChoices = list.isArray()
		return
	}
	if n > 1 {
		e.flagCount("choices", n)
	}
	e.stop = e.label(first.member("finish_reason"))
	if m := first.member("message"); m.isObject() {
		e.message(m)
	} else if t := first.member("text"); t != nil {
		e.it.Output = e.text(t, "output")
	}
}

// message reads an assistant's message: its text, else its refusal, else what it said.
// Reasoning is not part of the answer.
func (e *element) message(m value) {
	var refusal, audio value
	for w := walk(m); w.next(); {
		switch string(w.key()) {
		case "refusal":
			refusal = w.val
		case "audio":
			audio = w.val
		case "content":
			switch {
			case w.val.isString():
				e.it.Output = e.text(w.val, "output")
			case w.val.isArray():
				if t := e.parts(w.val); len(t) > 0 {
					s := strings.Join(t, "\n")
					e.it.Output = &s
				}
			}
		case "tool_calls":
			inner := walk(w.val)
			e.toolCalls = e.toolCalls || w.val.isArray() && inner.next()
		case "function_call":
			e.toolCalls = e.toolCalls || w.val.isObject()
		}
	}
	if refusal.isString() && len(refusal) > 2 {
		e.refused = true
		e.it.Output = e.text(refusal, "output")
	}
	if e.it.Output == nil || interaction.Blank(*e.it.Output) {
		if t := audio.member("transcript"); t.isString() {
			e.it.Output = e.text(t, "output")
			e.flag("from_transcript")
		}
	}
}
