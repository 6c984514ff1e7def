package judge

import (
	"context"
	"sync/atomic"
)

// A hold is a reserve for several tries of one question: they are all sent, or none is.
// Without it a budget could end between two votes, and those before were for nothing.
type hold struct {
	budget *Budget
	day    int64
	each   Spending
	left   atomic.Int64 // tries that have not been taken
}

type holdKey struct{}

// Hold reserves n tries of q. Those that are asked with the returned context draw on
// that reserve; what they do not take is free again after release.
func (b *Budget) Hold(ctx context.Context, q Question, n int) (held context.Context, release func(), err error) {
	h := &hold{budget: b, each: b.cost(b.deps.Estimate(q), 1)}
	if h.day, err = b.reserve(h.each.times(float64(n))); err != nil {
		return nil, nil, err
	}
	h.left.Store(int64(n))
	return context.WithValue(ctx, holdKey{}, h), h.release, nil
}

func (h *hold) release() {
	if n := h.left.Swap(0); n > 0 {
		h.budget.settle(h.day, h.each.times(float64(n)), Spending{})
	}
}

// admit reserves what one try may cost, or takes it out of a hold. A retry that is more
// than what was held is reserved like any other.
func (b *Budget) admit(ctx context.Context, reserve *Spending) (day int64, err error) {
	if h, ok := ctx.Value(holdKey{}).(*hold); ok && h.budget == b && h.left.Add(-1) >= 0 {
		*reserve = h.each
		return h.day, nil
	}
	return b.reserve(*reserve)
}
