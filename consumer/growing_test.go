package consumer

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A log that grows while the answer about its end is on the way: by the time the
// answer is here, the position is past it. On a busy topic and a busy machine that is
// every other answer, and it once stopped partitions as if their topic had been
// recreated.
func TestALogThatOutgrowsTheAnswerAboutItsEndIsNotAReplacedOne(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 10)
	m := w.start("a")
	w.awaitCommitted(10)
	var end, late atomic.Int64
	end.Store(10)
	w.kafka.Cluster.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.Cluster.KeepControl()
		if end.Load() >= 100 {
			return nil, nil, false
		}
		req := r.(*kmsg.ListOffsetsRequest)
		res := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		was := end.Load()
		for _, rt := range req.Topics {
			st := kmsg.NewListOffsetsResponseTopic()
			st.Topic = rt.Topic
			for _, rp := range rt.Partitions {
				sp := kmsg.NewListOffsetsResponseTopicPartition()
				sp.Partition = rp.Partition
				if sp.Offset = 0; rp.Timestamp == -1 {
					sp.Offset = was
				}
				st.Partitions = append(st.Partitions, sp)
			}
			res.Topics = append(res.Topics, st)
		}
		w.kafka.Cluster.SleepControl(func() {
			w.produce(0, 10)
			end.Add(10)
			eventually(t, func() string { return "what came meanwhile is read" }, func() bool {
				n, _ := m.handler.count(0)
				return int64(n) == end.Load()
			})
		})
		late.Add(1)
		return res, nil, true
	})
	w.awaitCommitted(100)
	if late.Load() < 2 {
		t.Errorf("only %d answers were overtaken", late.Load())
	}
	if n := len(m.handler.assignments()); n != 1 {
		t.Errorf("the partition was begun %d times, want once", n)
	}
	m.awaitMetric(1, "assay_consumer_partition_state", "state", "running")
	m.stop()
}
