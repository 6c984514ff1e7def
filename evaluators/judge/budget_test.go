package judge

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// clock is a time that a test sets.
type clock struct{ at atomic.Pointer[time.Time] }

func clockAt(t time.Time) *clock {
	c := &clock{}
	c.set(t)
	return c
}

func (c *clock) set(t time.Time) { c.at.Store(&t) }
func (c *clock) now() time.Time  { return *c.at.Load() }

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func budgetOf(t *testing.T, next Judge, limits Spending, price Price, c *clock) *Budget {
	t.Helper()
	b, err := NewBudget(next, limits, price, BudgetDeps{
		Now:      c.now,
		Estimate: func(Question) Usage { return Usage{InputTokens: 1000, OutputTokens: 10} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// costs answers with that usage.
func costs(u Usage) Judge {
	return judgeFunc(func(context.Context, Question) (Answer, error) {
		a := yes()
		a.Usage = u
		return a, nil
	})
}

func isShed(err error) bool {
	var shed *ShedError
	return errors.As(err, &shed) && shed.Reason == ShedBudget
}

func TestTheBudgetIsNeverPassedTogether(t *testing.T) {
	price := Price{InputPerMillion: 10, OutputPerMillion: 40}
	limits := Spending{USD: 1, Calls: 500, Tokens: 200_000}
	var spent, calls, tokens atomic.Int64 // nano USD
	var b *Budget
	next := judgeFunc(func(context.Context, Question) (Answer, error) {
		n := calls.Add(1)
		u := Usage{InputTokens: 200 + n*337%801, OutputTokens: 1 + n%10} // never more than the reserve
		spent.Add(int64(1e9 * price.usd(u)))
		tokens.Add(u.InputTokens + u.OutputTokens)
		if n%10 == 0 {
			return Answer{}, &UnusableError{Reason: ReasonProse, Spent: Spent{Usage: u, Attempts: 1}}
		}
		a := yes()
		a.Usage = u
		return a, nil
	})
	b = budgetOf(t, next, limits, price, clockAt(noon))
	var wg sync.WaitGroup
	var shed atomic.Int64
	for range 16 {
		wg.Go(func() {
			for range 100 {
				if _, err := b.Ask(t.Context(), question("x")); isShed(err) {
					shed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	usd := float64(spent.Load()) / 1e9
	if usd > limits.USD || calls.Load() > limits.Calls || tokens.Load() > limits.Tokens {
		t.Errorf("spent $%.4f in %d calls and %d tokens, limits %+v", usd, calls.Load(), tokens.Load(), limits)
	}
	used := max(usd/limits.USD, float64(tokens.Load())/float64(limits.Tokens))
	if shed.Load() == 0 || used < .95 {
		t.Errorf("%d shed at %.0f%%: want the budget used up and the rest shed", shed.Load(), 100*used)
	}
	got := settled(b)
	if got.Calls != calls.Load() || got.Tokens != tokens.Load() || math.Abs(got.USD-usd) > 1e-6 {
		t.Errorf("the budget counted %+v, the judge $%.6f, %d, %d", got, usd, calls.Load(), tokens.Load())
	}
}

// A slow judge has settled nothing while all of them ask: what is in flight counts.
func TestWhatIsInFlightCountsAgainstTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := judgeFunc(func(ctx context.Context, q Question) (Answer, error) {
			time.Sleep(time.Second)
			return costs(Usage{InputTokens: 100}).Ask(ctx, q)
		})
		b := budgetOf(t, slow, Spending{Calls: 10}, Price{}, clockAt(noon))
		var wg sync.WaitGroup
		var answered, shed atomic.Int64
		for range 100 {
			wg.Go(func() {
				if _, err := b.Ask(t.Context(), question("x")); err == nil {
					answered.Add(1)
				} else if isShed(err) {
					shed.Add(1)
				}
			})
		}
		wg.Wait()
		if answered.Load() != 10 || shed.Load() != 90 {
			t.Errorf("%d answered and %d shed of 100 at once, want 10 and 90", answered.Load(), shed.Load())
		}
	})
}

func TestEachLimitStopsByItself(t *testing.T) {
	f := func(limits Spending, price Price, want int) {
		t.Helper()
		b := budgetOf(t, costs(Usage{InputTokens: 1000, OutputTokens: 10}), limits, price, clockAt(noon))
		n := 0
		for range 100 {
			if _, err := b.Ask(t.Context(), question("x")); err == nil {
				n++
			} else if !isShed(err) {
				t.Fatal(err)
			}
		}
		if n != want {
			t.Errorf("limits %+v: %d answers, want %d", limits, n, want)
		}
	}
	f(Spending{Calls: 7}, Price{}, 7)
	f(Spending{Tokens: 10_100}, Price{}, 10)
	f(Spending{USD: .05}, Price{InputPerMillion: 10, OutputPerMillion: 0}, 5)
	f(Spending{}, Price{}, 100)
}

func TestTheDayIsUTCAndBeginsAnew(t *testing.T) {
	c := clockAt(time.Date(2026, 3, 10, 23, 59, 0, 0, time.UTC))
	b := budgetOf(t, costs(Usage{}), Spending{Calls: 1}, Price{}, c)
	if _, err := b.Ask(t.Context(), question("x")); err != nil {
		t.Fatal(err)
	}
	_, err := b.Ask(t.Context(), question("y"))
	var shed *ShedError
	if !errors.As(err, &shed) || shed.RetryAfter != time.Minute {
		t.Fatalf("%v, want shed until midnight, a minute away", err)
	}
	// the same instant, read on another clock face, is no new day
	c.set(c.now().In(time.FixedZone("east", 9*3600)))
	if _, err := b.Ask(t.Context(), question("y")); !isShed(err) {
		t.Fatalf("%v, want shed: the day is UTC's", err)
	}
	c.set(time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC))
	if _, err := b.Ask(t.Context(), question("y")); err != nil {
		t.Errorf("the next day: %v", err)
	}
	// a clock that is set back does not give the day again
	c.set(time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC))
	if _, err := b.Ask(t.Context(), question("z")); !isShed(err) {
		t.Errorf("after the clock went back: %v, want shed", err)
	}
}

func TestAReserveIsSettledByWhatIsKnown(t *testing.T) {
	price := Price{InputPerMillion: 1}
	f := func(name string, err error, want Spending) {
		t.Helper()
		b := budgetOf(t, judgeFunc(func(context.Context, Question) (Answer, error) { return Answer{}, err }),
			Spending{USD: 10}, price, clockAt(noon))
		b.Ask(t.Context(), question("x"))
		if got := settled(b); got.Calls != want.Calls || got.Tokens != want.Tokens || math.Abs(got.USD-want.USD) > 1e-12 {
			t.Errorf("%s: spent %+v, want %+v", name, got, want)
		}
		if b.reserved.Tokens != 0 || b.reserved.Calls != 0 {
			t.Errorf("%s: %+v stays reserved", name, b.reserved)
		}
	}
	// a refused call costs nothing but counts as one
	f("throttled", throttled(0), Spending{Calls: 1})
	// an unusable answer was paid for
	f("unusable", &UnusableError{Reason: ReasonProse, Spent: Spent{Usage: Usage{InputTokens: 500}, Attempts: 1}},
		Spending{USD: .0005, Calls: 1, Tokens: 500})
	// never sent
	f("shed", &ShedError{Reason: ShedBreaker}, Spending{})
}

// settled is what a budget has paid, without what is in flight.
func settled(b *Budget) Spending {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used()
}

func TestACancelledTryKeepsItsReserve(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := budgetOf(t, judgeFunc(func(context.Context, Question) (Answer, error) {
		cancel()
		return Answer{}, ctx.Err()
	}), Spending{Tokens: 100_000}, Price{}, clockAt(noon))
	b.Ask(ctx, question("x"))
	if got := settled(b); got.Tokens != 1010 || got.Calls != 1 {
		t.Errorf("spent %+v, want the reserve: the judge may bill it", got)
	}
}

// A drain cancels two thousand questions that wait for a slot: none was sent.
func TestACancelledWaitCostsNothing(t *testing.T) {
	limiter, err := NewLimiter(costs(Usage{}), Limits{InFlight: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	limiter.slots <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := budgetOf(t, limiter, Spending{Tokens: 100_000}, Price{}, clockAt(noon))
	if _, err := b.Ask(ctx, question("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the cancellation", err)
	}
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	if _, err := b.Ask(late, question("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the deadline", err)
	}
	if got := settled(b); got != (Spending{}) {
		t.Errorf("spent %+v", got)
	}
}

func TestAnAnswerCarriesItsPrice(t *testing.T) {
	b := budgetOf(t, costs(Usage{InputTokens: 2_000_000, OutputTokens: 500_000}), Spending{USD: 100},
		Price{InputPerMillion: .15, OutputPerMillion: .6}, clockAt(noon))
	a, err := b.Ask(t.Context(), question("x"))
	if err != nil || math.Abs(a.Usage.USD-.6) > 1e-12 {
		t.Errorf("$%v, %v, want $0.60", a.Usage.USD, err)
	}
}

func TestARestartAndAShareKeepTheDaysLimit(t *testing.T) {
	b := budgetOf(t, costs(Usage{}), Spending{Calls: 10}, Price{}, clockAt(noon))
	b.Restore(noon.Add(-time.Hour), Spending{Calls: 7})
	b.Restore(noon.Add(-24*time.Hour), Spending{Calls: 1000}) // yesterday's
	b.SetShare(.5)
	// Half of the ten is this process's, and half of the seven was.
	for i := range 3 {
		_, err := b.Ask(t.Context(), question("x"))
		if want := i >= 1; isShed(err) != want {
			t.Errorf("call %d after 4 of 5: %v", i+1, err)
		}
	}
}

// Four workers start on a day of which nothing is spent and share its limit.
func TestSharesOfOneBudgetAddUpToIt(t *testing.T) {
	asked := 0
	for range 4 {
		b := budgetOf(t, costs(Usage{}), Spending{Calls: 100}, Price{}, clockAt(noon))
		b.SetShare(.25)
		for range 100 {
			if _, err := b.Ask(t.Context(), question("x")); err == nil {
				asked++
			}
		}
	}
	if asked != 100 {
		t.Errorf("%d calls of a budget of 100", asked)
	}
}

func TestABudgetThatBoundsNothingIsRefused(t *testing.T) {
	if _, err := NewBudget(costs(Usage{}), Spending{USD: 5}, Price{}, BudgetDeps{Now: time.Now}); err == nil {
		t.Error("USD without a price was taken")
	}
	if _, err := NewBudget(costs(Usage{}), Spending{Calls: -1}, Price{}, BudgetDeps{Now: time.Now}); err == nil {
		t.Error("a negative limit was taken")
	}
}
