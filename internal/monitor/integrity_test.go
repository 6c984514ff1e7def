package monitor

import (
	"testing"
	"time"

	"assay/internal/checks"
	"assay/internal/interaction/decode"
)

// The story: a source whose events are forty minutes late, always. Its rows are durable
// before the ledger that counts them, and their minutes were closed long ago, so there
// is never a moment without rows on their way.
func TestRowsOnTheirWayToTheLedgerAreNoGap(t *testing.T) {
	store := newMemory()
	w := newWorld(t, store, aFile(.90, .02, 1, 4))
	gap := func(want uint64, why string) *Integrity {
		t.Helper()
		store.clock = store.clock.Add(time.Minute)
		w.load(time.Minute, batch{check: "refund", pi: 1, ok: 2, pass: 2}) // closes a minute; the ledger counts what it owes
		w.spread(w.now.Add(-40*time.Minute), time.Minute, batch{check: "refund", pi: 1, ok: 3, pass: 3})
		w.round()
		c, _ := w.mon.Snapshot().Check("refund")
		if c.Integrity == nil || c.Integrity.Gap != want {
			t.Fatalf("%s: integrity %+v, want a gap of %d", why, c.Integrity, want)
		}
		return c.Integrity
	}
	w.load(2*time.Hour, batch{check: "refund", pi: 1, ok: 100, pass: 95})
	for range 30 {
		if i := gap(0, "late events"); i.Rows != i.Selected+3 {
			t.Fatalf("integrity %+v: the test needs three rows on their way", i)
		}
	}
	w.flush()
	w.spread(w.now.Add(-40*time.Minute), time.Minute, batch{check: "refund", pi: 1, ok: 1, pass: 1})
	clear(w.cells) // a row that no ledger will ever count
	for range 4 {
		gap(0, "a phantom may be on its way for five minutes")
	}
	gap(1, "a phantom that has lain for five minutes")
}

// Half of a call keeps the ledger from what came after it until its wait is over.
func TestRowsThatTheLedgerCountsAfterAHalfsWaitAreNoGap(t *testing.T) {
	f := func(wait time.Duration, patience int) {
		t.Helper()
		store := newMemory()
		file := aFile(.90, .02, 1, 4)
		file.Sources = []checks.Source{{Topic: "log", JoinWait: wait}, {Topic: "other", JoinWait: time.Second}}
		w := newWorld(t, store, file)
		w.load(2*time.Hour, batch{check: "refund", pi: 1, ok: 100, pass: 95})
		w.spread(w.now.Add(-40*time.Minute), time.Minute, batch{check: "refund", pi: 1, ok: 1, pass: 1})
		clear(w.cells) // the ledger waits
		for minute := range patience + 1 {
			store.clock = store.clock.Add(time.Minute)
			w.load(time.Minute, batch{check: "refund", pi: 1, ok: 2, pass: 2})
			w.round()
			want := uint64(0)
			if minute == patience {
				want = 1
			}
			if c, _ := w.mon.Snapshot().Check("refund"); c.Integrity == nil || c.Integrity.Gap != want {
				t.Fatalf("after %d minutes: integrity %+v, want a gap of %d", minute+1, c.Integrity, want)
			}
		}
	}
	f(0, 14)
	f(25*time.Minute, 29)
}

func TestTheMonitorKnowsHowLongHalvesWait(t *testing.T) {
	d, err := decode.New(decode.Defaults(), []decode.Source{{Topic: "log"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.NewJoiner("log").Wait(); got != defaultJoinWait {
		t.Errorf("the decoder's is %s, the monitor's %s", got, defaultJoinWait)
	}
}

func TestALostRowIsAGapAtOnce(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, 1, 4))
	w.load(2*time.Hour, batch{check: "refund", pi: 1, ok: 100, pass: 95})
	w.late(40*time.Minute, batch{check: "refund", uncounted: 1})
	w.round()
	if c, _ := w.mon.Snapshot().Check("refund"); c.Integrity == nil || c.Integrity.Gap != 1 {
		t.Errorf("integrity %+v, want a gap of 1", c.Integrity)
	}
}
