package sink

import (
	"context"
	"sync"
	"time"
)

// Five failures in a row, or one sign of overload, stop all inserts for 30 s; each
// failed probe doubles that up to 5 min. A server with too many parts that is retried
// hot gets worse, not better (flink-connector-clickhouse #157: 3.9M errors in 25 min).
const (
	breakerFailures = 5
	breakerFirst    = 30 * time.Second
	breakerLongest  = 5 * time.Minute
)

// breakerState has the values of the metric assay_sink_breaker_state.
type breakerState int

const (
	breakerClosed breakerState = iota
	breakerHalfOpen
	breakerOpen
)

// A breaker holds inserts back while the server cannot take them. Who was admitted
// must report.
type breaker struct {
	mu       sync.Mutex // guards the fields below; nothing else is locked under it
	state    breakerState
	failures int           // in a row
	until    time.Time     // when an open breaker lets one batch through
	pause    time.Duration // of the next opening
	changed  chan struct{} // closed and replaced at every change of state
}

func newBreaker() *breaker {
	return &breaker{pause: breakerFirst, changed: make(chan struct{})}
}

// admit waits until an insert may go out. Half-open admits one batch; the others wait
// for its report.
func (b *breaker) admit(ctx context.Context) error {
	for {
		b.mu.Lock()
		switch {
		case b.state == breakerClosed:
			b.mu.Unlock()
			return ctx.Err()
		case b.state == breakerOpen && !time.Now().Before(b.until):
			if err := ctx.Err(); err != nil {
				b.mu.Unlock()
				return err
			}
			b.become(breakerHalfOpen)
			b.mu.Unlock()
			return nil
		}
		wait, changed := time.Duration(-1), b.changed
		if b.state == breakerOpen {
			wait = time.Until(b.until)
		}
		b.mu.Unlock()
		if err := waitFor(ctx, wait, changed); err != nil {
			return err
		}
	}
}

// waitFor ends at the end of wait (never when negative), at the change or with ctx.
func waitFor(ctx context.Context, wait time.Duration, changed <-chan struct{}) error {
	var due <-chan time.Time
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// answered says that the server works: it stored the block, or refused it for what is in it.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.pause = 0, breakerFirst
	if b.state != breakerClosed {
		b.become(breakerClosed)
	}
}

// failed counts a failure; at once is for classes that no short pause can help.
func (b *breaker) failed(atOnce bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	switch {
	case b.state == breakerOpen:
		// an insert that went out before the breaker opened
	case b.state == breakerHalfOpen, atOnce, b.failures >= breakerFailures:
		b.until = time.Now().Add(b.pause)
		b.pause = min(2*b.pause, breakerLongest)
		b.become(breakerOpen)
	}
}

// become is called with mu held.
func (b *breaker) become(s breakerState) {
	b.state = s
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *breaker) now() breakerState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}
