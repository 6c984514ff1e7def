package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/sink"
)

const oneCheck = `
version: 1
sources: [{ topic: assistant.log }]
judges: { a: { kind: simulated } }
checks: [{ name: polite, evaluator: closed_qa, criteria: { text: "Greets." }, judge: a, sample: { rate: 1 } }]
`

// only returns the one row of a world in which one record was judged once.
func (w *world) only() sink.Evaluation {
	w.t.Helper()
	if len(w.store.evaluations) != 1 {
		w.t.Fatalf("%d rows, want 1", len(w.store.evaluations))
	}
	for _, e := range w.store.evaluations {
		return e
	}
	panic("unreachable")
}

func TestEveryErrorOfAJudgeIsARowWithAReasonAndNeverAScore(t *testing.T) {
	spent := judge.Spent{Usage: judge.Usage{InputTokens: 12, OutputTokens: 3, USD: 0.001}, Attempts: 2, Model: "m-2"}
	f := func(err error, status, reason string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, oneCheck)
			w.judge.answer = func(context.Context, judge.Question) (judge.Answer, error) { return judge.Answer{}, err }
			a := w.fresh()
			defer a.pt.Close()
			a.read(1, item("i-1"))
			w.settle()
			if a.outcome(1) != consumer.Durable {
				t.Errorf("%v: outcome %q", err, a.outcome(1))
			}
			row := w.only()
			if row.Status != status || row.Reason != reason {
				t.Errorf("%v: %s (%s), want %s (%s)", err, row.Status, row.Reason, status, reason)
			}
			if row.Score != nil || row.Passed != nil || row.Confidence != nil || row.Option != "" || len(row.OptionProbs) > 0 {
				t.Errorf("%v: a score without an answer: %+v", err, row)
			}
			failed := status == "error" || status == "shed"
			if failed != (row.EvaluatedAt.Unix() == 0) || failed == row.Answered() {
				t.Errorf("%v: %s at %s", err, status, row.EvaluatedAt)
			}
			if got := w.metric("assay_evaluations_total", prometheus.Labels{"check": "polite", "status": status}); got != 1 {
				t.Errorf("%v: counted %v times", err, got)
			}
		})
	}
	f(&judge.TransientError{Reason: judge.ReasonThrottled, Err: errors.New("429"), Spent: spent}, "error", "judge_unavailable")
	f(fmt.Errorf("try 3: %w", &judge.TransientError{Reason: judge.ReasonGarbage, Err: errors.New("<html>")}), "error", "judge_unavailable")
	f(&judge.TransientError{Reason: judge.ReasonTimeout, Err: context.DeadlineExceeded}, "error", "timeout")
	f(&judge.UnusableError{Reason: judge.ReasonProse, Raw: "I think it is fine.", Spent: spent}, "unscored", "prose")
	f(&judge.RefusedError{Reason: "needs_language_model"}, "unscored", "needs_language_model")
	f(&judge.TooLongError{Err: errors.New("9000 tokens")}, "not_applicable", "too_long")
	f(&judge.RejectedError{Err: errors.New("400")}, "error", "judge_rejected")
	f(&judge.ShedError{Reason: judge.ShedBudget, RetryAfter: time.Hour}, "shed", "budget")
	f(&judge.FatalError{Err: errors.New("401")}, "error", "judge_misconfigured")
	f(errors.New("a judge that names no class"), "error", "judge_internal_error")
	// somebody else's cancellation, such as a joined question's, is not ours
	f(context.Canceled, "error", "judge_internal_error")
}

func TestWhatAFailedAnswerCostIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.judge.answer = func(context.Context, judge.Question) (judge.Answer, error) {
			return judge.Answer{}, &judge.UnusableError{Reason: judge.ReasonCut, Method: judge.Logprobs,
				Spent: judge.Spent{Usage: judge.Usage{InputTokens: 12, OutputTokens: 3, USD: 0.0025}, Attempts: 400, Model: "m-2"}}
		}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		w.settle()
		row := w.only()
		if row.InputTokens != 12 || row.OutputTokens != 3 || row.CostNanoUSD != 2_500_000 || row.Attempts != 255 || row.Method != "logprobs" {
			t.Errorf("row %+v", row)
		}
	})
}

func TestAJudgeThatHangsIsCutAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck, func(c *Config, _ *Deps) { c.Deadline = 20 * time.Second })
		w.judge.answer = func(ctx context.Context, _ judge.Question) (judge.Answer, error) {
			<-ctx.Done()
			return judge.Answer{}, ctx.Err()
		}
		a := w.fresh()
		defer a.pt.Close()
		start := time.Now()
		a.read(1, item("i-1"))
		time.Sleep(20 * time.Second)
		w.settle()
		row := w.only()
		if row.Status != "error" || row.Reason != "timeout" || row.LatencyMS != 20_000 || time.Since(start) != 20*time.Second {
			t.Errorf("%s (%s) after %s, latency %d ms", row.Status, row.Reason, time.Since(start), row.LatencyMS)
		}
	})
}

// The deadline is of the judgement, not of the wait for a slot: a full queue is
// back-pressure.
func TestTheDeadlineStartsWithTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck, func(c *Config, d *Deps) {
			c.Deadline = 10 * time.Second
			d.Judges = map[string]Judge{"a": {Judge: d.Judges["a"].Judge, InFlight: 1}} // two slots
		})
		w.judge.answer = func(_ context.Context, q judge.Question) (judge.Answer, error) {
			time.Sleep(9 * time.Second)
			return certain(q), nil
		}
		a := w.fresh()
		defer a.pt.Close()
		for offset := range int64(8) {
			a.read(offset, item(fmt.Sprint("i-", offset)))
		}
		time.Sleep(4 * 9 * time.Second)
		w.settle()
		for _, e := range w.store.evaluations {
			if e.Status != "ok" {
				t.Errorf("offset %d: %s (%s)", e.Offset, e.Status, e.Reason)
			}
		}
		if len(w.store.evaluations) != 8 {
			t.Errorf("%d rows, want 8", len(w.store.evaluations))
		}
	})
}

// panicky panics where it is told to.
type panicky struct {
	evaluators.Evaluator
	err error
}

func (e panicky) Evaluate(context.Context, judge.Judge, evaluators.Item) (evaluators.Result, error) {
	if e.err != nil {
		return evaluators.Result{}, e.err
	}
	panic("index out of range")
}

func TestAPanicWhileJudgingCostsOneJudgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		w.p.checks[1].evaluator = panicky{w.p.checks[1].evaluator, nil}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		a.read(2, item("i-2"))
		w.settle()
		if a.outcome(1) != consumer.Durable || a.outcome(2) != consumer.Durable {
			t.Errorf("outcomes %q, %q", a.outcome(1), a.outcome(2))
		}
		for _, e := range w.store.evaluations {
			bad := e.Check == "right"
			switch {
			case bad && (e.Status != "error" || e.Reason != "panic" || e.EvaluatedAt.Unix() != 0 || e.Score != nil || e.Method != "none" || e.Slice["app"] != "shop"):
				t.Errorf("row %+v", e)
			case !bad && e.Status != "ok":
				t.Errorf("another check suffered: %+v", e)
			}
		}
		if len(w.store.evaluations) != 6 {
			t.Errorf("%d rows, want 6", len(w.store.evaluations))
		}
		if got := w.metric("assay_judging_panics_total", prometheus.Labels{"check": "right"}); got != 2 {
			t.Errorf("counted %v panics, want 2", got)
		}
		log := w.log.String()
		if strings.Count(log, "judging an interaction panicked") != 1 || !strings.Contains(log, "offset=") || !strings.Contains(log, "check=right") || !strings.Contains(log, "stack=") {
			t.Errorf("want one line with coordinates and stack, got %s", log)
		}
	})
}

func TestAPanicOfAJudgeIsItsRowsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.judge.answer = func(context.Context, judge.Question) (judge.Answer, error) { panic(errors.New("nil map")) }
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		w.settle()
		if row := w.only(); row.Reason != "panic" || a.outcome(1) != consumer.Durable {
			t.Errorf("row %+v, outcome %q", row, a.outcome(1))
		}
	})
}

// An evaluator that gives up while nobody told it to must not hold the offset for ever.
func TestAnEvaluatorThatGivesUpLeavesARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.p.checks[0].evaluator = panicky{w.p.checks[0].evaluator, errors.New("the item has no output")}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		w.settle()
		row := w.only()
		if row.Status != "error" || row.Reason != "evaluator_error" || !strings.Contains(row.Detail, "no output") || a.outcome(1) != consumer.Durable {
			t.Errorf("row %+v, outcome %q", row, a.outcome(1))
		}
	})
}

func TestNumbersFromOutsideAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.judge.answer = func(_ context.Context, q judge.Question) (judge.Answer, error) {
			a := certain(q)
			a.Usage = judge.Usage{InputTokens: -5, OutputTokens: math.MaxInt64, USD: -1}
			a.Attempts = -1
			return a, nil
		}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, `{"input":"q","output":"a","latency_ms":-4,"usage":{"prompt_tokens":99999999999}}`)
		w.settle()
		row := w.only()
		if row.InputTokens != 0 || row.OutputTokens != math.MaxUint32 || row.CostNanoUSD != 0 || row.Attempts != 0 {
			t.Errorf("row %+v", row)
		}
		text := w.store.texts[position{1, 0}]
		if text.LatencyMS != 0 || text.InputTokens != math.MaxUint32 && text.InputTokens != 0 {
			t.Errorf("text %+v", text)
		}
	})
}
