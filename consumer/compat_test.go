package consumer

import (
	"fmt"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"assay/internal/demo"
)

func TestBrokersOfManyVersionsAreRead(t *testing.T) {
	for name, v := range map[string]*kversion.Versions{
		"0.11": kversion.V0_11_0(), "1.1": kversion.V1_1_0(), "2.4": kversion.V2_4_0(), "3.9": kversion.V3_9_0(), "4.0": kversion.V4_0_0(),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, demo.KafkaOptions{Partitions: 2, Topics: []string{topic}, Options: []kfake.Opt{kfake.MaxVersions(v)}})
			w.produce(0, 20)
			w.produce(1, 20)
			m := w.start("a")
			w.awaitCommitted(20, 20)
			if n, _ := m.handler.count(1); n != 20 {
				t.Errorf("%d of 20 records", n)
			}
		})
	}
}

// A rolling change from the range balancer: as long as one member knows nothing else,
// all use it.
func TestAGroupThatStillUsesRangeIsJoined(t *testing.T) {
	w := oneTopic(t, 4)
	k, _ := settings(t, w)
	old, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: k.Group, Brokers: k.Brokers, Topics: []string{topic}, JoinGroupBackoff: joinBackoff,
		HeartbeatInterval: k.Heartbeat, GroupBalancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	held := make(chan int)
	go func() {
		defer close(held)
		for {
			gen, err := old.Next(t.Context())
			if err != nil {
				return
			}
			held <- len(gen.Assignments[topic])
		}
	}()
	if n := <-held; n != 4 {
		t.Fatalf("alone with %d of 4 partitions", n)
	}
	m := w.start("new")
	eventually(t, func() string { return fmt.Sprint("holds ", len(m.consumer.series.list())) }, func() bool {
		select {
		case <-held:
		default:
		}
		return len(m.consumer.series.list()) == 2
	})
	_ = old.Close()
	for range held { // its last generations
	}
	eventually(t, func() string { return fmt.Sprint("holds ", len(m.consumer.series.list())) },
		func() bool { return len(m.consumer.series.list()) == 4 })
}
