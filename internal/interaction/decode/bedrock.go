package decode

import (
	"strings"
)

// readBedrock reads an entry of Amazon Bedrock's model invocation log. The bodies are
// those of the model's own maker, or of the Converse API; over 100 KB they stand in S3.
func readBedrock(e *element, o *object) {
	it := &e.it
	var in, out, meta, identity, start value
	for w := walk(o.raw); w.next(); {
		switch string(w.key()) {
		case "requestId":
			e.setID(w.val)
		case "timestamp":
			start = w.val
		case "modelId":
			it.Model = e.label(w.val)
		case "input":
			in = w.val
		case "output":
			out = w.val
		case "requestMetadata":
			meta = w.val
		case "identity":
			identity = w.val
		case "errorCode":
			if code := e.label(w.val); code != "" {
				e.setError(value(`{"code":` + string(quoted([]byte(code))) + `}`))
			}
		}
	}
	if strings.Contains(it.Model, "embed") || strings.Contains(it.Model, "rerank") {
		e.skipReason = notText
		return
	}
	if isText(meta.member("purpose"), JudgeMark) {
		e.skipReason = judgeTraffic
		return
	}
	it.InputTokens = e.count(in.member("inputTokenCount"), "input_tokens")
	it.OutputTokens = e.count(out.member("outputTokenCount"), "output_tokens")
	if it.App = e.label(meta.member("app")); it.App == "" {
		it.App = assumedRole(e.label(identity.member("arn")))
	}
	it.SessionID = e.label(meta.member("session"))
	it.TraceID = e.label(meta.member("traceId"))

	model := it.Model
	e.bedrockRequest(opened(in.member("inputBodyJson")))
	e.bedrockResponse(opened(out.member("outputBodyJson")))
	it.Model = model // the log's id is the longer one
	if in.member("inputBodyS3Path") != nil || out.member("outputBodyS3Path") != nil {
		e.withheld = contentExternal
	}
	e.attributes(o)
	latency := it.LatencyMS // in the body
	e.timed(start, nil, nil)
	if it.LatencyMS == nil {
		it.LatencyMS = latency
	}
}

// opened is v, or the JSON that it holds as a string.
func opened(v value) value {
	if inner := nestedJSON(v); inner != nil {
		return inner
	}
	return v
}

// assumedRole is the role's name in arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION.
func assumedRole(arn string) string {
	_, rest, ok := strings.Cut(arn, ":assumed-role/")
	if !ok {
		return ""
	}
	role, _, _ := strings.Cut(rest, "/")
	return role
}

func (e *element) bedrockRequest(req value) {
	switch {
	case req.member("messages").isArray():
		e.chatRequest(req, false)
	case req.member("prompt").isString():
		e.prompt(req.member("prompt"))
	case req.member("inputText").isString(): // Titan
		e.it.Input = e.text(req.member("inputText"), "input")
	case req.member("message").isString(): // Cohere
		e.it.Input = e.text(req.member("message"), "input")
		for w := walk(req.member("documents")); !w.obj && w.next(); {
			if t := usual(w.val, "snippet", "text"); t.isString() {
				e.it.Context = append(e.it.Context, e.str(t))
			}
		}
	}
}

// prompt reads a prompt in a model's own template: of its turns, the last user's.
func (e *element) prompt(v value) {
	s := e.str(v)
	if turn, ok := lastTurn(s); ok {
		e.flag("chat_template_stripped")
		s = turn
	}
	if isRedacted(s) {
		e.redacted = true
		return
	}
	e.it.Input = &s
}

// lastTurn cuts the last user turn out of a prompt with the marks of a chat template.
func lastTurn(prompt string) (string, bool) {
	for _, t := range []struct{ open, end string }{
		{"<|start_header_id|>user<|end_header_id|>", "<|eot_id|>"},
		{"<|start|>user<|message|>", "<|end|>"},
		{"<|im_start|>user", "<|im_end|>"},
		{"[INST]", "[/INST]"},
		{"\n\nHuman:", "\n\nAssistant:"},
	} {
		i := strings.LastIndex(prompt, t.open)
		if i < 0 {
			continue
		}
		turn := prompt[i+len(t.open):]
		if j := strings.Index(turn, t.end); j >= 0 {
			turn = turn[:j]
		}
		return strings.TrimSpace(turn), true
	}
	return "", false
}

func (e *element) bedrockResponse(resp value) {
	switch {
	case resp.isArray():
		e.bedrockStream(resp)
	case !resp.isObject():
	case resp.member("output").member("message").isObject():
		e.converse(resp)
	case resp.member("type").isString() || resp.member("stop_reason") != nil && resp.member("content").isArray(), resp.member("completion") != nil:
		e.anthropicResponse(resp)
	case resp.member("choices").isArray():
		e.chatResponse(resp)
	default:
		e.plainCompletion(resp)
	}
}

// converse reads an answer of the Converse API.
func (e *element) converse(resp value) {
	var text strings.Builder
	found := false
	for w := walk(resp.member("output").member("message").member("content")); !w.obj && w.next(); {
		if t := w.val.member("text"); t.isString() {
			found = true
			text.WriteString(e.str(t))
		}
		e.toolCalls = e.toolCalls || w.val.member("toolUse").isObject()
	}
	e.spoke(found, &text)
	e.converseStop(resp.member("stopReason"))
	e.it.LatencyMS = e.latency(resp.member("metrics").member("latencyMs"), 1e6)
	e.converseUsage(resp.member("usage"))
}

func (e *element) spoke(found bool, text *strings.Builder) {
	if s := text.String(); found && isRedacted(s) {
		e.redacted = true
	} else if found {
		e.it.Output = &s
	}
}

func (e *element) converseStop(v value) {
	switch reason := e.label(v); reason {
	case "guardrail_intervened", "content_filtered":
		e.stop = contentFilter
	default:
		e.stopReason(v)
	}
}

func (e *element) converseUsage(v value) {
	if e.it.InputTokens == nil {
		e.it.InputTokens = e.count(v.member("inputTokens"), "input_tokens")
	}
	if e.it.OutputTokens == nil {
		e.it.OutputTokens = e.count(v.member("outputTokens"), "output_tokens")
	}
}

// plainCompletion reads the answers of models that only continue a text. The bytes stay
// as logged.
func (e *element) plainCompletion(resp value) {
	first := func(list value) value {
		w := walk(list)
		if w.obj || !w.next() {
			return nil
		}
		return w.val
	}
	out := resp
	for _, list := range []string{"results", "outputs", "generations", "completions"} {
		if v := first(resp.member(list)); v != nil {
			out = v
			break
		}
	}
	if data := out.member("data"); data.isObject() {
		out = data
	}
	if t := usual(out, "generation", "outputText", "text"); t.isString() {
		e.it.Output = e.text(t, "output")
	}
	for _, name := range []string{"stop_reason", "completionReason", "finish_reason", "finishReason"} {
		reason := out.member(name)
		if reason.absent() {
			reason = resp.member(name)
		}
		if s := strings.ToLower(e.label(reason)); s != "" {
			if e.stop = s; s == "content_filtered" {
				e.stop = contentFilter
			}
			return
		}
	}
}

// bedrockStream puts the logged events of a stream together: of the Converse API, of
// Anthropic's, or pieces of a plain text.
func (e *element) bedrockStream(list value) {
	w := walk(list)
	if !w.next() {
		return
	}
	if w.val.member("type").isString() {
		m := &messageStream{e: e}
		for w := walk(list); w.next(); {
			e.invocationMetrics(w.val)
			if !m.event(w.val) {
				break
			}
		}
		m.close()
		return
	}
	e.flag("sse_reassembled")
	var text strings.Builder
	found, finished, events := false, false, 0
	for w := walk(list); w.next() && events < e.r.d.cfg.MaxEvents; events++ {
		ev := w.val
		e.invocationMetrics(ev)
		if t := ev.member("contentBlockDelta").member("delta").member("text"); t.isString() {
			found = true
			text.WriteString(e.str(t))
		} else if t := usual(ev, "generation", "outputText", "text"); t.isString() {
			found = true
			text.WriteString(e.str(t))
		}
		e.toolCalls = e.toolCalls || ev.member("contentBlockStart").member("start").member("toolUse").isObject()
		if stop := ev.member("messageStop"); stop.isObject() {
			finished = true
			e.converseStop(stop.member("stopReason"))
		}
		if stop := usual(ev, "stop_reason", "completionReason", "finish_reason"); stop != nil {
			finished = true
			e.stop = strings.ToLower(e.label(stop))
		}
		if meta := ev.member("metadata"); meta.isObject() {
			e.it.LatencyMS = e.latency(meta.member("metrics").member("latencyMs"), 1e6)
			e.converseUsage(meta.member("usage"))
		}
	}
	e.spoke(found, &text)
	e.incomplete = !finished && e.it.Error == nil
}

// invocationMetrics reads what Bedrock adds to the last event of a model's own stream.
func (e *element) invocationMetrics(ev value) {
	if m := ev.member("amazon-bedrock-invocationMetrics"); m.isObject() {
		e.it.LatencyMS = e.latency(m.member("invocationLatency"), 1e6)
	}
}
