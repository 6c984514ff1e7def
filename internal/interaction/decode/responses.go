package decode

import (
	"strings"

	"assay/internal/interaction"
)

// responsesPair reads a call to OpenAI's Responses API.
func (e *element) responsesPair(p *pair) {
	switch {
	case p.req.isString():
		e.it.Input = e.text(p.req, "input")
	case p.req.isObject():
		e.responsesRequest(p.req)
	case p.req.isArray():
		e.conversation(p.req, false)
	}
	switch {
	case p.resp.isString() && isStream(p.resp):
		s := &responseStream{e: e}
		events(e.str(p.resp), s.event)
		s.close()
	case p.resp.isString():
		e.it.Output = e.text(p.resp, "output")
	case p.resp.isArray():
		s := &responseStream{e: e}
		for w := walk(p.resp); w.next(); {
			if !s.event(w.val) {
				break
			}
		}
		s.close()
	case p.resp.isObject():
		if kind := p.resp.member("type"); startsText(kind, "response.") {
			// A logger that keeps the last event of a stream has the whole response in it.
			if p.resp = p.resp.member("response"); !p.resp.isObject() || isText(kind, "response.created") || isText(kind, "response.in_progress") {
				e.skipReason = streamFragment
				return
			}
		}
		e.response(p.resp)
	}
}

func (e *element) responsesRequest(req value) {
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
		case "input":
			switch {
			case w.val.isArray():
				e.conversation(w.val, false)
			case !w.val.absent():
				e.it.Input = e.text(w.val, "input")
			}
		case "user", "safety_identifier":
			if e.it.UserID == "" {
				e.it.UserID = e.label(w.val)
			}
		default:
			e.responseContext(string(w.key()), w.val)
		}
	}
}

// responseContext reads what request and response both may say: that the history stands
// at the provider, and which stored prompt was used.
func (e *element) responseContext(name string, v value) {
	switch name {
	case "previous_response_id", "conversation":
		if !v.absent() {
			e.flag("history_external")
		}
	case "prompt":
		if version := e.label(v.member("version")); e.it.PromptVersion == "" && v.isObject() {
			e.it.PromptVersion = version
			if id := e.label(v.member("id")); id != "" && version != "" {
				e.it.PromptVersion = id + "@" + version
			} else if id != "" {
				e.it.PromptVersion = id
			}
		}
	}
}

func (e *element) response(resp value) {
	for w := walk(resp); w.next(); {
		switch string(w.key()) {
		case "id":
			e.responseID = e.id(w.val)
		case "created_at":
			e.responseTime = append(value{}, w.val...) // an event's buffer is reused
		case "model":
			if model := e.label(w.val); model != "" {
				e.it.Model = model
			}
		case "status":
			e.responseStatus(w.val, resp.member("incomplete_details").member("reason"))
		case "error":
			e.setError(w.val)
		case "usage":
			e.usage(w.val)
		case "output":
			e.items(w.val)
		default:
			e.responseContext(string(w.key()), w.val)
		}
	}
	if t := resp.member("output_text"); e.it.Output == nil && t.isString() {
		e.it.Output = e.text(t, "output")
	}
}

func (e *element) responseStatus(status, reason value) {
	switch e.label(status) {
	case "incomplete":
		e.stop = "length"
		if isText(reason, "content_filter") {
			e.stop = contentFilter
		}
	case "failed":
		e.failed = true
	case "cancelled", "in_progress", "queued":
		e.incomplete = true
	}
}

// items reads the output: the texts of its messages. Calls of the provider's own tools
// are answered by the provider; calls of the client's are not, and end the turn.
func (e *element) items(list value) {
	var texts []string
	for w := walk(list); !w.obj && w.next(); {
		switch kind := e.label(w.val.member("type")); kind {
		case "message", "":
			for c := walk(w.val.member("content")); !c.obj && c.next(); {
				switch {
				case c.val.member("refusal").isString():
					e.refused = true
					texts = append(texts, e.str(c.val.member("refusal")))
				case c.val.member("text").isString():
					texts = append(texts, e.str(c.val.member("text")))
				}
			}
			if c := w.val.member("content"); c.isString() {
				texts = append(texts, e.str(c))
			}
		case "function_call", "custom_tool_call", "computer_call", "local_shell_call":
			e.toolCalls = true
		}
	}
	if s := strings.Join(texts, "\n"); isRedacted(s) {
		e.redacted = true
	} else if len(texts) > 0 {
		e.it.Output = &s
	}
}

// A responseStream puts the events of a streamed response together. The last event
// holds it whole; the pieces count only where that never came.
type responseStream struct {
	e        *element
	text     strings.Builder
	finished bool
	events   int
}

func (s *responseStream) event(data []byte) bool {
	e := s.e
	if s.events++; s.events > e.r.d.cfg.MaxEvents {
		return false
	}
	if !isEvent(data) {
		return true
	}
	v := value(data)
	switch kind := e.label(v.member("type")); kind {
	case "response.created":
		whole := v.member("response")
		e.responseID = e.id(whole.member("id"))
		if model := e.label(whole.member("model")); model != "" {
			e.it.Model = model
		}
	case "response.completed", "response.incomplete", "response.failed":
		s.finished = true
		e.response(v.member("response"))
		return false
	case "response.output_text.delta", "response.refusal.delta":
		e.refused = e.refused || kind == "response.refusal.delta"
		s.text.WriteString(e.str(v.member("delta")))
	case "error":
		e.setError(v)
	}
	return true
}

func (s *responseStream) close() {
	e := s.e
	e.flag("sse_reassembled")
	e.incomplete = e.incomplete || !s.finished && e.it.Error == nil
	if text := s.text.String(); e.it.Output == nil && !interaction.Blank(text) {
		e.it.Output = &text
	}
}
