package decode

import (
	"strings"

	"assay/internal/interaction"
)

// readLiteLLM reads an entry of LiteLLM's standard logging payload. Its response_time
// is the time to the first token where the answer was streamed, so the latency comes
// from start and end.
func readLiteLLM(e *element, o *object) {
	it := &e.it
	if isOtherCall(e.label(o.exact[kCallType])) {
		e.skipReason = notText
		return
	}
	var end, info, text, messages value
	for w := walk(o.raw); w.next(); {
		switch string(w.key()) {
		case "id":
			e.setID(w.val)
		case "trace_id":
			it.TraceID = e.label(w.val)
		case "endTime":
			end = w.val
		case "prompt_tokens":
			it.InputTokens = e.count(w.val, "input_tokens")
		case "completion_tokens":
			it.OutputTokens = e.count(w.val, "output_tokens")
		case "end_user":
			it.UserID = e.label(w.val)
		case "messages":
			messages = w.val
		case "error_information":
			info = w.val
		case "error_str":
			text = w.val
		}
	}
	meta := o.exact[kMetadata]
	requester := meta.member("requester_metadata")
	if isText(requester.member("purpose"), JudgeMark) {
		e.skipReason = judgeTraffic
		return
	}
	it.App = e.label(requester.member("app"))
	if it.App == "" {
		it.App = e.label(meta.member("user_api_key_alias"))
	}
	it.SessionID = e.label(requester.member("session_id"))
	it.PromptVersion = e.label(requester.member("prompt_version"))
	if it.PromptVersion == "" {
		it.PromptVersion = e.label(meta.member("prompt_management_metadata").member("prompt_id"))
	}
	if it.UserID == "" {
		it.UserID = e.label(meta.member("user_api_key_end_user_id"))
	}
	e.attributes(o)

	if inner := nestedJSON(messages); isConversation(inner) {
		messages = inner
	}
	e.litellmResponse(o.exact[kResponse])
	switch {
	case isConversation(messages):
		e.conversation(messages, false)
	case !messages.absent():
		it.Input = e.text(messages, "input")
	}
	if it.Model == "" {
		it.Model = e.label(o.exact[kModel])
	}
	if isText(o.exact[kStatus], "failure") {
		e.failed = true
		e.litellmError(info, text)
	}
	e.timed(o.exact[kStartTimeCamel], end, nil)
}

// isOtherCall knows the kinds of calls whose answer is no text.
func isOtherCall(kind string) bool {
	for _, other := range []string{"embedding", "image", "transcription", "speech", "rerank", "moderation"} {
		if strings.Contains(kind, other) {
			return true
		}
	}
	return false
}

func (e *element) litellmResponse(resp value) {
	if inner := nestedJSON(resp); inner.isObject() && ofResponse(inner) != "" {
		resp = inner
	}
	switch {
	case resp.absent():
	case resp.isObject() && ofResponse(resp) == "" && resp.member("response").isObject():
		e.bodies(nil, resp.member("response"))
	default:
		e.bodies(nil, resp)
	}
}

func (e *element) litellmError(info, text value) {
	p := &interaction.ProviderError{
		Code: e.label(info.member("error_code")), Type: e.label(info.member("error_class")), Message: e.label(info.member("error_message")),
	}
	if p.Message == "" {
		p.Message = e.label(text)
	}
	e.it.Error = p
	if strings.Contains(p.Type, "ContentPolicyViolation") {
		e.stop = contentFilter
	}
}
