package consumer

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// The states of a partition.
const (
	stateStarting = "starting"
	stateRunning  = "running"
	stateDraining = "draining"
	stateStopped  = "stopped"
)

func itoa(n int) string { return strconv.Itoa(n) }

func (p *partition) state() string {
	switch {
	case phase(p.phase.Load()) == draining:
		return stateDraining
	case p.gate.stopped():
		return stateStopped
	case phase(p.phase.Load()) == starting:
		return stateStarting
	default:
		return stateRunning
	}
}

// progress remembers when a partition last moved.
type progress struct {
	mu   sync.Mutex // guards the fields below
	at   int64
	when time.Time
}

// since takes a look at the watermark and returns for how long it has not moved.
func (p *progress) since(watermark int64, idle bool, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if idle || watermark != p.at || p.when.IsZero() {
		p.at, p.when = watermark, now
	}
	return now.Sub(p.when)
}

// observation is a partition as metrics and the watchdog see it.
type observation struct {
	open, held   int
	bytes        int64
	known        bool  // the ends of the log are known
	progress     int64 // grows with the watermark without the records held on purpose, and with what is read again
	waits        bool  // there is something to read or to finish
	lag          int64
	lagAge       time.Duration // by the producers' clocks
	watermarkAge time.Duration
	oldestAge    time.Duration
}

// observe reads memory only.
func (p *partition) observe(now time.Time) observation {
	s := p.session.Load()
	if s == nil {
		return observation{}
	}
	st := s.tracker.state()
	o := observation{open: st.open, held: st.held, bytes: st.bytes, known: true, progress: st.progress + s.again.Load()}
	o.lag = max(p.logEnd.Load()-max(st.watermark, p.logStart.Load()), 0)
	o.waits = p.logEnd.Load() > max(st.progress, p.logStart.Load())
	o.watermarkAge = p.moved.since(o.progress, !o.waits, now)
	switch {
	case st.oldest.fetched > 0:
		o.oldestAge = max(now.Sub(time.UnixMilli(st.oldest.fetched)), 0)
		o.lagAge = max(now.Sub(time.UnixMilli(st.oldest.written)), 0)
	case o.waits && p.written.Load() > 0:
		// the oldest one is not fetched yet; it is younger than the last that was
		o.lagAge = max(now.Sub(time.UnixMilli(p.written.Load())), 0)
	}
	return o
}

// The watchdog's and the lag's rhythm.
const (
	lookEvery = time.Second
	endsEvery = 5 * time.Second
)

// watch asks for the ends of the logs, ends sessions whose log was replaced, and looks
// for partitions that stand still with work before them.
func (g *generation) watch(ctx context.Context) {
	look := time.NewTicker(g.c.lookEvery)
	defer look.Stop()
	ends := time.NewTicker(g.c.endsEvery)
	defer ends.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ends.C:
			g.askEnds(ctx)
		case now := <-look.C:
			g.lookForStuck(now)
		}
	}
}

// askEnds renews the ends of every partition's log. Two signs tell a log that was
// replaced under us: its end is before our position, or its start has gone back.
func (g *generation) askEnds(ctx context.Context) {
	ask := make(map[string][]int)
	for _, p := range g.partitions {
		if p.session.Load() != nil {
			ask[p.topic] = append(ask[p.topic], p.id)
		}
	}
	if len(ask) == 0 {
		return
	}
	ends, err := g.c.cluster.boundsOf(ctx, ask, g.c.cluster.isolation())
	if err != nil {
		g.c.log.Debug("ends of logs", "err", err)
		return
	}
	for _, p := range g.partitions {
		b, ok := ends[topicPartition{p.topic, p.id}]
		s := p.session.Load()
		if !ok || s == nil {
			continue
		}
		back := b.start < p.logStart.Load()
		p.logStart.Store(b.start)
		p.logEnd.Store(b.end)
		if !back && b.end >= s.tracker.position() {
			continue
		}
		// Open transactions keep the readable end back: only the high watermark tells.
		// The position is the one from before the question: a log that grows while the
		// answer travels carries the position of now past the end of then.
		position := s.tracker.position()
		high, err := g.c.cluster.bounds(ctx, p.topic, p.id)
		if err == nil && (back || high.end < position) {
			s.restart(errReplaced)
		}
	}
}

// lookForStuck ends the process when a partition with work has not moved for too long,
// after saying so and showing what every goroutine does.
func (g *generation) lookForStuck(now time.Time) {
	c := g.c
	stuck := false
	for _, p := range g.partitions {
		o := p.observe(now)
		// a pause is a reason to stand still: this clock starts behind it
		age := p.awake.since(o.progress, !o.waits || !p.gate.open(), now)
		if age < c.cfg.StuckAfter {
			continue
		}
		stuck = true
		if !c.stuck.Load() {
			p.log.Error("partition is stuck", "took", age, "stacks", stacks())
			c.stuck.Store(true)
		}
		if age >= 2*c.cfg.StuckAfter {
			c.fail(ErrStuck)
		}
	}
	if !stuck {
		c.stuck.Store(false)
	}
}

// stacks returns what every goroutine is doing.
func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
