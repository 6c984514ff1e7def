package decode

import (
	"strings"
	"time"
	"unicode/utf8"

	"assay/internal/interaction"
)

// isJudgeTraffic sees our own judges' calls, logged by a gateway on the topic that is
// judged: without this guard each judgement would cause the next.
func (o *object) isJudgeTraffic() bool {
	return isText(o.exact[kMetadata].member("purpose"), JudgeMark) || isText(o.exact[kApp], "evaluator") ||
		isText(o.exact[kRequest].member("metadata").member("purpose"), JudgeMark)
}

// common reads what every home-made record may say about an interaction beside its
// texts.
func (e *element) common(o *object) {
	it := &e.it
	var meta object // stays on the stack, as large as it is
	if m := o.first(kMetadata); m.isObject() {
		meta.fill(m)
	}
	label := func(keys ...key) string {
		if s := e.label(o.first(keys...)); s != "" {
			return s
		}
		return e.label(meta.first(keys...))
	}
	e.setID(o.first(kID), o.first(kUnderscoreID), o.first(kInteractionID), o.first(kRequestID))
	it.App = label(kApp, kApplication, kService, kAgent)
	it.Route = label(kRoute, kRouteName)
	it.Model = label(kModel)
	it.PromptVersion = label(kPromptVersion)
	if name := label(kPromptName); name != "" && it.PromptVersion != "" {
		it.PromptVersion = name + "@" + it.PromptVersion
	}
	it.Tenant = label(kTenant, kTenantID)
	it.Environment = label(kEnvironment, kEnv)
	it.SessionID = label(kSessionID, kConversationID, kThreadID, kSessionIDCamel, kSession)
	it.UserID = label(kUserID, kUser, kInputUser, kUserIDCamel)
	it.TraceID = label(kTraceID, kTraceIDCamel)

	it.InputTokens = e.count(o.first(kInputTokens, kPromptTokens), "input_tokens")
	it.OutputTokens = e.count(o.first(kOutputTokens, kCompletionTokens), "output_tokens")
	e.usage(o.first(kUsage))

	it.Expected = e.texts(o.first(kExpected, kExpectedOutput, kReference, kGroundTruth, kIdeal, kTarget))
	if v := o.first(kCriteria, kRubric); !v.absent() {
		joined := strings.Join(e.texts(v), "\n")
		it.Criteria = &joined
	}
	e.untexted = 0 // counts documents, not references
	it.Context = e.texts(o.first(kRetrievalContext, kContexts, kRetrievedContexts, kContext, kDocuments))
	it.Feedback = e.feedback(o.first(kFeedback))

	e.setError(o.first(kError))
	e.setHTTPStatus(o.first(kStatusCode))
	e.setHTTPStatus(o.first(kStatus))
	e.attributes(o)
	e.endTime = o.first(kEndTime)
}

// timing settles time and latency once the family knows the provider's clock. A stated
// duration counts where no end is logged: time to the first token is never one.
func (e *element) timing(o *object) {
	e.timed(o.first(kTime, kTimestamp, kTS, kCreatedAt, kStartTime, kTimestampMS), e.endTime, o.first(kLatencyMS, kDurationMS, kLatency))
	if e.it.LatencyMS == nil {
		e.it.LatencyMS = e.latency(o.first(kCompletionTime), time.Second)
	}
}

// timed takes start as the time, and as latency what lies between start and end, else
// the stated duration in milliseconds.
func (e *element) timed(start, end, took value) {
	e.setTime(start, e.responseTime)
	if at, _, ok := e.instant(end); ok && !start.absent() && !at.Before(e.it.Time) {
		e.it.LatencyMS = e.bounded(float64(at.Sub(e.it.Time))/float64(time.Millisecond), "latency_ms")
	}
	if e.it.LatencyMS == nil {
		e.it.LatencyMS = e.latency(took, time.Millisecond)
	}
}

// usage reads a provider's token counts where the record itself states none.
func (e *element) usage(v value) {
	if !v.isObject() {
		return
	}
	if v.member("cache_read_input_tokens") != nil || v.member("cache_creation_input_tokens") != nil {
		e.anthropicUsage(v)
		return
	}
	for w := walk(v); w.next(); {
		switch string(w.key()) {
		case "prompt_tokens", "input_tokens":
			if e.it.InputTokens == nil {
				e.it.InputTokens = e.count(w.val, "input_tokens")
			}
		case "completion_tokens", "output_tokens":
			if e.it.OutputTokens == nil {
				e.it.OutputTokens = e.count(w.val, "output_tokens")
			}
		}
	}
}

// feedback reads a user's reaction: an object with a value, or a bare number or truth
// value. The scale is untouched; a word alone is no value and stays an attribute.
func (e *element) feedback(v value) *interaction.Feedback {
	if v.isArray() {
		w := walk(v)
		if !w.next() {
			return nil
		}
		v = w.val
	}
	f := &interaction.Feedback{Name: "feedback"}
	val := v
	if v.isObject() {
		if name := e.label(v.member("name")); name != "" {
			f.Name = name
		}
		f.Label, f.Comment, f.Source = e.label(v.member("label")), e.label(v.member("comment")), e.label(v.member("source"))
		for _, name := range []string{"value", "score", "rating"} {
			if val = v.member(name); !val.absent() {
				break
			}
		}
	}
	switch string(val) {
	case "true":
		f.Value = 1
		return f
	case "false":
		return f
	}
	n, ok := e.number(val, "feedback")
	if !ok {
		return nil
	}
	f.Value = n
	return f
}

// attributes keeps the scalar fields of metadata and attributes, and the top-level ones
// that nobody asked for, as dimensions and filters may name them.
func (e *element) attributes(o *object) {
	e.scalars(o.first(kMetadata))
	e.scalars(o.first(kAttributes))
	for w := walk(o.raw); w.next(); {
		name := w.key()
		// A long text at the top is some text of the interaction under a name we do
		// not know, not an attribute of it.
		if k := keyOf(name); k != noKey && k < kRunID || len(w.val) > 256 {
			continue
		}
		if !e.attribute(name, w.val) {
			return
		}
	}
}

// scalars keeps the scalar members of an object as attributes.
func (e *element) scalars(v value) {
	for w := walk(v); w.obj && w.next(); {
		if !e.attribute(w.key(), w.val) {
			return
		}
	}
}

// attribute keeps one scalar; it is false when there is no room for more. What looks
// like a secret is left out before anything is stored.
func (e *element) attribute(name []byte, v value) bool {
	cfg := &e.r.d.cfg
	if len(e.it.Attributes) >= cfg.MaxAttributes || e.kept >= int(cfg.AttributeBytes) {
		return false
	}
	if v.absent() || v.isObject() || v.isArray() || len(name) == 0 || len(name) > 128 || isSecret(name) {
		return true
	}
	if e.kept+len(name)+len(v) > int(cfg.AttributeBytes) {
		return true
	}
	if e.it.Attributes == nil {
		e.it.Attributes = make(map[string]string)
	}
	text := e.label(v)
	e.it.Attributes[strings.ToValidUTF8(string(name), string(utf8.RuneError))] = text
	e.kept += len(name) + len(text)
	return true
}

// isSecret sees names that carry credentials. Token counts are no tokens.
func isSecret(name []byte) bool {
	n := strings.ToLower(string(name))
	for _, secret := range []string{"authorization", "cookie", "api-key", "api_key", "apikey", "password", "secret"} {
		if strings.Contains(n, secret) {
			return true
		}
	}
	return strings.Contains(n, "token") && !strings.HasSuffix(n, "tokens") && !strings.HasSuffix(n, "_count")
}
