package consumer

import (
	"context"
	"sync"
	"sync/atomic"
)

// A PauseReason is why a partition hands out nothing. Several may hold at once.
type PauseReason string

// The reasons. Window is the consumer's own; offset and dead_letter mean that the
// partition is stopped and needs a person.
const (
	PauseWindow     PauseReason = "window"      // too much is unresolved
	PauseJudge      PauseReason = "judge"       // a judge it needs is down
	PauseSink       PauseReason = "sink"        // ClickHouse takes no rows
	PauseDeadLetter PauseReason = "dead_letter" // too many dead letters, or they cannot be written
	PauseOffset     PauseReason = "offset"      // the log was replaced, or a batch is corrupt
	PauseOperator   PauseReason = "operator"    // asked for
)

func pauseReasons() []PauseReason {
	return []PauseReason{PauseWindow, PauseJudge, PauseSink, PauseDeadLetter, PauseOffset, PauseOperator}
}

// pauses is a set of reasons.
type pauses uint32

func (r PauseReason) bit() pauses {
	for i, known := range pauseReasons() {
		if r == known {
			return 1 << i
		}
	}
	return 0
}

// A gate lets a partition's loop through when no reason holds. The window's own is
// only shown: the loop waits for room elsewhere.
type gate struct {
	set     atomic.Uint32 // pauses; written under mu
	mu      sync.Mutex    // guards changed
	changed chan struct{} // closed and renewed at every change
	blocks  pauses
	stops   pauses
	window  pauses
}

func newGate(initial pauses) *gate {
	g := &gate{
		changed: make(chan struct{}),
		window:  PauseWindow.bit(),
		stops:   PauseDeadLetter.bit() | PauseOffset.bit(),
	}
	for _, r := range pauseReasons() {
		if r != PauseWindow {
			g.blocks |= r.bit()
		}
	}
	g.set.Store(uint32(initial))
	return g
}

func (g *gate) load() pauses { return pauses(g.set.Load()) }

func (g *gate) open() bool { return g.load()&g.blocks == 0 }

func (g *gate) stopped() bool { return g.load()&g.stops != 0 }

func (g *gate) pause(p pauses)  { g.change(p, 0) }
func (g *gate) resume(p pauses) { g.change(0, p) }

func (g *gate) change(add, remove pauses) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.load()
	after := (before | add) &^ remove
	if after == before {
		return
	}
	g.set.Store(uint32(after))
	close(g.changed)
	g.changed = make(chan struct{})
}

// wait returns when nothing blocks.
func (g *gate) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		changed := g.changed
		open := g.open()
		g.mu.Unlock()
		if open {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
