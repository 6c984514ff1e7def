package decode

import (
	"strings"
)

// An assembly puts the chunks of a streamed answer together, by choice.
type assembly struct {
	e        *element
	text     strings.Builder
	refusal  strings.Builder
	choices  map[int64]bool
	content  bool // some delta had content, if only ""
	finished bool
	events   int
}

// stream reads a string of server-sent events of OpenAI chat.
func (e *element) stream(v value) {
	a := &assembly{e: e}
	events(e.str(v), a.event)
	a.close()
}

// events splits server-sent events and gives each one's data to f until it says no.
func events(text string, f func(data []byte) bool) {
	var data []byte
	flush := func() bool {
		event := data
		data = data[:0]
		return len(event) == 0 || f(event)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			if !flush() {
				return
			}
			continue
		}
		// Several data lines of one event are one text; ids, names and comments say
		// nothing that is needed.
		if rest, ok := strings.CutPrefix(line, "data:"); ok {
			if len(data) > 0 {
				// Some loggers drop the empty line between events.
				if end, _, err := scan(data, 0, nestedDepth); err == nil && end == len(data) {
					if !flush() {
						return
					}
				} else {
					data = append(data, '\n')
				}
			}
			data = append(data, strings.TrimPrefix(rest, " ")...)
		}
	}
	flush()
}

// isEvent reports whether an event's data is an object as a whole: one cut short at
// the end of a log is no event.
func isEvent(data []byte) bool {
	v := value(data)
	end, _, err := scan(v, 0, nestedDepth)
	return err == nil && skipSpace(v, end) == len(v) && v.isObject()
}

// chunks reads a list of a stream's events.
func (e *element) chunks(list value) {
	a := &assembly{e: e}
	for w := walk(list); w.next(); {
		if !a.event(w.val) {
			break
		}
	}
	a.close()
}

// event adds one chunk; it is false when the stream is over or over the bound.
func (a *assembly) event(data []byte) bool {
	if a.events++; a.events > a.e.r.d.cfg.MaxEvents {
		return false
	}
	if string(data) == "[DONE]" {
		a.finished = true
		return false
	}
	v := value(data)
	if !isEvent(data) {
		return true
	}
	e := a.e
	for w := walk(v); w.next(); {
		switch string(w.key()) {
		case "id":
			if e.responseID == "" {
				e.responseID = e.id(w.val)
			}
		case "created":
			if e.responseTime == nil {
				// The event's bytes are a buffer of ours that the next one reuses.
				e.responseTime = append(value{}, w.val...)
			}
		case "model":
			if model := e.label(w.val); model != "" {
				e.it.Model = model
			}
		case "usage":
			e.usage(w.val)
		case "error":
			e.setError(w.val)
		case "choices":
			for c := walk(w.val); c.next(); {
				a.choice(c.val)
			}
		}
	}
	return true
}

func (a *assembly) choice(c value) {
	index := int64(0)
	if n := c.member("index"); n.isNumber() {
		if f, ok := a.e.number(n, "index"); ok {
			index = int64(f)
		}
	}
	if a.choices == nil {
		a.choices = make(map[int64]bool)
	}
	a.choices[index] = true
	if index != 0 {
		return
	}
	if stop := a.e.label(c.member("finish_reason")); stop != "" {
		a.e.stop = stop
		a.finished = true
	}
	if t := c.member("text"); t.isString() {
		a.content = true
		a.text.WriteString(a.e.str(t))
	}
	for w := walk(c.member("delta")); w.next(); {
		switch string(w.key()) {
		case "content":
			for _, t := range a.e.parts(w.val) {
				a.content = true
				a.text.WriteString(t)
			}
		case "refusal":
			a.refusal.WriteString(a.e.str(w.val))
		case "tool_calls":
			inner := walk(w.val)
			a.e.toolCalls = a.e.toolCalls || w.val.isArray() && inner.next()
		case "function_call":
			a.e.toolCalls = a.e.toolCalls || w.val.isObject()
		}
	}
}

func (a *assembly) close() {
	e := a.e
	e.flag("sse_reassembled")
	if len(a.choices) > 1 {
		e.flagCount("choices", len(a.choices))
	}
	e.incomplete = !a.finished && e.it.Error == nil
	switch {
	case a.refusal.Len() > 0:
		e.refused = true
		s := a.refusal.String()
		e.it.Output = &s
	case a.content:
		s := a.text.String()
		e.it.Output = &s
	}
}
