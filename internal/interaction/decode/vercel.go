package decode

// The Vercel AI SDK writes the call on spans that end in .doGenerate and .doStream, and
// the same text once more on the span around them. Versions 3 to 6 differ in names
// only; 7 writes the messages of OpenTelemetry beside its own.

func (rd *reading) vercel() {
	a := rd.s.a
	if !a.has("ai.operationId") {
		return
	}
	for _, key := range []string{"ai.prompt.messages", "ai.prompt"} {
		if !rd.in && a.has(key) {
			rd.input(a.content(key))
		}
	}
	for _, key := range []string{"ai.response.toolCalls", "ai.result.toolCalls"} {
		if calls := walk(a.content(key).value); calls.next() {
			rd.e.toolCalls, rd.out = true, true
		}
	}
	if stop := a.first("ai.response.finishReason", "ai.finishReason"); stop != nil {
		rd.e.stopped(rd.e.label(stop))
	}
	for _, key := range []string{"ai.response.text", "ai.response.object", "ai.result.text", "ai.result.object"} {
		// An object is the answer as it was logged, whatever names it has inside.
		if v := a.value(key); rd.e.it.Output == nil && !v.absent() {
			rd.out = true
			rd.e.answer(rd.e.plain(v))
		}
	}
}

func (e *element) plain(v value) string {
	if v.isString() {
		return e.str(v)
	}
	e.flag("output_serialised")
	s, _ := v.compact()
	return s
}
