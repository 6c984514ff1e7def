package decode

import (
	"strings"

	"assay/internal/interaction"
)

// readLangfuse reads a batch of Langfuse's ingestion API. A generation comes as one
// event or as a start and its updates, which are put together by its id; a trace gives
// user and session; a score is about another record.
func readLangfuse(r *record, o *object) {
	r.many = true
	parts, notes, scores := 0, 0, 0
	empty := true
	for w := walk(o.exact[kBatch]); !w.obj && w.next() && !r.full; empty = false {
		kind, body := w.val.member("type"), w.val.member("body")
		if !kind.isString() || !body.isObject() {
			r.bad(r.take(), notAnObject, "an event without a type or a body")
			continue
		}
		name, _ := kind.text()
		switch name {
		case "generation-create", "generation-update":
			parts += r.langfusePart(body)
		case "observation-create", "observation-update":
			if isText(body.member("type"), "GENERATION") {
				parts += r.langfusePart(body)
			} else {
				r.skip(notText)
			}
		case "trace-create":
			if id := body.member("id"); id.isString() {
				key, _ := id.text()
				r.note(langfuseTrace+key, body)
			}
			notes++
		case "score-create":
			r.langfuseScore(w.val, body)
			scores++
		default: // spans, events, logs of the client
			r.skip(notText)
		}
	}
	switch {
	case !o.exact[kBatch].isArray():
		r.bad(r.take(), unknownShape, "no batch of events")
	case empty:
		r.skip(emptyBatch)
	case parts+scores == 0 && notes > 0:
		r.skip(notText)
	}
}

const langfuseTrace = "langfuse trace "

func (r *record) langfusePart(body value) int {
	id := body.member("id")
	if !id.isString() {
		r.bad(r.take(), unknownShape, "a generation without an id")
		return 0
	}
	key, _ := id.text()
	r.part(&langfuseJoint, key, body)
	return 1
}

func (r *record) langfuseScore(event, body value) {
	e := newElement(r, r.take())
	s := Score{
		InteractionID: e.label(body.member("observationId")), TraceID: e.label(body.member("traceId")),
		Name: e.label(body.member("name")), Comment: e.label(body.member("comment")), Source: e.label(body.member("source")),
	}
	v := body.member("value")
	switch {
	case isText(body.member("dataType"), "CORRECTION"):
		s.Expected = e.str(v)
	case v.isString():
		s.Label = e.str(v)
	default:
		s.Value = e.scoreValue(v)
	}
	if label := e.label(body.member("stringValue")); label != "" {
		s.Label = label
	}
	e.setTime(usual(body, "timestamp", "createdAt"), event.member("timestamp"))
	s.Time = e.it.Time
	r.score(s)
}

// langfuseJoint puts the events of a generation together.
var langfuseJoint = joint{format: "langfuse", whole: langfuseWhole, read: readGeneration}

// langfuseWhole: an answer and an end, or an error. What is missing may still come.
func langfuseWhole(events []value) bool {
	if len(events) > maxParts {
		return true
	}
	m := merge(events)
	return !m["output"].absent() && !m["endTime"].absent() || isText(m["level"], "ERROR")
}

// merge lays updates over one another. They hold changed fields only: what one lacks,
// or has as null, is unchanged.
func merge(events []value) map[string]value {
	m := make(map[string]value)
	for _, ev := range events {
		for w := walk(ev); w.obj && w.next(); {
			if !w.val.absent() {
				m[string(w.key())] = w.val
			}
		}
	}
	return m
}

func readGeneration(e *element, events []value) {
	m, it := merge(events), &e.it
	if isText(m["metadata"].member("purpose"), JudgeMark) {
		e.skipReason = judgeTraffic
		return
	}
	e.setID(m["id"])
	it.TraceID = e.label(m["traceId"])
	trace := e.noted(langfuseTrace + it.TraceID)
	it.UserID = e.label(trace.member("userId"))
	it.SessionID = e.label(trace.member("sessionId"))
	if it.App = e.label(m["metadata"].member("app")); it.App == "" {
		it.App = e.label(trace.member("name"))
	}
	if it.App == "" {
		it.App = e.label(m["name"])
	}
	it.Environment = e.label(m["environment"])
	e.promptVersion(e.label(m["promptName"]), e.label(m["promptVersion"]))

	e.freeInput(m["input"])
	e.freeOutput(m["output"])
	if model := e.label(m["model"]); model != "" {
		it.Model = model
	}
	e.langfuseUsage(m["usage"], m["usageDetails"])
	if isText(m["level"], "ERROR") {
		e.failed = true
		if msg := e.label(m["statusMessage"]); msg != "" {
			it.Error = &interaction.ProviderError{Message: msg}
		}
	}
	e.scalars(m["metadata"])
	e.timed(m["startTime"], m["endTime"], nil)
}

// langfuseUsage reads the counts of both generations of the API; the newer wins.
func (e *element) langfuseUsage(old, details value) {
	for _, v := range []value{old, details} {
		if n := e.count(usual(v, "input", "promptTokens", "prompt_tokens", "input_tokens"), "input_tokens"); n != nil {
			e.it.InputTokens = n
		}
		if n := e.count(usual(v, "output", "completionTokens", "completion_tokens", "output_tokens"), "output_tokens"); n != nil {
			e.it.OutputTokens = n
		}
	}
}

// scoreValue reads a score: a number, or a truth value.
func (e *element) scoreValue(v value) *float64 {
	f := 0.0
	switch {
	case strings.HasPrefix(string(v), "t"):
		f = 1
	case strings.HasPrefix(string(v), "f"):
	default:
		var ok bool
		if f, ok = e.number(v, "score"); !ok {
			return nil
		}
	}
	return &f
}
