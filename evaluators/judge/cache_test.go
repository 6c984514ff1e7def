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

func cacheOf(t *testing.T, next Judge) *Cache {
	t.Helper()
	c, err := NewCache(next, "judge-1", 100)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnEqualQuestionIsAnsweredOnceAndThenFree(t *testing.T) {
	calls := 0
	c := cacheOf(t, judgeFunc(func(context.Context, Question) (Answer, error) {
		calls++
		a := yes()
		a.Detail = map[string]any{"floor": .01}
		return a, nil
	}))
	first, err := c.Ask(t.Context(), question("x"))
	if err != nil || first.Cached {
		t.Fatalf("first: %+v, %v", first, err)
	}
	second, err := c.Ask(t.Context(), question("x"))
	if err != nil || calls != 1 {
		t.Fatalf("%d calls, %v, want one call", calls, err)
	}
	if !second.Cached || second.Detail["cached"] != true || second.Usage != (Usage{}) || second.Attempts != 0 {
		t.Errorf("second answer %+v: want it marked as cached and free", second)
	}
	if second.Detail["floor"] != .01 || second.Probabilities[0] != .9 {
		t.Errorf("second answer %+v: want the first one's content", second)
	}
	second.Probabilities[0], second.Detail["floor"] = 0, 7
	third, _ := c.Ask(t.Context(), question("x"))
	if third.Probabilities[0] != .9 || third.Detail["floor"] != .01 {
		t.Error("a caller changed what the cache keeps")
	}
}

// A question about several blocks is another one than the same blocks asked about as one.
func TestAnswersToSeveralBlocksAreKeptAndTheirOwn(t *testing.T) {
	calls := 0
	c := cacheOf(t, judgeFunc(func(_ context.Context, q Question) (Answer, error) {
		calls++
		a := yes()
		if q.Each != "" {
			a.Probabilities, a.Parts = nil, [][]float64{{.9, .1}, {.2, .8}}
		}
		return a, nil
	}))
	one, each := question("x"), question("x")
	each.Each = "output"
	for range 3 {
		a, err := c.Ask(t.Context(), each)
		if err != nil || len(a.Parts) != 2 || a.Parts[1][1] != .8 {
			t.Fatalf("%+v, %v", a, err)
		}
		if a.Cached {
			a.Parts[1][1], a.Parts[0] = 0, nil
		}
	}
	if a, err := c.Ask(t.Context(), one); err != nil || a.Parts != nil || a.Cached || calls != 2 {
		t.Errorf("%+v after %d calls, %v", a, calls, err)
	}
}

func TestWhateverCanChangeAnAnswerMakesAnotherKey(t *testing.T) {
	base := question("x")
	change := map[string]func(*Question){
		"name":       func(q *Question) { q.Name = "test/2" },
		"kind":       func(q *Question) { q.Kind = Choice },
		"text":       func(q *Question) { q.Text += "!" },
		"field":      func(q *Question) { q.Fields = []Field{{"output", "y"}} },
		"field name": func(q *Question) { q.Fields = []Field{{"input", "x"}} },
		"more":       func(q *Question) { q.Fields = append(q.Fields, Field{"input", ""}) },
		"options":    func(q *Question) { q.Options = []Option{q.Options[1], q.Options[0]} },
		"vote":       func(q *Question) { q.Vote = 1 },
		"order":      func(q *Question) { q.Order = 1 },
	}
	for name, f := range change {
		q := question("x")
		f(&q)
		if keyOf("judge-1", q) == keyOf("judge-1", base) {
			t.Errorf("%s: same key", name)
		}
	}
	if keyOf("judge-2", base) == keyOf("judge-1", base) {
		t.Error("another judge has the same key")
	}
	a, b := base, base
	a.Fields = []Field{{"output", "ab"}, {"input", "c"}}
	b.Fields = []Field{{"output", "a"}, {"binput", "c"}}
	if keyOf("j", a) == keyOf("j", b) {
		t.Error("texts that meet at another border have the same key")
	}
	again := question("x")
	again.Reask = 1
	if keyOf("judge-1", again) != keyOf("judge-1", base) {
		t.Error("a second try is the same question")
	}
}

func TestAFailureIsNotKept(t *testing.T) {
	calls := 0
	c := cacheOf(t, judgeFunc(func(context.Context, Question) (Answer, error) {
		if calls++; calls == 1 {
			return Answer{}, &UnusableError{Reason: ReasonProse}
		}
		return yes(), nil
	}))
	if _, err := c.Ask(t.Context(), question("x")); err == nil {
		t.Fatal("want the first answer's fault")
	}
	if a, err := c.Ask(t.Context(), question("x")); err != nil || a.Cached {
		t.Errorf("second: %+v, %v, want a fresh answer", a, err)
	}
}

func TestEqualQuestionsInFlightPayOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, paid atomic.Int64
		c := cacheOf(t, judgeFunc(func(context.Context, Question) (Answer, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return yes(), nil
		}))
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				a, err := c.Ask(t.Context(), question("x"))
				if err != nil {
					t.Error(err)
				}
				paid.Add(a.Usage.InputTokens)
			})
		}
		wg.Wait()
		if calls.Load() != 1 || paid.Load() != 100 {
			t.Errorf("%d calls and %d tokens for 50 equal questions, want 1 and 100", calls.Load(), paid.Load())
		}
	})
}

func TestAFailureIsSharedButPaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tokens, failures atomic.Int64
		c := cacheOf(t, judgeFunc(func(context.Context, Question) (Answer, error) {
			time.Sleep(time.Second)
			return Answer{}, &UnusableError{Reason: ReasonProse, Spent: Spent{Usage: Usage{InputTokens: 100}, Attempts: 1}}
		}))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, err := c.Ask(t.Context(), question("x"))
				var unusable *UnusableError
				if errors.As(err, &unusable) {
					failures.Add(1)
					tokens.Add(unusable.Usage.InputTokens)
				}
			})
		}
		wg.Wait()
		if failures.Load() != 10 || tokens.Load() != 100 {
			t.Errorf("%d failures, %d tokens, want 10 and 100", failures.Load(), tokens.Load())
		}
	})
}

// Two interactions with the same text are in flight. The partition of the first is
// revoked: its question is cancelled. The second one's must not be.
func TestACancelledAskerDoesNotCancelThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cacheOf(t, judgeFunc(func(ctx context.Context, _ Question) (Answer, error) {
			select {
			case <-ctx.Done():
				return Answer{}, ctx.Err()
			case <-time.After(10 * time.Second):
				return yes(), nil
			}
		}))
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Ask(first, question("x")); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled one: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if a, err := c.Ask(t.Context(), question("x")); err != nil || a.Cached {
				t.Errorf("the one who waited: %+v, %v, want an answer it asked for itself", a, err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

func TestAWaiterStopsAtItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cacheOf(t, judgeFunc(func(context.Context, Question) (Answer, error) {
			time.Sleep(time.Minute)
			return yes(), nil
		}))
		var wg sync.WaitGroup
		wg.Go(func() { c.Ask(t.Context(), question("x")) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := c.Ask(ctx, question("x"))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want the deadline after a second", err, time.Since(start))
		}
		wg.Wait()
	})
}

func TestAPanicLeavesNobodyWaiting(t *testing.T) {
	c := cacheOf(t, judgeFunc(func(context.Context, Question) (Answer, error) { panic("bug") }))
	func() {
		defer func() { recover() }()
		c.Ask(t.Context(), question("x"))
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.flights) != 0 {
		t.Error("the flight never lands")
	}
}
