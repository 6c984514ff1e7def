package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"assay/internal/demo"
	"assay/internal/interaction"
)

// keeper holds every record until it is told to let go.
type keeper struct {
	mu   sync.Mutex
	kept []func()
	free bool
}

func (k *keeper) script(h *handler) {
	h.handle = func(_ context.Context, p *handled, d Delivery) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.free {
			p.resolve(d, Durable)
			return
		}
		k.kept = append(k.kept, func() { p.resolve(d, Durable) })
	}
}

func (k *keeper) letGo() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.kept {
		f()
	}
	k.kept, k.free = nil, true
}

func (k *keeper) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept)
}

// A full window stops fetching and nothing else: the session goes on for longer than
// its timeout, and no rebalance takes the partition away.
func TestAFullWindowStopsFetchingAndHeartbeatsGoOn(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 100)
	var keep keeper
	beats := w.kafka.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Observe: true, TopLevel: true, Count: -1})
	m := w.start("a", option{
		handler: keep.script,
		config:  func(c *Config) { c.Window = 7 },
		kafka:   func(k *KafkaConfig) { k.Heartbeat = 20 * time.Millisecond },
		// the broker's session is much shorter than what New accepts with our drain
		consumer: func(c *Consumer) { c.kafka.SessionTimeout = 1500 * time.Millisecond },
	})
	m.awaitMetric(1, "assay_consumer_paused", "reason", "window")
	seen := beats.Hits()
	fetches := w.kafka.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1})
	eventually(t, func() string { return "heartbeats stopped" }, func() bool { return beats.Hits() > seen+110 }) // 2.2 s, more than a session
	if n := fetches.Hits(); n != 0 {
		t.Errorf("%d fetches with a full window", n)
	}
	if n := keep.count(); n != 7 {
		t.Errorf("%d records in flight, want 7", n)
	}
	keep.letGo()
	w.awaitCommitted(100)
	if n := len(m.handler.assignments()); n != 1 {
		t.Errorf("%d assignments, want 1: the group rebalanced", n)
	}
}

func TestBytesInFlightAreBoundedWithMixedSizes(t *testing.T) {
	w := oneTopic(t, 2)
	for i := range 20 {
		w.produceOf(i%2, 5, 100+i*37)
	}
	w.produceOf(0, 1, 60_000) // larger than its window and than the process's
	w.produceOf(0, 5, 100)
	var over atomic.Int64
	var alone atomic.Bool
	m := w.start("a", option{
		config: func(c *Config) { c.WindowBytes, c.TotalBytes = 4<<10, 6<<10 },
		handler: func(h *handler) {
			later(h)
			inner := h.handle
			h.handle = func(ctx context.Context, p *handled, d Delivery) {
				b := d.session.tracker.budget
				b.mu.Lock()
				records, bytes := b.records, b.bytes
				b.mu.Unlock()
				if len(d.Record.Value) == 60_000 {
					alone.Store(records == 1)
				} else if bytes > 6<<10 {
					over.Store(bytes)
				}
				inner(ctx, p, d)
			}
		},
	})
	w.awaitCommitted(56, 50)
	if n := over.Load(); n > 0 {
		t.Errorf("%d bytes in flight, the process may have %d", n, 6<<10)
	}
	if !alone.Load() {
		t.Error("the record larger than every bound was not alone")
	}
	if n, _ := m.handler.count(0); n != 56 {
		t.Errorf("%d of 56 records", n)
	}
}

func TestAPausedTopicHandsOutNothingAndGoesOnWhereItStood(t *testing.T) {
	w := oneTopic(t, 2)
	m := w.start("a")
	w.produce(0, 10)
	w.awaitCommitted(10, 0)
	m.consumer.Pause(PauseJudge, topic)
	m.consumer.Pause(PauseSink)
	w.produce(0, 10)
	w.produce(1, 10)
	m.consumer.Resume(PauseSink)
	time.Sleep(150 * time.Millisecond) // three fetches, had there been any
	if n, _ := m.handler.count(0); n != 10 {
		t.Errorf("%d records handed out while paused", n-10)
	}
	if n, _ := m.metric("assay_consumer_paused", "reason", "judge", "partition", "1"); n != 1 {
		t.Error("the pause does not show")
	}
	m.consumer.Resume(PauseJudge)
	w.awaitCommitted(20, 10)
}

func TestTooManyDeadLettersStopThePartitionAndOnlyThat(t *testing.T) {
	w := oneTopic(t, 2)
	w.produce(0, 100)
	w.produce(1, 100)
	var mended atomic.Bool
	m := w.start("a", option{handler: func(h *handler) {
		h.handle = func(_ context.Context, p *handled, d Delivery) {
			if p.a.Partition == 0 && !mended.Load() {
				p.resolve(d, DeadLettered)
				return
			}
			p.resolve(d, NotNeeded)
		}
	}})
	m.awaitMetric(1, "assay_consumer_partition_state", "state", "stopped", "partition", "0")
	w.awaitCommitted(20, 100)
	if n, _ := m.metric("assay_consumer_resolved_total", "outcome", "dead_lettered"); n != 20 {
		t.Errorf("%v dead letters, want 20", n)
	}
	mended.Store(true)
	m.consumer.RetryPoison()
	w.awaitCommitted(100, 100)
	if n, _ := m.metric("assay_consumer_partition_state", "state", "running", "partition", "0"); n != 1 {
		t.Error("still not running")
	}
}

func TestARecordThatPanicsIsHandedOutAsAFaultTheThirdTime(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 30)
	var tries atomic.Int32
	m := w.start("a", option{handler: func(h *handler) {
		h.handle = func(_ context.Context, p *handled, d Delivery) {
			if d.Record.Offset == 13 {
				tries.Add(1)
				if d.Fault == "" {
					panic("cannot read this")
				}
				p.resolve(d, DeadLettered)
				return
			}
			p.resolve(d, NotNeeded)
		}
	}})
	w.awaitCommitted(30)
	if n := tries.Load(); n != 3 {
		t.Errorf("handled %d times, want 3", n)
	}
	if got := m.handler.resolvedOffsets(0); len(got) != 30 {
		t.Errorf("%d of 30 resolved", len(got))
	}
	if n, _ := m.metric("assay_consumer_generations_total", "cause", "rebalance"); n != 0 {
		t.Errorf("%v rebalances: a panic ended the generation", n)
	}
	if n, _ := m.metric("assay_consumer_resolved_total", "outcome", "dead_lettered"); n != 1 {
		t.Errorf("%v dead letters, want 1", n)
	}
}

func TestAnAssignmentThatFailsIsTriedAgain(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 5)
	var tries atomic.Int32
	m := w.start("a", option{handler: func(h *handler) {
		h.assign = func(_ context.Context, a Assignment) (int64, error) {
			switch tries.Add(1) {
			case 1:
				return 0, errors.New("no ClickHouse yet")
			case 2:
				panic("nor now")
			}
			return a.Committed, nil
		}
	}})
	m.awaitMetric(1, "assay_consumer_partition_state", "state", "starting")
	w.awaitCommitted(5)
}

func TestAStuckPartitionMakesTheProcessNotReadyAndThenEndsIt(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 10)
	var keep keeper
	m := w.start("a", option{
		handler:  keep.script,
		consumer: func(c *Consumer) { c.cfg.StuckAfter = 200 * time.Millisecond },
	})
	eventually(t, func() string { return "never not ready" }, func() bool { return errors.Is(m.consumer.Ready(), ErrStuck) })
	<-m.done
	if !errors.Is(m.err, ErrStuck) {
		t.Errorf("Run ended with %v, want %v", m.err, ErrStuck)
	}
	keep.letGo() // after the revoke: without effect
	w.awaitCommitted(0)
}

func TestAPauseIsNoStandstill(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 10)
	m := w.start("a", option{consumer: func(c *Consumer) { c.cfg.StuckAfter = 100 * time.Millisecond }})
	w.awaitCommitted(10)
	m.consumer.Pause(PauseJudge)
	time.Sleep(60 * time.Millisecond)
	w.produce(0, 10)
	eventually(t, func() string { return "the age of the watermark does not grow" }, func() bool {
		age, _ := m.metric("assay_consumer_watermark_age_seconds")
		return age > .5
	})
	if err := m.consumer.Ready(); err != nil {
		t.Error(err)
	}
	m.consumer.Resume(PauseJudge)
	w.awaitCommitted(20)
}

func TestLagIsTheDistanceToTheEnd(t *testing.T) {
	w := oneTopic(t, 1)
	old := time.Now().Add(-time.Hour)
	for i := range 10 {
		err := w.producer.Produce(t.Context(), topic, interaction.Record{Time: old, Value: fmt.Append(nil, i)})
		if err != nil {
			t.Fatal(err)
		}
	}
	var keep keeper
	m := w.start("a", option{handler: keep.script})
	m.awaitMetric(10, "assay_consumer_lag_records")
	age := 0.
	eventually(t, func() string { return fmt.Sprintf("lag of %v s, want an hour", age) }, func() bool {
		age, _ = m.metric("assay_consumer_lag_seconds") // known once the first record is fetched
		return age > 3590 && age < 3700
	})
	keep.letGo()
	m.awaitMetric(0, "assay_consumer_lag_records")
	m.awaitMetric(0, "assay_consumer_lag_seconds")
}

func TestFetchErrorsAreRiddenOut(t *testing.T) {
	w := newWorld(t, demo.KafkaOptions{Brokers: 3, Partitions: 2, Topics: []string{topic}})
	w.kafka.Cluster.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.NotLeaderForPartition},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.UnknownServerError},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: kerr.UnknownTopicOrPartition},
		kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: topic, Err: kerr.LeaderNotAvailable},
	)
	w.produce(0, 50)
	w.produce(1, 50)
	m := w.start("a")
	w.awaitCommitted(50, 50)
	for i := range int32(4) { // leaders and coordinator move under load
		if err := w.kafka.Cluster.MoveTopicPartition(topic, i%2, i%3); err != nil {
			t.Fatal(err)
		}
		w.produce(int(i%2), 25)
	}
	w.kafka.Cluster.RehashCoordinators()
	w.awaitCommitted(100, 100)
	for p := range 2 {
		if distinct, _ := m.handler.count(p); distinct != 100 {
			t.Errorf("partition %d: %d of 100", p, distinct)
		}
	}
}
