package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// firstOffset says where a partition without a commit starts.
//
// With `earliest` that is the log's start. With `latest` it is the end of the log for
// a group that has never read the topic, but the start for a partition that was added
// to a topic the group reads: its first records would be missed otherwise. The two
// must not be mixed up when several members start at once, where one member's first
// commits look to another like a group that has read the topic before. So the first
// commit of a topic is one request for all its partitions, made by the group's leader
// alone (firstCommits); everybody else waits for it. Once any partition has a commit,
// a partition without one is new.
//
// A topic that was deleted loses its commits on the broker. When one of the same name
// comes again, a process that has read the old one begins at its start: nobody wants
// the end of a log that the group was reading anyway.
func (p *partition) firstOffset(ctx context.Context, b bounds) (int64, error) {
	if p.cfg.Start == startEarliest {
		return b.start, nil
	}
	began, said := time.Now(), false
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if !said && time.Since(began) > firstOffsetPatience {
			said = true
			p.log.Warn("waiting for the group's leader to make the topic's first commit", "took", time.Since(began))
		}
		n, err := p.cluster.partitions(ctx, []string{p.topic})
		if err != nil {
			return 0, err
		}
		offsets, err := p.cluster.committed(ctx, p.topic, max(n[p.topic], p.id+1))
		if err != nil {
			return 0, err
		}
		if own := offsets[p.id]; own >= 0 {
			p.committed.Store(own)
			return own, nil
		}
		for _, other := range offsets {
			if other >= 0 {
				p.log.Info("partition is new, starting at its first record", "offset", b.start)
				return b.start, nil
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return 0, err
		}
	}
}

// firstOffsetPatience is how long the wait for the first commit is nothing to tell.
const firstOffsetPatience = 5 * time.Second

// firstCommit makes the first commit of a topic, unless it finds one: the ends of its
// logs, or their starts when the topic has come again.
func firstCommit(ctx context.Context, c *cluster, topic string, again bool, commit func(offsets) error) error {
	n, err := c.partitions(ctx, []string{topic})
	if err != nil {
		return fmt.Errorf("first commit of %s: %w", topic, err)
	}
	if n[topic] == 0 {
		return fmt.Errorf("first commit of %s: %w", topic, kafka.UnknownTopicOrPartition)
	}
	have, err := c.committed(ctx, topic, n[topic])
	if err != nil {
		return err
	}
	ids := make([]int, n[topic])
	for i := range ids {
		if have[i] >= 0 {
			return nil
		}
		ids[i] = i
	}
	ends, err := c.boundsOf(ctx, map[string][]int{topic: ids}, c.isolation())
	if err != nil {
		return fmt.Errorf("first commit of %s: %w", topic, err)
	}
	first := make(map[int]int64, len(ids))
	for _, id := range ids {
		b, ok := ends[topicPartition{topic, id}]
		if !ok {
			return fmt.Errorf("first commit of %s/%d: its leader did not answer", topic, id)
		}
		first[id] = b.end
		if again {
			first[id] = b.start
		}
	}
	return commit(offsets{topic: first})
}
