package judge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// RetryPolicy says how often and how patiently a question is asked again.
type RetryPolicy struct {
	Attempts int           // tries, the first included
	Base     time.Duration // longest pause before the second try
	Max      time.Duration // longest pause of ours; a judge's Retry-After may be longer

	// Jitter returns a pause up to its argument; nil draws it evenly, from zero on.
	// Full jitter spreads a crowd that was thrown back together; anything less
	// sends it back in one wave.
	Jitter func(max time.Duration) time.Duration
}

// pause returns how long to wait after the failure of the given try.
func (p RetryPolicy) pause(try int, retryAfter time.Duration) time.Duration {
	ceiling := p.Max
	if doublings := try - 1; doublings < 30 && p.Base<<doublings < p.Max {
		ceiling = p.Base << doublings
	}
	jitter := p.Jitter
	if jitter == nil {
		jitter = func(max time.Duration) time.Duration { return rand.N(max + 1) }
	}
	// What the judge asks for is a floor; the jitter on top keeps those it
	// threw back together from coming back together.
	return retryAfter + jitter(ceiling)
}

// Retry asks again after a *TransientError, until the policy's attempts are used up
// or the next pause would outlast ctx: an answer nobody waits for is still paid for.
// An unusable answer that may come out right (UnusableError.Reask) is asked for once
// more at once. While the breaker is open it waits without using up attempts, since
// nothing was asked.
type Retry struct {
	next   Judge
	policy RetryPolicy
}

// NewRetry wraps next.
func NewRetry(next Judge, policy RetryPolicy) *Retry { return &Retry{next, policy} }

// Ask implements Judge. The cost of every try is in the answer or in the error.
func (r *Retry) Ask(ctx context.Context, q Question) (Answer, error) {
	var spent Spent
	for try := 1; ; {
		a, err := r.next.Ask(ctx, q)
		if err == nil {
			a.Usage = a.Usage.Add(spent.Usage)
			a.Attempts += spent.Attempts
			return a, nil
		}
		spent = spent.plus(SpentOf(err))
		if ctx.Err() != nil && interrupted(err) {
			return Answer{}, ended(ctx, spent, err)
		}

		var pause time.Duration
		var unusable *UnusableError
		var transient *TransientError
		var shed *ShedError
		switch {
		case errors.As(err, &unusable) && unusable.Reask && q.Reask == 0 && try < r.policy.Attempts:
			q.Reask++
			try++
		case errors.As(err, &transient) && try < r.policy.Attempts && !errors.Is(err, context.DeadlineExceeded):
			pause = r.policy.pause(try, transient.RetryAfter)
			try++
		case errors.As(err, &shed) && shed.Reason == ShedBreaker && shed.RetryAfter > 0:
			pause = r.policy.pause(1, shed.RetryAfter)
		default:
			return Answer{}, withSpent(err, spent)
		}

		if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause {
			return Answer{}, tooLate(err, pause, spent)
		}
		if err := sleep(ctx, pause); err != nil {
			return Answer{}, ended(ctx, spent, err)
		}
	}
}

// interrupted reports whether err may be the context's doing. An answer that came,
// even an unusable one, stands.
func interrupted(err error) bool {
	var transient *TransientError
	var shed *ShedError
	return errors.As(err, &transient) || errors.As(err, &shed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// ended says how a question ended whose context did. A deadline is an outcome with
// a cost; a cancelled question is unresolved and comes back as the cancellation.
func ended(ctx context.Context, spent Spent, last error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &TransientError{Reason: ReasonTimeout, Err: errors.Join(context.DeadlineExceeded, last), Spent: spent}
	}
	return cancelled(ctx)
}

// tooLate gives up before a pause that the deadline would cut. What was never asked
// stays shed, and what was answered stays unusable.
func tooLate(err error, pause time.Duration, spent Spent) error {
	var transient *TransientError
	if !errors.As(err, &transient) {
		return withSpent(err, spent)
	}
	return &TransientError{
		Reason: ReasonTimeout,
		Err:    fmt.Errorf("next try in %s is past the deadline: %w: %w", pause, err, context.DeadlineExceeded),
		Spent:  spent,
	}
}

// cancelled returns the context's error, with its cause where one was given.
func cancelled(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
