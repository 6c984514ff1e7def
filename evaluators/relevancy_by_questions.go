package evaluators

import (
	"context"
	"slices"
	"sync"

	"assay/evaluators/judge"
)

const (
	defaultDrafts = 3
	mostDrafts    = 10

	draftTemplate = "answer_relevancy_question/1"
	draftText     = "The block \"output\" is an answer that an assistant gave. Write the one question that it answers best: as a user would ask it, " +
		"in the language of the answer, complete in itself, and about nothing that the answer does not speak of. " +
		"Then say whether the answer is noncommittal, which it is where it evades, stays vague or says that it does not know. " +
		"Reply with two lines and nothing else. The first is the question. The second is \"noncommittal: yes\" or \"noncommittal: no\"."
)

// byQuestions is answer_relevancy by embeddings: a judge writes questions that the output
// would answer, without having seen the input, and their mean cosine with the input is
// the score. An evasive output scores 0: in dialect ragas where all of the drafts call it
// so, in dialect autoevals where one does.
type byQuestions struct{ asking }

func newByQuestions(spec Spec, v variant, s Settings) *byQuestions {
	d := definitionOf(spec, v, s)
	d.Kind, d.Embeddings, d.Drafts, d.Questions, d.Similar = "", true, true, s.Questions, vectorTemplate
	return &byQuestions{newAsking(spec, s, d)}
}

// Calls implements Evaluator.
func (e *byQuestions) Calls() Calls {
	c := textCalls(e.settings.Questions)
	c.Embeddings = e.settings.Questions + 1
	return c
}

func (e *byQuestions) asksMore() bool { return true }

// Questions implements Evaluator: the drafts. Whose vectors are asked for depends on them.
func (e *byQuestions) Questions(it Item) ([]judge.Question, error) {
	if err := e.complete(it); err != nil {
		return nil, err
	}
	list := make([]judge.Question, e.settings.Questions)
	for i := range list {
		list[i] = e.draft(it, i)
	}
	return list, nil
}

// draft asks for a question. The index makes each its own, in the cache and by its seed.
func (e *byQuestions) draft(it Item, i int) judge.Question {
	return judge.Question{
		Name: draftTemplate, Kind: judge.Text, Text: draftText, Vote: i,
		Fields: []judge.Field{{Name: fieldOutput, Value: *it.Output}},
	}
}

// Evaluate implements Evaluator.
func (e *byQuestions) Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error) {
	return e.run(it, nil, e.ruleNumber, func(r *Result) error { return e.judge(ctx, j, it, r) })
}

func (e *byQuestions) judge(ctx context.Context, j judge.Judge, it Item, r *Result) error {
	drafts, ok, err := e.drafts(ctx, j, it, r)
	if err != nil || !ok {
		return err
	}
	kept := make([]any, len(drafts))
	for i, d := range drafts {
		kept[i] = map[string]any{"text": d.text, "noncommittal": d.noncommittal}
	}
	r.Detail["questions"] = kept
	if e.evasive(drafts) {
		e.fillNumber(r, 0)
		// Without the name of a model: it would be half of the one below, and detectors
		// begin anew with every name they have not met.
		r.Method = judge.Model
		r.Detail["noncommittal"], r.Detail["draft_model"] = true, drafts[0].model
		return nil
	}
	texts := []string{*it.Input}
	for _, d := range drafts {
		texts = append(texts, d.text)
	}
	list, ok, err := vectors(ctx, j, texts, r)
	if err != nil || !ok {
		return err
	}
	mean := 0.0
	for i, v := range list[1:] {
		c, err := Cosine(list[0].vector, v.vector)
		if err != nil {
			return err // vectors made sure that they compare
		}
		mean += c / float64(len(drafts))
		kept[i].(map[string]any)["cosine"] = c
	}
	// Both models make the number: when either changes, it is another judge.
	e.fillCosine(r, mean, drafts[0].model+" + "+list[0].model)
	r.Detail["embedding_model"] = list[0].model
	return nil
}

// drafts has the questions written. It returns false where r has become the result of the
// first that is missing.
func (e *byQuestions) drafts(ctx context.Context, j judge.Judge, it Item, r *Result) ([]asked, bool, error) {
	n := e.settings.Questions
	list := make([]asked, n)
	errs := make([]error, n)
	var mu sync.Mutex // guards what is spent in r
	spent := func(s judge.Spent) {
		mu.Lock()
		defer mu.Unlock()
		r.spend(s)
	}
	inTurn(n, func(i int) bool {
		var a judge.Answer
		list[i], a, errs[i] = drafted(ctx, j, e.draft(it, i), n, readAsked, spent)
		list[i].model = a.Model
		return errs[i] == nil
	})
	ok, err := r.settleFirst(ctx, errs)
	return list, ok, err
}

func (e *byQuestions) evasive(drafts []asked) bool {
	if e.settings.Dialect == dialectRagas {
		return !slices.ContainsFunc(drafts, func(d asked) bool { return !d.noncommittal })
	}
	return slices.ContainsFunc(drafts, func(d asked) bool { return d.noncommittal })
}
