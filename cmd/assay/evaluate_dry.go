package main

import (
	"context"
	"fmt"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/checks"
)

// dryEvaluator is what a run would ask for one evaluator.
type dryEvaluator struct {
	Evaluator    string                    `json:"evaluator"`
	Items        int                       `json:"items"`
	Found        int                       `json:"found"` // in --out already
	Asked        int                       `json:"asked"` // items that a judge would be asked about
	Questions    float64                   `json:"questions"`
	More         bool                      `json:"more"` // further ones depend on the answers
	InputTokens  float64                   `json:"input_tokens_about"`
	OutputTokens float64                   `json:"output_tokens_about"`
	USD          float64                   `json:"usd_about"`
	WithoutJudge map[evaluators.Status]int `json:"without_judge"` // the others, by what comes of them
	First        *dryQuestion              `json:"first,omitempty"`
}

// dryQuestion is the first question, as an example.
type dryQuestion struct {
	ID     string          `json:"id"`
	Prompt []judge.Message `json:"prompt"`
}

// dryRun says what a run would ask, and asks nobody.
func (a *app) dryRun(ctx context.Context, r fileRun) error {
	var all []dryEvaluator
	for _, ev := range r.evaluators {
		d, err := r.dry(ctx, ev)
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	if a.json {
		return a.printJSON(map[string]any{"evaluators": all})
	}
	t := newTable(a.out, "evaluator", "items", "in --out", "asked", "questions", "tokens, about", "USD, about", "without a judge")
	for _, d := range all {
		more := ""
		if d.More {
			more = " or more"
		}
		counts := make(map[string]int, len(d.WithoutJudge))
		for status, n := range d.WithoutJudge {
			counts[string(status)] = n
		}
		t.AppendRow([]any{d.Evaluator, d.Items, d.Found, d.Asked, count(d.Questions) + more, count(d.InputTokens+d.OutputTokens) + more, fmt.Sprintf("%.4f", d.USD) + more, countsOf(counts)})
	}
	t.Render()
	for _, d := range all {
		if d.First == nil {
			continue
		}
		fmt.Fprintf(a.out, "\n%s, the first question (%s):\n", d.Evaluator, d.First.ID)
		for _, m := range d.First.Prompt {
			fmt.Fprintf(a.out, "[%s]\n%s\n", m.Role, m.Text)
		}
	}
	_, err := fmt.Fprintln(a.out, "\nnothing was asked")
	return err
}

func (r fileRun) dry(ctx context.Context, ev evaluators.Evaluator) (dryEvaluator, error) {
	d := dryEvaluator{Evaluator: ev.Name(), Items: len(r.items), WithoutJudge: make(map[evaluators.Status]int)}
	key := r.key(ev)
	for _, item := range r.items {
		key.id, key.item = item.id, item.hash
		if _, ok := r.out.find(key); ok {
			d.Found++
			continue
		}
		dry, err := evaluators.Dry(ctx, ev, item.item)
		if err != nil {
			return d, err
		}
		if dry.Result != nil {
			d.WithoutJudge[dry.Result.Status]++
			continue
		}
		cost := costOf(r.judge.config, ev, dry)
		d.Asked++
		d.Questions += cost.questions
		d.InputTokens += cost.in
		d.OutputTokens += cost.out
		d.More = d.More || dry.More
		if d.First == nil && r.judge.prompt != nil && len(dry.Questions) > 0 {
			d.First = &dryQuestion{item.id, r.judge.prompt(dry.Questions[0])}
		}
	}
	d.USD = usd(r.judge.config, d.InputTokens, d.OutputTokens)
	return d, nil
}

// a questionCost is what the questions about an item come to, votes and orders counted.
type questionCost struct {
	questions float64
	in, out   float64 // tokens
}

// costOf estimates from the questions: four characters a token, and what a backend puts
// around them.
func costOf(c checks.Judge, ev evaluators.Evaluator, dry evaluators.DryRun) questionCost {
	const around = 150 // the system text, marks and letters, in tokens
	var cost questionCost
	times := max(1, ev.Definition().Orders) * c.Votes()
	for _, q := range dry.Questions {
		chars := len(q.Text)
		for _, f := range q.Fields {
			chars += len(f.Value)
		}
		for _, o := range q.Options {
			chars += len(o.Text)
		}
		tokens, often := float64(chars)/4, times
		switch q.Kind {
		case judge.Vector: // neither voted on nor wrapped
			often = 1
		case judge.Text:
			often = 1
			cost.out += tokens
			tokens += around
		default:
			tokens += around
		}
		cost.questions += float64(often)
		cost.in += tokens * float64(often)
		cost.out += answerTokens(c.Method, q) * float64(often)
	}
	if c.Kind == checks.KindEmbedded { // computes, and reads no tokens
		cost.in, cost.out = 0, 0
	}
	return cost
}

// answerTokens is how long an answer usually is: a letter, or a reason with a number for
// each option.
func answerTokens(method string, q judge.Question) float64 {
	switch {
	case !q.Kind.HasOptions():
		return 0
	case method != string(judge.Structured):
		return 1
	}
	parts := 1
	if q.Each != "" {
		parts = len(q.FieldValues(q.Each))
	}
	return float64(40 + 10*len(q.Options)*parts)
}

func usd(c checks.Judge, in, out float64) float64 {
	if c.Price == nil {
		return 0
	}
	return (in*c.Price.InputPerMillion + out*c.Price.OutputPerMillion) / 1e6
}
