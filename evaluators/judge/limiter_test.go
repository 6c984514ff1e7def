package judge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestInFlightIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		l, err := NewLimiter(judgeFunc(func(context.Context, Question) (Answer, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return yes(), nil
		}), Limits{InFlight: 4}, nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := l.Ask(t.Context(), question("x")); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most.Load() != 4 || time.Since(start) != 5*time.Second {
			t.Errorf("%d at a time, done after %v, want 4 and 5s", most.Load(), time.Since(start))
		}
	})
}

func TestRequestsPerMinuteAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l, err := NewLimiter(judgeFunc(func(context.Context, Question) (Answer, error) { n++; return yes(), nil }),
			Limits{InFlight: 1, RequestsPerMinute: 120}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for ctx.Err() == nil {
			if _, err := l.Ask(ctx, question("x")); err != nil {
				break
			}
		}
		if n < 119 || n > 121 {
			t.Errorf("%d in a minute, want 120", n)
		}
		l.SetShare(.5)
		n = 0
		half, cancelHalf := context.WithTimeout(t.Context(), time.Minute)
		defer cancelHalf()
		for half.Err() == nil {
			if _, err := l.Ask(half, question("x")); err != nil {
				break
			}
		}
		if n < 59 || n > 61 {
			t.Errorf("%d in a minute with half the share, want 60", n)
		}
	})
}

func TestAWaitPastTheDeadlineIsATimeoutThatCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		l, _ := NewLimiter(judgeFunc(func(context.Context, Question) (Answer, error) {
			asked++
			time.Sleep(time.Hour)
			return yes(), nil
		}), Limits{InFlight: 1}, nil)
		var wg sync.WaitGroup
		wg.Go(func() { l.Ask(context.Background(), question("x")) })
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := l.Ask(ctx, question("y"))
		var transient *TransientError
		if !errors.As(err, &transient) || !errors.Is(err, context.DeadlineExceeded) || transient.Spent != (Spent{}) || asked != 1 {
			t.Errorf("%v, want a timeout without cost", err)
		}

		why := errors.New("drain")
		gone, stop := context.WithCancelCause(t.Context())
		stop(why)
		if _, err := l.Ask(gone, question("z")); !errors.Is(err, context.Canceled) || !errors.Is(err, why) || errors.As(err, &transient) {
			t.Errorf("%v, want the cancellation", err)
		}
		wg.Wait()
	})
}
