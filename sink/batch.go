package sink

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A call is one Add: it is settled once, when its last row is.
type call struct {
	settled func(error)
	left    int // rows without an outcome
	err     error
}

// settle takes the outcome of one row. An unresolved row outweighs a poison one: the
// record must be read again, and will show its poison row then.
func (c *call) settle(fault error) {
	c.left--
	if fault == nil {
		return
	}
	if _, poison := fault.(*PoisonError); c.err == nil || !poison {
		c.err = fault
	}
}

// An entry is the part of a call that waits for its batch.
type entry[R any] struct {
	call  *call
	rows  []R
	bytes int
}

// limits are the bounds of one table's batches and buffer.
type limits struct {
	batchRows, batchBytes   int
	age                     time.Duration
	bufferRows, bufferBytes int
}

// A batcher collects the rows of one table and sends them batch by batch from its own
// goroutine. Calls are settled in the order they came.
type batcher[R any] struct {
	delivery[R]
	limits limits

	mu       sync.Mutex // guards the fields below; no callback and no insert under it
	waiting  []entry[R]
	rows     int // waiting
	bytes    int // waiting
	held     int // rows waiting or on their way
	heldSize int
	oldest   time.Time // when the first waiting row came
	started  time.Time // when the last batch went out
	added    uint64    // calls taken
	finished uint64    // calls settled; all up to it, because they settle in order
	wanted   uint64    // calls somebody waits for in Flush
	ended    error     // why nothing is taken any more
	changed  chan struct{}

	wake chan struct{} // a row or a Flush came; one signal is enough
}

func newBatcher[R any](t table[R], insert insertFunc[R], l limits, s shared) *batcher[R] {
	return &batcher[R]{
		delivery: newDelivery(t, insert, s),
		limits:   l,
		changed:  make(chan struct{}),
		wake:     make(chan struct{}, 1),
	}
}

// add hands rows over. It waits while the buffer is full; a call larger than the whole
// buffer goes in when the buffer is empty. After an error settled is never called.
func (b *batcher[R]) add(ctx context.Context, rows []R, settled func(error)) error {
	size := 0
	for i := range rows {
		size += b.table.size(&rows[i])
	}
	b.mu.Lock()
	for b.ended == nil && b.held > 0 && (b.held+len(rows) > b.limits.bufferRows || b.heldSize+size > b.limits.bufferBytes) {
		changed := b.changed
		b.mu.Unlock()
		if err := waitFor(ctx, -1, changed); err != nil {
			return fmt.Errorf("%d rows for %s, buffer full: %w", len(rows), b.table.name, err)
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.ended != nil {
		return b.ended
	}
	if len(b.waiting) == 0 {
		b.oldest = time.Now()
	}
	b.waiting = append(b.waiting, entry[R]{call: &call{settled: settled, left: len(rows)}, rows: rows, bytes: size})
	b.rows += len(rows)
	b.bytes += size
	b.held += len(rows)
	b.heldSize += size
	b.added++
	b.signal()
	return nil
}

func (b *batcher[R]) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// flush returns when every call taken so far is settled.
func (b *batcher[R]) flush(ctx context.Context) error {
	b.mu.Lock()
	target := b.added
	b.wanted = max(b.wanted, target)
	b.signal()
	for b.finished < target {
		changed := b.changed
		b.mu.Unlock()
		if err := waitFor(ctx, -1, changed); err != nil {
			return fmt.Errorf("flush of %s: %w", b.table.name, err)
		}
		b.mu.Lock()
	}
	b.mu.Unlock()
	return nil
}

// fill is the share of the buffer in use.
func (b *batcher[R]) fill() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return min(1, max(float64(b.held)/float64(b.limits.bufferRows), float64(b.heldSize)/float64(b.limits.bufferBytes)))
}

// run sends batches until ctx ends and then what is left, at most until life ends: an
// insert outlives ctx, because a cancelled one may or may not be stored, and then
// nobody can say which. The error is set when no further row could be stored.
func (b *batcher[R]) run(ctx, life context.Context) error {
	for {
		why, more := b.due(ctx)
		if !more {
			return nil
		}
		batch := b.take()
		if stop := b.flushBatch(life, batch, why); stop != nil {
			b.abandon(stop)
			if life.Err() != nil {
				return nil // the end was asked for; each caller was told
			}
			return stop
		}
	}
}

// due waits until a batch has to go out. It returns false when ctx has ended and
// nothing waits any more; from then on nothing is taken.
func (b *batcher[R]) due(ctx context.Context) (cause, bool) {
	for {
		wait := time.Duration(-1)
		b.mu.Lock()
		now := time.Now()
		switch {
		case ctx.Err() != nil:
			b.end(ErrStopped)
			left := len(b.waiting) > 0
			b.mu.Unlock()
			return causeDrain, left
		case b.rows >= b.limits.batchRows:
			b.mu.Unlock()
			return causeRows, true
		case b.bytes >= b.limits.batchBytes:
			b.mu.Unlock()
			return causeBytes, true
		case len(b.waiting) > 0:
			// At most one small insert per age: each makes a part that the server has
			// to merge, whoever waits for it.
			why, at := causeAge, b.oldest.Add(b.limits.age)
			if gap := b.started.Add(b.limits.age); b.wanted > b.finished {
				why, at = causeCommit, gap
			} else if gap.After(at) {
				at = gap
			}
			if !now.Before(at) {
				b.mu.Unlock()
				return why, true
			}
			wait = at.Sub(now)
		}
		b.mu.Unlock()
		// The end of ctx is seen at the top.
		_ = waitFor(ctx, wait, b.wake)
	}
}

// end is called with mu held.
func (b *batcher[R]) end(why error) {
	if b.ended == nil {
		b.ended = why
		b.broadcast()
	}
}

// broadcast is called with mu held.
func (b *batcher[R]) broadcast() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// take removes one batch from the head of the buffer, cutting the last call if needed.
func (b *batcher[R]) take() []entry[R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	var batch []entry[R]
	rows, bytes, whole := 0, 0, 0
	for _, e := range b.waiting {
		if rows+len(e.rows) > b.limits.batchRows || bytes+e.bytes > b.limits.batchBytes {
			break
		}
		whole++
		rows, bytes = rows+len(e.rows), bytes+e.bytes
	}
	batch = append(batch, b.waiting[:whole]...)
	clear(b.waiting[:whole]) // the array lives on behind the rest
	b.waiting = b.waiting[whole:]
	if len(b.waiting) > 0 {
		if part := b.split(b.limits.batchRows-rows, b.limits.batchBytes-bytes, rows == 0); len(part.rows) > 0 {
			batch = append(batch, part)
			rows, bytes = rows+len(part.rows), bytes+part.bytes
		}
	}
	b.rows -= rows
	b.bytes -= bytes
	b.started = time.Now()
	if len(b.waiting) > 0 {
		b.oldest = b.started
	}
	return batch
}

// split cuts what still fits a batch off the first waiting call, which does not fit as
// a whole. A row larger than any batch goes alone. It is called with mu held.
func (b *batcher[R]) split(rows, bytes int, alone bool) entry[R] {
	e := b.waiting[0]
	n, size := 0, 0
	for n < min(len(e.rows), rows) {
		s := b.table.size(&e.rows[n])
		if size+s > bytes && (n > 0 || !alone) {
			break
		}
		n, size = n+1, size+s
	}
	if n == len(e.rows) { // one row, larger than any batch
		b.waiting[0] = entry[R]{}
		b.waiting = b.waiting[1:]
		return e
	}
	b.waiting[0] = entry[R]{call: e.call, rows: e.rows[n:], bytes: e.bytes - size}
	return entry[R]{call: e.call, rows: e.rows[:n], bytes: size}
}

// flushBatch delivers a batch and settles what it finished.
func (b *batcher[R]) flushBatch(life context.Context, batch []entry[R], why cause) error {
	n := 0
	for _, e := range batch {
		n += len(e.rows)
	}
	var faults []error
	var stop error
	if n > 0 {
		rows := make([]R, 0, n)
		for _, e := range batch {
			rows = append(rows, e.rows...)
		}
		start := time.Now()
		faults, stop = b.deliver(life, rows)
		b.met.flushes.WithLabelValues(b.table.name, string(why)).Inc()
		b.met.batchRows.WithLabelValues(b.table.name).Observe(float64(n))
		b.met.flushSeconds.WithLabelValues(b.table.name).Observe(time.Since(start).Seconds())
	}
	b.settle(batch, faults)
	return stop
}

// settle tells the callers, then makes room. Room after the callbacks: Flush promises
// that they have run.
func (b *batcher[R]) settle(batch []entry[R], faults []error) {
	at, bytes, calls := 0, 0, uint64(0)
	for _, e := range batch {
		for range e.rows {
			e.call.settle(faults[at])
			at++
		}
		bytes += e.bytes
		if e.call.left == 0 {
			calls++
			e.call.settled(e.call.err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= at
	b.heldSize -= bytes
	b.finished += calls
	b.broadcast()
}

// abandon settles everything that still waits as unresolved.
func (b *batcher[R]) abandon(why error) {
	b.mu.Lock()
	b.end(why)
	rest := b.waiting
	b.waiting, b.rows, b.bytes = nil, 0, 0
	b.mu.Unlock()
	n := 0
	for _, e := range rest {
		n += len(e.rows)
	}
	faults := make([]error, n)
	for i := range faults {
		faults[i] = why
	}
	b.settle(rest, faults)
}
