package demo

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestPlayKeepsThePaceOfTheSpeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := dayOptions()
		opts.Interactions = 3000
		s := simulate(t, opts)
		const speed = 720 // a day in two minutes
		began := time.Now()
		n := 0
		err := s.Play(t.Context(), speed, func(_ context.Context, events []Event) error {
			for _, e := range events {
				due := time.Duration(float64(e.Record.Time.Sub(opts.Start)) / speed)
				late := time.Since(began) - due
				if late < 0 || late > playTick {
					t.Fatalf("an event due after %s came %s late", due, late)
				}
				n += len(e.Truths)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n != opts.Interactions {
			t.Errorf("%d interactions played, want %d", n, opts.Interactions)
		}
		if took := time.Since(began); took < 118*time.Second || took > 121*time.Second {
			t.Errorf("the day took %s, want two minutes", took)
		}
	})
}

func TestPlayCatchesUpAfterASlowWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := dayOptions()
		opts.Interactions = 3000
		s := simulate(t, opts)
		began := time.Now()
		slow := true
		err := s.Play(t.Context(), 720, func(_ context.Context, events []Event) error {
			if len(events) > playBatch {
				t.Errorf("a batch of %d", len(events))
			}
			if slow && time.Since(began) > 30*time.Second {
				slow = false
				time.Sleep(40 * time.Second)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 121*time.Second {
			t.Errorf("the day took %s: what the write lost was not caught up", took)
		}
	})
}

func TestPlayWithoutPaceWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		n := 0
		err := simulate(t, dayOptions()).Play(t.Context(), math.Inf(1), func(_ context.Context, events []Event) error {
			n += len(events)
			return nil
		})
		if err != nil || n < 10_000 {
			t.Errorf("%d records, error %v", n, err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("took %s of the bubble's time", took)
		}
	})
}

func TestPlayEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		err := simulate(t, dayOptions()).Play(ctx, 1, func(context.Context, []Event) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("ended after %s, want 10s", took)
		}
	})
}

func TestPlayEndsWithTheFirstErrorOfProduce(t *testing.T) {
	broken := errors.New("broker gone")
	calls := 0
	err := simulate(t, dayOptions()).Play(t.Context(), math.Inf(1), func(context.Context, []Event) error {
		calls++
		return broken
	})
	if !errors.Is(err, broken) || calls != 1 {
		t.Errorf("%d calls, error %v", calls, err)
	}
}

func TestPlayRefusesASpeedThatGoesNowhere(t *testing.T) {
	for _, speed := range []float64{0, -1, math.NaN()} {
		err := simulate(t, dayOptions()).Play(t.Context(), speed, func(context.Context, []Event) error { return nil })
		if err == nil {
			t.Errorf("speed %g was taken", speed)
		}
	}
}
