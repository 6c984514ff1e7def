package judge

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/time/rate"
)

// Limits bound the load on a judge.
type Limits struct {
	InFlight          int // questions at the same time
	RequestsPerMinute int // 0: no such bound
}

// Limiter lets a bounded number of questions through at a time and per minute. The
// rest wait; a wait that cannot end before the deadline ends at once.
type Limiter struct {
	next   Judge
	limits Limits
	slots  chan struct{}
	rate   *rate.Limiter // or nil
}

// NewLimiter wraps next; meters may be nil.
func NewLimiter(next Judge, limits Limits, meters *Meters) (*Limiter, error) {
	if limits.InFlight < 1 || limits.RequestsPerMinute < 0 {
		return nil, fmt.Errorf("limits %+v: want at least 1 in flight and 0 (none) or more requests per minute", limits)
	}
	l := &Limiter{next: next, limits: limits, slots: make(chan struct{}, limits.InFlight)}
	if limits.RequestsPerMinute > 0 {
		// A burst of a tenth of a second's worth: providers measure in short
		// windows too, and a minute's worth at once is what they throttle.
		l.rate = rate.NewLimiter(perSecond(limits.RequestsPerMinute, 1), max(1, limits.RequestsPerMinute/600))
	}
	meters.limit(limits.InFlight)
	return l, nil
}

func perSecond(perMinute int, share float64) rate.Limit {
	return rate.Limit(float64(perMinute) * share / 60)
}

// SetShare gives this process its part of the requests per minute, 0 to 1.
func (l *Limiter) SetShare(share float64) {
	if l.rate != nil {
		l.rate.SetLimit(perSecond(l.limits.RequestsPerMinute, min(1, max(0, share))))
	}
}

// Ask implements Judge.
func (l *Limiter) Ask(ctx context.Context, q Question) (Answer, error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return Answer{}, unsent(ctx, ctx.Err())
	}
	defer func() { <-l.slots }()
	if l.rate != nil {
		if err := l.rate.Wait(ctx); err != nil {
			return Answer{}, unsent(ctx, err)
		}
	}
	return l.next.Ask(ctx, q)
}

// An unsentError is a question that never left, so that it can have cost nothing.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// unsent says why: when it was the deadline that ended the wait, it is a timeout.
func unsent(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return unsentError{cancelled(ctx)}
	}
	return &TransientError{
		Reason: ReasonTimeout,
		Err:    fmt.Errorf("waiting for a slot: %w", errors.Join(context.DeadlineExceeded, err)),
	}
}
