package consumer

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/alecthomas/units"
	"github.com/prometheus/client_golang/prometheus"
)

type topicPartition struct {
	topic     string
	partition int
}

// The reasons of skipped offsets.
const (
	skipRetention = "retention" // the log's start has passed us
	skipReset     = "reset"     // the log was replaced and the user chose to go on
)

// unpackLimit bounds what a compressed batch may grow to: five times what a fetch may
// bring, but not less than a large record needs when fetches are kept small.
func unpackLimit(fetch units.Base2Bytes) int { return int(max(5*fetch, 16<<20)) }

// phase is where a partition's loop stands.
type phase int32

const (
	starting phase = iota
	running
	draining
)

// A partition is one assigned partition of one generation: its loop, and what metrics
// and the watchdog see of it.
type partition struct {
	topic      string
	id         int
	generation int32
	cfg        KafkaConfig
	limits     Config
	cluster    *cluster
	handler    Handler
	committer  *committer
	member     *membership
	budget     *budget
	log        *slog.Logger
	metrics    *metrics
	gate       *gate
	poison     *poison
	records    prometheus.Counter
	bytes      prometheus.Counter
	unpacked   int // bytes of a decompressed batch, at most

	corruptRetry time.Duration

	// Of the loop alone.
	assigned int64 // committed offset, -1 when there is none
	replaced bool  // the log under us was replaced
	rewound  bool  // and is read from its start: the next commit may go back
	crashes  map[int64]int
	panics   int

	phase     atomic.Int32
	session   atomic.Pointer[session]
	committed atomic.Int64
	logStart  atomic.Int64
	logEnd    atomic.Int64
	written   atomic.Int64 // log time of the newest record handed out, Unix milliseconds
	moved     progress     // of the metrics
	awake     progress     // of the watchdog, which does not count pauses
}

// live is the partition's loop for one generation. It returns only after ctx is done:
// a function that returns earlier would end the generation for the whole group.
func (p *partition) live(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var pause backoff
	for {
		began := time.Now()
		p.phase.Store(int32(starting))
		s := p.open(ctx)
		if s == nil {
			p.committer.leave(nil)
			break
		}
		p.phase.Store(int32(running))
		why := p.run(ctx, s)
		ended := ctx.Err() != nil
		p.phase.Store(int32(draining))
		p.drain(s)
		if ended {
			p.committer.leave(s)
		} else {
			p.committer.retire(s)
		}
		p.session.Store(nil)
		s.handler.Close()
		if ended {
			break
		}
		p.startOver(s, why)
		if time.Since(began) > longSession {
			pause.reset()
		}
		if sleep(ctx, pause.next()) != nil {
			p.committer.leave(nil)
			break
		}
	}
	<-ctx.Done()
}

// longSession is the age above which a session's end is no part of a streak.
const longSession = time.Minute

// run reads under a context of the session's own, so that the watchdog can end it.
func (p *partition) run(ctx context.Context, s *session) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.restart = cancel
	p.session.Store(s)
	p.committer.join(s)
	return s.read(ctx)
}

// startOver notes why a session ended inside its generation.
func (p *partition) startOver(s *session, why error) {
	p.assigned = max(p.assigned, s.last)
	var crash *panicError
	if !errors.As(why, &crash) {
		p.replaced = errors.Is(why, errReplaced)
		p.log.Warn("partition starts over", "offset", p.assigned, "err", why)
		return
	}
	if p.crashes == nil {
		p.crashes = make(map[int64]int)
	}
	p.crashes[crash.offset]++
	p.panics++
	if p.crashes[crash.offset] == 1 {
		p.log.Error("handling a record panicked", "offset", crash.offset, "err", crash, "stack", string(crash.stack))
	}
	if p.crashes[crash.offset] > panicTries {
		p.gate.pause(PauseDeadLetter.bit())
		p.log.Error("partition stopped: a record can be neither handled nor made a dead letter", "offset", crash.offset)
	}
}

// panicTries is how often a record is handled in earnest before it is handed out as a
// fault.
const panicTries = 2

func (p *partition) faultAt(offset int64) string {
	if p.crashes[offset] >= panicTries {
		return faultPanic
	}
	return ""
}

// open finds where to read from and asks the handler to begin, again and again while
// the generation lives. It returns nil when that has ended.
func (p *partition) open(ctx context.Context) *session {
	var pause backoff
	for {
		s, err := p.tryOpen(ctx)
		if err == nil {
			return s
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, errReplaced) {
			// no second look: once the new log has grown past our offset it would
			// pass for the old one
			p.gate.pause(PauseOffset.bit())
			p.log.Error("partition stopped", "offset", p.assigned, "err", err)
			<-ctx.Done()
			return nil
		}
		if pause.tries == 0 {
			p.log.Warn("partition waits to start", "err", err)
		}
		p.cluster.refresh()
		if sleep(ctx, pause.next()) != nil {
			return nil
		}
	}
}

func (p *partition) tryOpen(ctx context.Context) (*session, error) {
	b, err := p.cluster.bounds(ctx, p.topic, p.id)
	if err != nil {
		return nil, err
	}
	fresh := p.assigned < 0
	from := p.assigned
	if fresh {
		if from, err = p.firstOffset(ctx, b); err != nil {
			return nil, err
		}
	}
	if from > b.end || p.replaced {
		if p.cfg.OnBeyondEnd == beyondFail {
			return nil, fmt.Errorf("offset %d, log %d to %d: %w (ASSAY_KAFKA_ON_OFFSET_BEYOND_END=reset would read the new log)", from, b.start, b.end, errReplaced)
		}
		p.log.Warn("log was replaced, reading it from its start", "offset", from, "end", b.end)
		// what the old log still held is not known; at least the event is counted
		p.metrics.skipped(p.topic, skipReset).Add(float64(max(from-b.end, 1)))
		p.replaced, p.rewound, from = false, true, b.start
	}
	if from < b.start {
		p.skip(skipRetention, from, b.start)
		from = b.start
	}
	p.assigned = from
	p.logStart.Store(b.start)
	p.logEnd.Store(b.end)

	handler, start, err := p.assign(ctx, Assignment{
		Topic: p.topic, Partition: p.id, Committed: from,
		LogStart: b.start, LogEnd: b.end, Generation: p.generation, Reach: p.reach,
	})
	if err != nil {
		return nil, err
	}
	start = min(max(start, b.start), max(from, b.end))
	s := &session{
		p:        p,
		handler:  handler,
		below:    max(from, start),
		position: start,
		keys:     make(map[string]string),
		table:    crc32.MakeTable(crc32.Castagnoli),
		last:     p.committed.Load(),
	}
	if p.rewound {
		s.last, p.rewound = -1, false
	}
	for _, o := range outcomes() {
		s.resolved[o.index()] = p.metrics.resolved.WithLabelValues(p.topic, string(o))
	}
	s.tracker = newTracker(s.below, p.limits.Window, p.limits.WindowBytes, p.budget)
	p.member.noteRead(p.topic)
	p.log.Info("partition assigned", "committed", from, "start", start, "end", b.end)
	return s, nil
}

// assign asks the handler; a panic in it delays the partition like an error.
func (p *partition) assign(ctx context.Context, a Assignment) (h Partition, start int64, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("assign %s/%d: panic: %v\n%s", a.Topic, a.Partition, v, debug.Stack())
		}
	}()
	return p.handler.Assign(ctx, a)
}

// skip counts offsets that will never be read.
func (p *partition) skip(reason string, from, to int64) {
	p.metrics.skipped(p.topic, reason).Add(float64(to - from))
	p.log.Error("offsets skipped", "reason", reason, "from", from, "to", to)
}

// saw keeps the ends that came with a fetch.
func (p *partition) saw(answer *fetchAnswer) {
	if answer.present {
		p.logEnd.Store(answer.end)
		if answer.logStart >= 0 {
			p.logStart.Store(answer.logStart)
		}
	}
}

// drain lets running work finish within D1 and stores what is finished by the end of
// D1 and D2 together. Its ledger and the last commit are the committer's.
func (p *partition) drain(s *session) {
	began := time.Now()
	end := began.Add(p.limits.DrainJudge)
	ctx, cancel := context.WithDeadline(context.Background(), end)
	judged := s.handler.Drain(ctx)
	cancel()
	ctx, cancel = context.WithDeadline(context.Background(), end.Add(p.limits.DrainFlush))
	stored := s.handler.FlushRows(ctx)
	cancel()

	outcome := drainComplete
	if err := errors.Join(judged, stored); err != nil {
		outcome = drainOverrun
		p.log.Warn("drain gave up", "unresolved", s.tracker.state().open, "took", time.Since(began), "err", err)
	}
	p.metrics.drain.WithLabelValues(outcome).Observe(time.Since(began).Seconds())
	if s.dropped > 0 {
		p.log.Info("left out records of aborted transactions and markers", "records", s.dropped)
	}
}
