package openai

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"assay/evaluators/judge"
)

// probeOptions has as many options as a sheet of our largest question has letters.
var probeOptions = [...]string{"red", "blue", "green", "white", "black", "brown"}

// A KnownQuestion is one whose answer nobody doubts.
type KnownQuestion struct {
	Question judge.Question
	Right    string // option key
}

// ProbeQuestions are the questions that Probe asks.
func ProbeQuestions() []KnownQuestion {
	word := []judge.Field{{Name: "word", Value: "blue"}}
	letters := judge.Question{
		Name:   "probe_letters/1",
		Kind:   judge.Choice,
		Text:   "Which of these words stands in the block \"word\"?",
		Fields: word,
	}
	for _, o := range probeOptions {
		letters.Options = append(letters.Options, judge.Option{Key: "word_" + o, Text: o})
	}
	return []KnownQuestion{
		{judge.Question{
			Name:   "probe_boolean/1",
			Kind:   judge.Boolean,
			Text:   "Is the word in the block \"word\" the name of a colour?",
			Fields: word,
			Options: []judge.Option{
				{Key: "yes", Text: "Yes, it is the name of a colour."},
				{Key: "no", Text: "No, it is not the name of a colour."},
			},
		}, "yes"},
		{letters, "word_blue"},
	}
}

// Alive asks one question of known answer: whether the judge answers at all. Probe asks
// more than a judge that is only looked for should cost.
func (j *Judge) Alive(ctx context.Context) error {
	known := ProbeQuestions()[0]
	if err := j.expect(ctx, newSheet(known.Question), known.Right); err != nil || j.cfg.EmbeddingModel == "" {
		return err
	}
	return j.probeVectors(ctx)
}

// Probe finds out whether the server can do what is configured: one boolean whose
// answer is known, and, for logprobs, a choice whose right answer stands at every
// letter in turn. A letter that does not come back as one token is found there, and
// so is a model that answers by place. What it learns about the form of requests is
// kept.
func (j *Judge) Probe(ctx context.Context) error {
	boolean, letters := ProbeQuestions()[0], ProbeQuestions()[1]
	if err := j.expect(ctx, newSheet(boolean.Question), boolean.Right); err != nil {
		return err
	}
	if j.cfg.EmbeddingModel != "" {
		if err := j.probeVectors(ctx); err != nil {
			return err
		}
	}
	if j.cfg.Method == judge.Votes {
		// Shown the other way round, which a model that answers by place gets wrong.
		q := boolean.Question
		q.Order = 1
		return j.expect(ctx, newSheet(q), boolean.Right)
	}
	if j.cfg.Method != judge.Logprobs {
		return nil
	}
	q := letters.Question
	if j.CanAnswer(q) != nil {
		// A server with a short list cannot be shown so many options; the
		// questions it can take have the letters at the front.
		q.Options = q.Options[:max(2, j.form.Load().topLogprobs/2)]
	}
	right := slices.IndexFunc(q.Options, func(o judge.Option) bool { return o.Key == letters.Right })
	for place := range q.Options {
		order := make([]int, len(q.Options))
		for i := range order {
			order[i] = (i + right - place + len(order)) % len(order)
		}
		if err := j.expect(ctx, sheetInOrder(q, order), letters.Right); err != nil {
			return fmt.Errorf("letter %s: %w", alphabet[place:place+1], err)
		}
	}
	return nil
}

// expect asks and wants more than half on the right option. An unusable answer gets
// the second try that Retry would give it.
func (j *Judge) expect(ctx context.Context, s sheet, right string) error {
	if err := j.CanAnswer(s.q); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	a, err := j.ask(ctx, s.q, s)
	var unusable *judge.UnusableError
	if errors.As(err, &unusable) && unusable.Reask {
		s.q.Reask = 1
		a, err = j.ask(ctx, s.q, s)
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	i := slices.IndexFunc(s.q.Options, func(o judge.Option) bool { return o.Key == right })
	if j.cfg.Method == judge.Votes && a.Probabilities[i] == 0 {
		// One vote of a sound model may fall wrong; two in a row will not.
		s.q.Vote++
		if a, err = j.ask(ctx, s.q, s); err != nil {
			return fmt.Errorf("probe: %w", err)
		}
	}
	if p := a.Probabilities[i]; p <= 0.5 {
		return fmt.Errorf("probe: the model gives the right answer %.2f to a question without doubt (%q): it cannot judge",
			p, s.q.Text)
	}
	return nil
}
