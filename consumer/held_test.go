package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"assay/internal/interaction"
)

// Halves wait for records that are not read yet: if they filled the window, those would
// never be read.
func TestHeldRecordsTakeNoRoom(t *testing.T) {
	b := newBudget(3, 100)
	tr := newTracker(0, 2, 50, b)
	var held []ticket
	for offset := range int64(20) {
		if !tr.tryAdmit(40) {
			t.Fatalf("no room for offset %d with %d held", offset, len(held))
		}
		k := tr.add(offset, 40, moment{})
		tr.hold(k)
		tr.hold(k) // once is enough
		held = append(held, k)
	}
	if b.records != 0 || b.bytes != 0 {
		t.Errorf("held records keep %d records, %d bytes of the process", b.records, b.bytes)
	}
	for offset := int64(20); offset < 22; offset++ {
		if !tr.tryAdmit(10) {
			t.Fatal("no room beside held ones")
		}
		tr.add(offset, 10, moment{})
	}
	if tr.tryAdmit(10) {
		t.Error("a third record in a window of two")
	}
	if st := tr.state(); st.watermark != 0 || st.progress != 20 || st.held != 20 || st.open != 22 {
		t.Errorf("%+v", st)
	}
	for _, k := range held[:10] {
		tr.resolve(k)
	}
	if b.records != 2 || b.bytes != 20 {
		t.Errorf("%d records, %d bytes in the budget, want those of the two that move", b.records, b.bytes)
	}
	tr.revoke()
	if b.records != 0 || b.bytes != 0 {
		t.Errorf("%d records, %d bytes after the revoke", b.records, b.bytes)
	}
}

// A fetch is read into the buffer of one before it unless somebody still looks at that.
func TestNobodyLooksAtTheBytesOfHeldRecords(t *testing.T) {
	tr := bareTracker(0)
	first, second := tr.openOne(t, 0, 1), tr.openOne(t, 1, 1)
	tr.hold(second)
	if !tr.openFrom(0) || tr.openFrom(1) {
		t.Errorf("open from 0: %t, from 1: %t; want true and false", tr.openFrom(0), tr.openFrom(1))
	}
	tr.hold(first)
	if tr.openFrom(0) {
		t.Error("all are held")
	}
}

// The watermark waits for a held record; the window, the ages and what comes after it do
// not.
func TestAPartitionGoesOnPastManyHeldRecords(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 100)
	var mu sync.Mutex
	var held []func()
	m := w.start("a", option{
		config: func(c *Config) { c.Window = 4 },
		handler: func(h *handler) {
			h.handle = func(_ context.Context, p *handled, d Delivery) {
				if d.Record.Offset < 10 || d.Record.Offset >= 60 {
					p.resolve(d, NotNeeded)
					return
				}
				d.Hold()
				mu.Lock()
				defer mu.Unlock()
				held = append(held, func() { p.resolve(d, NoInteraction) })
			}
		},
	})
	m.awaitMetric(50, "assay_consumer_held_records", "partition", "0")
	eventually(t, func() string { return "not read to its end" }, func() bool { n, _ := m.handler.count(0); return n == 50 })
	w.awaitCommitted(10)
	if age, _ := m.metric("assay_consumer_oldest_in_flight_seconds", "partition", "0"); age != 0 {
		t.Errorf("the oldest record in flight is %v s old, and all of them are held", age)
	}
	if age, _ := m.metric("assay_consumer_watermark_age_seconds", "partition", "0"); age != 0 {
		t.Errorf("watermark age %v s", age)
	}
	mu.Lock()
	free := held
	mu.Unlock()
	for _, f := range free {
		f()
	}
	w.awaitCommitted(100)
}

// The handler is told when the partition was read to its end, again and again while it is
// silent, and not behind a backlog.
func TestAHandlerIsToldThatItHasCaughtUp(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 200)
	var calls, early atomic.Int64
	m := w.start("a", option{
		kafka: func(k *KafkaConfig) { k.MaxBytes = 2 << 10 }, // several fetches
		handler: func(h *handler) {
			h.caughtUp = func(p *handled, now time.Time) {
				p.mu.Lock()
				defer p.mu.Unlock()
				calls.Add(1)
				if len(p.offsets) < 200 {
					early.Add(1)
				}
			}
		},
	})
	eventually(t, func() string { return "a silent partition is not told" }, func() bool { return calls.Load() >= 3 })
	before := calls.Load()
	w.produce(0, 200)
	w.awaitCommitted(400)
	eventually(t, func() string { return "not told after more records" }, func() bool { return calls.Load() >= before+3 })
	m.stop()
	if n := early.Load(); n != 0 {
		t.Errorf("told %d times before the end was read", n)
	}
}

func TestReachGoesByTheRecordBeforeTheOffset(t *testing.T) {
	reachGoesByTheRecordBeforeTheOffset(t, oneTopic)
}

func reachGoesByTheRecordBeforeTheOffset(t *testing.T, where place) {
	w := where(t, 1)
	start := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	// one record a minute, and a silence of ten hours after the tenth
	for i := range 20 {
		at := start.Add(time.Duration(i) * time.Minute)
		if i >= 10 {
			at = at.Add(10 * time.Hour)
		}
		if err := w.producer.Produce(t.Context(), topic, interaction.Record{Time: at, Value: fmt.Appendf(nil, "r%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	assigned := make(chan Assignment, 1)
	m := w.start("a", option{handler: func(h *handler) {
		h.assign = func(_ context.Context, a Assignment) (int64, error) {
			select {
			case assigned <- a:
			default:
			}
			return a.Committed, nil
		}
	}})
	a := <-assigned
	f := func(offset int64, back time.Duration, want int64) {
		t.Helper()
		if got, err := a.Reach(t.Context(), offset, back); err != nil || got != want {
			t.Errorf("%s before %d: %d (%v), want %d", back, offset, got, err, want)
		}
	}
	f(5, 0, 4)
	f(5, 2*time.Minute, 2)
	f(5, time.Hour, 0)
	f(0, time.Hour, 0)
	f(20, 3*time.Minute, 16)
	f(12, time.Hour, 10)
	// what stands before the silence is young by its own clock
	f(10, 3*time.Minute, 6)
	f(20, 11*time.Hour, 0)
	m.stop()
}

func TestReachStepsOverOffsetsWithoutARecord(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 3)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Value: fmt.Appendf(nil, "tx %d", i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	assigned := make(chan Assignment, 1)
	m := w.start("a", option{handler: func(h *handler) {
		h.assign = func(_ context.Context, a Assignment) (int64, error) {
			select {
			case assigned <- a:
			default:
			}
			return a.Committed, nil
		}
	}})
	a := <-assigned
	// 3 records, 5 of a transaction and its marker
	got, err := a.Reach(t.Context(), 9, 0)
	if err != nil || got < 3 || got > 7 {
		t.Errorf("before the marker's end: %d (%v), want a record of the transaction", got, err)
	}
	w.awaitCommitted(9)
	if got := m.handler.resolvedOffsets(0); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("records at %v: the marker is not where this test expects it", got)
	}
}

// A restart of a topic that joins may read much of the log again before anything new. That
// is no standstill: a process that was ended for it would start from the front for ever.
func TestReadingAgainIsNoStandstill(t *testing.T) {
	p := &partition{gate: newGate(0), budget: newBudget(10, 1000), log: slog.New(slog.DiscardHandler)}
	s := &session{p: p, handler: &handled{h: newHandler()}, below: 100}
	s.tracker = newTracker(s.below, 10, 1000, p.budget)
	p.session.Store(s)
	p.logEnd.Store(200)
	g := &generation{c: &Consumer{cfg: Config{StuckAfter: time.Minute}}, partitions: []*partition{p}}

	now := time.Now()
	look := func(stuck bool) {
		t.Helper()
		now = now.Add(50 * time.Second)
		g.lookForStuck(now)
		if got := g.c.stuck.Load(); got != stuck {
			t.Errorf("at %s: stuck %t, want %t", now, got, stuck)
		}
	}
	look(false)
	for offset := range int64(5) {
		if err := s.hand(t.Context(), interaction.Record{Topic: topic, Offset: offset}, 1, moment{}); err != nil {
			t.Fatal(err)
		}
		look(false)
		if age := p.observe(now).watermarkAge; age != 0 {
			t.Errorf("watermark age %s while records are read again", age)
		}
	}
	look(false)
	look(true)
}
