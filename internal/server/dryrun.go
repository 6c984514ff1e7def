package server

import (
	"context"
	"fmt"
	"runtime/debug"

	"assay/evaluators"
	"assay/evaluators/judge"
)

// dryRunBody is what an evaluator would do about an item.
type dryRunBody struct {
	Evaluator string         `json:"evaluator"`
	Version   string         `json:"version" doc:"Hash of everything in the evaluator that can change a verdict"`
	Result    *resultBody    `json:"result" doc:"What takes no judge: not applicable, decided by a rule, or computed; null where a judge would be asked"`
	Questions []questionBody `json:"questions" nullable:"false" doc:"What the judge would be asked, in order"`
	More      bool           `json:"more" doc:"Further questions would depend on the answers"`
	Calls     callsBody      `json:"calls" doc:"Of the judge, for an item that has something to judge; votes not counted"`
}

type callsBody struct {
	Min        int `json:"min"`
	Max        int `json:"max"`
	Embeddings int `json:"embeddings" doc:"Texts whose vectors are asked for, at most"`
}

type questionBody struct {
	Name    string               `json:"name" doc:"Of the wording: it changes with the text"`
	Kind    string               `json:"kind" enum:"boolean,choice,score,text,vector" doc:"What the answer is: a distribution over options, a text, or the embedding of a field"`
	Text    string               `json:"text"`
	Fields  []fieldBody          `json:"fields" nullable:"false" doc:"Texts of the item, as the judge reads them"`
	Options []questionOptionBody `json:"options" nullable:"false" doc:"In declared order; the judge may be shown another"`
	Each    string               `json:"each,omitempty" doc:"The fields each of which is asked about by itself, in one call"`
	Prompt  []messageBody        `json:"prompt,omitempty" doc:"The whole as the judge's model reads it; absent where none reads"`
}

type fieldBody struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type questionOptionBody struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

type messageBody struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// dryRun says of an item what each evaluator would ask. The error is that of a cancelled
// context.
func (s *Server) dryRun(ctx context.Context, req evaluation, item evaluators.Item) (bodies []dryRunBody, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.deps.Log.Error("an evaluator panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("an evaluator failed at this item: %v", p)
		}
	}()
	bodies = make([]dryRunBody, len(req.evaluators))
	for e, ev := range req.evaluators {
		d, err := evaluators.Dry(ctx, ev, item)
		if err != nil {
			return nil, err
		}
		calls := ev.Calls()
		b := dryRunBody{
			Evaluator: ev.Name(), Version: ev.Definition().Hash(), More: d.More,
			Questions: make([]questionBody, len(d.Questions)), Calls: callsBody{calls.Min, calls.Max, calls.Embeddings},
		}
		if d.Result != nil {
			b.Result = &resultBodies([]evaluators.Result{*d.Result})[0]
		}
		for i, q := range d.Questions {
			b.Questions[i] = s.question(req.judgeName, q)
		}
		bodies[e] = b
	}
	return bodies, nil
}

func (s *Server) question(judgeName string, q judge.Question) questionBody {
	b := questionBody{
		Name: q.Name, Kind: string(q.Kind), Text: q.Text, Each: q.Each,
		Fields: make([]fieldBody, len(q.Fields)), Options: make([]questionOptionBody, len(q.Options)),
	}
	for i, f := range q.Fields {
		b.Fields[i] = fieldBody(f)
	}
	for i, o := range q.Options {
		b.Options[i] = questionOptionBody(o)
	}
	if prompt := s.deps.Prompts[judgeName]; prompt != nil {
		for _, m := range prompt(q) {
			b.Prompt = append(b.Prompt, messageBody{m.Role, m.Text})
		}
	}
	return b
}
