package evaluators

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/abadojack/whatlanggo"
)

const (
	leastLetters   = 20     // fewer tell languages apart by chance
	languageRunes  = 10_000 // more tell nothing new
	reasonTooShort = "too_short"
)

// languageOf asks whether the output is in one of the named languages.
func languageOf() Spec {
	return yesNo(Spec{
		Name:     "language",
		Summary:  "Is the output in one of the named languages?",
		Use:      "answers that must come in the user's language",
		NotFor:   "texts of under 20 letters, and mixed ones",
		Required: []string{fieldOutput},
		Settings: append([]Setting{
			{Name: "any", Type: "list", Help: "languages by their two letters (ISO 639-1), such as en and de"},
		}, ruleSettings()...),
	}, func(o *ruleOptions) rule {
		known := languageCodes()
		wanted := o.list("any")
		for i, code := range wanted {
			wanted[i] = strings.ToLower(code)
			if !slices.Contains(known, wanted[i]) {
				o.fault("any: %q: want some of %s", code, strings.Join(known, ", "))
			}
		}
		if len(wanted) == 0 {
			o.needs("any")
		}
		return rule{
			applies: func(it Item) (string, bool) {
				if letters(*it.Output, leastLetters) < leastLetters {
					return reasonTooShort, false
				}
				return "", true
			},
			measure: func(it Item) finding {
				info := whatlanggo.Detect(firstRunes(*it.Output, languageRunes))
				code := info.Lang.Iso6391()
				if code == "" {
					return finding{detail: map[string]any{"why": "no language was recognised"}}
				}
				return finding{
					score:  one(slices.Contains(wanted, code)),
					detail: map[string]any{"language": code, "certainty": fmt.Sprintf("%.2f", info.Confidence)},
				}
			},
		}
	})
}

// letters counts letters, up to limit.
func letters(text string, limit int) int {
	n := 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			if n++; n == limit {
				break
			}
		}
	}
	return n
}

// languageCodes are the languages that can be told apart.
func languageCodes() []string {
	var codes []string
	for lang := range whatlanggo.Langs {
		if code := lang.Iso6391(); code != "" {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}
