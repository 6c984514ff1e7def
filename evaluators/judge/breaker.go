package judge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// State is what a Breaker lets through. Its numbers are the metric's values.
type State int

// The states of a breaker.
const (
	Closed   State = 0 // every question
	HalfOpen State = 1 // one question, as a probe
	Opened   State = 2 // none
)

func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case HalfOpen:
		return "half-open"
	}
	return "open"
}

// BreakerPolicy says when a judge is left alone, and for how long.
type BreakerPolicy struct {
	Window   int           // last tries that are looked at
	Failures int           // this many failures among them open the breaker
	Pause    time.Duration // until the first probe
	MaxPause time.Duration // the pause doubles up to here while probes fail
}

// BreakerDeps are the parts a Breaker works with; Log is required.
type BreakerDeps struct {
	Log      *slog.Logger
	Meters   *Meters                     // or nil
	Probe    func(context.Context) error // or nil: only questions probe
	OnChange func(State)                 // or nil; called without a lock, so two changes may arrive swapped: State is the truth
}

// Breaker stops asking a judge that fails everybody: at once after a *FatalError,
// else when too many of the last tries failed. An unusable answer is no failure of
// the judge as a whole, and neither is a question that we cancelled.
//
// While it is open nothing is sent: questions are shed, with the time until the next
// probe. Whoever feeds questions should look at Open and stop fetching; since then no
// question may come to probe with, Run probes by itself.
type Breaker struct {
	next   Judge
	policy BreakerPolicy
	deps   BreakerDeps
	opened chan struct{} // wakes Run; one token is enough

	mu       sync.Mutex // guards the fields below; a leaf
	state    State
	results  []bool // ring of the last tries; true is a failure
	at       int
	failures int
	since    int           // generation: results of tries sent before the last change of state are stale
	until    time.Time     // when open: the next probe
	pause    time.Duration // the one that until came from
	fatal    bool
	cause    error
}

// NewBreaker wraps next.
func NewBreaker(next Judge, policy BreakerPolicy, deps BreakerDeps) (*Breaker, error) {
	if policy.Window < 1 || policy.Failures < 1 || policy.Failures > policy.Window || policy.Pause <= 0 || policy.MaxPause < policy.Pause {
		return nil, fmt.Errorf("breaker policy %+v: want 1 <= failures <= window and 0 < pause <= max pause", policy)
	}
	b := &Breaker{next: next, policy: policy, deps: deps, opened: make(chan struct{}, 1)}
	b.deps.Meters.breaker(Closed)
	return b, nil
}

// State returns the state and, unless closed, why it is not.
func (b *Breaker) State() (State, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.cause
}

// Open reports whether questions are held back: fetching for this judge should pause.
func (b *Breaker) Open() bool {
	state, _ := b.State()
	return state != Closed
}

// Ask implements Judge.
func (b *Breaker) Ask(ctx context.Context, q Question) (Answer, error) {
	ticket, err := b.enter()
	if err != nil {
		return Answer{}, err
	}
	returned := false
	defer func() {
		if !returned { // a panic must not leave the breaker half-open for ever
			b.leave(ticket, verdict{ctxEnded: true})
		}
	}()
	a, err := b.next.Ask(ctx, q)
	returned = true
	b.leave(ticket, judgeOf(ctx, err))
	return a, err
}

// Run probes an open breaker until ctx ends. Without a probe it only waits.
func (b *Breaker) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.opened:
		}
		for b.deps.Probe != nil && b.Open() {
			b.mu.Lock()
			wait := time.Until(b.until)
			b.mu.Unlock()
			// A millisecond at least: while a question is the probe, look again.
			if sleep(ctx, max(wait, time.Millisecond)) != nil {
				return nil
			}
			b.probe(ctx)
		}
	}
}

func (b *Breaker) probe(ctx context.Context) {
	ticket, err := b.enter()
	if err != nil || !ticket.probe {
		// Somebody's question is the probe, or has closed the breaker. Wait a
		// while before the next look.
		_ = sleep(ctx, b.policy.Pause/4)
		return
	}
	// An answer that cannot be used is an answer: the judge is back.
	b.leave(ticket, judgeOf(ctx, b.deps.Probe(ctx)))
}

// A ticket lets one try through. probe is the only one while half-open.
type ticket struct {
	since int
	probe bool
}

// A verdict is what a try says about the judge.
type verdict struct {
	failed   bool
	fatal    bool
	ctxEnded bool // says nothing
	err      error
}

// judgeOf reads a try's end. A deadline of ours that ended the wait for a slot, or a
// cancelled question, says nothing about the judge.
func judgeOf(ctx context.Context, err error) verdict {
	var fatal *FatalError
	var transient *TransientError
	var rejected *RejectedError
	switch {
	case err == nil:
		return verdict{}
	case errors.As(err, &fatal):
		return verdict{failed: true, fatal: true, err: err}
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return verdict{ctxEnded: true}
	case errors.As(err, &transient), errors.As(err, &rejected):
		return verdict{failed: true, err: err}
	}
	return verdict{} // an answer came, or the question was not for this judge
}

func (b *Breaker) enter() (ticket, error) {
	now := time.Now()
	b.mu.Lock()
	if b.state == Closed {
		defer b.mu.Unlock()
		return ticket{since: b.since}, nil
	}
	if b.state == Opened && !now.Before(b.until) {
		b.state = HalfOpen
		b.since++
		t := ticket{since: b.since, probe: true}
		b.mu.Unlock()
		b.changed(HalfOpen, nil)
		return t, nil
	}
	defer b.mu.Unlock()
	shed := &ShedError{Reason: ShedBreaker}
	if !b.fatal {
		// Worth waiting for. After a fatal error it is not: a person has to act.
		shed.RetryAfter = max(b.until.Sub(now), b.policy.Pause/4)
	}
	return ticket{}, shed
}

func (b *Breaker) leave(t ticket, v verdict) {
	b.mu.Lock()
	if t.since != b.since {
		b.mu.Unlock()
		return // sent before the state changed: the change knows better
	}
	before := b.state
	switch {
	case t.probe && v.ctxEnded:
		b.state = Opened // the next question may probe at once
	case t.probe && v.failed:
		b.open(v, min(2*b.pause, b.policy.MaxPause))
	case t.probe:
		b.close()
	case v.ctxEnded:
	case v.fatal:
		b.open(v, b.policy.Pause)
	default:
		b.count(v.failed)
		if b.failures >= b.policy.Failures {
			b.open(v, b.policy.Pause)
		}
	}
	after := b.state
	b.mu.Unlock()
	if after != before {
		b.changed(after, v.err)
	}
}

// count puts a try into the ring. Callers hold mu.
func (b *Breaker) count(failed bool) {
	if len(b.results) < b.policy.Window {
		b.results = append(b.results, failed)
	} else {
		if b.results[b.at] {
			b.failures--
		}
		b.results[b.at] = failed
		b.at = (b.at + 1) % b.policy.Window
	}
	if failed {
		b.failures++
	}
}

// open and close change the state and begin a new generation. Callers hold mu.
func (b *Breaker) open(v verdict, pause time.Duration) {
	b.state, b.pause, b.until = Opened, pause, time.Now().Add(pause)
	b.fatal, b.cause = v.fatal, v.err
	b.since++
}

func (b *Breaker) close() {
	b.state, b.pause, b.fatal, b.cause = Closed, 0, false, nil
	b.results, b.at, b.failures = b.results[:0], 0, 0
	b.since++
}

// changed tells everyone, outside the lock.
func (b *Breaker) changed(s State, cause error) {
	b.deps.Meters.breaker(s)
	switch s {
	case Opened:
		b.deps.Log.Warn("judge left alone", "state", s.String(), "err", cause)
		select {
		case b.opened <- struct{}{}:
		default: // Run has been woken already
		}
	case Closed:
		b.deps.Log.Info("judge answers again", "state", s.String())
	}
	if b.deps.OnChange != nil {
		b.deps.OnChange(s)
	}
}
