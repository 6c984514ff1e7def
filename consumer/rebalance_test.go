package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// later resolves records in goroutines, out of order, as judging does.
func later(h *handler) {
	var groups sync.Map // one of each partition: others go on while one drains
	running := func(p *handled) *sync.WaitGroup {
		g, _ := groups.LoadOrStore(p, new(sync.WaitGroup))
		return g.(*sync.WaitGroup)
	}
	h.handle = func(_ context.Context, p *handled, d Delivery) {
		running(p).Go(func() {
			time.Sleep(time.Duration(rand.N(int64(2 * time.Millisecond))))
			p.resolve(d, Durable)
		})
	}
	h.drain = func(_ context.Context, p *handled) error {
		running(p).Wait()
		return nil
	}
}

func TestMembersComeAndGoAndNothingIsLostOrTakenBack(t *testing.T) {
	const partitions, each = 6, 400
	w := oneTopic(t, partitions)
	spy := w.spyOnCommits()
	script := option{handler: later}
	all := []*member{w.start("a", script)}
	var produced sync.WaitGroup
	produced.Go(func() {
		for range each / 20 {
			for p := range partitions {
				w.produce(p, 20)
			}
		}
	})
	all = append(all, w.start("b", script), w.start("c", script))
	eventually(t, func() string { return "three members never shared the topic" }, func() bool {
		held := 0
		for _, m := range all {
			if len(m.consumer.series.list()) > 0 {
				held++
			}
		}
		return held == 3
	})
	all[0].stop()
	all = append(all, w.start("d", script))
	// an eviction: the coordinator knows nothing of whoever asks next
	w.kafka.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.UnknownMemberID})
	all[1].stop()
	produced.Wait()
	w.awaitCommitted(slices.Repeat([]int64{each}, partitions)...)
	for _, m := range all {
		m.stop()
	}
	spy.check(t, all...)
	for p := range partitions {
		union := map[int64]bool{}
		for _, m := range all {
			for _, o := range m.handler.resolvedOffsets(p) {
				union[o] = true
			}
		}
		if len(union) != each {
			t.Errorf("partition %d: %d of %d offsets resolved", p, len(union), each)
		}
	}
}

func TestADrainFinishesWhatRunsAndCommitsIt(t *testing.T) {
	aDrainFinishesWhatRunsAndCommitsIt(t, oneTopic)
}

func aDrainFinishesWhatRunsAndCommitsIt(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 100)
	release := make(chan struct{})
	m := w.start("a", option{handler: func(h *handler) {
		var running sync.WaitGroup
		h.handle = func(_ context.Context, p *handled, d Delivery) {
			running.Go(func() {
				<-release
				p.resolve(d, Durable)
			})
		}
		h.drain = func(context.Context, *handled) error {
			close(release)
			running.Wait()
			return nil
		}
	}})
	m.awaitMetric(100, "assay_consumer_in_flight_records", "partition", "0")
	m.stop()
	w.awaitCommitted(100)
	if n, _ := m.metric("assay_consumer_drain_seconds", "outcome", "complete"); n != 1 {
		t.Errorf("%v complete drains, want 1", n)
	}
}

func TestAHangingJudgeIsCutOffAfterItsBudgetAndItsRecordReadAgain(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 10)
	hang := func(h *handler) {
		h.handle = func(_ context.Context, p *handled, d Delivery) {
			if d.Record.Offset != 4 {
				p.resolve(d, Durable)
			}
		}
		h.drain = func(ctx context.Context, _ *handled) error {
			<-ctx.Done()
			return fmt.Errorf("offset 4: %w", context.Cause(ctx))
		}
	}
	m := w.start("a", option{handler: hang, config: func(c *Config) { c.DrainJudge = 100 * time.Millisecond }})
	m.awaitMetric(1, "assay_consumer_in_flight_records", "partition", "0")
	began := time.Now()
	m.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the drain took %s", took)
	}
	w.awaitCommitted(4)
	if n, _ := m.metric("assay_consumer_drain_seconds", "outcome", "overrun"); n != 1 {
		t.Errorf("%v overrun drains, want 1", n)
	}
	second := w.start("b")
	w.awaitCommitted(10)
	if got := second.handler.resolvedOffsets(0); !slices.Equal(got, []int64{4, 5, 6, 7, 8, 9}) {
		t.Errorf("read again: %v", got)
	}
}

// A drain longer than the session: the broker has evicted us, refuses the commit, and
// the work is done again. Nothing is lost.
func TestADrainThatOverrunsTheSessionIsRefusedAndRedone(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 50)
	var drains atomic.Int32
	m := w.start("a", option{
		kafka: func(k *KafkaConfig) { k.SessionTimeout, k.Timeout = 4*time.Second, time.Second },
		config: func(c *Config) {
			c.DrainJudge, c.DrainFlush, c.CommitEvery = 500*time.Millisecond, 500*time.Millisecond, time.Minute
		},
		// shorter than the drain below; New would refuse it
		consumer: func(c *Consumer) { c.kafka.SessionTimeout = 400 * time.Millisecond },
		handler: func(h *handler) {
			h.drain = func(context.Context, *handled) error {
				if drains.Add(1) == 1 {
					time.Sleep(1500 * time.Millisecond)
				}
				return nil
			}
		},
	})
	eventually(t, func() string { return "not resolved" }, func() bool { n, _ := m.handler.count(0); return n == 50 })
	w.kafka.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.RebalanceInProgress})
	m.awaitMetric(1, "assay_consumer_commits_total", "result", "refused")
	eventually(t, func() string { return "not read again" }, func() bool { _, times := m.handler.count(0); return times == 100 })
	m.stop()
	w.awaitCommitted(50)
}

func TestResolvingAfterTheRevokeMovesNothing(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 30)
	spy := w.spyOnCommits()
	var mu sync.Mutex
	var kept []Delivery
	m := w.start("a", option{handler: func(h *handler) {
		h.handle = func(_ context.Context, p *handled, d Delivery) {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, d)
		}
	}})
	m.awaitMetric(30, "assay_consumer_in_flight_records", "partition", "0")
	m.stop()
	var wg sync.WaitGroup
	for _, d := range kept {
		wg.Go(func() { d.Release(); d.Resolve(Durable) })
	}
	wg.Wait()
	if n, _ := m.metric("assay_consumer_resolved_total", "outcome", "durable"); n != 0 {
		t.Errorf("%v records counted as resolved after the revoke", n)
	}
	for _, c := range spy.list() {
		if c.offset != 0 {
			t.Errorf("committed %d with nothing resolved", c.offset)
		}
	}
}

// Two processes believe they hold a partition: one was cut off from the coordinator
// and does not know yet. Its commits are refused, and its rows have equal identity,
// since they are a function of the log.
func TestAZombiesCommitIsFenced(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 20)
	hold := make(chan struct{})
	zombie := w.start("zombie", option{
		handler: func(h *handler) {
			h.drain = func(context.Context, *handled) error { <-hold; return nil }
		},
		config: func(c *Config) { c.CommitEvery = time.Minute },
	})
	eventually(t, func() string { return "not resolved" }, func() bool { n, _ := zombie.handler.count(0); return n == 20 })
	// the coordinator evicts it; it drains for as long as we like
	w.kafka.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.RebalanceInProgress})
	eventually(t, func() string { return "does not drain" }, func() bool {
		n, _ := zombie.metric("assay_consumer_partition_state", "state", "draining")
		return n == 1
	})
	evict(t, w)
	owner := w.start("owner")
	w.awaitCommitted(20)
	spy := w.spyOnCommits()
	w.produce(0, 5)
	w.awaitCommitted(25)
	close(hold)
	zombie.awaitMetric(1, "assay_consumer_commits_total", "result", "refused")
	if got := owner.handler.resolvedOffsets(0); len(got) != 25 {
		t.Errorf("the owner resolved %d of 25", len(got))
	}
	zombie.stop()
	owner.stop()
	w.awaitCommitted(25)
	late := 0
	for _, c := range spy.list() {
		if c.offset == 20 {
			late++ // it reached the broker, which refused it
		}
	}
	if late == 0 {
		t.Error("the zombie never tried: nothing was tested")
	}
}

// evict removes every member of the group, as an expired session does.
func evict(t *testing.T, w *world) {
	t.Helper()
	members := map[string]bool{}
	k, _ := settings(t, w)
	for id := range groupMembers(t, w, k.Group) {
		members[id] = true
	}
	if len(members) == 0 {
		t.Fatal("no member to evict")
	}
	leaveFor(t, w, k.Group, slices.Collect(maps.Keys(members)))
}

func TestAHundredGenerationsLeaveNothingBehind(t *testing.T) {
	w := oneTopic(t, 4)
	for p := range 4 {
		w.produce(p, 20)
	}
	m := w.start("a", option{
		kafka: func(k *KafkaConfig) { k.Heartbeat = 10 * time.Millisecond },
		consumer: func(c *Consumer) {
			c.shortLife = 0
			c.cluster.transport.IdleTimeout = 200 * time.Millisecond // of connections nobody needs
		},
	})
	w.awaitCommitted(20, 20, 20, 20)
	fault := w.kafka.Cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Heartbeat}, TopLevel: true, Err: kerr.RebalanceInProgress, Count: -1,
	})
	defer fault.Remove()
	const want = 100
	eventually(t, func() string { return "generations do not follow each other" }, func() bool { return fault.Hits() >= want })
	fault.Remove()
	w.produce(2, 5)
	w.awaitCommitted(20, 20, 25, 20)
	if n := len(m.consumer.series.list()); n != 4 {
		t.Errorf("%d partitions after %d generations, want 4", n, want)
	}
	// one for each partition's fetch and a few to ask: those of revoked partitions end
	// with the fetch they were waiting for
	eventually(t, func() string { return fmt.Sprint(m.consumer.cluster.conns.count(), " connections stay open") },
		func() bool { return m.consumer.cluster.conns.count() <= 10 })
	m.stop()
	if n := m.consumer.cluster.conns.count(); n != 0 {
		t.Errorf("%d connections left", n)
	}
	if _, ok := m.metric("assay_consumer_lag_records"); ok {
		t.Error("series of a partition outlive its revoke")
	}
	if err := errors.Join(m.err); err != nil {
		t.Error(err)
	}
}

// A join waits for members that drain. Whoever is told to end meanwhile does not wait
// with it for ever.
func TestAMemberThatIsStillJoiningCanEnd(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 5)
	hold := make(chan struct{})
	first := w.start("a", option{handler: func(h *handler) {
		h.drain = func(context.Context, *handled) error { <-hold; return nil }
	}})
	w.awaitCommitted(5)
	second := w.start("b", option{consumer: func(c *Consumer) { c.joinPatience = 50 * time.Millisecond }})
	first.awaitMetric(1, "assay_consumer_partition_state", "state", "draining")
	began := time.Now()
	second.stop()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("ended after %s", took)
	}
	if n := len(second.handler.assignments()); n != 0 {
		t.Errorf("%d assignments: the join completed, nothing was tested", n)
	}
	close(hold)
}
