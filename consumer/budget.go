package consumer

import (
	"context"
	"sync"

	"github.com/alecthomas/units"
)

// A budget bounds what all partitions of the process have in flight. Waiters are
// served in turn, so a partition with large records is not starved by small ones.
type budget struct {
	maxRecords int64
	maxBytes   int64

	mu      sync.Mutex // guards the fields below; taken after a tracker's
	records int64
	bytes   int64
	waiting []*waiter
}

type waiter struct {
	bytes   int64
	granted chan struct{}
}

func newBudget(records int, bytes units.Base2Bytes) *budget {
	return &budget{maxRecords: int64(records), maxBytes: int64(bytes)}
}

// fits admits a record that is larger than the whole budget when nothing else is in
// flight.
func (b *budget) fits(bytes int64) bool {
	if b.records == 0 {
		return true
	}
	return b.records < b.maxRecords && b.bytes+bytes <= b.maxBytes
}

// tryTake takes room for one record if there is some and nobody waits for it.
func (b *budget) tryTake(bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) > 0 || !b.fits(bytes) {
		return false
	}
	b.records++
	b.bytes += bytes
	return true
}

// take waits for room for one record.
func (b *budget) take(ctx context.Context, bytes int64) error {
	b.mu.Lock()
	if len(b.waiting) == 0 && b.fits(bytes) {
		b.records++
		b.bytes += bytes
		b.mu.Unlock()
		return nil
	}
	w := &waiter{bytes: bytes, granted: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()

	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiting {
		if other == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			b.grant()
			return ctx.Err()
		}
	}
	// granted in the same moment: hand it on
	b.records--
	b.bytes -= bytes
	b.grant()
	return ctx.Err()
}

// give returns what records held.
func (b *budget) give(records, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records -= records
	b.bytes -= bytes
	b.grant()
}

func (b *budget) grant() {
	for len(b.waiting) > 0 && b.fits(b.waiting[0].bytes) {
		w := b.waiting[0]
		b.waiting = b.waiting[1:]
		b.records++
		b.bytes += w.bytes
		close(w.granted)
	}
}
