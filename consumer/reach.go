package consumer

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
)

// reach is Assignment.Reach. It goes by the record before the offset and not by the one
// at it: after a silence the latter is much younger than what came before it, and what
// waits is of that time.
func (p *partition) reach(ctx context.Context, offset int64, back time.Duration) (int64, error) {
	at := func(err error) error {
		return fmt.Errorf("what came %s before %s/%d at %d: %w", back, p.topic, p.id, offset, err)
	}
	before, ok, err := p.cluster.timeBefore(ctx, p.topic, p.id, p.logStart.Load(), offset)
	if err != nil {
		return 0, at(err)
	}
	if !ok {
		return offset, nil
	}
	from, ok, err := p.cluster.since(ctx, p.topic, p.id, max(before-back.Milliseconds(), 0))
	if err != nil {
		return 0, at(err)
	}
	if !ok {
		return offset, nil
	}
	return min(from, offset), nil
}

// timeBefore returns the log time, in Unix milliseconds, of a record shortly before
// offset: the first of the batch that holds the last one. It is false when the log holds
// none. Markers and compaction leave offsets without a batch, so it looks further and
// further back.
func (c *cluster) timeBefore(ctx context.Context, topic string, partition int, start, offset int64) (int64, bool, error) {
	table := crc32.MakeTable(crc32.Castagnoli)
	for step := int64(1); ; step *= 2 {
		from := max(offset-step, start)
		if from >= offset {
			return 0, false, nil
		}
		answer, err := c.fetchBytes(ctx, topic, partition, from, nil, 1)
		if err != nil {
			return 0, false, err
		}
		for rest := answer.records; len(rest) > 0; {
			var b *batch
			if b, rest, err = cutBatch(rest, table); err != nil {
				return 0, false, err
			}
			if b == nil || b.base >= offset {
				break
			}
			if b.last < from || b.control() || b.count == 0 {
				continue
			}
			if b.attributes&attrLogAppendTime != 0 {
				return b.maxTime, true, nil
			}
			return b.firstTime, true, nil
		}
		if from == start {
			return 0, false, nil
		}
	}
}

// since returns the first offset whose record is at least as young as a log time, false
// when there is none.
func (c *cluster) since(ctx context.Context, topic string, partition int, millis int64) (int64, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	leaders, err := c.leaders(ctx, map[string][]int{topic: {partition}})
	if err != nil {
		return 0, false, err
	}
	for leader := range leaders {
		req := &endsExchange{leader: leader, clientID: clientID}
		req.request = listoffsets.Request{ReplicaID: -1, Topics: []listoffsets.RequestTopic{{Topic: topic,
			Partitions: []listoffsets.RequestPartition{{Partition: int32(partition), CurrentLeaderEpoch: -1, Timestamp: millis}}}}}
		m, err := c.transport.RoundTrip(ctx, c.addr, req)
		if err != nil {
			return 0, false, err
		}
		res := m.(*listoffsets.Response)
		if len(res.Topics) != 1 || len(res.Topics[0].Partitions) != 1 {
			break
		}
		found := res.Topics[0].Partitions[0]
		if found.ErrorCode != 0 {
			return 0, false, kafka.Error(found.ErrorCode)
		}
		return found.Offset, found.Offset >= 0, nil
	}
	return 0, false, kafka.LeaderNotAvailable
}
