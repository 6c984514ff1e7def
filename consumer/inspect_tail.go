package consumer

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/segmentio/kafka-go"

	"assay/internal/interaction"
)

// Tail reads about n of a topic's newest records, the same number of each partition, in
// the order of their times. What transactions took back is left out.
func (i *Inspector) Tail(ctx context.Context, topic string, n int) ([]interaction.Record, error) {
	found, err := i.c.partitions(ctx, []string{topic})
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", topic, err)
	}
	ids := make([]int, found[topic])
	for p := range ids {
		ids[p] = p
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("topic %s: %w", topic, kafka.UnknownTopicOrPartition)
	}
	ends, err := i.c.boundsOf(ctx, map[string][]int{topic: ids}, i.c.isolation())
	if err != nil {
		return nil, fmt.Errorf("ends of %s: %w", topic, err)
	}
	each := (n + len(ids) - 1) / len(ids)
	var all []interaction.Record
	for _, p := range ids {
		b, ok := ends[topicPartition{topic, p}]
		if !ok {
			continue
		}
		some, err := i.tail(ctx, topic, p, b, each)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b interaction.Record) int { return a.Time.Compare(b.Time) })
	if len(all) > n {
		all = all[len(all)-n:]
	}
	return all, nil
}

// inspectUnpacked bounds a decompressed batch.
const inspectUnpacked = 128 << 20

// tail reads the last n of one partition. Markers and holes of compaction take offsets
// too, so it begins further back until there are enough, or nothing is before.
func (i *Inspector) tail(ctx context.Context, topic string, partition int, b bounds, n int) ([]interaction.Record, error) {
	for back := int64(n); ; back *= 4 {
		from := max(b.end-back, b.start)
		var got []interaction.Record
		for at := from; at < b.end; {
			answer, err := i.c.fetch(ctx, topic, partition, at, nil)
			if err != nil {
				return nil, err
			}
			some, err := recordsOf(answer, topic, partition, at)
			if err != nil {
				return nil, fmt.Errorf("%s/%d: %w", topic, partition, err)
			}
			for _, r := range some {
				if r.Offset < b.end {
					got = append(got, r)
				}
			}
			next := lastOf(answer) + 1
			if next <= at {
				break
			}
			at = next
		}
		if len(got) >= n || from == b.start || back > 64*int64(n) {
			return got[max(len(got)-n, 0):], nil
		}
	}
}

// recordsOf are an answer's records from an offset on; they live in the answer, which is
// never read into again.
func recordsOf(answer *fetchAnswer, topic string, id int, from int64) ([]interaction.Record, error) {
	aborted, table := newAbortFilter(answer.aborted), crc32.MakeTable(crc32.Castagnoli)
	s := &session{p: &partition{topic: topic, id: id}, keys: make(map[string]string)} // for its reading of a record
	var out []interaction.Record
	for rest := answer.records; len(rest) > 0; {
		var (
			b   *batch
			err error
		)
		if b, rest, err = cutBatch(rest, table); err != nil || b == nil {
			return out, err
		}
		if drop, err := aborted.drops(b); err != nil || drop {
			if err != nil {
				return out, err
			}
			continue
		}
		body, err := b.open(nil, inspectUnpacked)
		if err != nil {
			return out, err
		}
		c := cursor{b: body}
		for range b.count {
			w, err := b.next(&c)
			if err != nil {
				return out, err
			}
			if w.offset < from {
				continue
			}
			rec, err := s.record(w)
			if err != nil {
				return out, err
			}
			out = append(out, rec)
		}
	}
	return out, nil
}

// lastOf is the last offset that an answer's whole batches cover; -1 when it has none.
func lastOf(answer *fetchAnswer) int64 {
	last, table := int64(-1), crc32.MakeTable(crc32.Castagnoli)
	for rest := answer.records; len(rest) > 0; {
		b, after, err := cutBatch(rest, table)
		if err != nil || b == nil {
			break
		}
		last, rest = b.last, after
	}
	return last
}
