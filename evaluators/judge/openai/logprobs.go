package openai

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"

	"assay/evaluators/judge"
)

// A reading is a distribution read off a response.
type reading struct {
	probabilities []float64 // by the question's options
	parts         [][]float64
	text          string
	outside       float64
	detail        map[string]any
}

func (r *reading) note(key string, value any) {
	if r.detail == nil {
		r.detail = make(map[string]any)
	}
	r.detail[key] = value
}

// Rounding of servers: a listed probability may pass 1 by this much in its
// logarithm, and all of them together by the second figure.
const (
	logprobSlack = 1e-6
	totalSlack   = 1e-3
)

// only returns the one choice of a response, or what its absence means. A refusal is
// told apart from every other unusable answer.
func only(c *completion) (choice, error) {
	switch {
	case len(c.Choices) == 0:
		return choice{}, &judge.UnusableError{Reason: judge.ReasonEmptyAnswer, Reask: true}
	case len(c.Choices) > 1:
		return choice{}, &judge.UnusableError{Reason: judge.ReasonAmbiguous}
	}
	ch := c.Choices[0]
	if ch.Message.Refusal != "" || ch.FinishReason == "content_filter" {
		return choice{}, &judge.UnusableError{Reason: judge.ReasonJudgeRefused}
	}
	return ch, nil
}

// readLogprobs reads the distribution over the letters at the first position that
// holds more than quotes and space. The text the model wrote is not read: a sampled
// token is one draw from the distribution that stands beside it.
func readLogprobs(c *completion, s sheet, minInside float64) (reading, error) {
	ch, err := only(c)
	if err != nil {
		return reading{}, err
	}
	if ch.Logprobs == nil || len(ch.Logprobs.Content) == 0 {
		if strings.TrimSpace(c.text()) == "" {
			return reading{}, &judge.UnusableError{Reason: judge.ReasonEmptyAnswer, Reask: true}
		}
		return reading{}, &judge.FatalError{Err: errors.New(
			"the server answered without token probabilities: choose a model that gives them, or method votes:5 or structured")}
	}

	tokens := ch.Logprobs.Content
	at := 0
	for at < len(tokens) && trimmed(tokens[at].raw()) == "" {
		at++
	}
	switch {
	case at == len(tokens):
		return reading{}, &judge.UnusableError{Reason: judge.ReasonEmptyAnswer, Reask: true}
	case at > 2:
		return reading{}, &judge.UnusableError{Reason: judge.ReasonProse, Reask: true}
	}

	m, err := massOf(tokens[at], s)
	if err != nil {
		return reading{}, err
	}
	if !m.anyLetter {
		return reading{}, &judge.UnusableError{Reason: judge.ReasonProse, Reask: true}
	}
	// "A" of "A few": the letter was the beginning of a sentence.
	if s.match(trimmed(tokens[at].raw())) >= 0 && at+1 < len(tokens) && hasWord(tokens[at+1].raw()) {
		return reading{}, &judge.UnusableError{Reason: judge.ReasonProse, Reask: true}
	}
	return m.reading(minInside)
}

// A mass is how much probability fell where at one position.
type mass struct {
	options   []float64 // by the question's options
	listed    []bool    // whether the option stood in the list at all
	abstain   float64
	smallest  float64 // of the listed probabilities
	anyLetter bool
}

// massOf adds up the listed tokens. Spellings of one letter add; the same raw token
// listed twice does not.
func massOf(t token, s sheet) (mass, error) {
	m := mass{
		options:  make([]float64, len(s.q.Options)),
		listed:   make([]bool, len(s.q.Options)),
		smallest: 1,
	}
	seen := make(map[string]bool, len(t.Top)+1)
	total := 0.0
	for _, c := range append(t.Top[:len(t.Top):len(t.Top)], t) {
		raw := c.raw()
		if seen[raw] {
			continue
		}
		seen[raw] = true
		p, ok := probability(c.Logprob)
		if !ok {
			return mass{}, malformed("a log probability that is none")
		}
		total += p
		m.smallest = min(m.smallest, p)
		i := s.match(trimmed(raw))
		if i < 0 {
			continue
		}
		m.anyLetter = true
		if o := s.lines[i].option; o >= 0 {
			m.options[o] += p
			m.listed[o] = true
		} else {
			m.abstain += p
		}
	}
	if total > 1+totalSlack {
		return mass{}, malformed(fmt.Sprintf("listed probabilities sum to %.3g", total))
	}
	return m, nil
}

// reading normalises the mass, unless too little of it is on the options.
func (m mass) reading(minInside float64) (reading, error) {
	inside, largest := 0.0, 0.0
	for _, p := range m.options {
		inside += p
		largest = max(largest, p)
	}
	outside := min(1, max(0, 1-inside))
	switch {
	case m.abstain >= largest && m.abstain > 0:
		return reading{}, &judge.UnusableError{Reason: judge.ReasonJudgeAbstained, Detail: map[string]any{"outside": outside}}
	case inside < minInside:
		return reading{}, &judge.UnusableError{Reason: judge.ReasonOutsideOptions, Detail: map[string]any{"outside": outside}}
	}
	r := reading{probabilities: make([]float64, len(m.options)), outside: outside}
	for i, p := range m.options {
		r.probabilities[i] = p / inside
		if !m.listed[i] {
			// It was not among the tokens listed, so it has at most this.
			r.note("floor", m.smallest)
		}
	}
	return r, nil
}

// match returns the line that a trimmed token answers, or -1. Only the whole letter
// counts, or the whole word that an option is: never a beginning.
func (s sheet) match(text string) int {
	if text == "" {
		return -1
	}
	for i, l := range s.lines {
		if strings.EqualFold(text, l.letter) {
			return i
		}
	}
	for i, l := range s.lines {
		// A key of one letter is a name of ours, and the sheet shows another.
		if l.option < 0 || len(l.key) < 2 {
			continue
		}
		if strings.EqualFold(text, l.key) || (s.q.Kind == judge.Boolean && truthWord(l.key, text)) {
			return i
		}
	}
	return -1
}

func truthWord(key, text string) bool {
	switch key {
	case "yes":
		return strings.EqualFold(text, "true") || strings.EqualFold(text, "correct")
	case "no":
		return strings.EqualFold(text, "false") || strings.EqualFold(text, "incorrect")
	}
	return false
}

// trimmed takes off what models put around a letter.
func trimmed(raw string) string {
	return strings.TrimFunc(raw, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`“”„‘’«»*_()[].:,", r)
	})
}

func hasWord(raw string) bool {
	return strings.ContainsFunc(raw, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

func probability(l *logprob) (float64, bool) {
	if l == nil {
		return 0, true
	}
	v := float64(*l)
	if math.IsNaN(v) || v > logprobSlack {
		return 0, false
	}
	return math.Exp(min(v, 0)), true
}

func malformed(why string) error {
	return &judge.UnusableError{Reason: judge.ReasonMalformed, Detail: map[string]any{"why": why}}
}
