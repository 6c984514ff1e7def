package pipeline

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/sink"
)

// What is stored of an interaction's text.
const (
	storeFull    = "full"
	storeExcerpt = "excerpt"
	storeNone    = "none"
)

const (
	excerptRunes   = 280
	deadLetterBody = 1 << 20 // bytes of key and value; larger ones are left out: coordinates, size and hash remain
)

// privacy decides what text leaves the process for ClickHouse.
type privacy struct {
	store string
	rules []redaction
	texts map[string]bool // attributes that some check reads its criteria or reference from: they are text
}

type redaction struct {
	name    string
	pattern *regexp.Regexp
}

// patterns by the names of the checks file. They are wide on purpose: a number too
// many is hidden rather than one too few.
var patterns = map[string]string{
	"email": `[\p{L}\p{N}._%+\-]+@[\p{L}\p{N}.\-]+\.\p{L}{2,}`,
	"phone": `\+?\d[\d\-\s().]{7,}\d`,
	"card":  `\b(?:\d[ \-]?){12,18}\d\b`,
	"secret": "" +
		// keys by their makers' prefixes, and signed tokens; case counts, or Asia is a key
		`\b(?:(?:sk|pk|rk)[-_]|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|AIza|eyJ)[\-_A-Za-z0-9.]{12,}|\bA[KS]IA[A-Z0-9]{12,}` +
		`|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-[^-])*(?:-----END [A-Z ]*PRIVATE KEY-----)?` +
		`|(?i:\bbearer\s+[A-Za-z0-9\-._~+/=]{16,})` +
		// what is called a secret, whatever it looks like
		`|(?i:(?:api[ _-]?key|token|passwords?|passwd|secret)["']?\s*[:=]\s*["']?[^\s"',;]{4,})`,
}

func newPrivacy(f *checks.File) *privacy {
	p := f.Privacy
	store := p.StoreText
	if store == "" {
		store = storeExcerpt
	}
	out := &privacy{store: store, texts: make(map[string]bool)}
	for _, c := range f.Checks {
		for _, field := range []string{c.Criteria.Field, c.Reference.Field} {
			if name, ok := strings.CutPrefix(field, "attributes."); ok {
				out.texts[name] = true
			}
		}
	}
	// Card before phone: the longer number first, or a card is called a phone.
	for _, name := range []string{"secret", "email", "card", "phone"} {
		if slices.Contains(p.Redact, name) {
			out.rules = append(out.rules, redaction{name, regexp.MustCompile(patterns[name])})
		}
	}
	return out
}

// redact hides what the rules name and counts it.
func (p *privacy) redact(text string) (string, int) {
	n := 0
	for _, r := range p.rules {
		text = r.pattern.ReplaceAllStringFunc(text, func(string) string {
			n++
			return "[" + r.name + "]"
		})
	}
	return text, n
}

// keep is a text as it is stored: redacted first, then cut, so that a cut never
// leaves half of a secret.
func (p *privacy) keep(text string) (string, int) {
	text, n := p.redact(text)
	if p.store == storeExcerpt {
		text = cut(text, excerptRunes)
	}
	return text, n
}

func (p *privacy) excerpt(text *string) string {
	if text == nil || p.store == storeNone {
		return ""
	}
	kept, _ := p.redact(*text)
	return cut(kept, excerptRunes)
}

func (p *privacy) attributes(attrs map[string]string) map[string]string {
	out := make(map[string]string, len(attrs))
	for k, v := range attrs {
		switch {
		case !p.texts[k]:
			out[k], _ = p.redact(v)
		case p.store != storeNone:
			out[k], _ = p.keep(v)
		}
	}
	return out
}

// answerRunes is where judges and evaluators cut a raw answer or an error.
const answerRunes = 200

// detail is a result's detail as JSON. A judge's raw answer may quote the interaction
// and is treated like it; whatever else is text is redacted.
func (p *privacy) detail(detail map[string]any) string {
	if len(detail) == 0 {
		return ""
	}
	kept := make(map[string]any, len(detail))
	for k, v := range detail {
		text, ok := v.(string)
		switch {
		case k == "raw" && p.store == storeNone:
		case ok && (k == "raw" || k == "error"):
			kept[k], _ = p.redact(wholeWords(text))
		default:
			kept[k] = p.redactAll(v)
		}
	}
	out, err := json.Marshal(kept)
	if err != nil { // a NaN or a channel: our own mistake, and no reason to lose the judgement
		return `{"detail_error":` + quote(err.Error()) + `}`
	}
	return string(out)
}

// pieceKey is where evaluators over claims keep the sentence that a verdict is about: a
// piece of the interaction's text, and stored like it.
const pieceKey = "text"

// redactAll is redact for the strings inside a value.
func (p *privacy) redactAll(v any) any {
	switch v := v.(type) {
	case string:
		text, _ := p.redact(v)
		return text
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			out[i], _ = p.redact(s)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = p.redactAll(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			text, ok := e.(string)
			switch {
			case !ok || k != pieceKey:
				out[k] = p.redactAll(e)
			case p.store != storeNone:
				out[k], _ = p.keep(text)
			}
		}
		return out
	}
	return v
}

// wholeWords drops the last word of a text that was cut before it came here: half of a
// secret has no form that a rule knows.
func wholeWords(text string) string {
	if utf8.RuneCountInString(text) < answerRunes {
		return text
	}
	end := strings.LastIndexAny(text, " \t\r\n\"',;:()[]{}<>") + 1
	return text[:end] + "…"
}

// headers are a dead letter's, unchanged but for credentials, so that it can be
// replayed; without a body nothing can be, and their text is text.
func (p *privacy) headers(headers []interaction.Header) map[string]string {
	out := make(map[string]string, len(headers))
	for _, h := range headers {
		value := string(h.Value)
		switch {
		case sensitive(h.Key):
			value = "[secret]"
		case p.store == storeNone:
			value, _ = p.redact(value)
		}
		out[h.Key] = value
	}
	return out
}

func sensitive(header string) bool {
	h := strings.ToLower(header)
	for _, part := range []string{"authorization", "cookie", "api-key", "token", "password"} {
		if strings.Contains(h, part) {
			return true
		}
	}
	return false
}

// body puts a record's key and value into its dead letter, unchanged, unless they are
// too large or text is not to be stored: what identifies them is there already.
func (p *privacy) body(letter *sink.DeadLetter, rec *interaction.Record) {
	if p.store == storeNone || len(rec.Key)+len(rec.Value) > deadLetterBody {
		return
	}
	letter.Key, letter.Body, letter.Stub = slices.Clone(rec.Key), slices.Clone(rec.Value), false
}

// cut returns at most n runes of text.
func cut(text string, n int) string {
	if len(text) <= n || utf8.RuneCountInString(text) <= n {
		return text
	}
	i := 0
	for range n - 1 {
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return text[:i] + "…"
}

func quote(s string) string {
	out, _ := json.Marshal(s) // a string cannot fail
	return string(out)
}
