package decode

import (
	"bytes"
	"strconv"
	"strings"
)

// readLangSmith reads runs as LangSmith's clients post them, or one run as it is
// exported, or feedback. A run comes whole, or as a post at its start and a patch at
// its end.
//
// A model's run is an interaction. Where the whole application is a chain that takes a
// question, its root is the interaction instead, and the model's runs below it, which
// would say the same again, are not. What its retrievers found is the context.
func readLangSmith(r *record, o *object) {
	if o.has(kRunID) && !o.has(kRunType) {
		r.langsmithFeedback(o)
		return
	}
	var runs []value
	if o.exact[kPost].isArray() || o.exact[kPatch].isArray() {
		r.many = true
		for _, list := range []value{o.exact[kPost], o.exact[kPatch]} {
			for w := walk(list); !w.obj && w.next() && len(runs) <= r.d.cfg.MaxElements; {
				runs = append(runs, w.val)
			}
		}
	} else {
		runs = []value{o.raw}
	}
	r.langsmithNotes(runs)
	for _, run := range runs {
		id := run.member("id")
		if !run.isObject() || !id.isString() {
			r.bad(r.take(), notAnObject, "a run without an id")
			continue
		}
		key, _ := id.text()
		r.part(&langsmithJoint, key, run)
	}
	if len(runs) == 0 {
		r.skip(emptyBatch)
	}
}

const (
	langsmithDocs = "langsmith documents "
	langsmithRoot = "langsmith root "
)

// langsmithNotes keeps what runs must know of others in their trace.
func (r *record) langsmithNotes(runs []value) {
	docs := make(map[string][]value)
	var order []string
	for _, run := range runs {
		trace := runTrace(run)
		switch {
		case isText(run.member("run_type"), "retriever"):
			list := run.member("outputs")
			if d := list.member("documents"); d != nil {
				list = d
			}
			for w := walk(list); !w.obj && w.next() && len(docs[trace]) < r.d.cfg.MaxDocuments; {
				if len(docs[trace]) == 0 {
					order = append(order, trace)
				}
				docs[trace] = append(docs[trace], w.val)
			}
		case isQuestionRoot(run.member("run_type"), run.member("parent_run_id"), run.member("inputs")):
			r.note(langsmithRoot+trace, value("true"))
		}
	}
	for _, trace := range order {
		list := value("[")
		for i, d := range docs[trace] {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, d...)
		}
		r.note(langsmithDocs+trace, append(list, ']'))
	}
}

func runTrace(run value) string {
	v := usual(run, "trace_id", "id")
	if !v.isString() {
		return ""
	}
	s, _ := v.text()
	return s
}

func isQuestionRoot(kind, parent, inputs value) bool {
	return isText(kind, "chain") && parent.absent() && usual(inputs, "question", "query", "input", "user_input") != nil
}

// langsmithJoint puts post and patch together.
var langsmithJoint = joint{format: "langsmith", whole: langsmithWhole, read: readRun}

// langsmithWhole: an answer or an error. Runs that are no interaction wait for nothing.
func langsmithWhole(parts []value) bool {
	if len(parts) > maxParts {
		return true
	}
	m := merge(parts)
	if !m["run_type"].absent() && !isText(m["run_type"], "llm") && !isQuestionRoot(m["run_type"], m["parent_run_id"], m["inputs"]) {
		return true
	}
	return !m["run_type"].absent() && (!m["outputs"].absent() || !m["error"].absent())
}

func readRun(e *element, parts []value) {
	m, it := merge(parts), &e.it
	it.TraceID = e.label(m["trace_id"])
	root := isQuestionRoot(m["run_type"], m["parent_run_id"], m["inputs"])
	switch {
	case m["run_type"].absent(): // a patch whose post was never seen
	case !root && !isText(m["run_type"], "llm"), !root && e.noted(langsmithRoot+it.TraceID) != nil:
		e.skipReason = notText
		return
	}
	e.setID(m["id"])
	meta := m["extra"].member("metadata")
	if isText(meta.member("purpose"), JudgeMark) {
		e.skipReason = judgeTraffic
		return
	}
	it.App = e.label(m["session_name"])
	it.SessionID = e.label(usual(meta, "thread_id", "session_id", "conversation_id"))
	it.UserID = e.label(usual(meta, "user_id", "userId"))
	if it.PromptVersion = e.label(meta.member("prompt_version")); it.PromptVersion == "" {
		e.promptVersion(e.label(meta.member("lc_hub_repo")), e.label(meta.member("lc_hub_commit_hash")))
	}
	e.freeInput(m["inputs"])
	e.runOutput(m["outputs"])
	if root {
		it.Context = e.texts(e.noted(langsmithDocs + it.TraceID))
	}
	if it.Model == "" {
		it.Model = e.label(meta.member("ls_model_name"))
	}
	if it.Model == "" {
		it.Model = e.label(usual(m["extra"].member("invocation_params"), "model", "model_name"))
	}
	if n := e.count(m["prompt_tokens"], "input_tokens"); n != nil {
		it.InputTokens = n
	}
	if n := e.count(m["completion_tokens"], "output_tokens"); n != nil {
		it.OutputTokens = n
	}
	e.setError(m["error"])
	e.scalars(meta)
	e.timed(m["start_time"], m["end_time"], nil)
}

// runOutput reads what a run gave: a model's generations, or whatever a chain returned.
func (e *element) runOutput(out value) {
	generations := out.member("generations")
	if !generations.isArray() {
		e.freeOutput(out)
		return
	}
	e.usage(out.member("llm_output").member("token_usage"))
	if model := e.label(out.member("llm_output").member("model_name")); model != "" {
		e.it.Model = model
	}
	first := generations
	for first.isArray() { // a list per prompt, of candidates
		w := walk(first)
		if !w.next() {
			e.noChoices = true
			return
		}
		first = w.val
	}
	message := first.member("message")
	if kwargs := message.member("kwargs"); kwargs.isObject() {
		message = kwargs
	}
	if message.isObject() {
		e.message(message)
		e.message(message.member("additional_kwargs"))
		e.usage(message.member("usage_metadata"))
		e.stop = e.label(message.member("response_metadata").member("finish_reason"))
	}
	if t := first.member("text"); t.isString() && absentText(e.it.Output) {
		e.it.Output = e.text(t, "output")
	}
	if stop := e.label(first.member("generation_info").member("finish_reason")); stop != "" {
		e.stop = stop
	}
}

// langchainMessages writes LangChain's messages as messages with a role: lists of lists,
// serialised constructors, and types in place of roles.
func langchainMessages(list value) value {
	if w := walk(list); w.next() && w.val.isArray() {
		list = w.val
	}
	out := value("[")
	for w := walk(list); !w.obj && w.next(); {
		m := w.val
		kind := ""
		if t := m.member("type"); t.isString() {
			kind, _ = t.text()
		}
		if kwargs := m.member("kwargs"); kwargs.isObject() {
			// {"type":"constructor","id":[..., "HumanMessage"],"kwargs":{...}}
			for c := walk(m.member("id")); !c.obj && c.next(); {
				if c.val.isString() {
					kind, _ = c.val.text()
				}
			}
			if t := kwargs.member("type"); t.isString() {
				kind, _ = t.text()
			}
			m = kwargs
		} else if data := m.member("data"); data.isObject() {
			m = data
		}
		role := m.member("role")
		if !role.isString() {
			role = value(strconv.Quote(messageRole(kind)))
		}
		content := m.member("content")
		if content == nil {
			content = value("null")
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, bytes.Join([][]byte{[]byte(`{"role":`), role, []byte(`,"content":`), content, []byte(`}`)}, nil)...)
	}
	return append(out, ']')
}

// messageRole is the role of a type such as human, ai, AIMessage or ToolMessageChunk.
func messageRole(kind string) string {
	kind = strings.ToLower(kind)
	for _, r := range []struct{ prefix, role string }{
		{"human", "user"}, {"user", "user"}, {"ai", "assistant"}, {"system", "system"}, {"tool", "tool"}, {"function", "tool"},
	} {
		if strings.HasPrefix(kind, r.prefix) {
			return r.role
		}
	}
	return ""
}

// langsmithFeedback reads a feedback object.
func (r *record) langsmithFeedback(o *object) {
	e := newElement(r, r.take())
	s := Score{
		InteractionID: e.label(o.exact[kRunID]), TraceID: e.label(o.exact[kTraceID]), Name: e.label(o.exact[kKey]),
		Value: e.scoreValue(o.exact[kScore]), Comment: e.label(o.raw.member("comment")),
		Source: e.label(o.raw.member("feedback_source").member("type")),
	}
	if v := o.exact[kValue]; v.isString() {
		s.Label = e.label(v)
	} else if s.Value == nil {
		s.Value = e.scoreValue(v)
	}
	if text := o.raw.member("correction"); text.isString() {
		s.Expected = e.str(text)
	}
	e.setTime(o.exact[kCreatedAt], nil)
	s.Time = e.it.Time
	r.score(s)
}

// isFeedback claims feedback about a run.
func isFeedback(o *object) bool {
	return o.has(kRunID) && o.has(kKey) && (o.has(kScore) || o.has(kValue)) && !hasText(o)
}
