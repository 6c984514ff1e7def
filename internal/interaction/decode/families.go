package decode

import "bytes"

// The names of formats and envelopes; they are label values.
const (
	auto       = "auto"
	flat       = "flat"
	openAIChat = "openai_chat"
	responses  = "openai_responses"
	anthropic  = "anthropic"
	litellm    = "litellm"
	unknown    = "unknown"
	mixed      = "mixed"

	bare = "none"
)

// A family is a shape of log records. claims looks at top-level names only, so the
// table costs nothing.
type family struct {
	name   string
	claims func(*object) bool
	read   reader
}

// A reader adds what an object holds to the record's result: interactions, scores,
// skips and bad elements, in any number.
type reader func(*record, *object)

// single makes a reader of a shape whose objects are one interaction each.
func single(read func(*element, *object)) reader {
	return func(r *record, o *object) {
		e := r.element(o)
		read(e, o)
		r.add(e, o)
	}
}

// families is the table of section 2 of the format rules; the first match wins. The
// order is the meaning: a gateway's row also has request and response, an envelope's
// payload would look flat.
func families() []family {
	return []family{
		{otlpJSON, isOTLPObject, readOTLP},
		{otlpProto, func(*object) bool { return false }, readOTLP}, // claimed by its bytes: framing.go
		{"bedrock", func(o *object) bool { return o.is(kSchemaType, "ModelInvocationLog") }, single(readBedrock)},
		{"langfuse", func(o *object) bool { return o.listOf(kBatch, "type", "body") }, readLangfuse},
		{"langsmith", func(o *object) bool {
			return o.exact[kPost].isArray() || o.exact[kPatch].isArray() ||
				o.has(kRunType) && (o.has(kDottedOrder) || o.has(kInputs)) || isFeedback(o)
		}, readLangSmith},
		{litellm, func(o *object) bool { return o.has(kCallType) && o.has(kStartTimeCamel) }, single(readLiteLLM)},
		{"kong", func(o *object) bool {
			return o.has(kLatencies) && o.has(kStartedAt) || o.exact[kAI].isObject() && isKong(o.exact[kAI])
		}, single(readKong)},
		{"apisix", func(o *object) bool { return o.has(kLLMSummary) || o.has(kLLMRequest) || o.has(kApisixLatency) }, single(readAPISIX)},
		{"helicone", func(o *object) bool { return o.has(kHeliconeMeta) || o.has(kRequestCreatedAt) && o.has(kRequestID) }, single(readHelicone)},
		{"databricks", func(o *object) bool {
			return o.has(kDatabricksID) || o.has(kInvocationID) && o.has(kRequest)
		}, single(readDatabricks)},
		{"cloudflare", func(o *object) bool {
			return o.has(kGateway) && (o.has(kRequestBodyPascal) || o.has(kResponseBodyPascal)) ||
				o.has(kTokensIn) && o.has(kTokensOut) && o.has(kCreatedAt) && !hasText(o)
		}, single(readCloudflare)},
		{"azure", func(o *object) bool {
			return o.listOf(kRecords, "category") || o.has(kCorrelationID) && o.has(kSequenceNumber)
		}, readAzure},
		{"envoy_ai_gateway", func(o *object) bool {
			return o.genAI && (o.has(kXRequestID) || o.has(kRouteName) || o.has(kStartTime)) && !hasText(o)
		}, single(readEnvoy)},
		{"portkey", func(o *object) bool {
			return o.exact[kRequest].member("body") != nil && o.exact[kResponse].member("body") != nil
		}, single(readPortkey)},
		{anthropic, isAnthropic, single(readPair)},
		{responses, isResponses, single(readPair)},
		{openAIChat, isChat, single(readPair)},
		{flat, hasText, single(readFlat)},
	}
}

// Formats lists the formats a source may name.
func Formats() []string {
	names := []string{auto}
	for _, f := range families() {
		names = append(names, f.name)
	}
	return names
}

func (o *object) is(k key, text string) bool {
	v := o.exact[k]
	return v.isString() && string(v[1:len(v)-1]) == text
}

// listOf reports whether k is a list whose first element is an object with the names.
func (o *object) listOf(k key, names ...string) bool {
	v := o.exact[k]
	if !v.isArray() {
		return false
	}
	w := walk(v)
	if !w.next() || !w.val.isObject() {
		return false
	}
	for _, name := range names {
		if w.val.member(name) == nil {
			return false
		}
	}
	return true
}

func isKong(ai value) bool {
	return ai.member("proxy") != nil || ai.member("ai-proxy") != nil || ai.member("payload") != nil
}

// texts of flat records, in the order in which they are asked for.
func inputKeys() []key {
	return []key{kInput, kQuestion, kQuery, kPrompt, kUserInput, kRequest}
}

func outputKeys() []key {
	return []key{kOutput, kAnswer, kResponse, kActualOutput, kCompletion, kSampled, kPrediction}
}

// hasText claims every object with an input or output under any alias, null or not.
// A request or response counts where it is a text: an object under these names is a
// provider's body, and one that no family knows is not to be judged as raw JSON.
func hasText(o *object) bool {
	return o.any(kInput, kQuestion, kQuery, kPrompt, kUserInput,
		kOutput, kAnswer, kActualOutput, kCompletion, kSampled, kPrediction) ||
		isPlain(o.first(kRequest)) || isPlain(o.first(kResponse)) || question(o.first(kVars)) != nil
}

// isPlain reports whether a request or response is a text of its own or a list of
// messages.
func isPlain(v value) bool { return v.isString() || isConversation(v) }

// A pair is what an object holds of a provider's request and response.
type pair struct {
	provider  string // a family's name, "" for none
	req, resp value  // a body, a list of chunks, a string of events, or a plain text
	nested    bool   // a body stood as JSON in a string
}

// pair finds the bodies of an object once; three families ask for them.
func (o *object) pair() *pair {
	if o.found == nil {
		o.found = findPair(o)
	}
	return o.found
}

func findPair(o *object) *pair {
	switch {
	case startsText(o.exact[kObject], "chat.completion"), startsText(o.exact[kObject], "text_completion"), o.exact[kChoices].isArray():
		p := &pair{provider: openAIChat, resp: o.raw}
		if o.has(kMessages) || o.has(kPrompt) {
			p.req = o.raw
		}
		return p
	case isText(o.exact[kObject], "response"), startsText(o.exact[kType], "response."):
		return &pair{provider: responses, resp: o.raw}
	case isText(o.exact[kType], "message") && o.has(kContent) && o.has(kStopReason):
		return &pair{provider: anthropic, resp: o.raw}
	}
	p := &pair{}
	var isReq, isResp bool
	p.req, isReq = p.body(o.first(kRequest, kReq, kRequestBodySnake))
	p.resp, isResp = p.body(o.first(kResponse, kResp, kResponseBodySnake))
	switch {
	case isReq || isResp:
		// Two plain texts make a flat record; one body is enough for a pair.
		if p.req == nil && o.exact[kMessages].isArray() {
			p.req = o.raw
		}
		if p.provider = ofResponse(p.resp); p.provider == "" {
			p.provider = ofRequest(p.req)
		}
	case o.exact[kMessages].isArray() && o.first(outputKeys()...) == nil:
		p.provider, p.req = openAIChat, o.raw
	}
	return p
}

// body reads v as a provider's body, through one level of JSON in a string.
func (p *pair) body(v value) (value, bool) {
	switch {
	case v.isObject(), v.isArray() && isChunks(v):
		return v, true
	case v.isString():
		if inner := nestedJSON(v); inner.isObject() || isChunks(inner) {
			p.nested = true
			return inner, true
		}
		return v, isStream(v)
	}
	return v, false
}

// ofResponse names the provider of a response body, "" where it does not say.
func ofResponse(resp value) string {
	if resp.isArray() { // chunks of a stream
		w := walk(resp)
		if !w.next() {
			return ""
		}
		resp = w.val
	}
	switch {
	case resp.isString():
		return ofStream(resp)
	case !resp.isObject():
		return ""
	}
	object := resp.member("object")
	if startsText(object, "chat.completion") || startsText(object, "text_completion") || resp.member("choices").isArray() {
		return openAIChat
	}
	kind := resp.member("type")
	switch {
	case startsText(object, "response"), startsText(kind, "response."), resp.member("output").isArray():
		return responses
	case isEmbeddings(resp):
		return openAIChat // whose reader skips it
	case isText(kind, "message"), isText(kind, "error"), isText(kind, "message_start"), resp.member("stop_reason") != nil:
		return anthropic
	}
	return ""
}

// ofStream names the provider of server-sent events; only the first ones are read.
func ofStream(text value) string {
	head := text[:min(len(text), 4096)]
	switch {
	case bytes.Contains(head, []byte("message_start")):
		return anthropic
	case bytes.Contains(head, []byte("response.created")), bytes.Contains(head, []byte("response.output")):
		return responses
	case isStream(text):
		return openAIChat
	}
	return ""
}

func ofRequest(req value) string {
	switch {
	case req.member("anthropic_version") != nil, req.member("system") != nil && req.member("max_tokens") != nil:
		return anthropic
	case req.member("messages").isArray(), req.member("prompt") != nil:
		return openAIChat
	case req.member("input") != nil && req.member("model") != nil:
		return responses
	}
	return ""
}

func isAnthropic(o *object) bool { return o.pair().provider == anthropic }
func isResponses(o *object) bool { return o.pair().provider == responses }
func isChat(o *object) bool      { return o.pair().provider == openAIChat }

func startsText(v value, prefix string) bool { return v.isString() && hasPrefix(v[1:], prefix) }
func isText(v value, text string) bool {
	return v.isString() && len(v) == len(text)+2 && string(v[1:len(v)-1]) == text
}

// isChunks reports whether v is a list of a stream's events.
func isChunks(v value) bool {
	if !v.isArray() {
		return false
	}
	w := walk(v)
	return w.next() && w.val.isObject() && (w.val.member("choices") != nil || w.val.member("object") != nil || w.val.member("type") != nil)
}

// isStream reports whether a string holds server-sent events.
func isStream(v value) bool {
	return startsText(v, "data:") || startsText(v, "event:") || startsText(v, "id:") && bytes.Contains(v[:min(len(v), 512)], []byte("data:"))
}
