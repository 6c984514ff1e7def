package judge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// Price is USD per million tokens. The zero Price is a judge that costs nothing.
type Price struct {
	InputPerMillion  float64
	OutputPerMillion float64
}

func (p Price) usd(u Usage) float64 {
	return (float64(u.InputTokens)*p.InputPerMillion + float64(u.OutputTokens)*p.OutputPerMillion) / 1e6
}

// Spending is what was used up in a UTC day, and, as limits, what may be.
type Spending struct {
	USD    float64
	Calls  int64
	Tokens int64
}

func (s Spending) add(t Spending) Spending {
	return Spending{s.USD + t.USD, s.Calls + t.Calls, s.Tokens + t.Tokens}
}

// times rounds up: a bound that is crossed by rounding is no bound.
func (s Spending) times(share float64) Spending {
	return Spending{s.USD * share, int64(math.Ceil(float64(s.Calls) * share)), int64(math.Ceil(float64(s.Tokens) * share))}
}

func (s Spending) sub(t Spending) Spending {
	return Spending{max(0, s.USD-t.USD), s.Calls - t.Calls, s.Tokens - t.Tokens}
}

// BudgetDeps are the parts a Budget works with; Now and Estimate are required.
type BudgetDeps struct {
	Now      func() time.Time
	Estimate func(Question) Usage // the most a question can use; a backend knows
	Meters   *Meters              // or nil
}

// Budget bounds what a judge may do in a UTC day, and puts the price on every
// answer. Each try is reserved at its estimate before it is sent and settled by the
// stated usage after: questions in flight cannot pass the limit together. A try
// whose usage nobody stated keeps its reserve.
type Budget struct {
	next   Judge
	limits Spending // 0: no such bound
	price  Price
	deps   BudgetDeps

	mu       sync.Mutex // guards the fields below; a leaf
	day      int64      // UTC days since 1970; never goes back
	before   Spending   // today by earlier lives and other processes, as far as it was known at the start
	spent    Spending   // today by this one
	reserved Spending
	share    float64 // of the limits that is this process's
}

// NewBudget wraps next. A limit in USD needs a price: without one it would bound
// nothing.
func NewBudget(next Judge, limits Spending, price Price, deps BudgetDeps) (*Budget, error) {
	switch {
	case limits.USD < 0 || limits.Calls < 0 || limits.Tokens < 0:
		return nil, fmt.Errorf("budget %+v: want limits of 0 (none) or more", limits)
	case price.InputPerMillion < 0 || price.OutputPerMillion < 0:
		return nil, fmt.Errorf("price %+v: want 0 or more", price)
	case limits.USD > 0 && price == Price{}:
		return nil, errors.New("a budget in USD for a judge without a price bounds nothing: state its price, or a limit of calls or tokens")
	}
	b := &Budget{next: next, limits: limits, price: price, deps: deps, share: 1}
	b.day = dayOf(deps.Now())
	return b, nil
}

// SetShare gives this process its part of the limits, 0 to 1: several workers share
// one budget by the partitions they own.
func (b *Budget) SetShare(share float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.share = min(1, max(0, share))
}

// Restore counts what all processes have spent on the day of at: a restart does not
// begin the day anew. Of that sum this process answers for its share.
func (b *Budget) Restore(at time.Time, s Spending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(dayOf(b.deps.Now()))
	if dayOf(at) == b.day {
		b.before = b.before.add(s)
		b.deps.Meters.budget(b.ratio())
	}
}

// used is what counts against this process's share of the limits, without what is in
// flight. Callers hold mu.
func (b *Budget) used() Spending { return b.before.times(b.share).add(b.spent) }

// Ask implements Judge.
func (b *Budget) Ask(ctx context.Context, q Question) (Answer, error) {
	estimate := b.deps.Estimate(q)
	reserve := b.cost(estimate, 1)
	day, err := b.admit(ctx, &reserve)
	if err != nil {
		return Answer{}, err
	}
	actual := reserve // what is kept when nobody can say: a panic, a cancelled try
	defer func() { b.settle(day, reserve, actual) }()

	a, err := b.next.Ask(ctx, q)
	switch {
	case err == nil:
		a.Usage.USD = b.price.usd(a.Usage)
		actual = b.cost(a.Usage, a.Attempts)
		b.deps.Meters.spent(a.Usage)
		return a, nil
	case uncertain(err):
		// It was on its way when we let go: whether the judge worked on it, and
		// bills it, nobody knows.
		return Answer{}, err
	default:
		s := SpentOf(err)
		s.Usage.USD = b.price.usd(s.Usage)
		actual = b.cost(s.Usage, s.Attempts)
		b.deps.Meters.spent(s.Usage)
		return Answer{}, withSpent(err, s)
	}
}

// uncertain is the end of a question that may have been sent and whose cost nobody
// states: the bare error of a context.
func uncertain(err error) bool {
	var unsent unsentError
	var transient *TransientError
	return (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) &&
		!errors.As(err, &unsent) && !errors.As(err, &transient)
}

func (b *Budget) cost(u Usage, calls int) Spending {
	return Spending{USD: b.price.usd(u), Calls: int64(calls), Tokens: u.InputTokens + u.OutputTokens}
}

func (b *Budget) reserve(r Spending) (day int64, err error) {
	now := b.deps.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(dayOf(now))
	defer func() { b.deps.Meters.budget(b.ratio()) }() // a new day shows before its first answer
	after := b.used().add(b.reserved).add(r)
	if over(after.USD, b.limits.USD*b.share, b.limits.USD > 0) ||
		over(float64(after.Calls), float64(b.limits.Calls)*b.share, b.limits.Calls > 0) ||
		over(float64(after.Tokens), float64(b.limits.Tokens)*b.share, b.limits.Tokens > 0) {
		next := time.Unix((b.day+1)*secondsPerDay, 0)
		return 0, &ShedError{Reason: ShedBudget, RetryAfter: max(0, next.Sub(now))}
	}
	b.reserved = b.reserved.add(r)
	return b.day, nil
}

// over allows for the rounding of sums of floats, and for nothing more.
func over(after, limit float64, bounded bool) bool {
	return bounded && after > limit+1e-9*limit
}

// settle turns a reserve into spending. A try that began yesterday was yesterday's,
// and yesterday is closed.
func (b *Budget) settle(day int64, reserve, actual Spending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn(dayOf(b.deps.Now()))
	if day == b.day {
		b.reserved = b.reserved.sub(reserve)
		b.spent = b.spent.add(actual)
	}
	b.deps.Meters.budget(b.ratio())
}

// turn begins a new day. A clock that goes back changes nothing: the day that was
// paid for stays paid for. Callers hold mu.
func (b *Budget) turn(day int64) {
	if day > b.day {
		b.day, b.before, b.spent, b.reserved = day, Spending{}, Spending{}, Spending{}
	}
}

// ratio is the share of the nearest limit that is spent. Callers hold mu.
func (b *Budget) ratio() float64 {
	ratio, used := 0.0, b.used()
	for _, l := range [][2]float64{
		{used.USD, b.limits.USD},
		{float64(used.Calls), float64(b.limits.Calls)},
		{float64(used.Tokens), float64(b.limits.Tokens)},
	} {
		if l[1] > 0 && b.share > 0 {
			ratio = math.Max(ratio, l[0]/(l[1]*b.share))
		}
	}
	return ratio
}

const secondsPerDay = 24 * 60 * 60

func dayOf(t time.Time) int64 {
	s := t.Unix()
	if s < 0 {
		return 0
	}
	return s / secondsPerDay
}
