package evaluators

import (
	"context"
	"errors"
	"strings"

	"assay/evaluators/judge"
)

// draftTries is how often a text is asked for: once more where the first is not in the
// form that was asked for.
const draftTries = 2

// drafted has the judge write a text and reads it. The text of a second try has another
// index, or the cache would give the first one again; drafts is how many are asked for
// beside it.
func drafted[T any](ctx context.Context, j judge.Judge, q judge.Question, drafts int, read func(string) (T, error), spent func(judge.Spent)) (T, judge.Answer, error) {
	var none T
	for try := 1; ; try++ {
		a, err := j.Ask(ctx, q)
		if err != nil {
			return none, judge.Answer{}, err
		}
		v, err := read(a.Text)
		if err == nil {
			spent(judge.Spent{Usage: a.Usage, Attempts: a.Attempts})
			return v, a, nil
		}
		if try == draftTries {
			return none, judge.Answer{}, &judge.UnusableError{
				Reason: judge.ReasonMalformed, Raw: firstRunes(a.Text, 200), Detail: map[string]any{"why": err.Error()}, Method: a.Method,
				Spent: judge.Spent{Usage: a.Usage, Attempts: a.Attempts, Model: a.Model},
			}
		}
		spent(judge.Spent{Usage: a.Usage, Attempts: a.Attempts})
		q.Vote += drafts
	}
}

// textLines are the lines of a text that hold something.
func textLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// A question that a judge wrote, and whether it found the answer evasive.
type asked struct {
	text         string
	noncommittal bool
	model        string
}

// mostDraftRunes of a question are far more than anybody asks in one.
const mostDraftRunes = 2000

// readAsked reads the two lines that draftText asks for.
func readAsked(text string) (asked, error) {
	lines := textLines(text)
	if len(lines) != 2 {
		return asked{}, errors.New("want a line with a question and a line with noncommittal: yes or no")
	}
	a := asked{text: lines[0]}
	switch strings.ToLower(strings.Trim(lines[1], "*_`.\" ")) {
	case "noncommittal: yes":
		a.noncommittal = true
	case "noncommittal: no":
	default:
		return asked{}, errors.New("the second line is neither noncommittal: yes nor noncommittal: no")
	}
	if len([]rune(a.text)) > mostDraftRunes {
		return asked{}, errors.New("a question of thousands of characters")
	}
	return a, nil
}
