package consumer

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A commitSpy sees every commit from the broker's side.
type commitSpy struct {
	mu      sync.Mutex
	commits []spied
}

type spied struct {
	member     string
	generation int32
	partition  int32
	offset     int64
}

func (w *world) spyOnCommits() *commitSpy {
	spy := &commitSpy{}
	w.kafka.Cluster.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.Cluster.KeepControl()
		req := r.(*kmsg.OffsetCommitRequest)
		spy.mu.Lock()
		defer spy.mu.Unlock()
		for _, t := range req.Topics {
			for _, p := range t.Partitions {
				spy.commits = append(spy.commits, spied{req.MemberID, req.Generation, p.Partition, p.Offset})
			}
		}
		return nil, nil, false
	})
	return spy
}

func (s *commitSpy) list() []spied {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]spied(nil), s.commits...)
}

// check tells of a commit that goes back and of one for a partition that its sender
// did not hold in that generation.
func (s *commitSpy) check(t *testing.T, members ...*member) {
	t.Helper()
	held := map[string]bool{}
	for _, m := range members {
		for _, h := range m.handler.assignments() {
			held[fmt.Sprint(h.a.Generation, h.a.Partition)] = true
		}
	}
	last := map[int32]int64{}
	for _, c := range s.list() {
		if c.offset < last[c.partition] {
			t.Errorf("partition %d: commit of %d after %d", c.partition, c.offset, last[c.partition])
		}
		last[c.partition] = c.offset
		if !held[fmt.Sprint(c.generation, c.partition)] {
			t.Errorf("%+v: nobody held the partition in that generation", c)
		}
	}
}

// The broker answers one partition with an error; the library reports it for the whole
// commit. Nothing may be taken for committed, and the whole map goes again.
func TestACommitThatFailsInPartIsSentAgain(t *testing.T) {
	w := oneTopic(t, 2)
	w.produce(0, 10)
	w.produce(1, 10)
	fault := w.kafka.Cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: topic, Partitions: []int32{1},
		Err: kerr.CoordinatorLoadInProgress, Count: 3,
	})
	m := w.start("a")
	w.awaitCommitted(10, 10)
	if fault.Hits() != 3 {
		t.Errorf("%d commits failed, want 3", fault.Hits())
	}
	if n, _ := m.metric("assay_consumer_commits_total", "result", "retried"); n != 3 {
		t.Errorf("%v commits counted as retried, want 3", n)
	}
	for p := range 2 {
		if distinct, times := m.handler.count(p); distinct != 10 || times != 10 {
			t.Errorf("partition %d: %d offsets, %d times", p, distinct, times)
		}
	}
}

// The ledger is durable before the commit: what cannot be stored holds the offset back.
func TestAWatermarkWhoseLedgerCannotBeStoredIsNotCommitted(t *testing.T) {
	w := oneTopic(t, 2)
	w.produce(0, 10)
	w.produce(1, 10)
	var broken atomic.Bool
	broken.Store(true)
	m := w.start("a", option{handler: func(h *handler) {
		h.flush = func(p *handled, _ int64) error {
			if p.a.Partition == 0 && broken.Load() {
				return errors.New("no ClickHouse")
			}
			return nil
		}
	}})
	eventually(t, func() string { return "partition 1 not committed" }, func() bool {
		got := w.committed(2)
		return got != nil && got[1] == 10
	})
	if n, _ := m.handler.count(0); n != 10 {
		t.Errorf("%d of 10 resolved", n)
	}
	if got := w.committed(2); got[0] >= 1 {
		t.Errorf("committed %d without its ledger", got[0])
	}
	broken.Store(false)
	w.awaitCommitted(10, 10)
}

func TestTheLibraryTakesACommitThatGoesBack(t *testing.T) {
	gen, leave := rawGeneration(t, oneTopic(t, 1))
	defer leave()
	for _, offset := range []int64{10, 3} {
		if err := gen.CommitOffsets(offsets{topic: {0: offset}}); err != nil {
			t.Fatal("the library has become stricter:", err)
		}
	}
}

func TestACommitOfAFinishedGenerationFails(t *testing.T) {
	w := oneTopic(t, 1)
	gen, leave := rawGeneration(t, w)
	leave()
	if err := gen.CommitOffsets(offsets{topic: {0: 5}}); err == nil {
		t.Fatal("the fence against late commits is gone")
	}
	if got := w.committed(1); got[0] != -1 {
		t.Errorf("committed %d", got[0])
	}
}

// rawGeneration joins the group with the library alone.
func rawGeneration(t *testing.T, w *world) (*kafka.Generation, func()) {
	t.Helper()
	k, _ := settings(t, w)
	g, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: k.Group, Brokers: k.Brokers, Topics: []string{topic}, JoinGroupBackoff: joinBackoff,
	})
	if err != nil {
		t.Fatal(err)
	}
	closed := sync.OnceFunc(func() { _ = g.Close() })
	t.Cleanup(closed)
	for {
		gen, err := g.Next(t.Context())
		if err == nil {
			return gen, closed
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}
