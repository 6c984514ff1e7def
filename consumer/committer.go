package consumer

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// offsets is what a commit says, by topic and partition.
type offsets = map[string]map[int]int64

// A committer is the only one to commit in a generation. It keeps the last committed
// offset of every partition and refuses less: the broker would take it.
type committer struct {
	commit  func(offsets) error
	cluster *cluster
	member  *membership
	metrics *metrics
	log     *slog.Logger
	every   time.Duration
	drain   time.Duration // D1 and D2: from the generation's end to the last ledger row
	flush   time.Duration // D2: for a session that ends within its generation
	loops   int           // partition loops, each of which leaves once
	first   []string      // topics whose first commit is ours to make

	joining  chan *session
	retiring chan parting
	leaving  chan parting
}

// parting is a session that ends; done is closed when it is committed and revoked.
type parting struct {
	s    *session
	done chan struct{}
}

// firstCommitEvery is the time between tries of a topic's first commit.
const firstCommitEvery = 250 * time.Millisecond

// ledgerTimeout bounds one flush of the ledger in the midst of a generation; the next
// round tries again.
const ledgerTimeout = 30 * time.Second

// flushesAtOnce bounds the partitions whose ledger is flushed side by side.
const flushesAtOnce = 8

// join announces a session whose watermark is to be committed.
func (c *committer) join(s *session) { c.joining <- s }

// retire ends a session within its generation: its ledger and watermark are stored,
// then its tracker is revoked.
func (c *committer) retire(s *session) { c.part(c.retiring, s) }

// leave is the last word of a partition's loop; s is nil when none is running.
func (c *committer) leave(s *session) { c.part(c.leaving, s) }

func (c *committer) part(to chan parting, s *session) {
	p := parting{s, make(chan struct{})}
	to <- p
	<-p.done
}

// run commits until ctx ends, and then once more when every loop has left: so that
// one request holds the last word on all partitions.
func (c *committer) run(ctx context.Context) {
	sessions := make(map[*session]struct{})
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	firstTick := time.NewTimer(0)
	defer firstTick.Stop()
	var left []parting
	ended := ctx.Done()
	var deadline time.Time
	for ended != nil || len(left) < c.loops {
		select {
		case s := <-c.joining:
			sessions[s] = struct{}{}
			if s.last < s.below && ctx.Err() == nil {
				c.round(ctx, one(s)) // a resolved start is committed at once
			}
		case p := <-c.retiring:
			c.last(one(p.s), time.Now().Add(c.flush))
			delete(sessions, p.s)
			close(p.done)
		case p := <-c.leaving:
			left = append(left, p)
		case <-tick.C:
			if ended != nil {
				c.round(ctx, sessions)
			}
		case <-firstTick.C:
			if ended != nil && c.firstRound(ctx) {
				firstTick.Reset(firstCommitEvery)
			}
		case <-ended:
			ended, deadline = nil, time.Now().Add(c.drain)
		}
	}
	c.last(sessions, deadline)
	for _, p := range left {
		close(p.done)
	}
}

func one(s *session) map[*session]struct{} { return map[*session]struct{}{s: {}} }

// firstRound tries the first commits that are still missing and reports whether any
// is left.
func (c *committer) firstRound(ctx context.Context) bool {
	var missing []string
	for _, topic := range c.first {
		if err := firstCommit(ctx, c.cluster, topic, c.member.hasRead(topic), c.commit); err != nil {
			c.log.Warn("first commit", "topic", topic, "err", err)
			missing = append(missing, topic)
			continue
		}
		c.member.noteRead(topic)
	}
	c.first = missing
	return len(missing) > 0
}

// leastFlush is what the ledger gets even when judges and rows have used up the drain:
// it is one insert, and without it nothing of the partition is committed.
const leastFlush = 500 * time.Millisecond

// last stores and commits what sessions have reached, and revokes them. What finishes
// later belongs to the next owner.
func (c *committer) last(sessions map[*session]struct{}, deadline time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), max(time.Until(deadline), leastFlush))
	defer cancel()
	for c.round(ctx, sessions) && sleep(ctx, 100*time.Millisecond) == nil {
	}
	for s := range sessions {
		s.tracker.revoke()
	}
}

// round flushes the ledger up to each watermark that moved and commits those that are
// durable. It reports whether another try may help.
func (c *committer) round(ctx context.Context, sessions map[*session]struct{}) bool {
	type moved struct {
		s         *session
		watermark int64
		ok        bool
	}
	var due []*moved
	for s := range sessions {
		if w, ok := s.tracker.watermark(); ok && w > s.last {
			due = append(due, &moved{s: s, watermark: w})
		}
	}
	if len(due) == 0 {
		return false
	}
	var g errgroup.Group
	g.SetLimit(flushesAtOnce)
	for _, m := range due {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
			defer cancel()
			if err := m.s.handler.Flush(ctx, m.watermark); err != nil {
				m.s.p.log.Warn("ledger flush", "watermark", m.watermark, "err", err)
				return nil // the others go on
			}
			m.ok = true
			return nil
		})
	}
	_ = g.Wait() // no function returns an error

	again := false
	out := make(offsets)
	for _, m := range due {
		if !m.ok {
			again = true
			continue
		}
		p := m.s.p
		if out[p.topic] == nil {
			out[p.topic] = make(map[int]int64)
		}
		out[p.topic][p.id] = m.watermark
	}
	if len(out) == 0 {
		return again
	}
	// the library reports one partition's error for all of them: after any, the whole
	// map goes again, which is harmless
	if err := c.commit(out); err != nil {
		if fenced(err) {
			c.metrics.commits.WithLabelValues(commitRefused).Inc()
			c.log.Warn("commit refused, its records will be read again", "err", err)
			return false
		}
		c.metrics.commits.WithLabelValues(commitRetried).Inc()
		c.log.Warn("commit", "err", err)
		return true
	}
	c.metrics.commits.WithLabelValues(commitOK).Inc()
	for _, m := range due {
		if m.ok {
			m.s.last = m.watermark
			m.s.p.committed.Store(m.watermark)
		}
	}
	return again
}
