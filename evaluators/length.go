package evaluators

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// length holds the length of the output against bounds.
func length() Spec {
	return yesNo(Spec{
		Name:     "length",
		Summary:  "Is the output as long as it should be, in characters, words or sentences?",
		Use:      "limits of a channel, and answers that ramble",
		NotFor:   "quality: short is not good",
		Required: []string{fieldOutput},
		Settings: append(append(boundSettings("length"), Setting{
			Name: "unit", Type: "text", Values: []string{"runes", "words", "sentences"}, Default: "runes",
			Help: "what is counted; words stand between white space, so text without it (Chinese, Japanese) wants runes",
		}), ruleSettings()...),
	}, func(o *ruleOptions) rule {
		b := o.bounds()
		unit := o.text("unit")
		count := map[string]func(string) int{"runes": utf8.RuneCountInString, "words": words, "sentences": func(s string) int { return len(sentences(s)) }}[unit]
		return rule{measure: func(it Item) finding { return b.finding(float64(count(*it.Output)), unit) }}
	})
}

// words counts what stands between white space and holds a letter or digit.
func words(text string) int {
	n := 0
	for w := range strings.FieldsSeq(text) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
			n++
		}
	}
	return n
}
