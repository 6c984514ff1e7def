package demo

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"assay/internal/interaction"
)

// readAll reads n records of a topic, by partition.
func readAll(t *testing.T, brokers []string, topic string, n int) map[int32][]*kgo.Record {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out := make(map[int32][]*kgo.Record)
	for n > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			out[r.Partition] = append(out[r.Partition], r)
			n--
		})
	}
	return out
}

func produce(t *testing.T, brokers []string, topic string, records ...interaction.Record) error {
	t.Helper()
	p, err := NewProducer(brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.Produce(t.Context(), topic, records...)
}

func TestARecordGoesWhereItSaysWithTheTimeItHas(t *testing.T) {
	k, err := StartKafka(KafkaOptions{Partitions: 4, Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	at := time.Date(2026, 2, 1, 8, 0, 0, 0, time.UTC)
	var records []interaction.Record
	for i := range 8 {
		records = append(records, interaction.Record{Partition: i % 4, Time: at, Value: fmt.Append(nil, i),
			Headers: []interaction.Header{{Key: "h", Value: []byte("x")}}})
	}
	for range 3 {
		records = append(records, interaction.Record{Partition: ByKey, Key: []byte("same"), Time: at})
	}
	if err := produce(t, k.Addrs(), "t", records...); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, k.Addrs(), "t", len(records))
	same := map[int32]int{}
	for p, list := range got {
		for _, r := range list {
			if !r.Timestamp.Equal(at) {
				t.Errorf("partition %d offset %d: time %s, want %s", p, r.Offset, r.Timestamp, at)
			}
			if string(r.Key) == "same" {
				same[p]++
				if r.Value != nil {
					t.Errorf("a tombstone came back as %q", r.Value)
				}
				continue
			}
			if string(r.Value) != fmt.Sprint(p) && string(r.Value) != fmt.Sprint(p+4) || len(r.Headers) != 1 {
				t.Errorf("record %q with %d headers in partition %d", r.Value, len(r.Headers), p)
			}
		}
	}
	if len(same) != 1 {
		t.Errorf("one key in %d partitions", len(same))
	}
}

func TestAPartitionThatDoesNotExistIsRefused(t *testing.T) {
	k, err := StartKafka(KafkaOptions{Partitions: 2, Topics: []string{"t"}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := produce(t, k.Addrs(), "t", interaction.Record{Partition: 5, Value: []byte("x")}); err == nil {
		t.Error("no error")
	}
}

func TestADataDirectoryOutlivesTheCluster(t *testing.T) {
	dir := t.TempDir()
	o := KafkaOptions{Topics: []string{"t"}, DataDir: dir}
	for round := range 2 {
		k, err := StartKafka(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := produce(t, k.Addrs(), "t", interaction.Record{Value: fmt.Append(nil, round)}); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, k.Addrs(), "t", round+1)[0]; len(got) != round+1 || got[round].Offset != int64(round) {
			t.Errorf("round %d: %d records", round, len(got))
		}
		k.Close()
	}
}
