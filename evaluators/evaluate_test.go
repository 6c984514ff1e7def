package evaluators_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/interaction"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestClosedQAMapsTheProbabilityOfYes(t *testing.T) {
	line := .8
	f := func(yes float64, s evaluators.Settings, option, label string, confidence float64, passed bool) {
		t.Helper()
		r := evaluate(t, evaluator(t, "closed_qa", s), says(map[string]float64{"yes": yes, "no": 1 - yes}), complete())
		if r.Status != evaluators.OK || !near(*r.Score, yes) || r.Option != option || r.Label != label ||
			!near(*r.Confidence, confidence) || *r.Passed != passed {
			t.Errorf("p(yes) %v: %s %v %s %q %v %v, want %s %q %v %v", yes, r.Status, *r.Score, r.Option, r.Label, *r.Confidence, *r.Passed,
				option, label, confidence, passed)
		}
	}
	var d evaluators.Settings
	f(1, d, "yes", "100% yes", 1, true)
	f(.22, d, "no", "22% yes", .56, false)
	f(.5, d, "no", "50% yes", 0, true) // the line is inside, the tie goes to the worse option
	f(.49999, d, "no", "50% yes", .00002, false)
	f(.285, d, "no", "29% yes", .43, false) // half up, although 28.5 is 28.499... in binary
	f(0, d, "no", "0% yes", 1, false)
	f(.79, evaluators.Settings{PassLine: &line}, "yes", "79% yes", .58, false)
	f(.8, evaluators.Settings{PassLine: &line}, "yes", "80% yes", .6, true)
}

func TestFactualityScoresTheChosenOptionAndNotTheMean(t *testing.T) {
	f := func(p map[string]float64, s evaluators.Settings, option string, score, confidence, expected float64, passed bool) {
		t.Helper()
		r := evaluate(t, evaluator(t, "factuality", s), says(p), complete())
		if r.Status != evaluators.OK || r.Option != option || r.Label != option || !near(*r.Score, score) || !near(*r.Confidence, confidence) ||
			*r.Passed != passed || !near(r.Detail["expected_score"].(float64), expected) {
			t.Errorf("%v: %s %s score %v confidence %v passed %v expected %v", p, r.Status, r.Option, *r.Score, *r.Confidence, *r.Passed, r.Detail["expected_score"])
		}
	}
	var d evaluators.Settings
	f(map[string]float64{"A": .86, "B": .02, "C": .05, "D": .04, "E": .03}, d, "A", .4, .86, .436, false)
	f(map[string]float64{"B": 1}, d, "B", .6, 1, .6, true)
	f(map[string]float64{"C": 1}, d, "C", 1, 1, 1, true)
	f(map[string]float64{"D": 1}, d, "D", 0, 1, 0, false)
	f(map[string]float64{"E": 1}, d, "E", 1, 1, 1, true)
	f(map[string]float64{"C": .5, "D": .5}, d, "D", 0, .5, .5, false) // a tie goes to the lower score
	f(map[string]float64{"C": .5, "E": .5}, d, "C", 1, .5, 1, true)   // and then to the earlier key
	f(map[string]float64{"A": .4, "D": .4 + 1e-13, "E": .2 - 1e-13}, d, "D", 0, .4+1e-13, .16+.2-1e-13, false)
	f(map[string]float64{"B": 1}, evaluators.Settings{Pass: []string{"C", "E"}}, "B", .6, 1, .6, false)
	f(map[string]float64{"A": 1}, evaluators.Settings{Pass: []string{"A", "B", "C", "E"}}, "A", .4, 1, .4, true)
}

func TestCoarseFactualityHasTwoOptions(t *testing.T) {
	e := evaluator(t, "factuality", evaluators.Settings{Coarse: true})
	f := func(agree float64, option string, score float64, passed bool) {
		t.Helper()
		r := evaluate(t, e, says(map[string]float64{"agree": agree, "disagree": 1 - agree}), complete())
		if r.Option != option || *r.Score != score || *r.Passed != passed || r.Detail["coarse"] != true {
			t.Errorf("p(agree) %v: %s %v %v %v", agree, r.Option, *r.Score, *r.Passed, r.Detail)
		}
	}
	f(.9, "agree", 1, true)
	f(.5, "disagree", 0, false)
	f(.1, "disagree", 0, false)

	q, err := onlyQuestion(e, evaluators.Item{Output: text("Canberra"), Expected: []string{"Canberra", " ", "ACT"}, Judgeable: true})
	if err != nil || q.Name != "factuality_coarse/1" || q.Kind != judge.Choice || q.Options[0].Key != "agree" || q.Options[1].Key != "disagree" {
		t.Errorf("question %+v, %v", q, err)
	}
	if _, has := q.Field("input"); has || !slices.Equal(q.FieldValues("expected"), []string{"Canberra", "ACT"}) {
		t.Errorf("fields %+v: want one per reference that holds something, and no input where none is", q.Fields)
	}
}

func TestWhatIsNotApplicableIsKnownWithoutAJudge(t *testing.T) {
	f := func(name string, s evaluators.Settings, change func(*evaluators.Item), want string) {
		t.Helper()
		it := complete()
		change(&it)
		e := evaluator(t, name, s)
		reason, ok := e.Applicable(it)
		if reason != want || ok != (want == "") {
			t.Errorf("%s: %q %t, want %q", name, reason, ok, want)
		}
		if want != "" {
			r := evaluate(t, e, nobody(t), it)
			if r.Status != evaluators.NotApplicable || r.Reason != want {
				t.Errorf("%s: evaluated as %s %q, want not_applicable %q", name, r.Status, r.Reason, want)
			}
		}
	}
	var d evaluators.Settings
	f("closed_qa", d, func(*evaluators.Item) {}, "")
	f("factuality", d, func(*evaluators.Item) {}, "")
	f("factuality", d, func(it *evaluators.Item) { it.Input = nil }, "")
	f("closed_qa", d, func(it *evaluators.Item) { it.Input = nil }, "missing:input")
	f("closed_qa", d, func(it *evaluators.Item) { it.Output, it.Criteria = nil, nil }, "missing:output,criteria")
	f("closed_qa", d, func(it *evaluators.Item) { it.Criteria = text(" \u200b\n") }, "missing:criteria")
	f("factuality", d, func(it *evaluators.Item) { it.Expected = nil }, "missing:expected")
	f("factuality", d, func(it *evaluators.Item) { it.Expected = []string{"", "\u00a0", "\ufeff"} }, "missing:expected")
	f("factuality", d, func(it *evaluators.Item) { it.Output = text("  ") }, "empty_output")
	f("factuality", d, func(it *evaluators.Item) { it.Output, it.Expected = text(" "), nil }, "missing:expected")
	f("factuality", d, func(it *evaluators.Item) { it.Judgeable, it.SkipReason = false, "tool_call_only" }, "tool_call_only")
	f("factuality", d, func(it *evaluators.Item) { it.Judgeable, it.SkipReason, it.Output = false, "empty_output", text("") }, "empty_output")
	f("factuality", d, func(it *evaluators.Item) { it.Judgeable = false }, "not_judgeable")
	f("factuality", d, func(it *evaluators.Item) { it.Status = interaction.Refusal }, "")
	f("factuality", evaluators.Settings{Refusals: "not_applicable"}, func(it *evaluators.Item) { it.Status = interaction.Refusal }, "refusal")
	f("factuality", evaluators.Settings{Refusals: "not_applicable"}, func(it *evaluators.Item) { it.Flags = []string{"refusal_like"} }, "refusal")
	f("factuality", d, func(it *evaluators.Item) { it.Flags = []string{"truncated"} }, "")
	f("factuality", evaluators.Settings{Truncated: "not_applicable"}, func(it *evaluators.Item) { it.Flags = []string{"input_truncated"} }, "truncated")
	f("factuality", evaluators.Settings{Truncated: "not_applicable"}, func(it *evaluators.Item) { it.Status = interaction.Truncated }, "truncated")
	f("factuality", evaluators.Settings{MaxInputRunes: 50}, func(it *evaluators.Item) {}, "")
	f("factuality", evaluators.Settings{MaxInputRunes: 50}, func(it *evaluators.Item) { it.Output = text("ÄÖÜ") }, "") // runes, not bytes
	f("factuality", evaluators.Settings{MaxInputRunes: 50}, func(it *evaluators.Item) { it.Output = text("Canberra, I think.") }, "too_long")
	f("factuality", evaluators.Settings{MaxInputRunes: 50}, func(it *evaluators.Item) { it.Context = []string{"not read by this evaluator, so it does not count"} }, "")
}

func TestARuleGivesTheWorstAnswerWithoutAJudge(t *testing.T) {
	f := func(name string, s evaluators.Settings, change func(*evaluators.Item), rule, option, label string) {
		t.Helper()
		it := complete()
		change(&it)
		r := evaluate(t, evaluator(t, name, s), nobody(t), it)
		if r.Status != evaluators.OK || *r.Score != 0 || *r.Passed || r.Option != option || r.Label != label || *r.Confidence != 1 ||
			r.Detail["rule"] != rule || r.Method != judge.None || r.Attempts != 0 || slices.Max(r.Probabilities) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	fail := evaluators.Settings{EmptyOutput: "fail"}
	blank := func(it *evaluators.Item) { it.Output = text("\n\u200b") }
	f("factuality", fail, blank, "empty_output", "D", "D")
	f("closed_qa", fail, blank, "empty_output", "no", "0% yes")
	f("factuality", evaluators.Settings{EmptyOutput: "fail", Coarse: true}, blank, "empty_output", "disagree", "disagree")
	// what the decoder of the stream makes of it
	f("factuality", fail, func(it *evaluators.Item) { it.Judgeable, it.SkipReason, it.Output = false, "empty_output", nil }, "empty_output", "D", "D")
	f("closed_qa", evaluators.Settings{Refusals: "fail"}, func(it *evaluators.Item) { it.Status = interaction.Refusal }, "refusal", "no", "0% yes")
}

func TestEveryErrorOfAJudgeHasItsStatusAndReason(t *testing.T) {
	spent := judge.Spent{Usage: judge.Usage{InputTokens: 11}, Attempts: 3, Model: "m-1"}
	f := func(err error, status evaluators.Status, reason string) {
		t.Helper()
		for _, name := range []string{"closed_qa", "factuality"} {
			r := evaluate(t, evaluator(t, name, evaluators.Settings{}), fails(err), complete())
			if r.Status != status || r.Reason != reason {
				t.Errorf("%s: %v is %s %q, want %s %q", name, err, r.Status, r.Reason, status, reason)
			}
			var unusable *judge.UnusableError
			var transient *judge.TransientError
			if errors.As(err, &unusable) || errors.As(err, &transient) {
				if r.Usage.InputTokens != 11 || r.Attempts != 3 || r.Model != "m-1" {
					t.Errorf("%s: %v: the cost is lost: %+v, %d attempts", name, err, r.Usage, r.Attempts)
				}
			}
		}
	}
	broken := errors.New("status 500")
	for _, reason := range []string{"outside_options", "prose", "empty_answer", "judge_refused", "judge_abstained", "cut", "malformed", "ambiguous"} {
		f(&judge.UnusableError{Reason: reason, Spent: spent}, evaluators.Unscored, reason)
	}
	f(&judge.RefusedError{Reason: "needs_language_model"}, evaluators.Unscored, "needs_language_model")
	f(&judge.TooLongError{Err: broken}, evaluators.NotApplicable, "too_long")
	f(&judge.ShedError{Reason: "budget", RetryAfter: time.Hour}, evaluators.Shed, "budget")
	f(&judge.ShedError{Reason: "breaker"}, evaluators.Shed, "breaker")
	f(&judge.RejectedError{Err: broken}, evaluators.Error, "judge_rejected")
	f(&judge.FatalError{Err: broken}, evaluators.Error, "judge_misconfigured")
	f(&judge.TransientError{Reason: "timeout", Err: broken, Spent: spent}, evaluators.Error, "judge_unavailable")
	f(&judge.TransientError{Reason: "timeout", Err: context.DeadlineExceeded, Spent: spent}, evaluators.Error, "timeout")
	f(context.DeadlineExceeded, evaluators.Error, "timeout")
	f(errors.New("a bug"), evaluators.Error, "judge_internal_error")
}

func TestAnAnswerThatIsNoDistributionIsUnscored(t *testing.T) {
	for _, p := range [][]float64{nil, {1}, {.6, .6}, {math.NaN(), 1}, {-.1, 1.1}, {0, 0}, {.5, .4999}} {
		r := evaluate(t, evaluator(t, "closed_qa", evaluators.Settings{}), judgeFunc(func(context.Context, judge.Question) (judge.Answer, error) {
			return judge.Answer{Probabilities: p, Method: judge.Simulated, Usage: judge.Usage{InputTokens: 5}, Attempts: 1}, nil
		}), complete())
		if r.Status != evaluators.Unscored || r.Reason != "malformed" || r.Usage.InputTokens != 5 {
			t.Errorf("%v: %s %s, usage %+v", p, r.Status, r.Reason, r.Usage)
		}
	}
}

func TestACancelledEvaluationIsNoResult(t *testing.T) {
	why := errors.New("partition revoked")
	ctx, cancel := context.WithCancelCause(t.Context())
	r, err := evaluator(t, "closed_qa", evaluators.Settings{}).Evaluate(ctx, judgeFunc(func(ctx context.Context, _ judge.Question) (judge.Answer, error) {
		cancel(why)
		return judge.Answer{}, ctx.Err()
	}), complete())
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || r.Status != "" {
		t.Errorf("%+v, %v, want no result and the cancellation with its cause", r, err)
	}
}

func TestADeadlineIsAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := evaluator(t, "closed_qa", evaluators.Settings{}).Evaluate(ctx, judgeFunc(func(ctx context.Context, _ judge.Question) (judge.Answer, error) {
			<-ctx.Done()
			return judge.Answer{}, ctx.Err()
		}), complete())
		if err != nil || r.Status != evaluators.Error || r.Reason != "timeout" || r.Latency != time.Minute {
			t.Errorf("%s %s after %v, %v, want error timeout after a minute", r.Status, r.Reason, r.Latency, err)
		}
	})
}

func TestTwoOrdersAreAveragedAndTheirGapIsTold(t *testing.T) {
	var orders []int
	j := judgeFunc(func(_ context.Context, q judge.Question) (judge.Answer, error) {
		orders = append(orders, q.Order)
		yes := .9 - .2*float64(q.Order)
		return judge.Answer{Probabilities: []float64{yes, 1 - yes}, Outside: .1 * float64(q.Order), Attempts: 1, Usage: judge.Usage{InputTokens: 10}}, nil
	})
	r := evaluate(t, evaluator(t, "closed_qa", evaluators.Settings{Orders: 2}), j, complete())
	if !slices.Equal(orders, []int{0, 1}) || !near(*r.Score, .8) || !near(r.Outside, .05) || r.Usage.InputTokens != 20 || r.Attempts != 2 ||
		!near(r.Detail["order_gap"].(float64), .2) {
		t.Errorf("asked %v: score %v outside %v usage %+v detail %v", orders, *r.Score, r.Outside, r.Usage, r.Detail)
	}
	n := 0
	half := judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if n++; n == 2 {
			return judge.Answer{}, &judge.UnusableError{Reason: "prose", Spent: judge.Spent{Usage: judge.Usage{InputTokens: 5}, Attempts: 1}}
		}
		return j(ctx, q)
	})
	r = evaluate(t, evaluator(t, "closed_qa", evaluators.Settings{Orders: 2}), half, complete())
	if r.Status != evaluators.Unscored || r.Usage.InputTokens != 15 || r.Attempts != 2 {
		t.Errorf("half an answer: %s, usage %+v, want unscored and both paid", r.Status, r.Usage)
	}
}

func TestDetailKeepsWhatTheJudgeAndTheLogSaid(t *testing.T) {
	it := complete()
	it.Flags = []string{"output_cut", "sse_reassembled"}
	r := evaluate(t, evaluator(t, "closed_qa", evaluators.Settings{}), judgeFunc(func(context.Context, judge.Question) (judge.Answer, error) {
		return judge.Answer{Probabilities: []float64{1, 0}, Method: judge.Logprobs, Model: "m-2", Detail: map[string]any{"floor": .01}}, nil
	}), it)
	if r.Detail["floor"] != .01 || !slices.Equal(r.Detail["flags"].([]string), []string{"output_cut"}) || r.Method != judge.Logprobs || r.Model != "m-2" {
		t.Errorf("%+v", r)
	}
	r = evaluate(t, evaluator(t, "closed_qa", evaluators.Settings{}), fails(&judge.UnusableError{Reason: "prose", Raw: "Well, it depends", Method: judge.Logprobs}), complete())
	if r.Detail["raw"] != "Well, it depends" || r.Method != judge.Logprobs {
		t.Errorf("%+v", r)
	}
}
