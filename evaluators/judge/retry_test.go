package judge

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// patient retries with pauses that a test can foresee: always the longest.
func patient(next Judge, attempts int) *Retry {
	return NewRetry(next, RetryPolicy{
		Attempts: attempts, Base: time.Second, Max: 8 * time.Second,
		Jitter: func(max time.Duration) time.Duration { return max },
	})
}

func TestATransientErrorIsAskedAgainAfterDoublingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		r := patient(judgeFunc(func(context.Context, Question) (Answer, error) {
			at = append(at, time.Since(start))
			if len(at) < 4 {
				return Answer{}, throttled(0)
			}
			return yes(), nil
		}), 4)
		a, err := r.Ask(t.Context(), question("x"))
		if err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("asked at %v, want %v", at, want)
		}
		if a.Attempts != 4 {
			t.Errorf("%d attempts, want 4: every try is counted", a.Attempts)
		}
	})
}

func TestThePauseIsNeverShorterThanRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, tries := time.Now(), 0
		var second time.Duration
		r := NewRetry(judgeFunc(func(context.Context, Question) (Answer, error) {
			if tries++; tries == 1 {
				return Answer{}, throttled(30 * time.Second)
			}
			second = time.Since(start)
			return yes(), nil
		}), RetryPolicy{Attempts: 2, Base: time.Second, Max: time.Second})
		if _, err := r.Ask(t.Context(), question("x")); err != nil {
			t.Fatal(err)
		}
		if second < 30*time.Second || second > 31*time.Second {
			t.Errorf("asked again after %v, want 30s and up to a second of jitter", second)
		}
	})
}

func TestAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		_, err := patient(judgeFunc(func(context.Context, Question) (Answer, error) {
			tries++
			return Answer{}, throttled(0)
		}), 3).Ask(t.Context(), question("x"))
		var transient *TransientError
		if !errors.As(err, &transient) || tries != 3 || transient.Attempts != 3 {
			t.Errorf("%d tries, error %v: want 3 tries and a transient error that counts them", tries, err)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("no deadline ended this")
		}
	})
}

func TestAPauseThatOutlastsTheDeadlineIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := patient(judgeFunc(func(context.Context, Question) (Answer, error) {
			return Answer{}, throttled(2 * time.Minute)
		}), 5).Ask(ctx, question("x"))
		if took := time.Since(start); took != 0 {
			t.Errorf("gave up after %v, want at once", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v does not say that the deadline was the reason", err)
		}
	})
}

func TestTheDeadlineEndsATryAndItsCostIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		tries := 0
		start := time.Now()
		_, err := patient(judgeFunc(func(ctx context.Context, _ Question) (Answer, error) {
			if tries++; tries == 1 {
				return Answer{}, &TransientError{Reason: ReasonTimeout, Err: errors.New("slow"), Spent: Spent{Usage: Usage{InputTokens: 7}, Attempts: 1}}
			}
			<-ctx.Done()
			return Answer{}, ctx.Err()
		}), 5).Ask(ctx, question("x"))
		var transient *TransientError
		if !errors.As(err, &transient) || transient.Reason != ReasonTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error %v, want a timeout by the deadline", err)
		}
		if transient.Usage.InputTokens != 7 || time.Since(start) != 10*time.Second {
			t.Errorf("usage %+v after %v, want the first try's and exactly the deadline", transient.Usage, time.Since(start))
		}
	})
}

func TestACancelledQuestionComesBackAsTheCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		revoked := errors.New("partition revoked")
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() { time.Sleep(500 * time.Millisecond); cancel(revoked) }()
		_, err := patient(judgeFunc(func(context.Context, Question) (Answer, error) {
			return Answer{}, throttled(0)
		}), 9).Ask(ctx, question("x"))
		var transient *TransientError
		if !errors.Is(err, context.Canceled) || !errors.Is(err, revoked) || errors.As(err, &transient) {
			t.Errorf("error %v, want the cancellation with its cause and nothing of the judge's", err)
		}
	})
}

func TestAnUnusableAnswerIsAskedForOnceMoreWhenThatMayHelp(t *testing.T) {
	f := func(reask bool, want int) {
		t.Helper()
		var reasks []int
		_, err := patient(judgeFunc(func(_ context.Context, q Question) (Answer, error) {
			reasks = append(reasks, q.Reask)
			return Answer{}, &UnusableError{Reason: ReasonProse, Reask: reask, Spent: Spent{Usage: Usage{OutputTokens: 4}, Attempts: 1}}
		}), 4).Ask(t.Context(), question("x"))
		var unusable *UnusableError
		if !errors.As(err, &unusable) || len(reasks) != want {
			t.Fatalf("reask %t: %d tries, error %v, want %d tries and the unusable answer", reask, len(reasks), err, want)
		}
		if unusable.Attempts != want || unusable.Usage.OutputTokens != int64(4*want) {
			t.Errorf("reask %t: spent %+v, want that of %d tries", reask, unusable.Spent, want)
		}
		if want == 2 && reasks[1] != 1 {
			t.Error("the second try does not know that it is one")
		}
	}
	f(true, 2)
	f(false, 1) // a refusal by the provider's filter stays one
}

func TestErrorsThatNoPauseCuresAreReturnedAtOnce(t *testing.T) {
	for _, failure := range []error{
		&RejectedError{errors.New("no")}, &TooLongError{errors.New("no")}, &RefusedError{"coarse_only"},
		&FatalError{errors.New("no")}, &ShedError{Reason: ShedBudget, RetryAfter: time.Second}, errors.New("a bug"),
	} {
		tries := 0
		_, err := patient(judgeFunc(func(context.Context, Question) (Answer, error) {
			tries++
			return Answer{}, failure
		}), 5).Ask(t.Context(), question("x"))
		if tries != 1 || !errors.Is(err, failure) {
			t.Errorf("%T: %d tries and %v, want one try and the error itself", failure, tries, err)
		}
	}
}

// An open breaker has asked nobody anything: waiting for it uses up no attempts, and
// what is still not asked at the deadline is shed, not failed.
func TestAnOpenBreakerIsWaitedForInsideTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		shut := judgeFunc(func(context.Context, Question) (Answer, error) {
			if tries++; tries <= 6 {
				return Answer{}, &ShedError{Reason: ShedBreaker, RetryAfter: time.Second}
			}
			return yes(), nil
		})
		if _, err := patient(shut, 2).Ask(t.Context(), question("x")); err != nil {
			t.Errorf("after the breaker closed: %v", err)
		}
		tries = -1000
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := patient(shut, 2).Ask(ctx, question("x"))
		var shed *ShedError
		if !errors.As(err, &shed) {
			t.Errorf("still open at the deadline: %v, want shed", err)
		}
	})
}

func TestJitterIsFullAndBounded(t *testing.T) {
	p := RetryPolicy{Attempts: 9, Base: 100 * time.Millisecond, Max: time.Second}
	for try, ceiling := range map[int]time.Duration{1: 100 * time.Millisecond, 3: 400 * time.Millisecond, 8: time.Second, 70: time.Second} {
		low := 0
		for range 500 {
			d := p.pause(try, 0)
			if d < 0 || d > ceiling {
				t.Fatalf("try %d: pause %v, want 0 to %v", try, d, ceiling)
			}
			if d < ceiling/2 {
				low++
			}
		}
		if low < 150 || low > 350 {
			t.Errorf("try %d: %d of 500 pauses in the lower half: the jitter is not full", try, low)
		}
	}
}
