package evaluators_test

import (
	"context"
	"math"
	"testing"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/testkit"
)

// Through the wire, the backend and its retries: whatever a judge does, the result
// has a status and a reason, and no failure has a score.
func TestNoFaultOfAJudgeBecomesAScore(t *testing.T) {
	f := func(fault testkit.Fault, m judge.Method, status evaluators.Status, reason string, calls int) {
		t.Helper()
		fake := testkit.NewFakeJudge(t, func(testkit.FakeRequest) testkit.FakeReply {
			return testkit.FakeReply{Fault: fault, Probabilities: map[string]float64{"yes": .8, "no": .2}}
		})
		limit := 10 * time.Second
		if fault == testkit.Hang {
			limit = 200 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		r, err := evaluator(t, "closed_qa", evaluators.Settings{}).Evaluate(ctx, stack(t, fake, m), complete())
		if err != nil {
			t.Fatalf("%s: %v", fault, err)
		}
		checkInvariants(t, r)
		if r.Status != status || r.Reason != reason || fake.Calls() != calls {
			t.Errorf("%s by %s: %s %q after %d calls, want %s %q after %d", fault, m, r.Status, r.Reason, fake.Calls(), status, reason, calls)
		}
	}
	for _, m := range []judge.Method{judge.Logprobs, judge.Structured} {
		f("", m, evaluators.OK, "", 1)
		f(testkit.Throttled, m, evaluators.Error, "judge_unavailable", 3)
		f(testkit.ServerError, m, evaluators.Error, "judge_unavailable", 3)
		f(testkit.Garbage, m, evaluators.Error, "judge_unavailable", 3)
		f(testkit.HTML, m, evaluators.Error, "judge_unavailable", 3)
		f(testkit.EmptyBody, m, evaluators.Error, "judge_unavailable", 3)
		f(testkit.Reset, m, evaluators.Error, "judge_unavailable", 3)
		f(testkit.Hang, m, evaluators.Error, "timeout", 1)
		f(testkit.EmptyAnswer, m, evaluators.Unscored, "empty_answer", 2)
		f(testkit.NoChoices, m, evaluators.Unscored, "empty_answer", 2)
		f(testkit.Prose, m, evaluators.Unscored, "prose", 2)
		f(testkit.Refusal, m, evaluators.Unscored, "judge_refused", 1)
		f(testkit.Filtered, m, evaluators.Unscored, "judge_refused", 1)
		f(testkit.TooLong, m, evaluators.NotApplicable, "too_long", 1)
		f(testkit.Rejected, m, evaluators.Error, "judge_rejected", 1)
		f(testkit.Unauthorized, m, evaluators.Error, "judge_misconfigured", 1)
		f(testkit.ModelGone, m, evaluators.Error, "judge_misconfigured", 1)
	}
	f(testkit.NoLogprobs, judge.Logprobs, evaluators.Error, "judge_misconfigured", 1)
	f(testkit.Cut, judge.Structured, evaluators.Unscored, "cut", 2)
	f(testkit.TwoAnswers, judge.Structured, evaluators.Unscored, "ambiguous", 1)
}

// A judge that recovers between two tries is no failure, and both tries are paid for.
func TestASecondTryMayBringTheAnswer(t *testing.T) {
	for _, fault := range []testkit.Fault{testkit.Throttled, testkit.ServerError, testkit.HTML, testkit.Reset, testkit.Prose, testkit.EmptyAnswer} {
		fake := testkit.NewFakeJudge(t, func(r testkit.FakeRequest) testkit.FakeReply {
			reply := testkit.FakeReply{Probabilities: map[string]float64{"yes": .8, "no": .15}}
			if r.N == 1 {
				reply.Fault = fault
			}
			return reply
		})
		r := evaluate(t, evaluator(t, "closed_qa", evaluators.Settings{}), stack(t, fake, judge.Logprobs), complete())
		if r.Status != evaluators.OK || math.Abs(*r.Score-.8/.95) > 1e-9 || math.Abs(r.Outside-.05) > 1e-9 || r.Attempts != 2 || r.Model != "fake-model" {
			t.Errorf("%s, then an answer: %+v", fault, r)
		}
	}
}

// Votes that were cast before the budget ended are paid for, and the row says so.
func TestAShedQuestionStatesWhatItsVotesCost(t *testing.T) {
	j := judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if q.Vote == 2 {
			return judge.Answer{}, &judge.ShedError{Reason: judge.ShedBudget}
		}
		return says(map[string]float64{"yes": 1})(ctx, q)
	})
	one, err := j(t.Context(), judge.Question{Options: []judge.Option{{Key: "yes"}, {Key: "no"}}})
	if err != nil || one.Usage.InputTokens == 0 {
		t.Fatalf("%+v, %v", one, err)
	}
	voting, err := judge.NewVoting(j, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := evaluate(t, evaluator(t, "closed_qa", evaluators.Settings{}), voting, complete())
	if r.Status != evaluators.Shed || r.Reason != judge.ShedBudget || r.Attempts != 2*one.Attempts || r.Usage.InputTokens != 2*one.Usage.InputTokens {
		t.Errorf("%s %s: %d attempts, %+v, want those of two votes", r.Status, r.Reason, r.Attempts, r.Usage)
	}
}
