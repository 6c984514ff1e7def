package evaluators

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentencesVersion is part of the definition of every evaluator over claims: raise the
// number with any change of what sentences returns.
const sentencesVersion = "sentences/1"

// sentences takes a text apart, in code: so the denominators of claim metrics are
// reproducible, and nobody drops a sentence or adds one. Every sentence is a piece of
// the text as it stands there. A list item, a heading, a table row and a block of code
// are each kept whole; marks such as [1] stay with the sentence before them; what holds
// no letter and no digit is left out.
func sentences(text string) []string {
	var pieces []string
	for _, b := range blocks(text) {
		if b.whole {
			pieces = append(pieces, b.text)
		} else {
			pieces = append(pieces, splitParagraph(b.text)...)
		}
	}
	kept := pieces[:0]
	for _, p := range pieces {
		if p = strings.TrimSpace(p); strings.ContainsFunc(p, letterOrDigit) {
			kept = append(kept, p)
		}
	}
	return kept
}

func letterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// A block is a run of lines that belong together.
type block struct {
	text  string
	whole bool // not to be cut further
}

// shortLine is the length below which a line was ended on purpose and not by wrapping.
const shortLine = 50

// blocks cuts a text at its lines.
func blocks(text string) []block {
	var list []block
	var open []string // lines of the block that is being read
	whole := false
	end := func() {
		if len(open) > 0 {
			list = append(list, block{strings.Join(open, "\n"), whole})
		}
		open, whole = nil, false
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			end()
		case strings.HasPrefix(trimmed, "```"):
			end()
			close := i + 1
			for close < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[close]), "```") {
				close++
			}
			open, whole = lines[i:min(close+1, len(lines))], true
			end()
			i = close
		case strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "|"):
			end()
			open, whole = []string{line}, true
			end()
		case listMarker(trimmed):
			end()
			open, whole = []string{line}, true
		case whole && (line[0] == ' ' || line[0] == '\t'):
			open = append(open, line) // an item's further lines are indented
		case whole, len(open) > 0 && ended(open[len(open)-1], trimmed):
			end()
			open = []string{line}
		default:
			open = append(open, line)
		}
	}
	end()
	return list
}

// listMarker reports whether a line begins a list item: -, *, + or a bullet, or a
// number or letter with . or ), and then a space.
func listMarker(line string) bool {
	mark, rest, ok := strings.Cut(line, " ")
	if !ok || strings.TrimSpace(rest) == "" {
		return false
	}
	if slices.Contains([]string{"-", "*", "+", "•", "–", "—", "·", "▪", "◦"}, mark) {
		return true
	}
	name, found := strings.CutSuffix(mark, ".")
	if !found {
		if name, found = strings.CutSuffix(mark, ")"); !found {
			return false
		}
		name = strings.TrimPrefix(name, "(")
		return len(name) <= 3 && name != "" && strings.IndexFunc(name, func(r rune) bool { return !letterOrDigit(r) }) < 0
	}
	// A letter with a point is an initial more often than an item: only digits.
	return len(name) <= 3 && name != "" && strings.IndexFunc(name, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// ended reports whether a line break between the two lines ends a sentence.
func ended(line, next string) bool {
	line = strings.TrimSpace(line)
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(line, closing))
	if terminal(last) || last == ':' || last == '：' {
		return true
	}
	first, _ := utf8.DecodeRuneInString(next)
	return !unicode.IsLower(first) && utf8.RuneCountInString(line) < shortLine
}

// terminal reports whether a rune ends sentences.
func terminal(r rune) bool { return strings.ContainsRune(".!?…。！？｡؟۔।॥", r) }

// wide are the terminals of scripts that put no space after them.
func wide(r rune) bool { return strings.ContainsRune("。！？｡", r) }

// closing reports whether a rune closes what a sentence opened.
func closing(r rune) bool { return strings.ContainsRune("\"'”’»›)]}」』）】*_", r) }

// splitParagraph cuts running text into sentences.
func splitParagraph(text string) []string {
	var list []string
	start := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !terminal(r) {
			i += size
			continue
		}
		point := i
		i += size
		for i < len(text) { // "?!", "..." and quotes that close
			r2, size := utf8.DecodeRuneInString(text[i:])
			if !terminal(r2) && !(closing(r2) && !strings.HasPrefix(text[i:], "[")) {
				break
			}
			i += size
		}
		i += marks(text[i:])
		if i == len(text) {
			break
		}
		next, _ := utf8.DecodeRuneInString(text[i:])
		switch {
		case wide(r):
		case !unicode.IsSpace(next):
			continue // 3.5, example.com, v1.2
		case startsLower(text[i:]):
			continue // "Stop!" he said
		case r == '.' && i == point+1 && !endsSentence(text[start:point], text[i:]):
			continue
		}
		list = append(list, text[start:i])
		start = i
	}
	if start < len(text) {
		list = append(list, text[start:])
	}
	return list
}

// marks returns the length of citation marks, with the space before each, that a text
// begins with.
func marks(text string) int {
	n := 0
	for {
		rest := strings.TrimLeft(text[n:], " ")
		if !strings.HasPrefix(rest, "[") {
			return n
		}
		inner, _, ok := strings.Cut(rest[1:], "]")
		if !ok || inner == "" || strings.Trim(inner, "0123456789, ") != "" || strings.Trim(inner, ", ") == "" {
			return n
		}
		n = len(text) - len(rest) + len(inner) + 2
	}
}

// startsLower reports whether the next word begins with a small letter. It looks a few
// runes ahead: past space and what opens a quotation or a bracket.
func startsLower(text string) bool {
	ahead := 0
	for _, r := range text {
		if ahead++; letterOrDigit(r) || ahead > 8 {
			return unicode.IsLower(r)
		}
	}
	return false
}

// abbreviations end with a point and are followed by a capital or a number.
var abbreviations = []string{
	"mr", "mrs", "ms", "dr", "prof", "rev", "gen", "sen", "rep", "gov", "capt", "lt", "col", "sgt", "st", "mt", "hon", "pres",
	"vs", "v", "cf", "e.g", "i.e", "eg", "ie", "viz", "al", "ca", "approx", "est", "no", "nos", "vol", "fig", "figs", "eq", "sec", "ch", "pp", "p", "art", "ed", "eds",
	"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
	"hr", "fr", "nr", "bzw", "z.b", "d.h", "u.a", "ca", "vgl", "abs", "str", "bd", "geb", "sog",
	"sr", "sra", "srta", "ud", "mme", "mlle", "núm", "pág", "av",
}

// beforeOrdinals are German words after which a number with a point is an ordinal.
var beforeOrdinals = []string{"am", "vom", "zum", "beim", "der", "den", "dem", "des", "die", "das", "ab", "bis", "im", "jeder", "jedem"}

// endsSentence reports whether a single point after text ends a sentence, given what
// comes next.
func endsSentence(text, next string) bool {
	before := text[strings.LastIndexFunc(text, unicode.IsSpace)+1:]
	word := strings.ToLower(strings.TrimLeftFunc(before, func(r rune) bool { return !letterOrDigit(r) }))
	switch {
	case word == "":
		return true
	case slices.Contains(abbreviations, word):
		return word == "no" && startsUpper(next) // "No. 5", but "The answer is no. She left."
	case utf8.RuneCountInString(word) == 1 && unicode.IsUpper(firstLetter(before)):
		return false // an initial: J. K. Rowling
	case strings.Contains(word, ".") && utf8.RuneCountInString(word) <= 5 && initials(word):
		return false // U.S. troops, a.m. Monday
	case strings.Trim(word, "0123456789") == "" && len(word) <= 2:
		rest := strings.TrimRightFunc(text[:len(text)-len(before)], unicode.IsSpace)
		return !slices.Contains(beforeOrdinals, strings.ToLower(rest[strings.LastIndexFunc(rest, unicode.IsSpace)+1:]))
	}
	return true
}

func startsUpper(text string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimSpace(text))
	return unicode.IsUpper(r)
}

func firstLetter(word string) rune {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(word, func(r rune) bool { return !letterOrDigit(r) }))
	return r
}

// initials reports whether a word is single letters with points between them.
func initials(word string) bool {
	for _, part := range strings.Split(word, ".") {
		if utf8.RuneCountInString(part) != 1 {
			return false
		}
	}
	return true
}
