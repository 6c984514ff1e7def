package consumer

import (
	"context"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
)

// bounds are the ends of a partition's log.
type bounds struct {
	start, end int64
}

// An endsExchange asks one leader for one end of many logs. The library's own way asks
// for each end of each partition by itself and all at once, on as many connections.
type endsExchange struct {
	leader   int32
	request  listoffsets.Request
	version  int16
	clientID string
}

// endsVersion is the first version of ListOffsets that knows isolation.
const endsVersion = 2

func (*endsExchange) ApiKey() protocol.ApiKey { return protocol.ListOffsets }

// Broker routes the request to the leader it was made for.
func (e *endsExchange) Broker(layout protocol.Cluster) (protocol.Broker, error) {
	b, ok := layout.Brokers[e.leader]
	if !ok {
		return protocol.Broker{ID: -1}, fmt.Errorf("ends of logs: broker %d is gone", e.leader)
	}
	return b, nil
}

// Required takes part in the library's exchange, see fetchExchange.
func (e *endsExchange) Required(versions map[protocol.ApiKey]int16) bool {
	e.version = versions[protocol.ListOffsets]
	return true
}

func (e *endsExchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if e.version < endsVersion {
		return nil, fmt.Errorf("list offsets version %d: %w", e.version, errOldBroker)
	}
	const correlation = 1 // one request at a time per connection
	if err := protocol.WriteRequest(rw, e.version, correlation, e.clientID, &e.request); err != nil {
		return nil, err
	}
	_, res, err := protocol.ReadResponse(rw, protocol.ListOffsets, e.version)
	return res, err
}

// bounds asks for the ends of one partition, open transactions included: an offset
// beyond that end belongs to another log.
func (c *cluster) bounds(ctx context.Context, topic string, partition int) (bounds, error) {
	all, err := c.boundsOf(ctx, map[string][]int{topic: {partition}}, kafka.ReadUncommitted)
	if err != nil {
		return bounds{}, fmt.Errorf("ends of %s/%d: %w", topic, partition, err)
	}
	b, ok := all[topicPartition{topic, partition}]
	if !ok {
		return bounds{}, fmt.Errorf("ends of %s/%d: no leader that answers", topic, partition)
	}
	return b, nil
}

// boundsOf asks for the ends of many partitions; those whose leader does not answer
// are left out. It fails when nobody answers.
func (c *cluster) boundsOf(ctx context.Context, partitions map[string][]int, isolation kafka.IsolationLevel) (map[topicPartition]bounds, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	leaders, err := c.leaders(ctx, partitions)
	if err != nil {
		return nil, err
	}
	out := make(map[topicPartition]bounds)
	var failed error
	for leader, topics := range leaders {
		starts, err := c.ends(ctx, leader, topics, kafka.FirstOffset, kafka.ReadUncommitted)
		if err != nil {
			failed = err
			continue
		}
		ends, err := c.ends(ctx, leader, topics, kafka.LastOffset, isolation)
		if err != nil {
			failed = err
			continue
		}
		for tp, start := range starts {
			if end, ok := ends[tp]; ok && end >= start {
				out[tp] = bounds{start, end}
			}
		}
	}
	if len(out) == 0 && failed != nil {
		return nil, failed
	}
	return out, nil
}

// leaders sorts partitions by the broker that leads them.
func (c *cluster) leaders(ctx context.Context, partitions map[string][]int) (map[int32]map[string][]int, error) {
	topics := make([]string, 0, len(partitions))
	want := make(map[topicPartition]bool)
	for topic, ids := range partitions {
		topics = append(topics, topic)
		for _, id := range ids {
			want[topicPartition{topic, id}] = true
		}
	}
	res, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, err
	}
	out := make(map[int32]map[string][]int)
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			if !want[topicPartition{t.Name, p.ID}] || p.Leader.Host == "" {
				continue
			}
			leader := int32(p.Leader.ID)
			if out[leader] == nil {
				out[leader] = make(map[string][]int)
			}
			out[leader][t.Name] = append(out[leader][t.Name], p.ID)
		}
	}
	return out, nil
}

// ends asks one leader for one end of its logs.
func (c *cluster) ends(ctx context.Context, leader int32, topics map[string][]int, which int64, isolation kafka.IsolationLevel) (map[topicPartition]int64, error) {
	req := &endsExchange{leader: leader, clientID: clientID}
	req.request = listoffsets.Request{ReplicaID: -1, IsolationLevel: int8(isolation)}
	for topic, ids := range topics {
		t := listoffsets.RequestTopic{Topic: topic}
		for _, id := range ids {
			t.Partitions = append(t.Partitions, listoffsets.RequestPartition{
				Partition: int32(id), CurrentLeaderEpoch: -1, Timestamp: which,
			})
		}
		req.request.Topics = append(req.request.Topics, t)
	}
	m, err := c.transport.RoundTrip(ctx, c.addr, req)
	if err != nil {
		return nil, fmt.Errorf("ends of logs from broker %d: %w", leader, err)
	}
	out := make(map[topicPartition]int64)
	for _, t := range m.(*listoffsets.Response).Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 && p.Offset >= 0 {
				out[topicPartition{t.Topic, int(p.Partition)}] = p.Offset
			}
		}
	}
	return out, nil
}
