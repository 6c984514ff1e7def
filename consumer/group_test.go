package consumer

import (
	"testing"
)

func TestEveryRecordIsResolvedAndTheEndCommitted(t *testing.T) {
	everyRecordIsResolvedAndTheEndCommitted(t, oneTopic)
}

func everyRecordIsResolvedAndTheEndCommitted(t *testing.T, where place) {
	w := where(t, 3)
	for p := range 3 {
		w.produce(p, 500)
	}
	m := w.start("a")
	w.awaitCommitted(500, 500, 500)
	w.produce(1, 7)
	w.awaitCommitted(500, 507, 500)
	m.stop()
	if m.err != nil {
		t.Fatal(m.err)
	}
	for p, want := range []int{500, 507, 500} {
		if distinct, times := m.handler.count(p); distinct != want || times != want {
			t.Errorf("partition %d: %d offsets resolved %d times, want %d once", p, distinct, times, want)
		}
	}
	for _, h := range m.handler.assignments() {
		if !h.closed {
			t.Errorf("partition %d was not closed", h.a.Partition)
		}
		last := int64(-1)
		for _, f := range h.flushed {
			if f < last {
				t.Errorf("partition %d: ledger flushed to %d after %d", h.a.Partition, f, last)
			}
			last = f
		}
	}
}
