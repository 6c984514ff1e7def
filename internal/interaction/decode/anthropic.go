package decode

import "strings"

// anthropicPair reads a call to the Messages API. The system prompt stands outside the
// messages and is no part of them.
func (e *element) anthropicPair(p *pair) {
	switch {
	case p.req.isString():
		e.it.Input = e.text(p.req, "input")
	case p.req.isObject():
		e.chatRequest(p.req, p.resp == nil)
	case isConversation(p.req):
		e.conversation(p.req, false)
	}
	switch {
	case p.resp.isString():
		m := &messageStream{e: e}
		events(e.str(p.resp), m.event)
		m.close()
	case p.resp.isArray():
		m := &messageStream{e: e}
		for w := walk(p.resp); w.next(); {
			if !m.event(w.val) {
				break
			}
		}
		m.close()
	case p.resp.isObject():
		e.anthropicResponse(p.resp)
	}
}

func (e *element) anthropicResponse(resp value) {
	for w := walk(resp); w.next(); {
		switch string(w.key()) {
		case "id":
			e.responseID = e.id(w.val)
		case "model":
			if model := e.label(w.val); model != "" {
				e.it.Model = model
			}
		case "content":
			e.blocks(w.val)
		case "stop_reason":
			e.stopReason(w.val)
		case "usage":
			e.anthropicUsage(w.val)
		case "error":
			e.setError(w.val)
		case "completion": // the old text completions
			e.it.Output = e.text(w.val, "output")
		}
	}
}

// blocks reads the content of one answer. Citations split a sentence into blocks, so
// they are put together without a separator; thinking is no part of the answer.
func (e *element) blocks(content value) {
	if content.isString() {
		e.it.Output = e.text(content, "output")
		return
	}
	var text strings.Builder
	found := false
	for w := walk(content); !w.obj && w.next(); {
		switch kind := w.val.member("type"); {
		case isText(kind, "text"):
			found = true
			text.WriteString(e.str(w.val.member("text")))
		case isText(kind, "tool_use"):
			e.toolCalls = true
		}
	}
	if s := text.String(); found && isRedacted(s) {
		e.redacted = true
	} else if found {
		e.it.Output = &s
	}
}

// stopReason keeps why the answer ended, in the words that all providers' reasons are
// brought to.
func (e *element) stopReason(v value) {
	switch reason := e.label(v); reason {
	case "":
	case "max_tokens", "pause_turn", "model_context_window_exceeded":
		e.stop = "length"
	case "tool_use":
		e.stop = "tool_calls"
	case "refusal":
		e.refused = true
	default:
		e.stop = reason
	}
}

// anthropicUsage adds the cached tokens, which this provider counts beside the others.
func (e *element) anthropicUsage(v value) {
	in, out := e.anthropicTokens(v)
	if e.it.InputTokens == nil {
		e.it.InputTokens = in
	}
	if e.it.OutputTokens == nil {
		e.it.OutputTokens = out
	}
}

func (e *element) anthropicTokens(v value) (in, out *int64) {
	var sum int64
	for w := walk(v); w.obj && w.next(); {
		switch string(w.key()) {
		case "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens":
			if n := e.count(w.val, "input_tokens"); n != nil {
				sum += *n
				in = &sum
			}
		case "output_tokens":
			out = e.count(w.val, "output_tokens")
		}
	}
	return in, out
}

// A messageStream puts the events of a streamed message together.
type messageStream struct {
	e        *element
	text     strings.Builder
	content  bool
	finished bool
	events   int
	in, out  *int64
}

func (m *messageStream) event(data []byte) bool {
	e := m.e
	if m.events++; m.events > e.r.d.cfg.MaxEvents {
		return false
	}
	if !isEvent(data) {
		return true
	}
	v := value(data)
	switch kind := v.member("type"); {
	case isText(kind, "message_start"):
		msg := v.member("message")
		if e.responseID == "" {
			e.responseID = e.id(msg.member("id"))
		}
		if model := e.label(msg.member("model")); model != "" {
			e.it.Model = model
		}
		m.usage(msg.member("usage"))
	case isText(kind, "content_block_start"):
		block := v.member("content_block")
		switch {
		case isText(block.member("type"), "tool_use"):
			e.toolCalls = true
		case isText(block.member("type"), "text"):
			m.content = true
			m.text.WriteString(e.str(block.member("text")))
		}
	case isText(kind, "content_block_delta"):
		if t := v.member("delta").member("text"); t.isString() {
			m.content = true
			m.text.WriteString(e.str(t))
		}
	case isText(kind, "message_delta"):
		if reason := v.member("delta").member("stop_reason"); !reason.absent() {
			e.stopReason(reason)
			m.finished = true
		}
		m.usage(v.member("usage"))
	case isText(kind, "message_stop"):
		m.finished = true
	case isText(kind, "error"):
		e.setError(v.member("error"))
	}
	return true
}

// usage keeps the latest figures: a stream reports its output as it grows.
func (m *messageStream) usage(v value) {
	in, out := m.e.anthropicTokens(v)
	if in != nil && (m.in == nil || *in > *m.in) {
		m.in = in // the last event may leave out what came from the cache
	}
	if out != nil {
		m.out = out
	}
}

func (m *messageStream) close() {
	e := m.e
	if e.it.InputTokens == nil {
		e.it.InputTokens = m.in
	}
	if e.it.OutputTokens == nil {
		e.it.OutputTokens = m.out
	}
	e.flag("sse_reassembled")
	e.incomplete = !m.finished && e.it.Error == nil
	if m.content {
		s := m.text.String()
		e.it.Output = &s
	}
}
