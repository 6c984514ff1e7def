package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// joinBackoff is the library's pause after a failed join. It is kept short, because a
// first join on a fresh broker fails as a rule; repeated failures are paced here.
const joinBackoff = 200 * time.Millisecond

// shortLife is the age below which a generation's end is not normal: a topic vanished,
// or the coordinator's connection does not hold. Joining again is then paced.
const shortLife = time.Second

// joinPatience is how long a join may go on after the end was asked for.
const joinPatience = 10 * time.Second

// awaitTopics returns once at least one topic exists. Joining before that would make
// the group rebalance hundreds of times a second.
func (c *Consumer) awaitTopics(ctx context.Context) ([]string, error) {
	var pause backoff
	said := ""
	for {
		found, err := c.cluster.partitions(ctx, c.deps.Topics)
		if err != nil {
			if reason := c.cluster.reason(ctx); reason != nil {
				err = reason
			}
			if refused(err) {
				err = fmt.Errorf("%w: %w", ErrRefused, err)
				c.fail(err)
				return nil, err
			}
		}
		if len(found) > 0 {
			return slices.Sorted(maps.Keys(found)), nil
		}
		say := "topics do not exist yet: " + strings.Join(c.deps.Topics, ", ")
		if err != nil {
			say = "brokers cannot be used: " + err.Error()
		}
		if say != said && ctx.Err() == nil {
			c.log.Warn("waiting for Kafka", "err", say)
			said = say
		}
		if err := sleep(ctx, min(pause.next(), 2*time.Second)); err != nil {
			return nil, err
		}
		c.cluster.refresh()
	}
}

// takePart is one membership: from joining with a set of topics until ctx ends or the
// set of topics that exist changes.
func (c *Consumer) takePart(ctx context.Context, topics []string) error {
	run, end := context.WithCancel(ctx)
	defer end()
	conns := newConnections()
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                     c.kafka.Group,
		Brokers:                c.kafka.Brokers,
		Dialer:                 c.cluster.dialer(conns),
		Topics:                 topics,
		GroupBalancers:         []kafka.GroupBalancer{sticky{c.member}, ranged{member: c.member}},
		HeartbeatInterval:      c.kafka.Heartbeat,
		SessionTimeout:         c.kafka.SessionTimeout,
		RebalanceTimeout:       c.kafka.RebalanceTimeout,
		Timeout:                c.kafka.Timeout,
		JoinGroupBackoff:       joinBackoff,
		WatchPartitionChanges:  true,
		PartitionWatchInterval: c.watchEvery,
		StartOffset:            kafka.LastOffset, // as a mark for "none": partitions resolve it themselves
	})
	if err != nil {
		return fmt.Errorf("consumer group %s: %w", c.kafka.Group, err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer end()
		c.watchTopics(run, topics)
	})
	c.generations(run, group)
	err = c.leaveGroup(ctx, group, conns)
	end()
	wg.Wait()
	return err
}

// watchTopics returns when the topics that exist are others than those we joined for,
// or when some of their partitions belong to nobody. The library looks for new
// partitions too, but takes what it finds after a join as what was shared out in it:
// one that came in between it never sees.
func (c *Consumer) watchTopics(ctx context.Context, topics []string) {
	t := time.NewTicker(c.watchEvery)
	defer t.Stop()
	var forgotten time.Time // since when
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		found, err := c.cluster.partitions(ctx, c.deps.Topics)
		if err != nil {
			continue // an unreachable broker is no missing topic
		}
		if now := slices.Sorted(maps.Keys(found)); !slices.Equal(now, topics) {
			c.log.Warn("topics changed, joining again", "topics", strings.Join(now, ","))
			return
		}
		switch {
		case !c.member.forgot(found):
			forgotten = time.Time{}
		case forgotten.IsZero():
			forgotten = time.Now()
		case time.Since(forgotten) > metadataTTL+c.watchEvery: // the library had its chance
			c.log.Warn("partitions without a reader, joining again")
			return
		}
	}
}

// generations takes one generation after the other. It is always parked in Next while
// a join may complete: the library heartbeats for nobody until Next takes what it has.
func (c *Consumer) generations(ctx context.Context, group *kafka.ConsumerGroup) {
	var (
		pause backoff
		cause = causeStart
		last  *generation
	)
	for {
		gen, err := group.Next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, kafka.RebalanceInProgress):
			continue // the broker paces this one
		case err != nil:
			c.log.Warn("joining the consumer group", "err", err)
			if refused(err) || errors.Is(err, kafka.GroupAuthorizationFailed) && !c.joined.Load() {
				c.fail(fmt.Errorf("%w: %w", ErrRefused, err))
				return
			}
			cause = causeRejoin
			// the library has begun to join again, and nobody heartbeats for what it gets
			// until we are back
			if sleep(ctx, min(pause.next(), c.kafka.Heartbeat)) != nil {
				return
			}
			continue
		}
		c.metrics.generations.WithLabelValues(cause).Inc()
		if last != nil {
			last.loops.Wait()
			if last.ended.Sub(last.began) >= c.shortLife {
				pause.reset()
			} else if sleep(ctx, min(pause.next(), c.kafka.SessionTimeout/4)) != nil {
				return // the group's end closes the generation
			}
		}
		cause = causeRebalance
		last = c.begin(gen)
		c.joined.Store(true)
	}
}

// leaveGroup ends the membership: the generation drains and commits, then the library
// sends LeaveGroup. A join that waits for the other members cannot be asked to stop.
// Cut off, it leaves a member behind that the others wait for until its session ends;
// so it gets some time to complete, and only then its connections are closed.
func (c *Consumer) leaveGroup(ctx context.Context, group *kafka.ConsumerGroup, conns *connections) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = group.Close() // always nil
	}()
	began := time.Now()
	wedged := c.cfg.DrainJudge + c.cfg.DrainFlush + commitBudget + c.kafka.Timeout
	age := time.Duration(0)
	for {
		select {
		case <-done:
			conns.closeOlder(0)
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		if c.live.Load() == 0 && time.Since(began) > c.joinPatience {
			conns.closeOlder(age)
			age = c.kafka.Timeout // what comes now is the LeaveGroup
		}
		if errors.Is(context.Cause(ctx), ErrStuck) && time.Since(began) > wedged {
			return ErrStuck // what is wedged cannot be waited for
		}
	}
}

// A generation is what this process holds between two rebalances.
type generation struct {
	c          *Consumer
	id         int32
	partitions []*partition
	loops      sync.WaitGroup
	began      time.Time
	ended      time.Time // to be read when the loops are gone
}

// tellShare reports the part of the group's partitions that is ours. While the brokers
// do not say how many there are, the last known share stays in force.
func (c *Consumer) tellShare(owned int) {
	if c.deps.Share == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.kafka.Timeout)
	defer cancel()
	found, err := c.cluster.partitions(ctx, c.deps.Topics)
	if err != nil {
		c.log.Warn("this worker's share is not known, the last one stays", "err", err)
		return
	}
	all := 0
	for _, n := range found {
		all += n
	}
	if all > 0 {
		c.deps.Share(float64(owned) / float64(all))
	}
}

// begin starts the loops of a generation; those of the one before are gone.
func (c *Consumer) begin(gen *kafka.Generation) *generation {
	g := &generation{c: c, id: gen.ID, began: time.Now()}
	owned := make(map[string][]int)
	com := &committer{
		commit:   gen.CommitOffsets,
		cluster:  c.cluster,
		member:   c.member,
		metrics:  c.metrics,
		log:      c.log,
		every:    c.cfg.CommitEvery,
		drain:    c.cfg.DrainJudge + c.cfg.DrainFlush,
		flush:    c.cfg.DrainFlush,
		joining:  make(chan *session),
		retiring: make(chan parting),
		leaving:  make(chan parting),
	}
	for topic, list := range gen.Assignments {
		for _, a := range list {
			owned[topic] = append(owned[topic], a.ID)
			g.partitions = append(g.partitions, c.newPartition(g, com, topic, a))
		}
	}
	com.loops = len(g.partitions)
	c.member.own(gen.ID, owned)
	if c.kafka.Start == startLatest && c.member.leads() {
		com.first = slices.Sorted(maps.Keys(gen.Assignments))
	}
	c.tellShare(len(g.partitions))
	c.log.Info("generation began", "generation", gen.ID, "partitions", len(g.partitions))

	c.live.Add(1)
	g.loops.Add(2 + len(g.partitions))
	gen.Start(func(ctx context.Context) {
		defer g.loops.Done()
		defer c.live.Add(-1)
		com.run(ctx)
		g.ended = time.Now()
	})
	gen.Start(func(ctx context.Context) {
		defer g.loops.Done()
		g.watch(ctx)
	})
	for _, p := range g.partitions {
		gen.Start(func(ctx context.Context) {
			defer g.loops.Done()
			defer c.series.remove(p)
			p.live(ctx)
		})
	}
	return g
}

func (c *Consumer) newPartition(g *generation, com *committer, topic string, a kafka.PartitionAssignment) *partition {
	p := &partition{
		topic: topic, id: a.ID, generation: g.id,
		cfg: c.kafka, limits: c.cfg, cluster: c.cluster, handler: c.deps.Handler,
		committer: com, member: c.member, budget: c.budget, metrics: c.metrics,
		log:          c.log.With("topic", topic, "partition", a.ID),
		poison:       c.poisonOf(topicPartition{topic, a.ID}),
		records:      c.metrics.records.WithLabelValues(topic),
		bytes:        c.metrics.bytes.WithLabelValues(topic),
		unpacked:     unpackLimit(c.kafka.MaxBytes),
		corruptRetry: c.corruptRetry,
		assigned:     max(a.Offset, -1),
	}
	p.committed.Store(p.assigned)
	c.hold(p)
	return p
}
