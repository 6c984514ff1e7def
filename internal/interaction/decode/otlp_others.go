package decode

// Other instrumentations put the whole input and output of a call or a function into
// one attribute each.

func (rd *reading) others() {
	for _, key := range []string{"gcp.vertex.agent.llm_request", "traceloop.entity.input", "mlflow.spanInputs", "genkit:input",
		"langfuse.observation.input", "langfuse.trace.input", "ai.observability.record_root.input", "request_data"} {
		if !rd.in && rd.s.a.has(key) {
			rd.input(rd.s.a.unquoted(key))
		}
	}
	for _, key := range []string{"gcp.vertex.agent.llm_response", "traceloop.entity.output", "mlflow.spanOutputs", "genkit:output",
		"langfuse.observation.output", "langfuse.trace.output", "ai.observability.record_root.output", "response_data"} {
		if !rd.out && rd.s.a.has(key) {
			rd.output(rd.s.a.unquoted(key))
		}
	}
}

// unquoted is an attribute's content where all attributes are JSON: a text stands in
// quotes of its own.
func (a attributes) unquoted(key string) content {
	if s := a.raw(key); len(s) > 1 && s[0] == '"' {
		b := []byte(s)
		if end, err := scanString(b, 0); err == nil && end == len(b) {
			return content{value: b}
		}
	}
	return a.content(key)
}

// pydantic reads the spans of Pydantic AI: an agent's whole conversation, or the events
// of a call as a list in one attribute.
func (rd *reading) pydantic() {
	e, a := rd.e, rd.s.a
	for _, key := range []string{"pydantic_ai.all_messages", "all_messages_events", "events"} {
		list := a.content(key)
		if !list.value.isArray() || rd.in {
			continue
		}
		var past, answers []turn
		for w := walk(list.value); w.next(); {
			t := e.eventTurn(e.label(w.val.member("event.name")), w.val)
			if e.label(w.val.member("event.name")) == choiceEvent {
				answers = append(answers, t)
			} else {
				past = append(past, t)
			}
		}
		if n := len(past); len(answers) == 0 && n > 0 && past[n-1].role == "assistant" {
			past, answers = past[:n-1], past[n-1:]
		}
		if len(past) > 0 {
			rd.in = true
			e.past(past, list.cut)
		}
		if !rd.out && len(answers) > 0 && list.cut == 0 {
			rd.out = true
			e.answers(answers, 0, rd.joint())
		}
	}
	if v := a.first("final_result"); v != nil && rd.in && e.it.Output == nil {
		rd.out = true
		e.answer(e.plain(v))
	}
}
