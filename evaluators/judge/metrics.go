package judge

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// An outcome is how a try ended. Renaming one breaks users' alerts.
type outcome string

const (
	okOutcome        outcome = "ok"
	throttledOutcome outcome = "throttled"
	timeoutOutcome   outcome = "timeout"
	refusedOutcome   outcome = "refused"  // by the provider's filter, or not for this judge
	unusableOutcome  outcome = "unusable" // an answer came, and no distribution
	errorOutcome     outcome = "error"
)

var outcomes = []outcome{okOutcome, throttledOutcome, timeoutOutcome, refusedOutcome, unusableOutcome, errorOutcome}

// Metrics are the metrics of all judges of a process.
type Metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	limit    *prometheus.GaugeVec
	state    *prometheus.GaugeVec
	tokens   *prometheus.CounterVec
	cost     *prometheus.CounterVec
	ratio    *prometheus.GaugeVec
}

// NewMetrics registers them; once per process.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	with := promauto.With(reg)
	return &Metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_judge_requests_total", Help: "Tries sent to a judge, by how they ended.",
		}, []string{"judge", "outcome"}),
		latency: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assay_judge_latency_seconds", Help: "Time of one try, without queueing and pauses.",
			Buckets:                         []float64{.001, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 60},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"judge"}),
		inFlight: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "assay_judge_in_flight", Help: "Tries that a judge is working on.",
		}, []string{"judge"}),
		limit: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "assay_judge_limit", Help: "Tries that may be in flight at the same time.",
		}, []string{"judge"}),
		state: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "assay_judge_breaker_state", Help: "0 closed, 1 half-open, 2 open: nothing is sent.",
		}, []string{"judge"}),
		tokens: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_judge_tokens_total", Help: "Tokens used, reserves of unstated usage included.",
		}, []string{"judge", "direction"}),
		cost: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_judge_cost_usd_total", Help: "Cost of the tokens at the configured price.",
		}, []string{"judge"}),
		ratio: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "assay_judge_budget_spent_ratio", Help: "Spent share of the day's nearest limit.",
		}, []string{"judge"}),
	}
}

// Meters are one judge's metrics. A nil *Meters counts nothing.
type Meters struct {
	requests       map[outcome]prometheus.Counter
	latency        prometheus.Observer
	inFlight       prometheus.Gauge
	limitGauge     prometheus.Gauge
	state          prometheus.Gauge
	input, output  prometheus.Counter
	cost           prometheus.Counter
	budgetFraction prometheus.Gauge
}

// For returns the metrics of the judge of that name, every counter at 0.
func (m *Metrics) For(name string) *Meters {
	meters := &Meters{
		requests:       make(map[outcome]prometheus.Counter, len(outcomes)),
		latency:        m.latency.WithLabelValues(name),
		inFlight:       m.inFlight.WithLabelValues(name),
		limitGauge:     m.limit.WithLabelValues(name),
		state:          m.state.WithLabelValues(name),
		input:          m.tokens.WithLabelValues(name, "input"),
		output:         m.tokens.WithLabelValues(name, "output"),
		cost:           m.cost.WithLabelValues(name),
		budgetFraction: m.ratio.WithLabelValues(name),
	}
	for _, o := range outcomes {
		meters.requests[o] = m.requests.WithLabelValues(name, string(o))
	}
	return meters
}

func (m *Meters) limit(n int) {
	if m != nil {
		m.limitGauge.Set(float64(n))
	}
}

func (m *Meters) breaker(s State) {
	if m != nil {
		m.state.Set(float64(s))
	}
}

func (m *Meters) budget(ratio float64) {
	if m != nil {
		m.budgetFraction.Set(ratio)
	}
}

func (m *Meters) spent(u Usage) {
	if m != nil {
		m.input.Add(float64(u.InputTokens))
		m.output.Add(float64(u.OutputTokens))
		m.cost.Add(u.USD)
	}
}

// Meter counts the tries that reach a backend. It stands right outside it, so that
// its latency is the judge's and not the queue's.
type Meter struct {
	next   Judge
	meters *Meters
}

// NewMeter wraps next; with nil meters it only passes on.
func NewMeter(next Judge, meters *Meters) *Meter { return &Meter{next, meters} }

// Ask implements Judge.
func (m *Meter) Ask(ctx context.Context, q Question) (Answer, error) {
	if m.meters == nil {
		return m.next.Ask(ctx, q)
	}
	m.meters.inFlight.Inc()
	defer m.meters.inFlight.Dec()
	start := time.Now()
	a, err := m.next.Ask(ctx, q)
	if o, counts := outcomeOf(ctx, err); counts {
		m.meters.requests[o].Inc()
		m.meters.latency.Observe(time.Since(start).Seconds())
	}
	return a, err
}

// outcomeOf classifies a try. One that we cancelled says nothing about the judge.
func outcomeOf(ctx context.Context, err error) (outcome, bool) {
	var transient *TransientError
	var unusable *UnusableError
	var refused *RefusedError
	switch {
	case err == nil:
		return okOutcome, true
	case errors.As(err, &refused):
		return refusedOutcome, true
	case errors.As(err, &unusable) && unusable.Reason == ReasonJudgeRefused:
		return refusedOutcome, true
	case errors.As(err, &unusable):
		return unusableOutcome, true
	case errors.Is(ctx.Err(), context.Canceled):
		return "", false
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return timeoutOutcome, true
	case errors.As(err, &transient) && transient.Reason == ReasonThrottled:
		return throttledOutcome, true
	case errors.As(err, &transient) && transient.Reason == ReasonTimeout:
		return timeoutOutcome, true
	}
	return errorOutcome, true
}
