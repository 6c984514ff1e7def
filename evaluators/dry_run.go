package evaluators

import (
	"context"

	"assay/evaluators/judge"
)

// A DryRun is what Evaluate would do with an item, found out without asking anybody.
type DryRun struct {
	// Result is what takes no judge: not applicable, decided by a rule, or computed.
	// It is nil where a judge would be asked.
	Result *Result

	// Questions are what the judge would be asked first, in order, in one order of
	// options.
	Questions []judge.Question

	// More says that further questions depend on the answers.
	More bool
}

// Dry makes a dry run. The error is that of a cancelled context.
func Dry(ctx context.Context, e Evaluator, it Item) (DryRun, error) {
	var asked listening
	r, err := e.Evaluate(ctx, &asked, it)
	if err != nil {
		return DryRun{}, err
	}
	if !asked {
		return DryRun{Result: &r}, nil
	}
	list, err := e.Questions(it)
	if err != nil {
		return DryRun{}, err
	}
	more, ok := e.(interface{ asksMore() bool })
	return DryRun{Questions: list, More: ok && more.asksMore()}, nil
}

// listening is a judge that answers nothing and knows whether it was asked. Evaluators
// ask their first question alone and stop where it has no answer.
type listening bool

// Ask implements judge.Judge.
func (l *listening) Ask(context.Context, judge.Question) (judge.Answer, error) {
	*l = true
	return judge.Answer{}, &judge.RefusedError{Reason: "dry_run"}
}

// asksMore implements what Dry looks for: whether a single citation is asked about
// depends on whether all of them support the sentence.
func (e *citing) asksMore() bool { return e.precise }

// asksMore is true where the claims are not known yet.
func (e *claimwise) asksMore() bool  { return e.questions.extracted }
func (e *statements) asksMore() bool { return e.questions.extracted }
