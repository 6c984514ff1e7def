package embedded

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A token is one word or number of a text.
type token struct {
	text     string // folded and lower-cased
	stem     string // under which equal words meet
	class    class
	number   float64
	isNumber bool
	weak     bool // a number that is as often grammar: one, first
	capital  bool // began with a capital
	shouted  bool // all capitals, two letters or more
	comma    bool // a comma stands before it
	sentence int
}

func (t token) content() bool { return t.isNumber && !t.weak || t.class&stop == 0 }

// A document is a text made ready for comparison.
type document struct {
	tokens    []token
	content   []int            // indices of tokens that carry content
	positions map[string][]int // stem -> indices of tokens, ascending
	folded    string           // folded, lower-cased words, one space between: for phrases and trigrams
	joined    string           // the same without spaces: Spider-Man meets Spiderman
	commas    int
	shapes    []shape // see wordShapes; a document belongs to one call
}

// has reports whether the text holds a token of that stem.
func (d *document) has(stem string) bool { return len(d.positions[stem]) > 0 }

// fold takes accents off and unfolds compatibility forms; the case is kept, because
// capitals still have to tell US from us.
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range norm.NFKD.String(s) {
		switch {
		case unicode.Is(unicode.Mn, r) || isInvisible(r):
		case r == 'ß':
			b.WriteString("ss")
		case r == 'ø':
			b.WriteByte('o')
		case r == 'Ø':
			b.WriteByte('O')
		case r == 'æ':
			b.WriteString("ae")
		case r == 'Æ':
			b.WriteString("Ae")
		case r == 'œ':
			b.WriteString("oe")
		case r == 'ł':
			b.WriteByte('l')
		case r == 'Ł':
			b.WriteByte('L')
		case r == 'đ' || r == 'ð':
			b.WriteByte('d')
		case r == 'ı':
			b.WriteByte('i')
		case r == '’' || r == '‘' || r == 'ʼ' || r == '`' || r == '´':
			b.WriteByte('\'')
		case r == '−' || r == '–' || r == '—' || r == '‐' || r == '‑':
			b.WriteByte('-')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isInvisible tells the runes that show nothing: zero-width forms, joiners, marks of direction.
func isInvisible(r rune) bool {
	return unicode.Is(unicode.Cf, r)
}

// isBlank reports whether a text shows nothing to a reader.
func isBlank(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) && !isInvisible(r) && r != 'ㅤ' && r != '⠀' {
			return false
		}
	}
	return true
}

// read cuts a text into tokens and indexes them.
func (l *lexicon) read(text string) *document {
	s := scanner{lex: l, text: fold(text)}
	s.scan()
	tokens := l.joinNumbers(s.tokens)

	d := &document{tokens: tokens, commas: s.commas, positions: make(map[string][]int, len(tokens))}
	var folded strings.Builder
	folded.Grow(len(text))
	for i := range tokens {
		t := &tokens[i]
		if t.content() {
			d.content = append(d.content, i)
		}
		d.positions[t.stem] = append(d.positions[t.stem], i)
		if i > 0 {
			folded.WriteByte(' ')
		}
		if t.isNumber {
			folded.WriteString(t.stem)
		} else {
			folded.WriteString(t.text)
		}
	}
	d.folded = folded.String()
	d.joined = strings.ReplaceAll(d.folded, " ", "")
	return d
}

// A scanner walks over a folded text once.
type scanner struct {
	lex      *lexicon
	text     string
	tokens   []token
	sentence int
	commas   int
	started  bool // the sentence has a token
	comma    bool // the next token follows a comma
}

func (s *scanner) scan() {
	for i := 0; i < len(s.text); {
		r, size := utf8.DecodeRuneInString(s.text[i:])
		switch {
		case r >= '0' && r <= '9':
			i = s.number(i)
		case unicode.IsLetter(r):
			i = s.word(i)
		case r == '%':
			s.add(token{text: "percent", stem: "percent"})
			i++
		case r == '&':
			s.add(token{text: "and", stem: "and", class: s.lex.classes["and"]})
			i++
		case r == '.' || r == '!' || r == '?' || r == '\n' || r == ';':
			s.stop(i, r)
			i += size
		default:
			if r == ',' {
				s.commas++
				s.comma = true
			}
			i += size
		}
	}
}

// stop ends a sentence, unless the mark belongs to an abbreviation, an initial or a decimal.
func (s *scanner) stop(i int, r rune) {
	if !s.started {
		return
	}
	if r == '.' {
		if i+1 < len(s.text) && s.text[i+1] != ' ' && s.text[i+1] != '\n' && s.text[i+1] != '"' {
			return
		}
		last := s.tokens[len(s.tokens)-1]
		if !last.isNumber && (len(last.text) == 1 || last.class&abbreviation != 0) {
			return
		}
	}
	s.sentence++
	s.started = false
}

func (s *scanner) add(t token) {
	t.sentence, t.comma = s.sentence, s.comma
	s.comma = false
	s.started = true
	s.tokens = append(s.tokens, t)
}

// number reads 1,000 and 3.5 and the tails of 1st, 1990s and 5km.
func (s *scanner) number(start int) int {
	if end := s.isoDate(start); end > 0 {
		return end
	}
	digits := make([]byte, 0, 16)
	if start > 0 && s.text[start-1] == '-' && (start == 1 || s.text[start-2] == ' ' || s.text[start-2] == '(') {
		digits = append(digits, '-')
	}
	isDigit := func(i int) bool { return i < len(s.text) && s.text[i] >= '0' && s.text[i] <= '9' }
	i, fraction := start, false
	for i < len(s.text) {
		c := s.text[i]
		switch {
		case isDigit(i):
			digits = append(digits, c)
			i++
			continue
		case c == ',' && !fraction && isDigit(i+1) && isDigit(i+2) && isDigit(i+3) && !isDigit(i+4):
			i++
			continue
		case c == '.' && !fraction && isDigit(i+1):
			fraction = true
			digits = append(digits, c)
			i++
			continue
		}
		break
	}
	value, err := strconv.ParseFloat(string(digits), 64)
	if err != nil || len(digits) > 24 {
		// No quantity anyone compares: a serial number stays a word.
		s.add(token{text: string(digits), stem: string(digits)})
		return i
	}
	end := i
	for end < len(s.text) && (s.text[end]|0x20 >= 'a' && s.text[end]|0x20 <= 'z') {
		end++
	}
	switch strings.ToLower(s.text[i:end]) {
	case "st", "nd", "rd", "th", "s":
		i = end
	}
	s.add(token{text: numberStem(value), stem: numberStem(value), number: value, isNumber: true})
	return i
}

// isoDate reads 2025-03-04 as the words it stands for, year, month and day. Other
// orders are not read: who writes 03/04 means March or April.
func (s *scanner) isoDate(start int) int {
	const form = "2006-01-02"
	if start+len(form) > len(s.text) {
		return 0
	}
	day, err := time.Parse(form, s.text[start:start+len(form)])
	if err != nil {
		return 0
	}
	name := strings.ToLower(day.Month().String())
	for _, t := range []token{
		{number: float64(day.Year()), isNumber: true},
		{text: name, stem: stem(name), class: s.lex.classes[name], capital: true},
		{number: float64(day.Day()), isNumber: true},
	} {
		if t.isNumber {
			t.stem = numberStem(t.number)
			t.text = t.stem
		}
		s.add(t)
	}
	return start + len(form)
}

// word reads letters and the digits and apostrophes inside, or initials (J. R. R., U.S.).
func (s *scanner) word(start int) int {
	if end, initials := s.initials(start); end > 0 {
		s.addWord(initials, true, true)
		return end
	}
	i := start
	upper, letters := 0, 0
	plain := true
	for i < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[i:])
		if unicode.IsLetter(r) {
			letters++
			if unicode.IsUpper(r) {
				upper++
			}
		} else if r == '\'' && i+1 < len(s.text) && isLetterAt(s.text, i+1) {
			plain = false
		} else if !unicode.IsDigit(r) {
			break
		}
		i += size
	}
	raw := s.text[start:i]
	first, _ := utf8.DecodeRuneInString(raw)
	text := raw
	if upper > 0 {
		text = strings.ToLower(raw)
	}
	if !plain {
		// The possessive goes here: "King's" is about a king, but "James" keeps its s.
		if base, ok := strings.CutSuffix(text, "'s"); ok {
			text = base
		}
		text = strings.ReplaceAll(text, "'", "")
	}
	s.addWord(text, unicode.IsUpper(first), upper == letters && letters > 1)
	return i
}

func isLetterAt(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return unicode.IsLetter(r)
}

// initials reads single capitals with dots, at least two of them: U.S., J. R. R.
// It returns 0 when there are none at start.
func (s *scanner) initials(start int) (end int, text string) {
	var letters [8]byte
	n, i := 0, start
	for i+1 < len(s.text) && n < len(letters) && s.text[i] >= 'A' && s.text[i] <= 'Z' && s.text[i+1] == '.' {
		letters[n] = s.text[i] | 0x20
		n++
		i += 2
		end = i
		if i+2 < len(s.text) && s.text[i] == ' ' && s.text[i+1] >= 'A' && s.text[i+1] <= 'Z' && s.text[i+2] == '.' {
			i++
		}
	}
	if n < 2 {
		return 0, ""
	}
	return end, string(letters[:n])
}

// addWord adds a word, or the words its short form stands for.
func (s *scanner) addWord(text string, capital, shouted bool) {
	if text == "" {
		return
	}
	if text == "us" && shouted {
		text = "usa"
	}
	if words, ok := s.lex.aliases[text]; ok {
		for _, w := range words {
			t := token{text: w, stem: stem(w), class: s.lex.classes[w], capital: capital}
			if v, err := strconv.ParseFloat(w, 64); err == nil {
				t.number, t.isNumber, t.stem = v, true, w
			}
			s.add(t)
		}
		return
	}
	if name, ok := s.lex.months[text]; ok && (text != "mar" || capital) {
		text = name
	}
	t := token{text: text, class: s.lex.classes[text], capital: capital, shouted: shouted}
	if v, ok := roman(text, shouted); ok {
		t.number, t.isNumber, t.stem = v, true, numberStem(v)
	} else if t.class&stop != 0 {
		t.stem = text
	} else {
		t.stem = stem(text)
	}
	s.add(t)
}
