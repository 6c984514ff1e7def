package aggregate_test

import (
	"math"
	"testing"

	"assay/evaluators"
	"assay/evaluators/aggregate"
	"assay/evaluators/judge"
)

func answered(option string, score float64, passed bool) evaluators.Result {
	return evaluators.Result{
		Evaluator: "factuality", Status: evaluators.OK, Option: option, Score: &score, Passed: &passed,
		OptionNames: []string{"A", "B", "C", "D", "E"}, Usage: judge.Usage{InputTokens: 100, OutputTokens: 1, USD: .001},
	}
}

func failed(status evaluators.Status, reason string) evaluators.Result {
	return evaluators.Result{Evaluator: "factuality", Status: status, Reason: reason, OptionNames: []string{"A", "B", "C", "D", "E"}}
}

func TestFailuresStandBesideTheRate(t *testing.T) {
	results := []evaluators.Result{
		answered("C", 1, true), answered("C", 1, true), answered("B", .6, true), answered("D", 0, false),
		failed(evaluators.Unscored, "prose"), failed(evaluators.Unscored, "prose"), failed(evaluators.Error, "timeout"),
		failed(evaluators.Shed, "budget"), failed(evaluators.NotApplicable, "missing:expected"), failed(evaluators.NotApplicable, "empty_output"),
	}
	results[0].Detail = map[string]any{"cached": true}
	s, err := aggregate.Summarise(results, .95)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.MeanRate; r == nil || r.Value != *s.MeanScore || r.N != 4 || r.Lower >= r.Value || r.Upper <= r.Value {
		t.Errorf("mean %+v", r)
	}
	if s.PassRate.Value != .75 || s.PassRate.N != 4 || math.Abs(*s.MeanScore-.65) > 1e-12 {
		t.Errorf("pass rate %+v, mean %v, want .75 of 4 and .65", s.PassRate, *s.MeanScore)
	}
	// Wilson for 3 of 4 at .95
	if math.Abs(s.PassRate.Lower-.30064) > 1e-4 || math.Abs(s.PassRate.Upper-.95442) > 1e-4 {
		t.Errorf("interval %v to %v", s.PassRate.Lower, s.PassRate.Upper)
	}
	if s.Items != 10 || s.Missing != .5 || s.Reasons["prose"] != 2 || s.Statuses[evaluators.NotApplicable] != 2 || s.Cached != 1 {
		t.Errorf("%+v", s)
	}
	if s.Options["C"] != 2 || len(s.Options) != 5 || len(s.Statuses) != 5 || s.Usage.InputTokens != 400 || s.Usage.OutputTokens != 4 || math.Abs(s.Usage.USD-.004) > 1e-12 || s.Usage.Estimated {
		t.Errorf("options %v, cost %+v", s.Options, s)
	}
}

func TestWithoutAnAnswerThereIsNoRate(t *testing.T) {
	for _, results := range [][]evaluators.Result{nil, {failed(evaluators.Error, "timeout")}} {
		s, err := aggregate.Summarise(results, .95)
		if err != nil || s.PassRate != nil || s.MeanScore != nil || s.Missing != float64(len(results)) {
			t.Errorf("%d results: %+v, %v", len(results), s, err)
		}
	}
}

func TestTwoEvaluatorsHaveNoCommonRate(t *testing.T) {
	other := answered("yes", 1, true)
	other.Evaluator = "closed_qa"
	if _, err := aggregate.Summarise([]evaluators.Result{answered("C", 1, true), other}, .95); err == nil {
		t.Error("they were summed up")
	}
	if _, err := aggregate.Summarise([]evaluators.Result{answered("C", 1, true)}, 95); err == nil {
		t.Error("a confidence of 95 was taken")
	}
}
