package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// gate is a judge's Wait that a test opens.
type gate struct {
	open    chan struct{}
	waiting atomic.Int32
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) wait(ctx context.Context) error {
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// behind puts the judge of the world behind a gate, with two slots.
func behind(g *gate) option {
	return func(c *Config, d *Deps) {
		c.Deadline = 10 * time.Second
		d.Judges = map[string]Judge{"a": {Judge: d.Judges["a"].Judge, InFlight: 1, Wait: g.wait}}
	}
}

// An outage of the judge is back-pressure: it holds the slots and ends no judgement,
// however long it takes.
func TestAJudgeThatIsWaitedForIsNotAskedAndNoDeadlineRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := newWorld(t, oneCheck, behind(g))
		a := w.fresh()
		defer a.pt.Close()
		for offset := range int64(5) {
			a.read(offset, item(fmt.Sprint("i-", offset)))
		}
		time.Sleep(time.Hour)
		w.settle()
		if w.judge.calls.Load() != 0 || len(w.store.evaluations) != 0 || len(a.resolved) != 0 || g.waiting.Load() != 2 {
			t.Errorf("%d questions, %d rows, %d resolved, %d waiting; want 2 waiting and nothing else",
				w.judge.calls.Load(), len(w.store.evaluations), len(a.resolved), g.waiting.Load())
		}
		close(g.open)
		w.settle()
		if len(w.store.evaluations) != 5 || len(a.resolved) != 5 {
			t.Errorf("%d rows, %d resolved, want 5", len(w.store.evaluations), len(a.resolved))
		}
		for _, e := range w.store.evaluations {
			if e.Status != "ok" {
				t.Errorf("offset %d: %s (%s)", e.Offset, e.Status, e.Reason)
			}
		}
	})
}

func TestARevokeEndsTheWaitForAJudgeAndLeavesTheRecordOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck, behind(newGate()))
		a := w.fresh()
		a.read(1, item("i-1"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := a.pt.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("drained with %v after %s", err, time.Since(start))
		}
		w.settle()
		if w.judge.calls.Load() != 0 || len(w.store.evaluations) != 0 || a.outcome(1) != "" {
			t.Errorf("%d questions, %d rows, outcome %q", w.judge.calls.Load(), len(w.store.evaluations), a.outcome(1))
		}
		a.pt.Close()
	})
}

// A Wait that gives up by itself holds nobody: the judge says what is wrong.
func TestAWaitThatFailsLeadsToTheJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck, func(_ *Config, d *Deps) {
			d.Judges = map[string]Judge{"a": {Judge: d.Judges["a"].Judge, Wait: func(context.Context) error { return errors.New("no idea") }}}
		})
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		w.settle()
		if row := w.only(); row.Status != "ok" || w.judge.calls.Load() != 1 {
			t.Errorf("%d questions, row %+v", w.judge.calls.Load(), row)
		}
	})
}
