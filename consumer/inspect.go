package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/describegroups"
)

// An Inspector looks at brokers, topics and the group, for whoever asks what is wrong.
// It never joins, commits or creates anything.
type Inspector struct{ c *cluster }

// inspectBytes is enough of a fetch to see that reading works, and for a few records.
const inspectBytes = 1 << 20

// NewInspector connects to nothing yet.
func NewInspector(k KafkaConfig) (*Inspector, error) {
	k.MaxBytes, k.MinBytes, k.MaxWait = inspectBytes, 1, 200*time.Millisecond
	c, err := newCluster(k, nil)
	if err != nil {
		return nil, err
	}
	return &Inspector{c}, nil
}

// Close ends its connections.
func (i *Inspector) Close() { i.c.close() }

// A TopicState is what the brokers say of a topic and of the group's place in it.
type TopicState struct {
	Partitions []PartitionState // none: it does not exist, or may not be seen
	ReadErr    error            // records may not be read
	CommitErr  error            // the group's offsets may not be read

	Settings    TopicSettings
	SettingsErr error // they may not be read

	LastHour int64     // records written in the last hour by their timestamps
	Behind   time.Time // of the oldest record that the group has not committed; zero when there is none
}

// A PartitionState is one partition's log. Committed is -1 without a commit.
type PartitionState struct {
	ID                    int
	Leader                bool // it has one that answers
	Start, End, Committed int64
}

// TopicSettings are those that matter to a reader.
type TopicSettings struct {
	Compacted  bool          // keeps the last record of a key only
	Deletes    bool          // old records go
	Retention  time.Duration // 0: without end
	MaxMessage int64         // bytes of a batch
}

// Topic looks at a topic. The error is for brokers that do not answer.
func (i *Inspector) Topic(ctx context.Context, topic string) (TopicState, error) {
	var t TopicState
	found, err := i.c.partitions(ctx, []string{topic})
	if err != nil {
		return t, fmt.Errorf("metadata of %s: %w", topic, err)
	}
	n := found[topic]
	if n == 0 {
		return t, nil
	}
	ids := make([]int, n)
	for p := range ids {
		ids[p] = p
	}
	ends, err := i.c.boundsOf(ctx, map[string][]int{topic: ids}, kafka.ReadUncommitted)
	if err != nil {
		return t, fmt.Errorf("ends of %s: %w", topic, err)
	}
	var committed []int64
	if t.CommitErr = patiently(ctx, func() (err error) {
		committed, err = i.c.committed(ctx, topic, n)
		return err
	}); t.CommitErr != nil {
		committed = slices.Repeat([]int64{-1}, n)
	}
	for p := range ids {
		b, ok := ends[topicPartition{topic, p}]
		t.Partitions = append(t.Partitions, PartitionState{ID: p, Leader: ok, Start: b.start, End: b.end, Committed: committed[p]})
	}
	t.Settings, t.SettingsErr = i.settings(ctx, topic)
	t.LastHour = i.since(ctx, topic, t.Partitions, time.Now().Add(-time.Hour))
	t.Behind, t.ReadErr = i.behind(ctx, topic, t.Partitions)
	return t, nil
}

// behind reads what the group would read next, which also shows that it may.
func (i *Inspector) behind(ctx context.Context, topic string, partitions []PartitionState) (time.Time, error) {
	var oldest time.Time
	read := false
	for _, p := range partitions {
		waits := p.Committed >= p.Start && p.Committed < p.End
		if !p.Leader || !waits && read {
			continue
		}
		at := p.End
		if waits {
			at = p.Committed
		}
		answer, err := i.c.fetch(ctx, topic, p.ID, at, nil)
		if err != nil {
			if errors.Is(err, kafka.TopicAuthorizationFailed) || !read {
				return oldest, err
			}
			continue
		}
		read = true
		records, err := recordsOf(answer, topic, p.ID, at)
		if err == nil && waits && len(records) > 0 && (oldest.IsZero() || records[0].Time.Before(oldest)) {
			oldest = records[0].Time
		}
	}
	return oldest, nil
}

// since counts what was written after t.
func (i *Inspector) since(ctx context.Context, topic string, partitions []PartitionState, t time.Time) int64 {
	ctx, cancel := context.WithTimeout(ctx, i.c.cfg.Timeout)
	defer cancel()
	ids := make([]int, len(partitions))
	for n := range ids {
		ids[n] = n
	}
	leaders, err := i.c.leaders(ctx, map[string][]int{topic: ids})
	if err != nil {
		return 0
	}
	var n int64
	for leader, topics := range leaders {
		// the first offset at or after t; none is left out, and then nothing came
		firsts, err := i.c.ends(ctx, leader, topics, t.UnixMilli(), kafka.ReadUncommitted)
		if err != nil {
			continue
		}
		for tp, first := range firsts {
			n += max(partitions[tp.partition].End-first, 0)
		}
	}
	return n
}

func (i *Inspector) settings(ctx context.Context, topic string) (TopicSettings, error) {
	var s TopicSettings
	res, err := i.c.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
		ConfigNames: []string{"cleanup.policy", "retention.ms", "max.message.bytes"},
	}}})
	if err != nil {
		return s, fmt.Errorf("settings of %s: %w", topic, err)
	}
	for _, r := range res.Resources {
		if r.Error != nil {
			return s, fmt.Errorf("settings of %s: %w", topic, r.Error)
		}
		for _, e := range r.ConfigEntries {
			n, _ := strconv.ParseInt(e.ConfigValue, 10, 64) // a word is no number
			switch e.ConfigName {
			case "cleanup.policy":
				s.Compacted, s.Deletes = strings.Contains(e.ConfigValue, "compact"), strings.Contains(e.ConfigValue, "delete")
			case "retention.ms":
				// two centuries are without end, and more than a Duration holds
				if n > 0 && n < int64(200*365*24*time.Hour/time.Millisecond) {
					s.Retention = time.Duration(n) * time.Millisecond
				}
			case "max.message.bytes":
				s.MaxMessage = n
			}
		}
	}
	return s, nil
}

// A GroupState is who else is in our group.
type GroupState struct {
	State   string // as the brokers name it: Stable, Empty, Dead ...
	Ours    int    // members that are assay's
	Foreign []string
}

// patiently asks again while the brokers are still finding out who keeps a group: a
// cluster's first question about one makes the topic for it.
func patiently(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		switch {
		case errors.Is(err, kafka.GroupLoadInProgress), errors.Is(err, kafka.GroupCoordinatorNotAvailable), errors.Is(err, kafka.NotCoordinatorForGroup):
			if sleep(ctx, 200*time.Millisecond) == nil {
				continue
			}
		}
		return err
	}
}

// Group looks at the group's members. Those of other programs cannot share a group with
// us: who leads it would share the partitions out to members that do not understand it.
func (i *Inspector) Group(ctx context.Context) (GroupState, error) {
	ctx, cancel := context.WithTimeout(ctx, i.c.cfg.Timeout)
	defer cancel()
	var g GroupState
	err := patiently(ctx, func() (err error) {
		g, err = i.describe(ctx)
		return err
	})
	if err == nil && g.State == "Dead" && i.listed(ctx) {
		// The brokers describe a group of the newer protocol as dead to whoever asks in
		// the older one, and list it all the same.
		g.Foreign = append(g.Foreign, "a group of the newer protocol (KIP-848) or a share group")
	}
	return g, err
}

func (i *Inspector) describe(ctx context.Context) (GroupState, error) {
	var g GroupState
	res, err := i.c.transport.RoundTrip(ctx, i.c.addr, &describegroups.Request{Groups: []string{i.c.cfg.Group}})
	if err != nil {
		return g, fmt.Errorf("group %s: %w", i.c.cfg.Group, err)
	}
	for _, d := range res.(*describegroups.Response).Groups {
		if d.ErrorCode != 0 {
			return g, fmt.Errorf("group %s: %w", d.GroupID, kafka.Error(d.ErrorCode))
		}
		g.State = d.GroupState
		if len(d.Members) > 0 && d.ProtocolType != "consumer" {
			g.Foreign = append(g.Foreign, "a group of type "+d.ProtocolType)
		}
		for _, m := range d.Members {
			if m.ClientID == clientID {
				g.Ours++
				continue
			}
			g.Foreign = append(g.Foreign, fmt.Sprintf("%s at %s (protocol %s)", m.ClientID, m.ClientHost, d.ProtocolData))
		}
	}
	return g, nil
}

func (i *Inspector) listed(ctx context.Context) bool {
	res, err := i.c.client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(res.Groups, func(g kafka.ListGroupsResponseGroup) bool { return g.GroupID == i.c.cfg.Group })
}
