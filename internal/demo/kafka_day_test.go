package demo

import (
	"bytes"
	"context"
	"math"
	"testing"
	"time"

	"assay/internal/interaction"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The way of the demo: play, produce, and a log that holds every record once with its
// event time.
func TestADayPlaysIntoTheInProcessKafka(t *testing.T) {
	opts := dayOptions()
	opts.Interactions = 600
	s := simulate(t, opts)
	k, err := StartKafka(KafkaOptions{Partitions: 3, Topics: []string{opts.Topic}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	p, err := NewProducer(k.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tally := NewTally()
	want := map[string]Event{}
	err = s.Play(t.Context(), math.Inf(1), func(ctx context.Context, events []Event) error {
		records := make([]interaction.Record, len(events))
		for i, e := range events {
			records[i] = e.Record
			want[string(e.Record.Key)] = e
		}
		if err := p.Produce(ctx, opts.Topic, records...); err != nil {
			return err
		}
		for _, e := range events {
			tally.Add(e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all, _ := tally.Records()
	if all != len(want) || tally.Counts(nil).Total() != opts.Interactions {
		t.Fatalf("%d records of %d keys with %d interactions", all, len(want), tally.Counts(nil).Total())
	}

	reader, err := kgo.NewClient(kgo.SeedBrokers(k.Addrs()...), kgo.ConsumeTopics(opts.Topic))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	perPartition := map[int32]int{}
	for len(want) > 0 {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d records are missing: %v", len(want), err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			e, ok := want[string(r.Key)]
			if !ok {
				t.Errorf("record %q is there twice, or was never played", r.Key)
				return
			}
			delete(want, string(r.Key))
			perPartition[r.Partition]++
			if !bytes.Equal(r.Value, e.Record.Value) || !r.Timestamp.Equal(e.Record.Time) {
				t.Errorf("record %q at %s came back changed at %s", r.Key, e.Record.Time, r.Timestamp)
			}
		})
	}
	for partition := range int32(3) {
		if perPartition[partition] < 120 {
			t.Errorf("%d records in partition %d: %v", perPartition[partition], partition, perPartition)
		}
	}
}
