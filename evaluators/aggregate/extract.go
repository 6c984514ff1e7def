package aggregate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

func extractionMetrics() []Metric {
	type answer struct {
		Text  *string `json:"text"`
		Style string  `json:"style"`
	}
	type text struct {
		Text *string `json:"text"`
	}
	type choice struct {
		Text    *string `json:"text"`
		Options string  `json:"options"`
	}
	type benchmark struct {
		References list   `json:"references"`
		Outputs    list   `json:"outputs"`
		Style      string `json:"style"`
	}
	dialects := []string{"", "assay", "evalsuite", "openai_strict", "lm_eval_flexible"}
	return []Metric{
		metric("extract_answer", "the final answer in a solution; nothing where there is none", dialects, func(dialect string, a answer) (Value, error) {
			if a.Text == nil {
				return Value{}, errors.New("text: want a text")
			}
			found, ok, err := ExtractAnswer(*a.Text, a.Style, dialect)
			return orNothing(found, ok), err
		}),
		metric("last_boxed", "the last \\boxed{...} of a text, as a whole", nil, func(_ string, a text) (Value, error) {
			if a.Text == nil {
				return Value{}, errors.New("text: want a text")
			}
			start, end, ok := lastBoxed(*a.Text, `\boxed`)
			return orNothing((*a.Text)[start:end], ok), nil
		}),
		metric("extract_choice", "the letter that an answer chooses", []string{"math_verify"}, func(_ string, a choice) (Value, error) {
			if a.Text == nil {
				return Value{}, errors.New("text: want a text")
			}
			first, last, ok := letterRange(a.Options)
			if !ok {
				return Value{}, fmt.Errorf("options: %q: want two letters such as A-D", a.Options)
			}
			return orNothing(firstChoice(*a.Text, first, last)), nil
		}),
		metric("benchmark_accuracy", "the share of outputs whose final answer is that of the reference; one without a final answer is wrong", dialects,
			func(dialect string, a benchmark) (Value, error) {
				return benchmarkAccuracy(a.References, a.Outputs, a.Style, dialect)
			}),
	}
}

func orNothing(text string, ok bool) Value {
	if !ok {
		return Value{}
	}
	return Value{V: text}
}

// ExtractAnswer takes the final answer out of a solution of that style: gsm8k, boxed,
// last_line or choice. An empty dialect is the style's default. It is false where there
// is no final answer.
func ExtractAnswer(text, style, dialect string) (found string, ok bool, err error) {
	extract := map[string]map[string]func(string) (string, bool){
		"gsm8k":     {"": gsm8k, "evalsuite": gsm8k, "openai_strict": gsm8kStrict, "lm_eval_flexible": gsm8kFlexible},
		"boxed":     {"": boxed, "evalsuite": boxed},
		"last_line": {"": lastLine, "evalsuite": lastLine},
		"choice":    {"": chosenLetter, "assay": chosenLetter, "evalsuite": lastLetter},
	}[style]
	if extract == nil {
		return "", false, fmt.Errorf("style: %q: want gsm8k, boxed, last_line or choice", style)
	}
	f := extract[dialect]
	if f == nil {
		return "", false, fmt.Errorf("style %s has no dialect %q", style, dialect)
	}
	found, ok = f(text)
	return found, ok, nil
}

// benchmarkAccuracy compares final answers. A reference may be the answer alone.
func benchmarkAccuracy(references, outputs []string, style, dialect string) (Value, error) {
	if err := sameLength("references and outputs", len(references), len(outputs)); err != nil {
		return Value{}, err
	}
	scores, notFound := make([]float64, len(outputs)), 0
	for i, output := range outputs {
		given, ok, err := ExtractAnswer(output, style, dialect)
		if err != nil {
			return Value{}, err
		}
		if !ok {
			notFound++
			continue
		}
		want := strings.TrimSpace(references[i])
		switch {
		case hasMark(want, style):
			var marked bool
			if want, marked, err = ExtractAnswer(want, style, dialect); err != nil || !marked {
				return Value{}, fmt.Errorf("references[%d]: its mark has no answer after it: %w", i, errors.Join(err, errNothing))
			}
		case style == "gsm8k":
			want = cleanNumber(want)
		}
		if style == "gsm8k" {
			given = cleanNumber(given)
		}
		scores[i] = number(given == want)
	}
	v, err := meanOf(scores)
	if err == nil {
		v.Detail = map[string]any{"no_answer_found": notFound}
	}
	return v, err
}

func hasMark(text, style string) bool {
	switch style {
	case "gsm8k":
		return strings.Contains(text, "####")
	case "boxed":
		return strings.Contains(text, `\boxed{`) || strings.Contains(text, `\fbox{`)
	}
	return false
}

// gsm8k reads the first number after the last mark, else the last number of the text.
func gsm8k(text string) (string, bool) {
	number := regexp.MustCompile(`-?\$?\d[\d,]*(?:\.\d+)?`)
	if at := strings.LastIndex(text, "####"); at >= 0 {
		tail := strings.TrimSpace(text[at+len("####"):])
		if found := number.FindString(tail); found != "" {
			return cleanNumber(found), true
		}
		return tail, tail != ""
	}
	all := number.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return "", false
	}
	last := all[len(all)-1]
	return cleanNumber(text[last[0]:last[1]]), true
}

// cleanNumber takes commas, dollar signs and a fraction of zeros off.
func cleanNumber(s string) string {
	s = strings.NewReplacer(",", "", "$", "").Replace(s)
	if whole, fraction, ok := strings.Cut(s, "."); ok && fraction != "" && strings.Trim(fraction, "0") == "" {
		return whole
	}
	return s
}

func gsm8kStrict(text string) (string, bool) {
	found := regexp.MustCompile(`#### (-?[0-9.,]+)`).FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	return strings.ReplaceAll(found[1], ",", ""), true
}

func gsm8kFlexible(text string) (string, bool) {
	all := regexp.MustCompile(`-?[$0-9.,]{2,}|-?[0-9]+`).FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return "", false
	}
	last := all[len(all)-1]
	return strings.TrimSuffix(strings.NewReplacer(",", "", "$", "").Replace(text[last[0]:last[1]]), "."), true
}

func boxed(text string) (string, bool) {
	for _, box := range []string{`\boxed`, `\fbox`} {
		if start, end, ok := lastBoxed(text, box); ok {
			return strings.TrimSpace(text[start+len(box)+1 : end-1]), true
		}
	}
	return "", false
}

// lastBoxed finds the last box with its braces. A later box without braces makes it
// unknown which is the answer.
func lastBoxed(text, box string) (start, end int, ok bool) {
	start = strings.LastIndex(text, box)
	if start < 0 || !strings.HasPrefix(text[start+len(box):], "{") {
		return 0, 0, false
	}
	depth := 0
	for i := start + len(box); i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return start, i + 1, true
			}
		}
	}
	return 0, 0, false
}

func lastLine(text string) (string, bool) {
	last := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			last = line
		}
	}
	return last, last != ""
}

// lastLetter is the last letter from A to J without a letter beside it, articles
// included: the rule of others, traps and all.
func lastLetter(text string) (string, bool) {
	asciiLetter := func(i int) bool {
		return i >= 0 && i < len(text) && (text[i] >= 'A' && text[i] <= 'Z' || text[i] >= 'a' && text[i] <= 'z')
	}
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] >= 'A' && text[i] <= 'J' && !asciiLetter(i-1) && !asciiLetter(i+1) {
			return text[i : i+1], true
		}
	}
	return "", false
}

// chosenLetter is the letter that a text gives as its answer: in the last place that
// says so, else alone at the start of a line, else the only one there is.
func chosenLetter(text string) (string, bool) {
	stated := regexp.MustCompile(`(?i)\banswer(?:\s+is)?\s*[:=]?[\s*_$("'\[]*(?:option\s+|choice\s+)?[(\[]?([a-j])`)
	verb := regexp.MustCompile(`(?i)^answer(?:\s+is|\s*[:=])`)
	found := ""
	for _, at := range stated.FindAllStringSubmatchIndex(text, -1) {
		letter := text[at[2]:at[3]]
		if verb.MatchString(text[at[0]:]) && !wordAfter(text, at[3], letter) {
			found = strings.ToUpper(letter)
		}
	}
	if found != "" {
		return found, true
	}
	if letter, ok := only(regexp.MustCompile(`(?m)^\s*[(*]*([A-J])\**(?:[.):]|\s*$)`), text, nil); ok {
		return letter, true
	}
	return only(regexp.MustCompile(`[A-J]`), text, func(at int) bool { return standsAlone(text, at) })
}

// wordAfter reports whether the letter at the end of text[:end] is the beginning of a
// word, or the word a or I of a sentence.
func wordAfter(text string, end int, letter string) bool {
	rest := text[end:]
	next, _ := firstRune(rest)
	if unicode.IsLetter(next) || unicode.IsNumber(next) || next == '\'' || next == '’' {
		return true
	}
	if letter != "a" && letter != "i" && letter != "I" {
		return false
	}
	after, _ := firstRune(strings.TrimLeft(rest, " \t"))
	return next == ' ' && unicode.IsLetter(after)
}

// standsAlone reports whether the letter at that byte has no letter or digit beside it,
// and is not the word A or I of a sentence.
func standsAlone(text string, at int) bool {
	before, _ := lastRune(text[:at])
	rest := text[at+1:]
	next, _ := firstRune(rest)
	for _, r := range []rune{before, next} {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || r == '\'' || r == '’' {
			return false
		}
	}
	if text[at] != 'A' && text[at] != 'I' {
		return true
	}
	after, _ := firstRune(strings.TrimLeft(rest, " \t"))
	return !(next == ' ' && unicode.IsLower(after))
}

// only returns the letter that all matches agree on.
func only(re *regexp.Regexp, text string, counts func(at int) bool) (string, bool) {
	found := ""
	for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
		at := m[len(m)-2:]
		letter := text[at[0]:at[1]]
		if counts != nil && !counts(at[0]) {
			continue
		}
		if found != "" && letter != found {
			return "", false
		}
		found = letter
	}
	return found, found != ""
}

// letterRange reads A-D.
func letterRange(s string) (first, last byte, ok bool) {
	if len(s) != 3 || s[1] != '-' || s[0] < 'A' || s[2] > 'Z' || s[0] > s[2] {
		return 0, 0, false
	}
	return s[0], s[2], true
}

// firstChoice is the stated letter, else one that opens the text, else the first that
// stands alone.
func firstChoice(text string, first, last byte) (string, bool) {
	class := fmt.Sprintf("[%c-%c]", first, last)
	for _, pattern := range []string{
		`(?i:\b(?:final\s+)?answer(?:\s+is|\s*:)\s*[(\[*$]*)(` + class + `)(?:[^A-Za-z0-9]|$)`,
		`^\s*[(\[*]*(` + class + `)(?:[^A-Za-z0-9]|$)`,
		`(?:^|[^A-Za-z0-9])(` + class + `)(?:[^A-Za-z0-9]|$)`,
	} {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
			return m[1], true
		}
	}
	return "", false
}
