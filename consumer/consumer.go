package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Deps are the parts the consumer works with; every field but AcceptPoison and Share
// is required.
type Deps struct {
	Topics  []string // of the checks file
	Handler Handler
	Log     *slog.Logger
	Reg     prometheus.Registerer
	// AcceptPoison names topics whose partitions never stop for their share of dead
	// letters.
	AcceptPoison []string
	// Share hears, as a generation begins, which part of all partitions is this
	// process's: what the workers of a group have to share is split by it.
	Share func(share float64)
}

// A Consumer is one member of the group.
type Consumer struct {
	kafka   KafkaConfig
	cfg     Config
	ratio   float64
	deps    Deps
	log     *slog.Logger
	cluster *cluster
	metrics *metrics
	series  *partitionSeries
	budget  *budget
	member  *membership

	// Rhythms that tests shorten.
	endsEvery    time.Duration
	lookEvery    time.Duration
	watchEvery   time.Duration
	shortLife    time.Duration
	joinPatience time.Duration
	corruptRetry time.Duration

	fail   context.CancelCauseFunc // ends Run; set by it
	joined atomic.Bool
	stuck  atomic.Bool
	live   atomic.Int32 // generations whose loops are not gone

	mu     sync.Mutex // guards the fields below; taken before a gate's
	paused map[string]pauses
	poison map[topicPartition]*poison
}

// partitionWatch is how often the group looks for new partitions.
const partitionWatch = 5 * time.Second

// New checks the configuration and allocates; Run does the work.
func New(k KafkaConfig, cfg Config, dead DeadLetterConfig, deps Deps) (*Consumer, error) {
	if err := errors.Join(k.Validate(), cfg.Validate(), dead.Validate(), cfg.FitsIn(k)); err != nil {
		return nil, err
	}
	if len(deps.Topics) == 0 {
		return nil, errors.New("consumer: no topic to read")
	}
	deps.Topics = slices.Compact(slices.Sorted(slices.Values(deps.Topics)))
	cluster, err := newCluster(k, deps.Topics)
	if err != nil {
		return nil, err
	}
	series, err := newPartitionSeries(deps.Reg)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return &Consumer{
		kafka:        k,
		cfg:          cfg,
		ratio:        dead.MaxRatio,
		deps:         deps,
		log:          deps.Log,
		cluster:      cluster,
		metrics:      newMetrics(deps.Reg, deps.Topics),
		series:       series,
		budget:       newBudget(cfg.Total, cfg.TotalBytes),
		member:       &membership{},
		endsEvery:    endsEvery,
		lookEvery:    lookEvery,
		watchEvery:   partitionWatch,
		shortLife:    shortLife,
		joinPatience: joinPatience,
		corruptRetry: corruptRetry,
		paused:       make(map[string]pauses),
		poison:       make(map[topicPartition]*poison),
	}, nil
}

// Run reads until ctx ends, then drains, commits and leaves the group. It returns nil
// after that, ErrRefused when the brokers refuse this client, and ErrStuck when a
// partition stands still; only then may goroutines be left behind. It is called once.
func (c *Consumer) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c.fail = fail
	defer c.cluster.close()

	for ctx.Err() == nil {
		topics, err := c.awaitTopics(ctx)
		if err != nil {
			break
		}
		if err := c.takePart(ctx, topics); err != nil {
			return err
		}
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrStuck), errors.Is(cause, ErrRefused):
		return cause
	default:
		return nil
	}
}

// Ready says why this process should not be counted on, or nil.
func (c *Consumer) Ready() error {
	switch {
	case !c.joined.Load():
		return errors.New("has not joined the consumer group yet")
	case c.stuck.Load():
		return ErrStuck
	default:
		return nil
	}
}

// Pause stops handing out records of topics, of all when none is named. What is in
// flight goes on, and so do heartbeats and commits.
func (c *Consumer) Pause(reason PauseReason, topics ...string) {
	c.change(reason.bit(), topics, func(set, bit pauses) pauses { return set | bit }, (*gate).pause)
}

// Resume takes a Pause back.
func (c *Consumer) Resume(reason PauseReason, topics ...string) {
	c.change(reason.bit(), topics, func(set, bit pauses) pauses { return set &^ bit }, (*gate).resume)
}

func (c *Consumer) change(bit pauses, topics []string, apply func(set, bit pauses) pauses, to func(*gate, pauses)) {
	if len(topics) == 0 {
		topics = c.deps.Topics
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range topics {
		c.paused[t] = apply(c.paused[t], bit)
	}
	for _, p := range c.series.list() {
		if slices.Contains(topics, p.topic) {
			to(p.gate, bit)
		}
	}
}

// RetryPoison lets partitions of topics that stopped for their dead letters go on with
// a fresh count: after the rules were mended.
func (c *Consumer) RetryPoison(topics ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for tp, p := range c.poison {
		if len(topics) == 0 || slices.Contains(topics, tp.topic) {
			p.reset(false)
		}
	}
	for _, p := range c.series.list() {
		if len(topics) == 0 || slices.Contains(topics, p.topic) {
			p.gate.resume(PauseDeadLetter.bit() &^ c.paused[p.topic])
		}
	}
}

// poisonOf returns the breaker of a partition, which outlives its generations.
func (c *Consumer) poisonOf(tp topicPartition) *poison {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.poison[tp]
	if p == nil {
		p = &poison{max: c.ratio, accept: slices.Contains(c.deps.AcceptPoison, tp.topic)}
		c.poison[tp] = p
	}
	return p
}

// hold registers a partition and applies the pauses in force, so that none is missed
// in between.
func (c *Consumer) hold(p *partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	initial := c.paused[p.topic]
	if p.poison.isTripped() {
		initial |= PauseDeadLetter.bit()
	}
	p.gate = newGate(initial)
	c.series.add(p)
}
