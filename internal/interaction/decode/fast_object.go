package decode

import "unicode/utf8"

// slots are an object's members by the names that families ask for.
type slots [numKeys]ref

// first is object.first; names that differ in case only do not get this far.
func (s *slots) first(t *tape, keys ...key) ref {
	for _, k := range keys {
		if !t.absent(s[k]) {
			return s[k]
		}
	}
	return none
}

// read puts an object's members into their slots. It is false when a name stands twice,
// or is read by Decode although its case differs.
func (s *slots) read(t *tape, n ref) bool {
	for c, end := t.inside(n); c < end; c = t.next(c) {
		name := t.name(c)
		if k := keyOf(name); k != noKey {
			if s[k] != none {
				return false
			}
			s[k] = c
		} else if isFolded(name) || hasPrefix(name, "gen_ai.") {
			return false
		}
	}
	return true
}

// isFolded reports whether a name is a known one but for its case.
func isFolded(name []byte) bool {
	var lower [64]byte
	if len(name) > len(lower) {
		return false
	}
	upper, wide := false, false
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
			upper = true
		}
		wide = wide || c >= utf8.RuneSelf // some foreign letters are small ASCII ones in lower case
		lower[i] = c
	}
	return upper && (wide || keyOf(lower[:len(name)]) != noKey)
}

// others begin the signatures of families and envelopes that Decode reads: with none of
// them at the top, no such family claims the object.
func others() [27]key {
	return [...]key{
		kSchema, kOp, kAggregateType, kDeleted, kSpecVersion, kMessageType, kResourceSpans, kResourceLogs, kSchemaType,
		kBatch, kPost, kPatch, kRunType, kRunID, kAI, kLatencies, kLLMSummary, kLLMRequest, kApisixLatency,
		kHeliconeMeta, kRequestCreatedAt, kDatabricksID, kInvocationID, kGateway, kTokensIn, kRecords, kCorrelationID,
	}
}

// fill reads the record's own names. It is false for an object that may be another
// family's, an envelope, or a judge's own call.
func (p *Prober) fill() bool {
	t := &p.tape
	p.top, p.meta = slots{}, slots{}
	if !p.top.read(t, document) {
		return false
	}
	for _, k := range others() {
		if p.top[k] != none {
			return false
		}
	}
	if m := p.top[kMetadata]; t.isObject(m) && !p.meta.read(t, m) {
		return false
	}
	return !t.is(p.top[kApp], "evaluator") && !p.isJudges(p.top[kMetadata]) && !p.isJudges(t.member(p.top[kRequest], "metadata"))
}

func (p *Prober) isJudges(metadata ref) bool {
	return p.tape.is(p.tape.member(metadata, "purpose"), JudgeMark)
}

// family finds whose record it is, and where the bodies of a provider's call are; an
// empty format leaves it to Decode. The order is that of the table of families.
func (p *Prober) family() (req, resp ref, format string) {
	t := &p.tape
	if p.top[kCallType] != none {
		if p.top[kStartTimeCamel] != none {
			format = litellm
		}
		return none, none, format
	}
	if p.top[kObject] != none || p.top[kChoices] != none ||
		startsText(t.value(p.top[kType]), "response.") || t.is(p.top[kType], "message") {
		return none, none, "" // an answer alone
	}
	req, resp = p.top.first(t, kRequest, kReq, kRequestBodySnake), p.top.first(t, kResponse, kResp, kResponseBodySnake)
	if !p.isBodyOrPlain(req) || !p.isBodyOrPlain(resp) {
		return none, none, ""
	}
	switch {
	case t.isObject(req) || t.isObject(resp):
		if req == none && t.isArray(p.top[kMessages]) {
			req = document
		}
		return req, resp, p.provider(req, resp)
	case t.isArray(p.top[kMessages]) && p.top.first(t, kOutput, kAnswer, kResponse, kActualOutput, kCompletion, kSampled, kPrediction) == none:
		return document, resp, openAIChat
	}
	for _, k := range [...]key{kInput, kQuestion, kQuery, kPrompt, kUserInput, kOutput, kAnswer, kActualOutput, kCompletion, kSampled, kPrediction} {
		if p.top[k] != none {
			return none, none, flat
		}
	}
	if t.isString(p.top[kRequest]) || t.isString(p.top[kResponse]) || p.src.readsText {
		return none, none, flat
	}
	return none, none, ""
}

// isBodyOrPlain reports whether a request or answer is an object, or a text that is
// neither JSON nor a stream, or is not there.
func (p *Prober) isBodyOrPlain(n ref) bool {
	switch v := p.tape.value(n); {
	case n == none, v.isObject():
		return true
	case v.isString():
		return !p.mayHoldJSON(n) && !startsText(v, "data:") && !startsText(v, "event:") && !startsText(v, "id:")
	}
	return false
}

// mayHoldJSON reports whether nestedJSON could open the string.
func (p *Prober) mayHoldJSON(n ref) bool {
	v := p.tape.value(n)
	r, _ := leading(v[1:len(v)-1], trimmed)
	return r == '{' || r == '['
}

// provider is whose call the bodies are; empty where only Decode can say.
func (p *Prober) provider(req, resp ref) string {
	t := &p.tape
	if t.member(p.top[kRequest], "body") != none && t.member(p.top[kResponse], "body") != none {
		return "" // a gateway that logs both sides under one name
	}
	switch {
	case t.isObject(resp) && p.isChatAnswer(resp):
		return openAIChat
	case t.isObject(resp) && p.isMessage(resp):
		return anthropic
	case t.isObject(resp), ofStream(t.value(resp)) != "":
		return ""
	}
	if t.isObject(req) && t.member(req, "anthropic_version") == none && t.member(req, "system") == none &&
		(t.isArray(t.member(req, "messages")) || t.member(req, "prompt") != none) {
		return openAIChat
	}
	return ""
}

// isChatAnswer knows the body of a chat completion.
func (p *Prober) isChatAnswer(resp ref) bool {
	t := &p.tape
	if t.member(resp, "data") != none {
		return false
	}
	if object := t.member(resp, "object"); object != none {
		return t.is(object, "chat.completion")
	}
	return t.isArray(t.member(resp, "choices"))
}

// isMessage knows an answer of Anthropic's.
func (p *Prober) isMessage(resp ref) bool {
	t := &p.tape
	for _, name := range [...]string{"object", "choices", "output", "data"} {
		if t.member(resp, name) != none {
			return false
		}
	}
	return t.is(t.member(resp, "type"), "message")
}
