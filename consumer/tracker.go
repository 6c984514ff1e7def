package consumer

import (
	"context"
	"sync"

	"github.com/alecthomas/units"
)

// A tracker knows which fetched offsets of one partition are still open. They finish
// in any order; only the lowest open one may be committed. Gaps between offsets
// (markers, compaction) need no care: the watermark is an open record's offset or the
// next one to read.
type tracker struct {
	maxRecords int
	maxBytes   int64
	budget     *budget
	room       chan struct{} // one token: the loop may look again

	mu      sync.Mutex // guards the fields below; order: mu, then the process budget
	entries []entry    // entries[0] is the ring's anchor; the others are open or free
	free    uint32     // first of the free entries, linked by next
	open    int
	held    int   // of them; they are bounded by whoever holds them and take no room here
	bytes   int64 // of open entries that were not released
	next    int64 // what to commit when nothing is open; the next offset to read
	waiting bool  // the loop waits for room
	revoked bool  // never goes back to false
}

// entry is one open record, linked in offset order. Entries live in one slice, so that
// a record that is resolved at once costs no allocation.
type entry struct {
	offset     int64
	bytes      int64
	at         moment
	prev, next uint32
	turn       uint32 // counts the uses of the slot: an old ticket finds another turn
	held       bool
}

// moment is when a record was fetched and when it was written, in Unix milliseconds.
type moment struct {
	fetched int64
	written int64
}

// ticket names an entry for as long as it is open.
type ticket struct {
	slot uint32
	turn uint32
}

func newTracker(next int64, records int, bytes units.Base2Bytes, b *budget) *tracker {
	return &tracker{
		maxRecords: records,
		maxBytes:   int64(bytes),
		budget:     b,
		room:       make(chan struct{}, 1),
		entries:    make([]entry, 1, 64),
		next:       next,
	}
}

// tryAdmit takes room for a record of so many bytes if window and process have it. A
// record larger than the window is let in alone.
func (t *tracker) tryAdmit(bytes int64) bool {
	t.mu.Lock()
	ok := t.fits(bytes)
	t.mu.Unlock()
	return ok && t.budget.tryTake(bytes)
}

// tryRoom reports whether the window has room for anything.
func (t *tracker) tryRoom() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fits(1)
}

// admit waits for what tryAdmit did not find.
func (t *tracker) admit(ctx context.Context, bytes int64) error {
	if err := t.wait(ctx, bytes); err != nil {
		return err
	}
	return t.budget.take(ctx, bytes)
}

// wait returns when the partition's own window has room for so many bytes.
func (t *tracker) wait(ctx context.Context, bytes int64) error {
	for {
		t.mu.Lock()
		ok := t.fits(bytes)
		t.waiting = !ok
		t.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-t.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *tracker) fits(bytes int64) bool {
	moving := t.open - t.held
	return moving == 0 || moving < t.maxRecords && t.bytes+bytes <= t.maxBytes
}

// add opens an admitted record. Offsets come in ascending order.
func (t *tracker) add(offset, bytes int64, at moment) ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := t.free
	if slot != 0 {
		t.free = t.entries[slot].next
	} else {
		slot = uint32(len(t.entries))
		t.entries = append(t.entries, entry{})
	}
	anchor := &t.entries[0]
	e := &t.entries[slot]
	e.offset, e.bytes, e.at, e.held = offset, bytes, at, false
	e.prev, e.next = anchor.prev, 0
	t.entries[anchor.prev].next = slot
	anchor.prev = slot
	t.open++
	t.bytes += bytes
	t.next = offset + 1
	return ticket{slot, e.turn}
}

// advance steps over offsets that hold no record for us.
func (t *tracker) advance(next int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = max(t.next, next)
}

// find returns the open entry of a ticket, or nil.
func (t *tracker) find(k ticket) *entry {
	if t.revoked || k.slot == 0 || int(k.slot) >= len(t.entries) || t.entries[k.slot].turn != k.turn {
		return nil
	}
	return &t.entries[k.slot]
}

// resolve closes an entry and reports whether it was open.
func (t *tracker) resolve(k ticket) bool {
	t.mu.Lock()
	e := t.find(k)
	if e == nil {
		t.mu.Unlock()
		return false
	}
	bytes, records := e.bytes, int64(1)
	t.entries[e.prev].next = e.next
	t.entries[e.next].prev = e.prev
	if e.held {
		t.held--
		records = 0 // given back when it was held
	}
	e.turn++
	e.next = t.free
	t.free = k.slot
	t.open--
	t.bytes -= bytes
	wake := t.waiting
	t.mu.Unlock()

	t.budget.give(records, bytes)
	if wake {
		t.wake()
	}
	return true
}

// release gives an open entry's bytes back.
func (t *tracker) release(k ticket) {
	t.mu.Lock()
	e := t.find(k)
	if e == nil || e.bytes == 0 {
		t.mu.Unlock()
		return
	}
	bytes := e.bytes
	e.bytes = 0
	t.bytes -= bytes
	wake := t.waiting
	t.mu.Unlock()

	t.budget.give(0, bytes)
	if wake {
		t.wake()
	}
}

func (t *tracker) wake() {
	select {
	case t.room <- struct{}{}:
	default:
	}
}

// hold marks an open entry as held on purpose and gives its room back: records that wait
// for one another must not keep the one they wait for from being read.
func (t *tracker) hold(k ticket) {
	t.mu.Lock()
	e := t.find(k)
	if e == nil || e.held {
		t.mu.Unlock()
		return
	}
	bytes := e.bytes
	e.held, e.bytes = true, 0
	t.held++
	t.bytes -= bytes
	wake := t.waiting
	t.mu.Unlock()

	t.budget.give(1, bytes)
	if wake {
		t.wake()
	}
}

// watermark returns the offset to commit. It is false once the partition is revoked:
// the broker checks the member, not the owner, and would let a late commit move the
// new owner's offset.
func (t *tracker) watermark() (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.revoked {
		return 0, false
	}
	return t.low(), true
}

// position returns the next offset to read.
func (t *tracker) position() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next
}

func (t *tracker) low() int64 {
	if first := t.entries[0].next; first != 0 {
		return t.entries[first].offset
	}
	return t.next
}

// openFrom reports whether a record at or above offset is open and not held: whether
// somebody may look at its bytes.
func (t *tracker) openFrom(offset int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := t.entries[0].prev; i != 0 && t.entries[i].offset >= offset; i = t.entries[i].prev {
		if !t.entries[i].held {
			return true
		}
	}
	return false
}

// revoke ends the tracker: later resolves change nothing, and what is open is no
// longer in flight here.
func (t *tracker) revoke() {
	t.mu.Lock()
	if t.revoked {
		t.mu.Unlock()
		return
	}
	t.revoked = true
	moving, bytes := int64(t.open-t.held), t.bytes
	t.open, t.held, t.bytes = 0, 0, 0
	t.entries = t.entries[:1]
	t.entries[0] = entry{}
	t.mu.Unlock()

	t.budget.give(moving, bytes)
}

// trackerState is what metrics and the watchdog see of a tracker.
type trackerState struct {
	open, held int
	bytes      int64
	watermark  int64
	progress   int64  // the watermark without the records held on purpose
	oldest     moment // of the oldest open record that is not held
}

func (t *tracker) state() trackerState {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := trackerState{open: t.open, held: t.held, bytes: t.bytes, watermark: t.low(), progress: t.next}
	for i := t.entries[0].next; i != 0; i = t.entries[i].next {
		if e := &t.entries[i]; !e.held {
			s.progress, s.oldest = e.offset, e.at
			break
		}
	}
	return s
}
