package embedded

import (
	"slices"
	"unicode"
)

// foreign reports whether a text is in another language than English, by the
// script and by function words. It must let names pass (Der Spiegel, Sao Paulo,
// Sturm und Drang), so a text without a sentence's grammar is no other language.
func (l *lexicon) foreign(text string, d *document) bool {
	if foreignScript(text) {
		return true
	}
	g := grammarOf(d)
	n := len(d.tokens)
	if n < 4 {
		return false
	}
	if g.other >= 2 && g.other > g.onlyEnglish || g.other > 0 && g.english == 0 {
		return true
	}
	if g.english > 0 {
		return false
	}
	plain, particles, words := 0, 0, 0
	for _, t := range d.tokens {
		switch {
		case t.class&particle != 0:
			particles++
		case !t.isNumber && !t.capital:
			words++
		}
		if !t.isNumber && !t.capital {
			plain++
		}
	}
	// "La capital de Japon es Tokio" has a common noun between its particles, "Juan de
	// la Cruz" has none.
	if particles >= 3 && words > 0 {
		return true
	}
	// A language that is not listed: no English sentence of this length does without
	// a single function word, though a row of names may.
	return n >= 8 && plain*2 > n
}

// foreignQuestion is foreign for questions, which people also write as search terms
// without any grammar.
func (l *lexicon) foreignQuestion(text string, d *document) bool {
	g := grammarOf(d)
	return foreignScript(text) || g.other >= 2 && g.other > g.onlyEnglish
}

// foreignScript reports whether more than three letters in ten are not Latin.
func foreignScript(text string) bool {
	letters, other := 0, 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
			if !unicode.Is(unicode.Latin, r) {
				other++
			}
		}
	}
	return other*10 > letters*3
}

// A grammar counts a text's function words.
type grammar struct {
	english     int // English ones, those that other languages spell alike included
	onlyEnglish int // those that no other language has
	other       int // those of the other language that has most
}

func grammarOf(d *document) grammar {
	var g grammar
	languages := foreignLanguages()
	found := make([]int, len(languages))
	for _, t := range d.tokens {
		if t.class&stop != 0 && len(t.text) > 1 && t.text != "an" {
			g.english++
			if t.class&ambiguous == 0 {
				g.onlyEnglish++
			}
		}
		if t.class&foreign == 0 {
			continue
		}
		for i, language := range languages {
			if t.class&language != 0 {
				found[i]++
			}
		}
	}
	g.other = slices.Max(found)
	return g
}
