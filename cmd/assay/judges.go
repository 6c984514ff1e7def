package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/evaluators/judge"
	"assay/evaluators/judge/embedded"
	"assay/evaluators/judge/openai"
	"assay/evaluators/judge/simulated"
	"assay/internal/checks"
)

// stack is a judge with everything around it.
type stack struct {
	judge.Judge
	config      checks.Judge
	limiter     *judge.Limiter // nil, like the next two, for a judge that only computes
	breaker     *judge.Breaker
	budget      *judge.Budget
	fingerprint string
	probe       func(context.Context) error // can it do what the checks file asks of it? nil when there is nothing to ask
	alive       func(context.Context) error // does it answer at all? nil with probe
	inFlight    int                         // interactions at a time; 0: it only computes

	prompt   func(judge.Question) []judge.Message // what a model reads; nil where none does
	estimate func(judge.Question) judge.Usage     // the most that one try may use
}

// breakerPoll is how often a judgement that waits for a judge looks at its breaker.
const breakerPoll = 250 * time.Millisecond

// wait returns when the judge may be asked, or with ctx. An outage then holds the
// records that are in flight, where asking on would shed every one of them. A judge
// without a probe is let through: only questions can find out that it is back.
func (st stack) wait(ctx context.Context) error {
	if st.breaker == nil || st.alive == nil {
		return nil
	}
	for st.breaker.Open() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(breakerPoll):
		}
	}
	return nil
}

// stacker builds judges as a checks file configures them.
type stacker struct {
	cfg     judge.Config
	environ func(string) (string, bool)
	metrics *judge.Metrics
	log     *slog.Logger
	now     func() time.Time
	// truth answers for the simulated judge; only the demo has one.
	truth func(judge.Question) (string, bool)
	// onBreaker hears of every change of a breaker.
	onBreaker func()
}

func newStacker(env environment, environ []string, reg prometheus.Registerer, log *slog.Logger) *stacker {
	return &stacker{
		cfg: env.Judge, environ: lookup(environ), metrics: judge.NewMetrics(reg), log: log,
		now: time.Now, onBreaker: func() {},
	}
}

// backend is what the wrappers stand around.
type backend interface {
	judge.Judge
	Fingerprint() string
}

// stacks builds every judge of a checks file.
func (s *stacker) stacks(file *checks.File) (map[string]stack, error) {
	out := make(map[string]stack, len(file.Judges))
	for _, c := range file.Judges {
		st, err := s.stack(c)
		if err != nil {
			return nil, errUsage{fmt.Errorf("judge %s: %w", c.Name, err)}
		}
		out[c.Name] = st
	}
	return out, nil
}

// stack puts the wrappers around a backend. From the inside out: the meter sees every
// try, the limiter spaces them, the breaker spares a judge that is down, the budget
// pays for each, retry repeats outside all of these so that a pause holds no slot, voting
// asks several times, and the cache asks nothing twice.
func (s *stacker) stack(c checks.Judge) (stack, error) {
	st := stack{config: c, estimate: func(judge.Question) judge.Usage { return judge.Usage{} }}
	var b backend
	switch c.Kind {
	case checks.KindOpenAI, checks.KindAnthropic:
		o, err := s.openai(c)
		if err != nil {
			return st, err
		}
		b, st.estimate, st.prompt = o, o.Estimate, o.Prompt
		st.probe, st.alive, st.inFlight = o.Probe, o.Alive, c.MaxInFlight
	case "embedded":
		e, err := embedded.NewWith(embedded.Config{AbstainLowConfidence: c.AbstainLow})
		if err != nil {
			return st, err
		}
		b = e
	case "simulated":
		if s.truth == nil {
			return st, fmt.Errorf("kind simulated answers only in assay demo, which knows the truth")
		}
		sim, err := simulated.New(simulatedJudge(s.truth, 40*time.Millisecond))
		if err != nil {
			return st, err
		}
		b, st.inFlight = sim, 64
	default:
		return st, fmt.Errorf("kind %q: want openai, anthropic or embedded", c.Kind)
	}

	meters := s.metrics.For(c.Name)
	fingerprint := b.Fingerprint()
	var j judge.Judge = judge.NewMeter(b, meters)
	if st.inFlight > 0 {
		l, err := judge.NewLimiter(j, judge.Limits{InFlight: st.inFlight, RequestsPerMinute: c.RequestsPerMinute}, meters)
		if err != nil {
			return st, err
		}
		br, err := judge.NewBreaker(l, s.cfg.Breaker(), judge.BreakerDeps{
			Log: s.log.With("judge", c.Name), Meters: meters, Probe: st.alive,
			OnChange: func(judge.State) { s.onBreaker() },
		})
		if err != nil {
			return st, err
		}
		limits := judge.Spending{USD: c.Budget.USDPerDay, Calls: c.Budget.CallsPerDay, Tokens: c.Budget.TokensPerDay}
		var price judge.Price
		if c.Price != nil {
			price = judge.Price{InputPerMillion: c.Price.InputPerMillion, OutputPerMillion: c.Price.OutputPerMillion}
		}
		budget, err := judge.NewBudget(br, limits, price, judge.BudgetDeps{Now: s.now, Estimate: st.estimate, Meters: meters})
		if err != nil {
			return st, err
		}
		st.limiter, st.breaker, st.budget = l, br, budget
		j = judge.NewRetry(budget, s.cfg.Retry())
		if n := c.Votes(); n > 1 {
			if j, err = judge.NewVoting(j, n, budget); err != nil {
				return st, err
			}
			fingerprint += fmt.Sprintf("/votes:%d", n)
			// Each interaction has n calls under way: with a slot for every call, most of
			// its deadline would go by in the limiter's queue.
			st.inFlight = max(1, st.inFlight/n)
		}
	}
	cached, err := judge.NewCache(j, fingerprint, s.cfg.CacheEntries)
	if err != nil {
		return st, err
	}
	st.Judge, st.fingerprint = cached, fingerprint
	return st, nil
}

func (s *stacker) openai(c checks.Judge) (*openai.Judge, error) {
	var key string
	if c.APIKeyEnv != "" {
		var ok bool
		if key, ok = s.environ(c.APIKeyEnv); !ok || key == "" {
			return nil, fmt.Errorf("api_key_env names %s, which is not set", c.APIKeyEnv)
		}
	}
	method, _, err := judge.ParseMethod(c.Method)
	if err != nil {
		return nil, err
	}
	return openai.New(openai.Config{
		Protocol: openai.Protocol(c.Kind), BaseURL: c.BaseURL, APIKey: key, Model: c.Model, Method: method, Timeout: s.cfg.Timeout,
		MaxTokens: c.MaxTokens, EmbeddingModel: c.EmbeddingModel,
	}, openai.Deps{HTTP: openai.NewClient(c.MaxInFlight), Log: s.log.With("judge", c.Name)})
}

// simulatedJudge is the demo's judge: right 96 times of 100, and never quite sure.
func simulatedJudge(truth func(judge.Question) (string, bool), latency time.Duration) simulated.Config {
	return simulated.Config{Truth: truth, Accuracy: .96, Noise: .3, Latency: latency, Seed: 1}
}

// lookup reads an environment given as a list; of a name with _FILE beside it the
// file's first line counts.
func lookup(environ []string) func(string) (string, bool) {
	vars := environMap(environ)
	return func(name string) (string, bool) {
		if v, ok := vars[name]; ok {
			return v, true
		}
		path, ok := vars[name+"_FILE"]
		if !ok {
			return "", false
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return "", false
		}
		line, _, _ := strings.Cut(string(raw), "\n")
		return strings.TrimSpace(line), true
	}
}
