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

func breakerOf(t *testing.T, next Judge, deps BreakerDeps) *Breaker {
	t.Helper()
	deps.Log = quiet
	b, err := NewBreaker(next, BreakerPolicy{Window: 50, Failures: 20, Pause: 5 * time.Second, MaxPause: 20 * time.Second}, deps)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// script answers with the errors given, in turn; the last one stays.
type script struct {
	calls int
	errs  []error
}

func (s *script) Ask(context.Context, Question) (Answer, error) {
	err := s.errs[min(s.calls, len(s.errs)-1)]
	s.calls++
	if err != nil {
		return Answer{}, err
	}
	return yes(), nil
}

var keyRevoked = &FatalError{errors.New("status 401")}

func TestAFatalErrorOpensAtOnceAndIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{errs: []error{nil, keyRevoked, nil}}
		var states []State
		b := breakerOf(t, s, BreakerDeps{OnChange: func(s State) { states = append(states, s) }})
		b.Ask(t.Context(), question("a"))
		if b.Open() {
			t.Fatal("open before anything failed")
		}
		b.Ask(t.Context(), question("b"))
		state, cause := b.State()
		if state != Opened || !errors.Is(cause, keyRevoked) {
			t.Fatalf("%v because of %v, want open because of the key", state, cause)
		}
		_, err := b.Ask(t.Context(), question("c"))
		var shed *ShedError
		if !errors.As(err, &shed) || shed.Reason != ShedBreaker || shed.RetryAfter != 0 || s.calls != 2 {
			t.Errorf("%v after %d calls: want it shed without a call and without hope", err, s.calls)
		}
		time.Sleep(5 * time.Second)
		if _, err := b.Ask(t.Context(), question("d")); err != nil || b.Open() {
			t.Errorf("after the pause: %v, open %t: want the question to probe and to close it", err, b.Open())
		}
		if len(states) != 3 || states[0] != Opened || states[1] != HalfOpen || states[2] != Closed {
			t.Errorf("told %v, want open, half-open, closed", states)
		}
	})
}

func TestTwentyFailuresOfTheLastFiftyOpen(t *testing.T) {
	f := func(name string, failEvery, tries int, failure error, want bool) {
		t.Helper()
		n := 0
		b := breakerOf(t, judgeFunc(func(context.Context, Question) (Answer, error) {
			if n++; n%failEvery == 0 {
				return Answer{}, failure
			}
			return yes(), nil
		}), BreakerDeps{})
		for range tries {
			b.Ask(t.Context(), question("x"))
		}
		if b.Open() != want {
			t.Errorf("%s: every %d. of %d failed: open %t, want %t", name, failEvery, tries, b.Open(), want)
		}
	}
	f("all", 1, 19, throttled(0), false)
	f("all", 1, 20, throttled(0), true)
	f("half", 2, 40, throttled(0), true)
	f("a third never reaches 20 of 50", 3, 10_000, throttled(0), false)
	f("rejections count", 1, 20, &RejectedError{errors.New("404")}, true)
	f("unusable answers are answers", 1, 1000, &UnusableError{Reason: ReasonProse}, false)
	f("a refused question says nothing", 1, 1000, &RefusedError{"coarse_only"}, false)
	f("nor does our own deadline", 1, 1000, &TransientError{Reason: ReasonTimeout, Err: context.DeadlineExceeded}, false)
}

func TestOneProbeAtATimeAndLongerPausesWhileItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		down := true
		b := breakerOf(t, judgeFunc(func(context.Context, Question) (Answer, error) {
			calls.Add(1)
			time.Sleep(100 * time.Millisecond)
			if down {
				return Answer{}, throttled(0)
			}
			return yes(), nil
		}), BreakerDeps{})
		crowd := func() (shed int64) {
			var n atomic.Int64
			var wg sync.WaitGroup
			for range 30 {
				wg.Go(func() {
					_, err := b.Ask(t.Context(), question("x"))
					var s *ShedError
					if errors.As(err, &s) {
						n.Add(1)
						if s.RetryAfter <= 0 {
							t.Error("shed without a time to come back")
						}
					}
				})
			}
			wg.Wait()
			return n.Load()
		}
		crowd()
		if !b.Open() {
			t.Fatal("30 failures left it closed")
		}
		// the first probe fails: twice the pause, then four times, then the limit
		for _, pause := range []time.Duration{5, 10, 20, 20} {
			time.Sleep(pause*time.Second - time.Millisecond)
			before := calls.Load()
			if crowd() != 30 || calls.Load() != before {
				t.Fatalf("asked before the pause of %ds was over", pause)
			}
			time.Sleep(time.Millisecond)
			if shed := crowd(); shed != 29 || calls.Load() != before+1 {
				t.Fatalf("after %ds: %d shed and %d asked, want 29 and 1", pause, shed, calls.Load()-before)
			}
		}
		down = false
		time.Sleep(20 * time.Second)
		crowd()
		if b.Open() || crowd() != 0 {
			t.Error("a probe that succeeds closes it")
		}
	})
}

// 2,000 questions are in flight when the judge fails. They come home after the probe
// has closed the breaker: old news must not open it again.
func TestResultsFromBeforeAChangeAreStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := breakerOf(t, judgeFunc(func(_ context.Context, q Question) (Answer, error) {
			switch v, _ := q.Field("output"); v {
			case "old":
				<-release
				return Answer{}, throttled(0)
			case "bad":
				return Answer{}, keyRevoked
			}
			return yes(), nil
		}), BreakerDeps{})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { b.Ask(t.Context(), question("old")) })
		}
		synctest.Wait()
		b.Ask(t.Context(), question("bad"))
		time.Sleep(5 * time.Second)
		b.Ask(t.Context(), question("good"))
		close(release)
		wg.Wait()
		if b.Open() {
			t.Error("100 failures from before the probe opened it again")
		}
	})
}

func TestRunProbesWhenNoQuestionComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		b := breakerOf(t, &script{errs: []error{keyRevoked}}, BreakerDeps{Probe: func(context.Context) error {
			if probes++; probes < 3 {
				return keyRevoked
			}
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.Run(ctx) })
		b.Ask(t.Context(), question("x"))
		start := time.Now()
		for b.Open() && time.Since(start) < time.Hour {
			time.Sleep(time.Second)
		}
		if took := time.Since(start); probes != 3 || took < 34*time.Second || took > 37*time.Second {
			t.Errorf("closed after %v and %d probes, want 5+10+20 seconds and 3", took, probes)
		}
		cancel()
		wg.Wait()
	})
}

func TestACancelledProbeLeavesTheWayFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breakerOf(t, judgeFunc(func(ctx context.Context, q Question) (Answer, error) {
			if v, _ := q.Field("output"); v == "bad" {
				return Answer{}, keyRevoked
			}
			return yes(), ctx.Err()
		}), BreakerDeps{})
		b.Ask(t.Context(), question("bad"))
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.Ask(ctx, question("x"))
		if _, err := b.Ask(t.Context(), question("x")); err != nil || b.Open() {
			t.Errorf("%v, open %t: want the next question to probe at once", err, b.Open())
		}
	})
}
