package main

import (
	"strconv"
	"strings"
	"unicode"

	"assay/evaluators/judge/embedded"
)

// A template makes an answer from the right one and two wrong ones.
type template struct {
	text  string // {g} the reference, {w} and {v} other questions' references
	agree bool
}

// templates are answers whose words overlap and whose meaning does not, and the
// other way round. Data of real answers holds few of them, users' logs hold them all.
func templates() []template {
	return []template{
		{"It was not {g}.", false},
		{"No, it is not {g}.", false},
		{"Not {g} but {w}.", false},
		{"{w}, not {g}.", false},
		{"People often say {g}, but it is actually {w}.", false},
		{"It was {w} rather than {g}.", false},
		{"It could be {g}, {w} or {v}; that is unclear.", false},
		{"Either {w} or {g}, I am not sure.", false},
		{"The claim that it is {g} is wrong.", false},
		{"{g} is a myth. The answer is {w}.", false},
		{"{w}", false},
		{"The answer is {w}.", false},
		{"I do not know whether it is {g}.", false},
		{"It was {g}.", true},
		{"{g}", true},
		{"The answer is {g}.", true},
		{"Not {w} but {g}.", true},
		{"{g}, not {w}.", true},
		{"People often say {w}, but it is actually {g}.", true},
		{"It was {g} rather than {w}.", true},
		{"{w} is a common guess; however, the right answer is {g}.", true},
		{"It is wrong to say {w}. It is {g}.", true},
		{"Contrary to popular belief, it is {g}.", true},
		{"Sure, happy to help. The answer to that is {g}.", true},
	}
}

// perQuestion is how many templates each question is put through.
const perQuestion = 2

// traps makes rows from the questions' own references. The wrong answers come from
// the next question of the same form, so that a number stands against a number.
func traps(questions []question) []row {
	var (
		all  = templates()
		out  []row
		last = map[string][]string{} // form -> references seen, latest last
	)
	for i, q := range questions {
		if q.improper || len(q.golds) == 0 || len(strings.Fields(q.golds[0])) > 6 {
			continue
		}
		gold, f := q.golds[0], form(q.golds[0])
		// Wrong answers must come from the same side of the split, or words of
		// held-out questions would leak into training.
		f += strconv.FormatBool(embedded.HeldOut(q.text))
		seen := last[f]
		if len(seen) >= 2 && !strings.EqualFold(seen[len(seen)-1], gold) && !strings.EqualFold(seen[len(seen)-2], gold) {
			fill := strings.NewReplacer("{g}", gold, "{w}", seen[len(seen)-1], "{v}", seen[len(seen)-2])
			for k := range perQuestion {
				t := all[pick(q.text+"\x00trap"+strconv.Itoa(k), len(all))]
				out = append(out, row{trap, i, "", embedded.Pair{Question: q.text, Answer: fill.Replace(t.text), References: q.golds}, t.agree})
			}
		}
		last[f] = append(seen, gold)
		out = append(out, sentenceTraps(i, q)...)
	}
	return out
}

// form parts references that could stand for each other from those that could not.
func form(gold string) string {
	digits, capitals := false, false
	for _, r := range gold {
		digits = digits || unicode.IsDigit(r)
		capitals = capitals || unicode.IsUpper(r)
	}
	switch {
	case digits:
		return "number"
	case capitals:
		return "name"
	}
	return "words"
}

// sentenceTraps turns an approved sentence against itself: negated, with another
// number, and unchanged as the counterweight.
func sentenceTraps(i int, q question) []row {
	ref, ok := approved(q, answer{})
	if !ok {
		return nil
	}
	agree, text := false, ""
	switch pick(q.text+"\x00sentence", 3) {
	case 0:
		text, ok = negate(ref)
	case 1:
		text, ok = otherNumber(ref)
	default:
		text, agree = ref, true
	}
	if !ok {
		return nil
	}
	return []row{{trap, i, "", embedded.Pair{Question: q.text, Answer: text, References: []string{ref}}, agree}}
}

// negate puts a not behind the first verb that takes one.
func negate(s string) (string, bool) {
	for _, verb := range []string{" is ", " was ", " are ", " were ", " has ", " can "} {
		if at := strings.Index(s, verb); at >= 0 {
			at += len(verb)
			return s[:at] + "not " + s[at:], true
		}
	}
	return "", false
}

// otherNumber changes the last digit of the first number.
func otherNumber(s string) (string, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' || i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9' {
			continue
		}
		changed := '0' + (s[i]-'0'+3)%10
		return s[:i] + string(rune(changed)) + s[i+1:], true
	}
	return "", false
}
