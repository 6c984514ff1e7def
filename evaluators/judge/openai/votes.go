package openai

import (
	"strings"

	"assay/evaluators/judge"
)

// readVote reads one vote: the whole answer is a letter, or the word that an option is,
// and nothing else. What is none counts as a vote outside the options and is not asked
// for again: asking until an option comes would hide how often none does.
func readVote(c *completion, s sheet) (reading, error) {
	ch, err := only(c)
	if err != nil {
		return reading{}, once(err)
	}
	text := trimmed(withoutThoughts(c.text()))
	switch i := s.match(text); {
	case text == "" && ch.FinishReason == "length":
		return reading{}, &judge.UnusableError{Reason: judge.ReasonCut}
	case text == "":
		return reading{}, &judge.UnusableError{Reason: judge.ReasonEmptyAnswer}
	case i < 0:
		return reading{}, &judge.UnusableError{Reason: judge.ReasonProse}
	case s.lines[i].option < 0:
		return reading{}, &judge.UnusableError{Reason: judge.ReasonJudgeAbstained}
	default:
		r := reading{probabilities: make([]float64, len(s.q.Options))}
		r.probabilities[s.lines[i].option] = 1
		return r, nil
	}
}

// readDraft reads what a model wrote.
func readDraft(c *completion) (reading, error) {
	ch, err := only(c)
	if err != nil {
		return reading{}, err
	}
	text := strings.TrimSpace(withoutThoughts(c.text()))
	switch {
	case ch.FinishReason == "length":
		return reading{}, &judge.UnusableError{Reason: judge.ReasonCut, Reask: true}
	case text == "":
		return reading{}, &judge.UnusableError{Reason: judge.ReasonEmptyAnswer, Reask: true}
	}
	return reading{text: text}, nil
}

// once is err without the wish to be asked again.
func once(err error) error {
	if unusable, ok := err.(*judge.UnusableError); ok {
		unusable.Reask = false
	}
	return err
}

// withoutThoughts takes off what a model that reasons says to itself first, where its
// server leaves that in the answer. It counts only whole and at the very beginning.
func withoutThoughts(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "<think>")
	if !ok {
		return text
	}
	_, answer, ok := strings.Cut(rest, "</think>")
	if !ok {
		return ""
	}
	return answer
}
