package embedded

import (
	"math"
	"strconv"
)

// A numberWord is a word that names a number or multiplies one.
type numberWord struct {
	value    float64
	multiple bool // hundred, thousand, million, ...
	weak     bool // one, first: as often grammar as number, so they never contradict
}

func numberWords() map[string]numberWord {
	m := map[string]numberWord{}
	cardinals := []string{
		"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
		"fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
	}
	for i, w := range cardinals {
		m[w] = numberWord{value: float64(i), weak: i < 2}
	}
	ordinals := []string{
		"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth",
		"fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth",
	}
	for i, w := range ordinals {
		m[w] = numberWord{value: float64(i + 1), weak: i < 3}
	}
	for i, w := range []string{"twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"} {
		m[w] = numberWord{value: float64(10 * (i + 2))}
	}
	m["hundred"] = numberWord{value: 1e2, multiple: true}
	m["thousand"] = numberWord{value: 1e3, multiple: true}
	m["million"] = numberWord{value: 1e6, multiple: true}
	m["billion"] = numberWord{value: 1e9, multiple: true}
	m["trillion"] = numberWord{value: 1e12, multiple: true}
	m["dozen"] = numberWord{value: 12, multiple: true}
	m["twice"] = numberWord{value: 2}
	m["once"] = numberWord{value: 1, weak: true}
	return m
}

// roman reads a small Roman numeral. A single letter is none (I, V and X are words
// and initials too often), and neither is Xi unless it is shouted: it is a name.
func roman(word string, shouted bool) (float64, bool) {
	if len(word) < 2 || len(word) > 5 || word == "xi" && !shouted {
		return 0, false
	}
	digit := func(c byte) int {
		switch c {
		case 'i':
			return 1
		case 'v':
			return 5
		case 'x':
			return 10
		}
		return 0
	}
	total := 0
	for i := range len(word) {
		d := digit(word[i])
		if d == 0 {
			return 0, false
		}
		if i+1 < len(word) && digit(word[i+1]) > d {
			d = -d
		}
		total += d
	}
	if total < 1 || total > 39 || romanOf(total) != word {
		return 0, false
	}
	return float64(total), true
}

func romanOf(n int) string {
	var out []byte
	for _, step := range []struct {
		value int
		text  string
	}{{10, "x"}, {9, "ix"}, {5, "v"}, {4, "iv"}, {1, "i"}} {
		for n >= step.value {
			out = append(out, step.text...)
			n -= step.value
		}
	}
	return string(out)
}

// numberStem is the one spelling under which equal numbers meet.
func numberStem(v float64) string {
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// isYear tells the numbers that people read as years.
func isYear(v float64) bool {
	return v >= 1000 && v <= 2100 && v == math.Trunc(v)
}

// joinNumbers folds runs of number words into one number token: "two hundred and
// five" is 205, "1.5 million" 1500000, "twenty first" 21. It rewrites tokens in place.
func (l *lexicon) joinNumbers(tokens []token) []token {
	out := tokens[:0]
	for i := 0; i < len(tokens); {
		t := tokens[i]
		word, named := l.numbers[t.text]
		// A multiplier alone is a word ("a million reasons"), and "second" beside no
		// other number is mostly a unit of time.
		if !t.isNumber && (!named || word.multiple) {
			out = append(out, t)
			i++
			continue
		}
		total, part := 0.0, t.number
		weak := false
		if named {
			part, weak = word.value, word.weak
		}
		j := i + 1
	run:
		for j < len(tokens) && tokens[j].sentence == t.sentence {
			next, ok := l.numbers[tokens[j].text]
			switch {
			case ok && next.multiple && next.value > 100:
				total, part = total+part*next.value, 0
			case ok && next.multiple:
				part *= next.value
			case ok && named && tensThenUnit(part, next.value):
				part += next.value
			case ok && named && math.Mod(part, 100) == 0 && part > 0 && next.value < 100:
				part += next.value // two hundred five
			case ok && total > 0 && part == 0:
				part = next.value // two thousand five
			case tokens[j].text == "and" && j+1 < len(tokens) && named && (part >= 100 || total > 0):
				after, ok := l.numbers[tokens[j+1].text]
				if !ok || after.multiple {
					break run
				}
			default:
				break run
			}
			weak = false
			j++
		}
		if value := total + part; !math.IsInf(value, 0) {
			t.isNumber, t.number, t.weak = true, value, weak
			t.stem = numberStem(value)
		}
		out = append(out, t)
		i = j
	}
	return out
}

// tensThenUnit is true for twenty and one, not for five and three.
func tensThenUnit(part, next float64) bool {
	rest := math.Mod(part, 100)
	return rest >= 20 && math.Mod(rest, 10) == 0 && next >= 1 && next <= 9
}
