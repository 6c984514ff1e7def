package embedded

import (
	"encoding/json"
	"math"
	"strings"
	"unicode"
)

// A Reason says why the judge abstained. The values are stored with the row.
type Reason string

// The reasons.
const (
	NoReference         Reason = "no_reference"
	ReferenceTooLong    Reason = "reference_too_long"
	UnsupportedLanguage Reason = "unsupported_language"
	Units               Reason = "units"
	OtherKind           Reason = "kind"
	LowConfidence       Reason = "low_confidence"
)

// maxReferenceWords is the longest reference the model was trained on.
const maxReferenceWords = 45

// usable returns the references this judge can compare with, or why there are none.
// One usable alternative is enough: the others are other ways to say the same.
func (l *lexicon) usable(references []string) ([]string, []*document, Reason) {
	var (
		texts     []string
		documents []*document
		why       = NoReference
	)
	for _, text := range references {
		if isBlank(text) {
			continue
		}
		d := l.read(text)
		reason := l.unfit(text, d)
		if reason != "" {
			if why == NoReference {
				why = reason
			}
			continue
		}
		texts = append(texts, text)
		documents = append(documents, d)
	}
	if len(documents) > 0 {
		why = ""
	}
	return texts, documents, why
}

// unfit says why a reference is none that this judge understands.
func (l *lexicon) unfit(text string, d *document) Reason {
	switch {
	case len(d.tokens) == 0:
		if l.foreign(text, d) {
			return UnsupportedLanguage
		}
		return OtherKind // signs only
	case len(strings.Fields(text)) > maxReferenceWords:
		return ReferenceTooLong
	case l.foreign(text, d):
		return UnsupportedLanguage
	case isTolerance(text, d):
		return Units
	case isStructured(text), isFormula(text), isPolicy(d), isQualified(d):
		return OtherKind
	}
	return ""
}

// unfitAnswer says why this answer cannot be compared with these references.
func (v *view) unfitAnswer(text string, references []*document) Reason {
	if v.lex.foreign(text, v.answer) {
		return UnsupportedLanguage
	}
	if isStructured(text) {
		return OtherKind
	}
	var stated []quantity
	for _, ref := range references {
		if ref.folded == v.answer.folded {
			return ""
		}
		stated = append(stated, v.lex.quantities(ref)...)
	}
	if len(stated) > 0 && unitDecides(stated, v.lex.quantities(v.answer)) || v.roundingDecides(references) {
		return Units
	}
	return ""
}

// roundingDecides reports whether a decimal of a reference is answered by a number
// so close that a tolerance has to say whether it is the same.
func (v *view) roundingDecides(references []*document) bool {
	decides := false
	for _, ref := range references {
		for _, t := range ref.tokens {
			if !t.isNumber || t.number == math.Trunc(t.number) {
				continue
			}
			if v.answer.has(t.stem) {
				return false
			}
			for _, a := range v.answer.tokens {
				if a.isNumber && math.Abs(a.number-t.number) <= roundingMargin*math.Abs(t.number) {
					decides = true
				}
			}
		}
	}
	return decides
}

// isTolerance tells references that state how far off an answer may be.
func isTolerance(text string, d *document) bool {
	if strings.ContainsRune(text, '±') || strings.Contains(text, "+/-") {
		return true
	}
	for _, phrase := range []string{"plus or minus", "give or take", "to within", "tolerance of", "margin of error"} {
		if strings.Contains(d.folded, phrase) {
			return true
		}
	}
	return false
}

// isStructured tells JSON and program text.
func isStructured(text string) bool {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return false
	}
	if (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(trimmed)) {
		return true
	}
	for _, sign := range []string{"```", "();", "=>", "</", "/>", " == ", "!=", "&&", "||", "#include", "function(", "def ", "import ", "SELECT ", "://"} {
		if strings.Contains(text, sign) {
			// A link or the word "import " in a sentence is prose; a second sign is not.
			if sign == "://" || sign == "import " || sign == "def " {
				continue
			}
			return true
		}
	}
	return strings.HasPrefix(trimmed, "def ") || strings.HasPrefix(trimmed, "import ") ||
		strings.Contains(text, "{") && strings.Contains(text, "}") && strings.Contains(text, ";")
}

// isFormula tells references that are mathematics: equal forms look different there.
func isFormula(text string) bool {
	if strings.ContainsAny(text, "^√∫∑≤≥≈π∞=×÷") || strings.Contains(text, "\\") {
		return true
	}
	runes := []rune(text)
	for i := 1; i+1 < len(runes); i++ {
		if !strings.ContainsRune("+*", runes[i]) {
			continue
		}
		left, right := beside(runes, i, -1), beside(runes, i, 1)
		if (unicode.IsDigit(left) || left == ')') && (unicode.IsDigit(right) || unicode.IsLetter(right) || right == '(') ||
			unicode.IsLetter(left) && unicode.IsDigit(right) {
			return true
		}
	}
	return false
}

// beside is the next rune in a direction that is no space; 0 at the end.
func beside(runes []rune, i, step int) rune {
	for i += step; i >= 0 && i < len(runes); i += step {
		if !unicode.IsSpace(runes[i]) {
			return runes[i]
		}
	}
	return 0
}

// isPolicy tells references that say what an answer ought to do instead of what is so.
func isPolicy(d *document) bool {
	n := 0
	for i, t := range d.tokens {
		if t.class&policy == 0 || t.capital && i > 0 {
			continue
		}
		n++
		switch t.text {
		case "must", "should", "shall":
			n++
		}
	}
	return n >= 2 && len(d.tokens) >= 5
}

// isQualified tells hedged and negated references, where agreement turns on the
// scope of a small word. A title may hold one (No Country for Old Men), and a plain
// yes or no is understood.
func isQualified(d *document) bool {
	if len(d.tokens) == 1 {
		return false
	}
	capitals := 0
	for _, t := range d.tokens[1:] {
		if t.capital {
			capitals++
		}
	}
	for i, t := range d.tokens {
		if t.class&(negator|hedge) == 0 || t.text == "without" || t.text == "either" {
			continue
		}
		if !t.capital || i == 0 && capitals == 0 && len(d.tokens) >= 3 {
			return true
		}
	}
	return false
}

// maxItemWords is the longest entry that is still read as a list's item.
const maxItemWords = 4

// mostItems is the part of a listing reference that has to stand in the answer before
// the rest of its items are looked at; with less it is another list.
const mostItems = 0.6

// extraItems reports whether the answer lists most of what a listing reference lists
// and more. Whether the more is right is knowledge, which this judge has none of.
func (v *view) extraItems(answer, reference string, m *match) bool {
	if share(m.fuzzy) < mostItems || !isList(reference) {
		return false
	}
	begun := false
	for _, item := range items(answer) {
		d := v.lex.read(item)
		hit, fresh := false, false
		for _, i := range d.content {
			stem := d.tokens[i].stem
			switch {
			case m.ref.has(stem):
				hit = true
			case v.question == nil || !v.question.has(stem):
				fresh = true
			}
		}
		if hit {
			begun = true
			continue
		}
		if begun && fresh && len(d.tokens) <= maxItemWords && d.tokens[0].class&stop == 0 {
			return true
		}
	}
	return false
}

// isList tells enumerations: three short items or more, the last joined by a word.
// "Baker, California, USA" is a place, and a sentence with commas is a sentence.
func isList(text string) bool {
	if !strings.Contains(text, " and ") && !strings.Contains(text, " & ") && !strings.Contains(text, ";") && !strings.Contains(text, "\n") {
		return false
	}
	n := 0
	for _, item := range items(text) {
		if len(strings.Fields(item)) <= maxItemWords {
			n++
		}
	}
	return n >= 3
}

// items cuts an enumeration at commas, semicolons, line breaks and "and".
func items(text string) []string {
	cut := strings.FieldsFunc(strings.NewReplacer(" and ", ",", " & ", ",", " or ", ",").Replace(text), func(r rune) bool {
		return r == ',' || r == ';' || r == '\n' || r == '.'
	})
	out := cut[:0]
	for _, item := range cut {
		if !isBlank(item) {
			out = append(out, item)
		}
	}
	return out
}
