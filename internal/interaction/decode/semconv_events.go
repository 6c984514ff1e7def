package decode

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// From 1.28 to 1.36 the conventions wrote each message as an event of its own: a log
// record with the span's ids, or an event on the span. A call is whole when its user's
// message and its choice are there; they may come in different records.

const choiceEvent = "gen_ai.choice"

// isMessageEvent reports whether an event is one message of a conversation.
func isMessageEvent(name string) bool {
	role, ok := strings.CutPrefix(name, "gen_ai.")
	if !ok {
		return false
	}
	switch role {
	case "system.message", "user.message", "assistant.message", "tool.message", "developer.message":
		return true
	}
	return name == choiceEvent
}

func isTextEvent(name string) bool {
	return isMessageEvent(name) || name == detailsEvent || name == "gen_ai.content.prompt" || name == "gen_ai.content.completion"
}

// eventTurn reads an event's body as a turn. Its name says the role where the body
// does not; a choice has its message inside.
func (e *element) eventTurn(name string, body value) turn {
	t := turn{}
	switch {
	case body.isObject():
		t = e.turn(body)
	case !body.absent():
		e.fill(&t, body)
	}
	if stop := body.member("finish_reason"); t.stop == "" && stop.isString() {
		t.stop = e.label(stop)
	}
	if role, ok := strings.CutSuffix(strings.TrimPrefix(name, "gen_ai."), ".message"); ok && t.role == "" {
		t.role = role
	}
	if t.role == "tool" && len(t.texts) > 0 {
		t.results, t.texts = append(t.results, t.texts...), nil
	}
	return t
}

// genAIEvents reads messages that are events on the span.
func (rd *reading) genAIEvents() {
	var past, answers []turn
	for _, ev := range rd.s.events {
		if !isMessageEvent(ev.name) {
			continue
		}
		body := ev.a.content("gen_ai.event.content").value
		if !body.isObject() {
			body = ev.a.body()
		}
		t := rd.e.eventTurn(ev.name, body)
		if ev.name == choiceEvent {
			answers = append(answers, t)
		} else {
			past = append(past, t)
		}
	}
	if !rd.in && len(past) > 0 {
		rd.in = true
		rd.e.past(past, 0)
	}
	if !rd.out && len(answers) > 0 {
		rd.out = true
		rd.e.answers(answers, 0, rd.joint())
	}
}

// body makes a message of an event whose parts are attributes: content, role, message,
// tool calls, each perhaps as JSON in a string.
func (a attributes) body() value {
	out := value{'{'}
	for _, key := range []string{"role", "content", "message", "tool_calls", "finish_reason"} {
		if !a.has(key) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(appendQuoted(out, key), ':')
		out = append(out, a.content(key).value...)
	}
	return append(out, '}')
}

// eventsJoint puts the log events of one call together. A part is an object of ours:
// event, body, time and the ids, with the resource's and the event's attributes.
func eventsJoint(format string) *joint {
	return &joint{
		format: format,
		whole: func(parts []value) bool {
			user, choice := false, false
			for _, p := range parts {
				user = user || isText(p.member("name"), "gen_ai.user.message")
				choice = choice || isText(p.member("name"), choiceEvent)
			}
			return user && choice
		},
		read: readEvents,
	}
}

// eventPart is a log event as a part.
func eventPart(s *span, ev spanEvent) value {
	out := appendQuoted(value(`{"name":`), ev.name)
	out = append(out, `,"time":`...)
	out = append(out, nanosOrNull(ev.time)...)
	out = appendQuoted(append(out, `,"trace":`...), s.trace)
	out = appendQuoted(append(out, `,"span":`...), s.id)
	body := ev.body
	if !body.isObject() || body.member("content") == nil && body.member("message") == nil {
		if own := ev.a.body(); len(own) > 2 {
			body = own
		}
	}
	if body == nil {
		body = value("null")
	}
	out = append(append(out, `,"body":`...), body...)
	out = ev.a.object(append(out, `,"event":`...))
	out = s.resource.object(append(out, `,"resource":`...))
	return append(out, '}')
}

func nanosOrNull(t pcommon.Timestamp) value {
	if v := nanos(t); v != nil {
		return v
	}
	return value("null")
}

func readEvents(e *element, parts []value) {
	it := &e.it
	var past, answers []turn
	for i, p := range parts {
		name, event, resource := e.label(p.member("name")), p.member("event"), p.member("resource")
		t := e.eventTurn(name, p.member("body"))
		if name == choiceEvent {
			answers = append(answers, t)
		} else {
			past = append(past, t)
		}
		if i == 0 {
			it.TraceID = e.label(p.member("trace"))
			if id := e.label(p.member("span")); it.TraceID != "" && id != "" {
				it.ID = it.TraceID + "/" + id
			}
			e.setTime(p.member("time"), nil)
			it.App = e.label(resource.member("service.name"))
			if it.Environment = e.label(resource.member("deployment.environment.name")); it.Environment == "" {
				it.Environment = e.label(resource.member("deployment.environment"))
			}
		}
		for _, known := range []struct {
			field *string
			key   string
		}{{&it.Model, "gen_ai.response.model"}, {&it.Model, "gen_ai.request.model"}, {&it.SessionID, "gen_ai.conversation.id"},
			{&it.SessionID, "session.id"}, {&it.UserID, "user.id"}} {
			if *known.field == "" {
				*known.field = e.label(event.member(known.key))
			}
		}
	}
	e.past(past, 0)
	e.answers(answers, 0, "\n")
}
