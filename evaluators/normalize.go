package evaluators

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// asciiPunctuation are the 32 characters that SQuAD's normalisation deletes. Unicode's
// idea of punctuation is another: $ + < = > ^ ` | ~ are symbols there, and curly quotes,
// which stay, are punctuation.
const asciiPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// NormalizeAnswer makes short answers comparable as SQuAD does: lower case, no ASCII
// punctuation, no articles, single spaces. It is not for numbers: -5 becomes 5 and 1.5
// becomes 15.
func NormalizeAnswer(text string) string {
	text = lower(text)
	text = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && strings.ContainsRune(asciiPunctuation, r) {
			return -1
		}
		return r
	}, text)
	// A word ends where letters and digits do, in any script; RE2's \b knows ASCII only
	// and would take the a out of día.
	var b strings.Builder
	b.Grow(len(text))
	word := 0
	flush := func(end int) {
		switch w := text[word:end]; w {
		case "a", "an", "the":
			b.WriteByte(' ')
		default:
			b.WriteString(w)
		}
	}
	inWord := false
	for i, r := range text {
		is := unicode.IsLetter(r) || unicode.IsNumber(r)
		if is != inWord {
			flush(i)
			word, inWord = i, is
		}
	}
	flush(len(text))
	return strings.Join(strings.FieldsFunc(b.String(), isSpace), " ")
}

// isSpace is white space as Python splits at it, whose rules these are.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// lower knows the sigma at the end of a word, which strings.ToLower does not. A Caser
// has a state, so each call has its own.
func lower(text string) string {
	return cases.Lower(language.Und).String(strings.ToValidUTF8(text, "\uFFFD"))
}

// oneSpace trims text and makes every run of white space one space.
func oneSpace(text string) string { return strings.Join(strings.FieldsFunc(text, isSpace), " ") }
