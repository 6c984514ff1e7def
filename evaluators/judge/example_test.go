package judge_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/evaluators/judge"
)

// flaky is throttled at first.
type flaky struct{ calls int }

func (f *flaky) Ask(context.Context, judge.Question) (judge.Answer, error) {
	if f.calls++; f.calls == 1 {
		return judge.Answer{}, &judge.TransientError{Reason: judge.ReasonThrottled, Err: io.EOF, Spent: judge.Spent{Attempts: 1}}
	}
	return judge.Answer{
		Probabilities: []float64{.75, .25}, Method: judge.Simulated, Model: "example", Attempts: 1,
		Usage: judge.Usage{InputTokens: 300, OutputTokens: 1},
	}, nil
}

// The stack, inside out: what is nearest to the backend is built first.
func Example() {
	backend := &flaky{}
	meters := judge.NewMetrics(prometheus.NewRegistry()).For("main")
	policy := judge.RetryPolicy{Attempts: 4, Base: time.Millisecond, Max: time.Millisecond}
	opens := judge.BreakerPolicy{Window: 50, Failures: 20, Pause: time.Second, MaxPause: time.Minute}
	estimate := func(judge.Question) judge.Usage { return judge.Usage{InputTokens: 400, OutputTokens: 4} }

	limiter, err := judge.NewLimiter(judge.NewMeter(backend, meters), judge.Limits{InFlight: 200, RequestsPerMinute: 6000}, meters)
	if err != nil {
		panic(err)
	}
	breaker, err := judge.NewBreaker(limiter, opens, judge.BreakerDeps{Log: slog.New(slog.DiscardHandler), Meters: meters})
	if err != nil {
		panic(err)
	}
	budget, err := judge.NewBudget(breaker, judge.Spending{USD: 25}, judge.Price{InputPerMillion: 1, OutputPerMillion: 4},
		judge.BudgetDeps{Now: time.Now, Estimate: estimate, Meters: meters})
	if err != nil {
		panic(err)
	}
	cache, err := judge.NewCache(judge.NewRetry(budget, policy), "fingerprint of the backend", 10_000)
	if err != nil {
		panic(err)
	}

	question := judge.Question{Name: "example/1", Kind: judge.Boolean, Text: "Is it so?",
		Options: []judge.Option{{Key: "yes", Text: "Yes."}, {Key: "no", Text: "No."}}}
	for range 2 {
		answer, err := cache.Ask(context.Background(), question)
		if err != nil {
			panic(err)
		}
		fmt.Printf("p(yes) %.2f, attempts %d, $%.6f, cached %t\n",
			answer.Probabilities[0], answer.Attempts, answer.Usage.USD, answer.Cached)
	}
	fmt.Println("calls", backend.calls)
	// Output:
	// p(yes) 0.75, attempts 2, $0.000304, cached false
	// p(yes) 0.75, attempts 0, $0.000000, cached true
	// calls 2
}
