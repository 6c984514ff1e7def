package consumer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"assay/internal/demo"
)

func TestATopicThatDoesNotExistYetIsWaitedFor(t *testing.T) {
	aTopicThatDoesNotExistYetIsWaitedFor(t, oneTopic)
}

func aTopicThatDoesNotExistYetIsWaitedFor(t *testing.T, where place) {
	w := where(t, 0)
	m := w.start("a")
	if err := m.consumer.Ready(); err == nil {
		t.Error("ready without a group")
	}
	time.Sleep(300 * time.Millisecond) // long enough for hundreds of rebalances
	if n, _ := m.metric("assay_consumer_generations_total", "cause", "start"); n != 0 {
		t.Errorf("%v generations of a topic that does not exist", n)
	}
	createTopic(t, w, 2)
	w.produce(1, 5)
	w.awaitCommitted(0, 5)
	if err := m.consumer.Ready(); err != nil {
		t.Error(err)
	}
}

func TestPartitionsThatAreAddedAreReadFromTheirFirstRecord(t *testing.T) {
	partitionsThatAreAddedAreReadFromTheirFirstRecord(t, oneTopic)
}

func partitionsThatAreAddedAreReadFromTheirFirstRecord(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 10)
	// latest: the old records are not wanted, those of a new partition are
	m := w.start("a", option{kafka: func(k *KafkaConfig) { k.Start = startLatest }})
	w.awaitCommitted(10)
	addPartitions(t, w, 3)
	w.freshProducer() // the other one knows one partition
	w.produce(2, 7)
	w.awaitCommitted(10, 0, 7)
	if n, _ := m.handler.count(2); n != 7 {
		t.Errorf("%d of 7 records of the new partition", n)
	}
}

func TestLatestIsResolvedAndCommittedAtOnce(t *testing.T) {
	latestIsResolvedAndCommittedAtOnce(t, oneTopic)
}

func latestIsResolvedAndCommittedAtOnce(t *testing.T, where place) {
	w := where(t, 4)
	for p := range 4 {
		w.produce(p, 10*(p+1))
	}
	latest := option{kafka: func(k *KafkaConfig) { k.Start = startLatest }}
	// two at once: the first commits of one must not look like history to the other
	a, b := w.start("a", latest), w.start("b", latest)
	w.awaitCommitted(10, 20, 30, 40)
	a.stop()
	b.stop()
	w.produce(3, 5) // while nobody runs
	c := w.start("c", latest)
	w.awaitCommitted(10, 20, 30, 45)
	if got := c.handler.resolvedOffsets(3); !slices.Equal(got, []int64{40, 41, 42, 43, 44}) {
		t.Errorf("resolved %v", got)
	}
	for _, m := range []*member{a, b, c} {
		for p := range 3 {
			if n, _ := m.handler.count(p); n != 0 {
				t.Errorf("member %s read %d old records of partition %d", m.name, n, p)
			}
		}
	}
}

func TestRetentionThatOvertakesACommitIsCountedExactly(t *testing.T) {
	retentionThatOvertakesACommitIsCountedExactly(t, oneTopic)
}

func retentionThatOvertakesACommitIsCountedExactly(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 100)
	first := w.start("a", option{handler: func(h *handler) { h.assign = nil }})
	w.awaitCommitted(100)
	first.stop()
	w.produce(0, 50)
	deleteRecords(t, w, 0, 130)
	m := w.start("b")
	w.awaitCommitted(150)
	if got := m.handler.resolvedOffsets(0); len(got) != 20 || got[0] != 130 {
		t.Errorf("resolved %v, want 130 to 149", got)
	}
	if n, _ := m.metric("assay_consumer_skipped_offsets_total", "reason", "retention"); n != 30 {
		t.Errorf("%v offsets counted as skipped, want 30", n)
	}
}

func TestRetentionThatOvertakesASlowReaderIsCountedExactly(t *testing.T) {
	retentionThatOvertakesASlowReaderIsCountedExactly(t, oneTopic)
}

func retentionThatOvertakesASlowReaderIsCountedExactly(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 10)
	m := w.start("a")
	w.awaitCommitted(10)
	m.consumer.Pause(PauseOperator)
	// let the fetch that is waiting at offset 10 come back empty
	time.Sleep(150 * time.Millisecond)
	w.produce(0, 90)
	deleteRecords(t, w, 0, 75)
	m.consumer.Resume(PauseOperator)
	w.awaitCommitted(100)
	n, _ := m.metric("assay_consumer_skipped_offsets_total", "reason", "retention")
	distinct, times := m.handler.count(0)
	if int(n)+distinct != 100 || times != distinct {
		t.Errorf("%v skipped and %d resolved (%d times), want 100 together", n, distinct, times)
	}
	if n == 0 {
		t.Error("nothing was skipped: nothing was tested")
	}
}

func recreate(t *testing.T, w *world, records int) {
	t.Helper()
	deleteTopic(t, w)
	createTopic(t, w, 1)
	w.freshProducer() // the other one knows the old topic's id and sequence numbers
	w.produce(0, records)
}

func TestARecreatedTopicStopsThePartition(t *testing.T) {
	aRecreatedTopicStopsThePartition(t, oneTopic)
}

func aRecreatedTopicStopsThePartition(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 100)
	// a member that sees the topic missing in between joins a new one
	m := w.start("a", option{consumer: func(c *Consumer) { c.watchEvery = time.Hour }})
	w.awaitCommitted(100)
	recreate(t, w, 3)
	m.awaitMetric(1, "assay_consumer_partition_state", "state", "stopped")
	if n, _ := m.metric("assay_consumer_paused", "reason", "offset"); n != 1 {
		t.Error("stopped without its reason")
	}
	if n, _ := m.handler.count(0); n != 100 {
		t.Errorf("%d offsets resolved, want the old 100", n)
	}
	for _, c := range w.committed(1) {
		if c != 100 && c != -1 { // the broker forgets a deleted topic's offsets
			t.Errorf("committed %d", c)
		}
	}
}

func TestARecreatedTopicIsReadFromItsStartWhenChosen(t *testing.T) {
	aRecreatedTopicIsReadFromItsStartWhenChosen(t, oneTopic)
}

func aRecreatedTopicIsReadFromItsStartWhenChosen(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 100)
	m := w.start("a", option{kafka: func(k *KafkaConfig) { k.OnBeyondEnd = beyondReset }})
	w.awaitCommitted(100)
	recreate(t, w, 3)
	w.awaitCommitted(3)
	m.stop()
	n := 0
	for _, h := range m.handler.assignments() {
		if h.a.Committed == 0 && h.a.LogEnd <= 3 && len(h.offsets) > 0 {
			n += len(h.offsets)
		}
	}
	if n != 3 {
		t.Errorf("%d records of the new log handled, want 3", n)
	}
}

func TestAnEmptyRecreatedTopicIsNoticed(t *testing.T) { anEmptyRecreatedTopicIsNoticed(t, oneTopic) }

func anEmptyRecreatedTopicIsNoticed(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 10)
	m := w.start("a", option{handler: func(h *handler) {}})
	w.awaitCommitted(10)
	m.stop()
	// offsets survive where the broker keeps them: commit beyond the end of what is there
	gen, leave := rawGeneration(t, w)
	if err := gen.CommitOffsets(offsets{topic: {0: 5000}}); err != nil {
		t.Fatal(err)
	}
	leave()
	second := w.start("b")
	second.awaitMetric(1, "assay_consumer_partition_state", "state", "stopped")
	third := w.startOther(t, second, beyondReset)
	w.awaitCommitted(10)
	if n, _ := third.metric("assay_consumer_skipped_offsets_total", "reason", "reset"); n != 4990 {
		t.Errorf("%v counted as skipped, want 4990", n)
	}
	if n, _ := third.handler.count(0); n != 10 {
		t.Errorf("%d of 10 records read", n)
	}
}

// startOther replaces a member by one with another policy.
func (w *world) startOther(t *testing.T, m *member, policy string) *member {
	t.Helper()
	m.stop()
	return w.start("other", option{kafka: func(k *KafkaConfig) { k.OnBeyondEnd = policy }})
}

func TestCountingStartsBelowTheCommittedOffset(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 100)
	first := w.start("a")
	w.awaitCommitted(100)
	first.stop()
	w.produce(0, 20)
	m := w.start("b", option{handler: func(h *handler) {
		h.assign = segmentAt(64)
	}})
	w.awaitCommitted(120)
	m.stop()
	if n, times := m.handler.count(0); n != 20 || times != 20 {
		t.Errorf("%d records resolved %d times, want the 20 new ones", n, times)
	}
	if len(m.handler.below) != 36 {
		t.Errorf("%d records counted again, want 36", len(m.handler.below))
	}
	if n, _ := m.metric("assay_consumer_resolved_total", "outcome", "not_needed"); n != 20 {
		t.Errorf("%v resolved, want 20", n)
	}
	if n, _ := m.metric("assay_consumer_records_total"); n != 20 {
		t.Errorf("%v records counted as read, want 20", n)
	}
}

func TestAStartAboveTheCommittedOffsetIsTakenAsResolved(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 100)
	m := w.start("a", option{handler: func(h *handler) { h.assign = segmentAt(90) }})
	w.awaitCommitted(100)
	if got := m.handler.resolvedOffsets(0); len(got) != 10 || got[0] != 90 {
		t.Errorf("resolved %v, want 90 to 99", got)
	}
}

func TestARecordLargerThanAFetchArrives(t *testing.T) { aRecordLargerThanAFetchArrives(t, oneTopic) }

func aRecordLargerThanAFetchArrives(t *testing.T, where place) {
	w := where(t, 1)
	w.produceOf(0, 1, 900_000)
	w.produce(0, 3)
	m := w.start("a", option{kafka: func(k *KafkaConfig) { k.MaxBytes = 10 << 10 }})
	w.awaitCommitted(4)
	if n, _ := m.handler.count(0); n != 4 {
		t.Errorf("%d of 4 records", n)
	}
}

// A wrong password is the true reason, not "broker not available".
func TestWrongCredentialsAreToldAsSuch(t *testing.T) {
	w := newWorld(t, demo.KafkaOptions{Options: saslOn()})
	k, c := settings(t, w)
	k.SASL, k.Username, k.Password = "scram-sha-256", "admin", "wrong"
	con, err := New(k, c, DeadLetterConfig{MaxRatio: .2}, Deps{Topics: []string{topic}, Handler: newHandler(), Log: quiet(), Reg: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	err = con.Run(t.Context())
	if err == nil || !refused(err) {
		t.Fatalf("Run ended with %v, want %v", err, kafka.SASLAuthenticationFailed)
	}
	t.Log(fmt.Sprint(err))
}

// The broker forgets a deleted topic's offsets. With `latest` its successor would be
// read from its end, and what was written before we noticed would be missed.
func TestATopicThatComesAgainIsReadFromItsFirstRecord(t *testing.T) {
	aTopicThatComesAgainIsReadFromItsFirstRecord(t, oneTopic)
}

func aTopicThatComesAgainIsReadFromItsFirstRecord(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 100)
	m := w.start("a", option{kafka: func(k *KafkaConfig) { k.Start = startLatest }})
	w.awaitCommitted(100)
	deleteTopic(t, w)
	deleteGroupOffsets(t, w, m.consumer.kafka.Group)
	eventually(t, func() string { return "the partition is still held" }, func() bool { return len(m.consumer.series.list()) == 0 })
	createTopic(t, w, 1)
	w.freshProducer()
	w.produce(0, 3)
	w.awaitCommitted(3)
	if got := m.handler.resolvedOffsets(0); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("resolved %v, want the three records of the new topic", got)
	}
}
