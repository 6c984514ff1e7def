package pipeline

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
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
	deadLetterBody = 1 << 20 // a larger body is left out: coordinates, size and hash remain
)

// privacy decides what text leaves the process for ClickHouse.
type privacy struct {
	store string
	rules []redaction
}

type redaction struct {
	name    string
	pattern *regexp.Regexp
}

// patterns by the names of the checks file. They are wide on purpose: a number too
// many is hidden rather than one too few.
var patterns = map[string]string{
	"email":  `[A-Za-z0-9._%+\-]+@[A-Za-z0-9.\-]+\.[A-Za-z]{2,}`,
	"phone":  `\+?\d[\d\-\s().]{7,}\d`,
	"card":   `\b(?:\d[ \-]?){12,18}\d\b`,
	"secret": `(?i)\b(?:sk|pk|ghp|xox[abp]|AKIA|eyJ)[\-_A-Za-z0-9.]{12,}|(?i)(?:api[_-]?key|token|password|secret)["']?\s*[:=]\s*["']?[^\s"',;]{4,}`,
}

func newPrivacy(p checks.Privacy) *privacy {
	store := p.StoreText
	if store == "" {
		store = storeExcerpt
	}
	out := &privacy{store: store}
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
		out[k], _ = p.redact(v)
	}
	return out
}

// detail is a result's detail as JSON; a judge's raw answer may quote the
// interaction and is treated like it.
func (p *privacy) detail(detail map[string]any) string {
	if len(detail) == 0 {
		return ""
	}
	if raw, ok := detail["raw"].(string); ok {
		detail = maps.Clone(detail)
		if p.store == storeNone {
			delete(detail, "raw")
		} else {
			detail["raw"], _ = p.redact(raw)
		}
	}
	out, err := json.Marshal(detail)
	if err != nil { // a NaN or a channel: our own mistake, and no reason to lose the judgement
		return `{"detail_error":` + quote(err.Error()) + `}`
	}
	return string(out)
}

func (p *privacy) headers(headers []interaction.Header) map[string]string {
	out := make(map[string]string, len(headers))
	for _, h := range headers {
		if sensitive(h.Key) {
			out[h.Key] = "[secret]"
			continue
		}
		out[h.Key] = string(h.Value)
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

// body puts a record's key and value into its dead letter, unchanged, or only what
// identifies them.
func (p *privacy) body(row *sink.DeadLetter, rec interaction.Record) {
	row.BodyBytes = uint64(len(rec.Value))
	row.BodySHA256 = sha256.Sum256(rec.Value)
	if p.store == storeNone || len(rec.Value) > deadLetterBody {
		row.Stub = true
		return
	}
	row.Key = slices.Clone(rec.Key)
	row.Body = slices.Clone(rec.Value)
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
