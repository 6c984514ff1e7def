package demo

import (
	"math/rand/v2"
	"strings"
)

// The phrases around an answer change its text and nothing else. So they hold no
// number, name, negation, hedge or apology that a judge could read as a part of it.

// openings may stand before an answer; the first, empty one is the most frequent.
func openings() []string {
	return []string{"", "Hello!", "Hi there!", "Good to hear from you!", "Thank you for your message.",
		"Thanks for asking!", "Happy to help!", "Sure!", "Of course!"}
}

// closings may stand after it.
func closings() []string {
	return []string{"", "Let us know how it goes.", "Have a lovely day!", "Feel free to write again.",
		"We are here for you.", "Kind regards from the Tansy Lane team.", "Enjoy your home!"}
}

// plainShare is how often there is no opening, and how often no closing.
const plainShare = 0.4

// dress puts an opening and a closing around an answer.
func dress(rng *rand.Rand, text string) string {
	pick := func(phrases []string) string {
		if rng.Float64() < plainShare {
			return ""
		}
		return phrases[1+rng.IntN(len(phrases)-1)]
	}
	return strings.TrimSpace(pick(openings()) + " " + text + " " + pick(closings()))
}

// bare undoes dress and normalises: what is left is a key of the bank.
func bare(output string) string {
	text := normalise(output)
	for _, o := range openings()[1:] {
		if rest, ok := strings.CutPrefix(text, normalise(o)+" "); ok {
			text = rest
			break
		}
	}
	for _, c := range closings()[1:] {
		if rest, ok := strings.CutSuffix(text, " "+normalise(c)); ok {
			text = rest
			break
		}
	}
	return text
}
