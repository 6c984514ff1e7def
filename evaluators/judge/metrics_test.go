package judge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestEveryOutcomeIsCountedFromZero(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	meters := NewMetrics(reg).For("main")
	if n := testutil.CollectAndCount(reg, "assay_judge_requests_total"); n != len(outcomes) {
		t.Fatalf("%d series before the first request, want %d", n, len(outcomes))
	}
	for _, err := range []error{
		nil, nil,
		throttled(0),
		&TransientError{Reason: ReasonTimeout, Err: errors.New("slow")},
		&TransientError{Reason: ReasonUnavailable, Err: errors.New("500")},
		&UnusableError{Reason: ReasonProse},
		&UnusableError{Reason: ReasonJudgeRefused},
		&RefusedError{"coarse_only"},
		&FatalError{errors.New("401")},
		&RejectedError{errors.New("400")},
	} {
		NewMeter(judgeFunc(func(context.Context, Question) (Answer, error) { return yes(), err }), meters).Ask(t.Context(), question("x"))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	NewMeter(judgeFunc(func(ctx context.Context, _ Question) (Answer, error) { return Answer{}, ctx.Err() }), meters).Ask(gone, question("x"))

	want := `
# HELP assay_judge_requests_total Tries sent to a judge, by how they ended.
# TYPE assay_judge_requests_total counter
assay_judge_requests_total{judge="main",outcome="error"} 3
assay_judge_requests_total{judge="main",outcome="ok"} 2
assay_judge_requests_total{judge="main",outcome="refused"} 2
assay_judge_requests_total{judge="main",outcome="throttled"} 1
assay_judge_requests_total{judge="main",outcome="timeout"} 1
assay_judge_requests_total{judge="main",outcome="unusable"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "assay_judge_requests_total"); err != nil {
		t.Error(err)
	}
}

func TestWrappersKeepTheirGauges(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	meters := NewMetrics(reg).For("main")
	inner := judgeFunc(func(context.Context, Question) (Answer, error) {
		if testutil.ToFloat64(meters.inFlight) != 1 {
			t.Error("not in flight while it is")
		}
		return yes(), nil
	})
	limiter, err := NewLimiter(NewMeter(inner, meters), Limits{InFlight: 7}, meters)
	if err != nil {
		t.Fatal(err)
	}
	budget, err := NewBudget(limiter, Spending{Calls: 4}, Price{InputPerMillion: 10}, BudgetDeps{
		Now: time.Now, Meters: meters, Estimate: func(Question) Usage { return Usage{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := budget.Ask(t.Context(), question("x")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		got  prometheus.Collector
		want float64
	}{
		"limit": {meters.limitGauge, 7}, "in flight": {meters.inFlight, 0}, "ratio": {meters.budgetFraction, .25},
		"cost": {meters.cost, .001}, "input": {meters.input, 100}, "output": {meters.output, 1},
	} {
		if got := testutil.ToFloat64(c.got); got != c.want {
			t.Errorf("%s = %v, want %v", name, got, c.want)
		}
	}
	breaker, err := NewBreaker(&script{errs: []error{keyRevoked}}, Config{BreakerPause: time.Second}.Breaker(), BreakerDeps{Log: quiet, Meters: meters})
	if err != nil {
		t.Fatal(err)
	}
	breaker.Ask(t.Context(), question("x"))
	if got := testutil.ToFloat64(meters.state); got != float64(Opened) {
		t.Errorf("breaker state %v, want open", got)
	}
}
