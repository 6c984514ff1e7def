package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// admin sends requests that a consumer does not.
func admin(t *testing.T, w *world) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func groupMembers(t *testing.T, w *world, group string) map[string]bool {
	t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	res, err := req.RequestWith(t.Context(), admin(t, w))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, g := range res.Groups {
		for _, m := range g.Members {
			out[m.MemberID] = true
		}
	}
	return out
}

func leaveFor(t *testing.T, w *world, group string, members []string) {
	t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, id := range members {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID = id
		req.Members = append(req.Members, m)
	}
	if _, err := req.RequestWith(t.Context(), admin(t, w)); err != nil {
		t.Fatal(err)
	}
}

func addPartitions(t *testing.T, w *world, n int) {
	t.Helper()
	req := kmsg.NewPtrCreatePartitionsRequest()
	tp := kmsg.NewCreatePartitionsRequestTopic()
	tp.Topic, tp.Count = topic, int32(n)
	req.Topics = append(req.Topics, tp)
	res, err := req.RequestWith(t.Context(), admin(t, w))
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(res.Topics[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

func createTopic(t *testing.T, w *world, partitions int) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	tp := kmsg.NewCreateTopicsRequestTopic()
	tp.Topic, tp.NumPartitions, tp.ReplicationFactor = topic, int32(partitions), 1
	req.Topics = append(req.Topics, tp)
	res, err := req.RequestWith(t.Context(), admin(t, w))
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(res.Topics[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

func deleteTopic(t *testing.T, w *world) {
	t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	tp := kmsg.NewDeleteTopicsRequestTopic()
	name := topic
	tp.Topic = &name
	req.Topics = append(req.Topics, tp)
	req.TopicNames = []string{topic}
	res, err := req.RequestWith(t.Context(), admin(t, w))
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(res.Topics[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// deleteRecords moves the log's start, as retention does.
func deleteRecords(t *testing.T, w *world, partition int, before int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	tp := kmsg.NewDeleteRecordsRequestTopic()
	tp.Topic = topic
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = int32(partition), before
	tp.Partitions = append(tp.Partitions, p)
	req.Topics = append(req.Topics, tp)
	res, err := req.RequestWith(t.Context(), admin(t, w))
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

func compacting(t *testing.T, w *world) {
	t.Helper()
	configure(t, w, map[string]string{"cleanup.policy": "compact", "segment.bytes": "200", "min.cleanable.dirty.ratio": "0"})
}

// configure changes settings of the topic.
func configure(t *testing.T, w *world, settings map[string]string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for k, v := range settings {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = k, kmsg.IncrementalAlterConfigOpSet, &v
		r.Configs = append(r.Configs, c)
	}
	req.Resources = append(req.Resources, r)
	res, err := req.RequestWith(t.Context(), admin(t, w))
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(res.Resources[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// deleteGroupOffsets makes the group forget the topic, as a real broker does by itself
// when the topic goes.
func deleteGroupOffsets(t *testing.T, w *world, group string) {
	t.Helper()
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	tp := kmsg.NewOffsetDeleteRequestTopic()
	tp.Topic = topic
	p := kmsg.NewOffsetDeleteRequestTopicPartition()
	tp.Partitions = append(tp.Partitions, p)
	req.Topics = append(req.Topics, tp)
	if _, err := req.RequestWith(t.Context(), admin(t, w)); err != nil {
		t.Fatal(err)
	}
}
