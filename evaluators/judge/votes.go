package judge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Voting asks a question several times and takes the shares of the answers as its
// distribution: for models that state no token probabilities, and for those that reason
// first, whose token probabilities are those of one argument. Each vote is a question of
// its own index, so it has a seed of its own and is no cached answer to another.
//
// An answer that cannot be used is a vote outside the options. Votes are not stopped
// early, however clear the first ones are: that would bias the shares. A call that fails
// fails the question: what a judge would have voted that was never asked is unknown.
//
// It stands outside of Retry and inside of Cache.
type Voting struct {
	next   Judge
	n      int
	budget *Budget // or nil
}

// NewVoting wraps next. The budget, where there is one, is held for all votes before the
// first of them is sent.
func NewVoting(next Judge, n int, budget *Budget) (*Voting, error) {
	if n < FewestVotes || n > MostVotes {
		return nil, fmt.Errorf("%d votes: want %d to %d", n, FewestVotes, MostVotes)
	}
	return &Voting{next, n, budget}, nil
}

// Ask implements Judge. The first vote goes alone: it fills the provider's cache of what
// all of them share, and finds a judge that answers nothing.
func (v *Voting) Ask(ctx context.Context, q Question) (Answer, error) {
	if !q.Kind.HasOptions() {
		return v.next.Ask(ctx, q)
	}
	if v.budget != nil {
		held, release, err := v.budget.Hold(ctx, q, v.n)
		if err != nil {
			return Answer{}, err
		}
		defer release()
		ctx = held
	}
	start := time.Now()
	votes := make([]vote, v.n)
	v.cast(ctx, q, 0, &votes[0])
	if votes[0].failed() {
		return Answer{}, votes[0].err
	}
	var wg sync.WaitGroup
	for i := 1; i < v.n; i++ {
		wg.Go(func() {
			// The caller lives through a panic of its own goroutine; here it would
			// end the process.
			defer func() { votes[i].panicked = recover() }()
			v.cast(ctx, q, i, &votes[i])
		})
	}
	wg.Wait()
	a, err := tally(q, votes)
	if err != nil {
		return Answer{}, err
	}
	a.Latency = time.Since(start)
	return a, nil
}

func (v *Voting) cast(ctx context.Context, q Question, i int, into *vote) {
	q.Vote = i
	into.answer, into.err = v.next.Ask(ctx, q)
}

// A vote is how one of the calls ended.
type vote struct {
	answer   Answer
	err      error
	panicked any
}

// failed reports whether no answer came. One that cannot be used is an answer.
func (v vote) failed() bool {
	var unusable *UnusableError
	return v.err != nil && !errors.As(v.err, &unusable)
}

// tally puts votes together.
func tally(q Question, votes []vote) (Answer, error) {
	sum := Answer{Method: Votes, Probabilities: make([]float64, len(q.Options)), Detail: map[string]any{"votes": len(votes)}}
	var (
		spent            Spent
		raw              string
		failure          error
		valid, abstained int
	)
	for _, v := range votes {
		var unusable *UnusableError
		switch {
		case v.panicked != nil:
			panic(fmt.Sprintf("a vote: %v", v.panicked))
		case errors.As(v.err, &unusable):
			spent = spent.plus(unusable.Spent)
			if raw == "" {
				raw = unusable.Raw
			}
			if unusable.Reason == ReasonJudgeAbstained {
				abstained++
			}
		case v.err != nil:
			failure = v.err
			spent = spent.plus(SpentOf(v.err))
		case len(v.answer.Probabilities) != len(q.Options):
			return Answer{}, fmt.Errorf("a vote with %d probabilities for %d options", len(v.answer.Probabilities), len(q.Options))
		default:
			spent = spent.plus(Spent{v.answer.Usage, v.answer.Attempts, v.answer.Model})
			valid++
			for i, p := range v.answer.Probabilities {
				sum.Probabilities[i] += p
			}
		}
	}
	sum.Usage, sum.Attempts, sum.Model = spent.Usage, spent.Attempts, spent.Model
	if failure != nil {
		return Answer{}, withSpent(failure, spent)
	}
	if spent.Usage.Estimated {
		sum.Detail["usage_estimated"] = true
	}
	sum.Outside = float64(len(votes)-valid) / float64(len(votes))
	if valid < len(votes) {
		sum.Detail["votes_outside"] = len(votes) - valid
	}
	unusable := func(reason string) (Answer, error) {
		sum.Detail["outside"] = sum.Outside
		return Answer{}, &UnusableError{Reason: reason, Raw: raw, Detail: sum.Detail, Method: Votes, Spent: spent}
	}
	largest := 0.0
	for _, p := range sum.Probabilities {
		largest = max(largest, p)
	}
	switch {
	case abstained > 0 && float64(abstained) >= largest:
		return unusable(ReasonJudgeAbstained)
	case valid < (len(votes)+1)/2:
		return unusable(ReasonTooFewVotes)
	}
	for i := range sum.Probabilities {
		sum.Probabilities[i] /= float64(valid)
	}
	return sum, nil
}
