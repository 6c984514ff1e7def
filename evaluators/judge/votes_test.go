package judge

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// ballots answers the votes of a question by their index: an option's key, or a reason of
// an unusable answer.
func ballots(says ...string) Judge {
	return judgeFunc(func(_ context.Context, q Question) (Answer, error) {
		a := Answer{Probabilities: make([]float64, len(q.Options)), Method: Votes, Model: "m", Attempts: 1, Usage: Usage{InputTokens: 100, OutputTokens: 2}}
		for i, o := range q.Options {
			if o.Key == says[q.Vote] {
				a.Probabilities[i] = 1
				return a, nil
			}
		}
		return Answer{}, &UnusableError{Reason: says[q.Vote], Raw: "well", Method: Votes, Spent: Spent{a.Usage, 1, "m"}}
	})
}

func voting(t *testing.T, next Judge, n int, b *Budget) *Voting {
	t.Helper()
	v, err := NewVoting(next, n, b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVotesAreSharesOfWhatWasAnswered(t *testing.T) {
	f := func(says string, yes, outside float64, reason string) {
		t.Helper()
		votes := strings.Fields(says)
		a, err := voting(t, ballots(votes...), len(votes), nil).Ask(t.Context(), question("x"))
		var unusable *UnusableError
		if reason != "" {
			if !errors.As(err, &unusable) || unusable.Reason != reason || unusable.Attempts != len(votes) ||
				unusable.Usage.InputTokens != int64(100*len(votes)) || unusable.Raw == "" || math.Abs(unusable.Detail["outside"].(float64)-outside) > 1e-12 {
				t.Errorf("%s: %+v, %v, want %s with the cost of all and %v outside", says, a, err, reason, outside)
			}
			return
		}
		if err != nil || math.Abs(a.Probabilities[0]-yes) > 1e-12 || math.Abs(a.Probabilities[0]+a.Probabilities[1]-1) > 1e-12 || math.Abs(a.Outside-outside) > 1e-12 {
			t.Errorf("%s: %+v, %v, want %v yes and %v outside", says, a, err, yes, outside)
		}
		if a.Method != Votes || a.Model != "m" || a.Attempts != len(votes) || a.Usage.InputTokens != int64(100*len(votes)) || a.Detail["votes"] != len(votes) {
			t.Errorf("%s: %+v", says, a)
		}
	}

	f("yes yes yes yes yes", 1, 0, "")
	f("yes no yes no yes", .6, 0, "")
	f("no yes", .5, 0, "")
	// what is no answer is outside, not against
	f("yes prose yes no empty_answer", 2./3, .4, "")
	f("prose yes prose no", .5, .5, "")
	// less than half: three of five, two of four, two of three
	f("yes prose prose cut no", 0, .6, ReasonTooFewVotes)
	f("prose yes prose prose", 0, .75, ReasonTooFewVotes)
	f("judge_refused prose yes", 0, 2./3, ReasonTooFewVotes)
	f("prose prose prose", 0, 1, ReasonTooFewVotes)
	// the one letter more that every question has
	f("judge_abstained judge_abstained judge_abstained yes yes", 0, .6, ReasonJudgeAbstained)
	f("judge_abstained yes judge_abstained no no", 0, .4, ReasonJudgeAbstained)
	f("judge_abstained yes yes no no", .5, .2, "")
}

func TestAVoteThatFailsFailsTheQuestion(t *testing.T) {
	f := func(at int, fail error, asked int) {
		t.Helper()
		calls := make(chan int, 5)
		next := judgeFunc(func(_ context.Context, q Question) (Answer, error) {
			calls <- q.Vote
			if q.Vote == at {
				return Answer{}, fail
			}
			return yes(), nil
		})
		_, err := voting(t, next, 5, nil).Ask(t.Context(), question("x"))
		if !errors.Is(err, fail) && err.Error() != fail.Error() || len(calls) != asked {
			t.Errorf("vote %d: %v after %d calls, want %v after %d", at, err, len(calls), fail, asked)
		}
		// the votes that were cast are paid for, whatever the end was
		attempts := 4 + SpentOf(fail).Attempts
		if got := SpentOf(err); at > 0 && (got.Attempts != attempts || got.Usage.InputTokens != 400) || at == 0 && got != SpentOf(fail) {
			t.Errorf("vote %d: %v after %+v, want %d attempts", at, err, got, attempts)
		}
	}
	// a judge that is down is found by the first vote
	f(0, throttled(0), 1)
	f(0, &RefusedError{Reason: "needs_structured"}, 1)
	f(3, throttled(0), 5)
	f(3, &RejectedError{Err: errors.New("no")}, 5)
	f(3, &ShedError{Reason: ShedBudget}, 5)
}

func TestACancelledVoteIsACancelledQuestion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	next := judgeFunc(func(ctx context.Context, q Question) (Answer, error) {
		if q.Vote == 2 {
			cancel()
		}
		if q.Vote == 0 {
			return yes(), nil
		}
		<-ctx.Done()
		return Answer{}, ctx.Err()
	})
	if _, err := voting(t, next, 4, nil).Ask(ctx, question("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestAPanicOfAVoteReachesTheCaller(t *testing.T) {
	next := judgeFunc(func(_ context.Context, q Question) (Answer, error) {
		if q.Vote == 2 {
			panic("broken")
		}
		return yes(), nil
	})
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), "broken") {
			t.Errorf("recovered %v", v)
		}
	}()
	voting(t, next, 4, nil).Ask(t.Context(), question("x"))
	t.Error("it went on")
}

// A budget for seven calls pays for one question of five votes and for no part of a
// second one.
func TestABudgetIsHeldForAllVotes(t *testing.T) {
	clock := clockAt(noon)
	price := Price{InputPerMillion: 10, OutputPerMillion: 100} // .011 a call as estimated
	b := budgetOf(t, costs(Usage{InputTokens: 1000, OutputTokens: 10}), Spending{Calls: 7, USD: .0777}, price, clock)
	v := voting(t, b, 5, b)
	a, err := v.Ask(t.Context(), question("one"))
	if err != nil || a.Attempts != 5 || math.Abs(a.Usage.USD-.055) > 1e-12 {
		t.Fatalf("%+v, %v", a, err)
	}
	_, err = v.Ask(t.Context(), question("two"))
	if !isShed(err) {
		t.Errorf("%v, want shed", err)
	}
	if got := settled(b); got.Calls != 5 || math.Abs(got.USD-.055) > 1e-12 {
		t.Errorf("spent %+v, want 5 calls: nothing of the second question was sent", got)
	}
	// what is left is free for others
	if _, err := b.Ask(t.Context(), question("three")); err != nil {
		t.Errorf("one more call: %v", err)
	}
}

// What a hold does not use is free again, also when the first vote failed.
func TestAHoldThatIsNotUsedIsReleased(t *testing.T) {
	clock := clockAt(noon)
	down := true
	next := judgeFunc(func(context.Context, Question) (Answer, error) {
		if down {
			return Answer{}, &TransientError{Reason: ReasonUnavailable, Err: errors.New("down")}
		}
		return yes(), nil
	})
	b := budgetOf(t, next, Spending{Calls: 5}, Price{}, clock)
	v := voting(t, b, 5, b)
	for range 3 {
		if _, err := v.Ask(t.Context(), question("x")); isShed(err) || err == nil {
			t.Fatalf("%v, want the judge's own failure", err)
		}
	}
	down = false
	if _, err := v.Ask(t.Context(), question("x")); err != nil {
		t.Errorf("%v: the hold of failed questions was kept", err)
	}
}

// Where one vote's usage is a guess, so is their sum.
func TestAGuessedUsageIsSaidToBeOne(t *testing.T) {
	for guessed, want := range map[int]any{2: true, 9: nil} {
		next := judgeFunc(func(_ context.Context, q Question) (Answer, error) {
			a := yes()
			a.Usage.Estimated = q.Vote == guessed
			return a, nil
		})
		a, err := voting(t, next, 3, nil).Ask(t.Context(), question("x"))
		if err != nil || a.Detail["usage_estimated"] != want || a.Usage.Estimated != (want != nil) {
			t.Errorf("vote %d guessed: %+v, %v", guessed, a, err)
		}
	}
}

// A retry of a vote draws on the hold first, and then reserves for itself.
func TestARetryWithinAHoldIsPaidFor(t *testing.T) {
	clock := clockAt(noon)
	failed := false
	next := judgeFunc(func(_ context.Context, q Question) (Answer, error) {
		if q.Vote == 1 && !failed {
			failed = true
			return Answer{}, throttled(0)
		}
		return yes(), nil
	})
	b := budgetOf(t, next, Spending{Calls: 100}, Price{}, clock)
	retry := NewRetry(b, RetryPolicy{Attempts: 3, Base: time.Microsecond, Max: time.Microsecond})
	a, err := voting(t, retry, 3, b).Ask(t.Context(), question("x"))
	if err != nil || a.Attempts != 4 {
		t.Fatalf("%+v, %v", a, err)
	}
	if got := settled(b); got.Calls != 4 || b.reserved != (Spending{}) {
		t.Errorf("spent %+v, reserved %+v: want 4 calls and nothing held", got, b.reserved)
	}
}

func TestAPooledAnswerIsKeptAsOne(t *testing.T) {
	calls := 0
	next := judgeFunc(func(_ context.Context, q Question) (Answer, error) {
		if q.Vote == 0 {
			calls++
		}
		return yes(), nil
	})
	c := cacheOf(t, voting(t, next, 3, nil))
	for range 2 {
		if a, err := c.Ask(t.Context(), question("x")); err != nil || a.Method != Votes {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if calls != 1 {
		t.Errorf("asked %d times", calls)
	}
}

// Texts and vectors are no votes.
func TestWhatHasNoOptionsIsAskedOnce(t *testing.T) {
	next := judgeFunc(func(_ context.Context, q Question) (Answer, error) {
		return Answer{Text: "t", Vector: []float32{1}}, nil
	})
	for _, q := range []Question{{Kind: Text, Vote: 2}, VectorQuestion("x")} {
		if a, err := voting(t, next, 3, nil).Ask(t.Context(), q); err != nil || a.Text != "t" || a.Method == Votes {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

func TestAMethodIsReadAsItIsWritten(t *testing.T) {
	f := func(s string, m Method, votes int) {
		t.Helper()
		got, n, err := ParseMethod(s)
		if (err == nil) != (m != "") || got != m || n != votes {
			t.Errorf("%q: %s, %d, %v", s, got, n, err)
		}
	}
	f("logprobs", Logprobs, 1)
	f("structured", Structured, 1)
	f("votes", Votes, 5)
	f("votes:5", Votes, 5)
	f("votes:25", Votes, 25)
	for _, s := range []string{"", "votes:", "votes:1", "votes:0", "votes:26", "votes:05", "votes:+5", "votes:5x", "vote:5", "simulated", "logprobs:2"} {
		f(s, "", 0)
	}
	if _, err := NewVoting(nil, 1, nil); err == nil {
		t.Error("one vote is no vote")
	}
}

// A vector takes fifty times an answer's room, so few are kept; a caller may change what
// it was given.
func TestFewVectorsAreKept(t *testing.T) {
	calls := 0
	next := judgeFunc(func(_ context.Context, q Question) (Answer, error) {
		calls++
		return Answer{Vector: []float32{1, 2}, Attempts: 1}, nil
	})
	c, err := NewCache(next, "judge-1", 2*vectorShare)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(text string) Answer {
		a, err := c.Ask(t.Context(), VectorQuestion(text))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ask("one")
	again := ask("one")
	again.Vector[0] = 9
	if a := ask("one"); calls != 1 || !a.Cached || a.Vector[0] != 1 {
		t.Errorf("%d calls, %+v", calls, a)
	}
	ask("two")
	ask("three")
	if ask("one"); calls != 4 {
		t.Errorf("%d calls, want the first of three vectors forgotten", calls)
	}
}
