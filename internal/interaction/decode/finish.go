package decode

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"assay/internal/interaction"
)

// Why an interaction is not judged.
const (
	toolCallOnly     = "tool_call_only"
	contentFilter    = "content_filter"
	providerError    = "provider_error"
	emptyOutput      = "empty_output"
	noChoices        = "no_choices"
	streamIncomplete = "stream_incomplete"
	redactedText     = "redacted"
	noOutput         = "no_output"
	noInput          = "no_input"
	noContent        = "no_content"
	contentExternal  = "content_external"
	encryptedText    = "encrypted"
)

// finish fills in what the family left open and decides the status.
func (e *element) finish() interaction.Interaction {
	it := &e.it
	if it.ID == "" {
		it.ID = e.eventID()
	}
	if it.ID == "" {
		it.ID = e.responseID
	}
	if interaction.Blank(it.ID) {
		it.ID = e.derivedID()
		e.flag("id_derived")
	}
	it.ID = boundedID(it.ID)
	if it.Route == "" {
		it.Route = it.App
	}
	if len(e.tools) > 0 && !e.r.src.noTools {
		it.Context = append(it.Context, e.tools...)
	}
	it.Context = it.Context[:min(len(it.Context), e.r.d.cfg.MaxDocuments)]
	if e.r.src.turn != "" && !e.inputFixed {
		e.chooseTurn()
	}
	if n := len(it.Messages) - e.r.d.cfg.MaxMessages; n > 0 {
		it.Messages = it.Messages[n:]
	}
	if len(it.Expected) > 1 {
		e.flagCount("expected_alternatives", len(it.Expected))
	}
	if e.images > 0 {
		e.flagCount("images", e.images)
	}
	if e.untexted > 0 {
		e.flagCount("context_without_text", e.untexted)
	}
	e.sniffError()
	e.status()
	e.cut(it.Input, "input_cut")
	e.cut(it.Output, "output_cut")
	it.Judgeable = it.SkipReason == ""
	return *it
}

// sniffError finds an error that was logged as the answer. Only an output that is an
// error object as a whole counts: an answer may well talk about errors.
func (e *element) sniffError() {
	out := e.it.Output
	if out == nil || e.it.Error != nil || !strings.HasPrefix(strings.TrimSpace(*out), "{") {
		return
	}
	v := value(strings.TrimSpace(*out))
	if end, _, err := scan(v, 0, nestedDepth); err != nil || end != len(v) {
		return
	}
	body := v.member("error")
	if !body.member("message").isString() {
		return
	}
	for w := walk(v); w.next(); {
		if name := string(w.key()); name != "error" && name != "type" {
			return
		}
	}
	e.setError(body)
	e.it.Output = nil
	e.flag("error_sniffed")
}

// setError reads an error object or text. false, null and {} are no error.
func (e *element) setError(v value) {
	switch {
	case v.absent(), len(v) > 0 && v[0] == 'f':
		return
	case v.isString():
		if s := e.str(v); !interaction.Blank(s) {
			e.it.Error = &interaction.ProviderError{Message: s}
		}
	case v.isObject():
		if w := walk(v); !w.next() {
			return
		}
		p := &interaction.ProviderError{
			Code: e.label(v.member("code")), Type: e.label(v.member("type")), Message: e.label(v.member("message")),
		}
		if strings.HasPrefix(p.Code, "content_filter") || isText(v.member("innererror").member("code"), "ResponsibleAIPolicyViolation") {
			e.stop = contentFilter
		}
		e.it.Error = p
	default:
		s, _ := v.compact()
		e.it.Error = &interaction.ProviderError{Message: s}
	}
}

// setHTTPStatus reads a status: a number of HTTP, or a word.
func (e *element) setHTTPStatus(v value) { e.setHTTPWord(e.label(v)) }

func (e *element) setHTTPWord(text string) {
	if text == "" {
		return
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n >= 400 && n < 600 {
			e.httpStatus = n
		}
		return
	}
	switch strings.ToLower(text) {
	case "error", "failure", "failed":
		e.failed = true
	}
}

func (e *element) status() {
	it := &e.it
	set := func(s interaction.Status, reason string) { it.Status, it.SkipReason = s, reason }
	stop := strings.ToLower(e.stop)
	switch {
	case e.unfinished:
		set(interaction.NoContent, incompleteHalf)
	case strings.HasPrefix(stop, "content_filter"), it.Output != nil && *it.Output == "FILTERED":
		// Before error: a provider refuses a filtered prompt with a 400.
		set(interaction.Filtered, contentFilter)
	case it.Error != nil, e.httpStatus != 0, e.failed:
		e.closeError()
		set(interaction.Errored, providerError)
	case e.incomplete:
		set(interaction.Cancelled, streamIncomplete)
	case e.redacted && (it.Output == nil || it.Input == nil):
		set(interaction.Redacted, redactedText)
	case e.withheld != "" && (it.Output == nil || absentText(it.Input)):
		set(interaction.NoContent, e.withheld)
	case e.toolCalls, stop == "tool_calls", stop == "function_call":
		if it.Output == nil {
			it.Output = new(string)
		}
		set(interaction.ToolCall, toolCallOnly)
	case e.noChoices:
		set(interaction.Empty, noChoices)
	case it.Output == nil && absentText(it.Input):
		set(interaction.NoContent, noContent)
	case it.Output == nil:
		set(interaction.NoContent, noOutput)
	case interaction.Blank(*it.Output):
		set(interaction.Empty, emptyOutput)
	case absentText(it.Input):
		set(interaction.NoContent, noInput)
	case e.refused:
		set(interaction.Refusal, "")
	case stop == "length", stop == "max_tokens":
		set(interaction.Truncated, "")
	default:
		if refusalLike(*it.Output) {
			e.flag("refusal_like")
		}
		set(interaction.OK, "")
	}
}

// closeError settles what a failed call leaves: its HTTP status is its code, and what
// stands where the answer would be is no answer.
func (e *element) closeError() {
	it := &e.it
	if it.Error == nil {
		it.Error = &interaction.ProviderError{}
	}
	if e.httpStatus != 0 {
		if it.Error.Code != "" {
			it.Error.Type = it.Error.Code
		}
		it.Error.Code = strconv.Itoa(e.httpStatus)
	}
	it.Output = nil
}

func absentText(s *string) bool { return s == nil || interaction.Blank(*s) }

// cut bounds a text at a rune.
func (e *element) cut(text *string, flag string) {
	limit := e.r.d.cfg.MaxTextRunes
	if text == nil || len(*text) <= limit || utf8.RuneCountInString(*text) <= limit {
		return
	}
	n := 0
	for i := range *text {
		if n == limit {
			*text = strings.Clone((*text)[:i])
			break
		}
		n++
	}
	e.flag(flag)
}

// refusalLike flags answers that read like a refusal. The list decides nothing: the
// status stays ok and the answer is judged.
func refusalLike(s string) bool {
	head := strings.TrimSpace(s[:min(len(s), 200)])
	if head == "" || head[0] < utf8.RuneSelf && !strings.ContainsRune("IiSsUuAa", rune(head[0])) {
		return false // none of what follows begins so
	}
	head = strings.ToLower(head)
	head = strings.ReplaceAll(head, "\u2019", "'")
	head = strings.TrimPrefix(head, "i apologize, but ")
	for _, sorry := range []string{"i'm sorry, but ", "i am sorry, but ", "sorry, but ", "i'm sorry, ", "sorry, ", "unfortunately, "} {
		head = strings.TrimPrefix(head, sorry)
	}
	for _, refusal := range []string{"i can't ", "i cannot ", "i can not ", "i'm not able to ", "i am not able to ",
		"i'm unable to ", "i am unable to ", "i won't ", "as an ai "} {
		if rest, ok := strings.CutPrefix(head, refusal); ok {
			for _, verb := range []string{"help", "assist", "comply", "provide", "answer", "do that", "discuss", "fulfill", "respond", "language model", "be able"} {
				if strings.HasPrefix(rest, verb) {
					return true
				}
			}
		}
	}
	return false
}
