package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/checks"
	"assay/sink"
)

// Deps are the parts the monitor works with; every field is required.
type Deps struct {
	Store  Store
	Checks *checks.File
	Log    *slog.Logger
	Reg    prometheus.Registerer
	Now    func() time.Time // the wall clock
}

// Monitor makes a snapshot of quality in rounds.
type Monitor struct {
	cfg     Config
	store   Store
	file    *checks.File
	log     *slog.Logger
	wall    func() time.Time
	metrics *metrics

	snapshot atomic.Pointer[Snapshot]

	// A token: whoever holds it makes a round and may use the fields below. Not a
	// mutex, because a round waits for ClickHouse and a waiting caller has a context.
	turn chan struct{}

	cursor      time.Time // rows inserted before are rolled up
	cursorKnown bool
	watches     map[string]watch      // by check, after the last stored round
	alarms      map[string]sink.Alarm // by id, as last seen or written
	checked     map[string]*Integrity // by check
	checkedTo   time.Time             // the closed bound that checked belongs to
	begun       map[string]time.Time  // since when a new check's decisions are whole

	labelsTo     time.Time // judgements inserted before have met the labels that waited for them
	labelsKnown  bool
	calibrations map[string]calibrated // by labelledSet.key
}

// view is what the ledger says at the start of a round. Everything below the log times
// in it is durable, and the rollup runs after it was read: so the minutes it closes are
// complete in the tables that the round reads.
type view struct {
	server     time.Time      // ClickHouse's clock
	now        time.Time      // what windows end at
	closed     time.Time      // end of the last closed minute
	partitions []sink.LogTime // as the ledger has them
}

// New checks its arguments, registers metrics and starts nothing; Run does the work.
func New(cfg Config, deps Deps) (*Monitor, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Store == nil || deps.Checks == nil || deps.Log == nil || deps.Reg == nil || deps.Now == nil {
		return nil, errors.New("monitor: every dependency is required")
	}
	if n, a := watched(deps.Checks), deps.Checks.Alerts.MaxFalseAlarmsPerYear; n > 0 && !(a > 0) {
		return nil, fmt.Errorf("%s: alerts.max_false_alarms_per_year is %v with %d detectors: want a number above 0", deps.Checks.Path, a, n)
	}
	counters, err := newMetrics(deps.Reg)
	if err != nil {
		return nil, fmt.Errorf("monitor metrics: %w", err)
	}
	m := &Monitor{
		cfg: cfg, store: deps.Store, file: deps.Checks, log: deps.Log, wall: deps.Now, metrics: counters,
		turn: make(chan struct{}, 1), watches: map[string]watch{}, begun: map[string]time.Time{},
		calibrations: map[string]calibrated{},
	}
	if err := deps.Reg.Register(&exporter{monitor: m}); err != nil {
		return nil, fmt.Errorf("monitor exporter: %w", err)
	}
	return m, nil
}

// Run makes a round at once and then one every cfg.Every, until ctx ends. A failed
// round is logged and the next one tries again.
func (m *Monitor) Run(ctx context.Context) error {
	m.log.Info("monitor started", "clock", m.cfg.Clock, "every", m.cfg.Every)
	tick := time.NewTicker(m.cfg.Every)
	defer tick.Stop()
	for {
		if err := m.Round(ctx); err != nil && ctx.Err() == nil {
			m.log.Error("round failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Snapshot is what the last complete round found, or nil before the first.
func (m *Monitor) Snapshot() *Snapshot { return m.snapshot.Load() }

// Round recomputes everything once. Rounds do not overlap: a second caller waits.
//
// Nothing that the monitor remembers changes before it is stored, so a round that
// fails, at whatever step, is simply made again.
func (m *Monitor) Round(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var (
		v       view
		labels  labelStock
		after   map[string]watch
		alarms  map[string]sink.Alarm
		states  []Check
		checked map[string]*Integrity
	)
	err := m.inOrder(
		part{stepLedger, func() (err error) { v, err = m.look(ctx); return err }},
		part{stepLabels, func() (err error) { labels, err = m.placeLabels(ctx, v); return err }},
		part{stepRollup, func() error {
			n, err := m.rollUp(ctx, v.server)
			m.metrics.dirty.Set(float64(n))
			return err
		}},
		part{stepDrift, func() (err error) { after, err = m.advance(ctx, v.closed); return err }},
		part{stepAlarms, func() (err error) {
			if alarms, err = m.judgeAlarms(ctx, after, v); err != nil {
				return err
			}
			m.alarms = alarms
			if after == nil {
				return nil
			}
			// after the alarms: a crash between the two repeats the crossing, under the
			// same alarm id; the other way round the alarm would be lost
			if err := m.storeDetectors(ctx, after, v.server); err != nil {
				return err
			}
			m.watches = after
			return nil
		}},
		part{stepWindows, func() error {
			for _, c := range m.file.Checks {
				s, err := m.estimates(ctx, c, v.now)
				if err != nil {
					return err
				}
				if err := m.describeDetectors(ctx, &s[len(s)-1]); err != nil {
					return err
				}
				states = append(states, s...)
			}
			return nil
		}},
		part{stepPeople, func() error { return m.calibrateAll(ctx, v, labels, states) }},
		part{stepIntegrity, func() (err error) { checked, err = m.integrities(ctx, v); return err }},
	)
	if err != nil {
		return err
	}
	for i := range states {
		if states[i].Current {
			states[i].Integrity = checked[states[i].Name]
		}
	}
	m.snapshot.Store(&Snapshot{
		At: m.wall().UTC(), Now: v.now, Clock: m.cfg.Clock, ClosedUntil: v.closed,
		Checks: states, Alarms: m.describeAlarms(alarms, states), Partitions: m.describePartitions(v),
	})
	return nil
}

// part is a named piece of a round.
type part struct {
	step step
	run  func() error
}

// inOrder runs parts until one fails, timing each.
func (m *Monitor) inOrder(parts ...part) error {
	for _, p := range parts {
		start := time.Now()
		err := p.run()
		m.metrics.seconds.WithLabelValues(string(p.step)).Observe(time.Since(start).Seconds())
		if err != nil {
			m.metrics.errors.WithLabelValues(string(p.step)).Inc()
			return fmt.Errorf("%s: %w", p.step, err)
		}
	}
	return nil
}

// look reads the clocks and how far the ledger has come.
func (m *Monitor) look(ctx context.Context) (view, error) {
	server, err := m.store.Now(ctx)
	if err != nil {
		return view{}, fmt.Errorf("server clock: %w", err)
	}
	partitions, err := m.store.LogTimes(ctx)
	if err != nil {
		return view{}, fmt.Errorf("log times: %w", err)
	}
	v := view{server: server, now: m.wall().UTC(), partitions: partitions}
	for _, p := range partitions {
		if d := doubtOf(p, server); d != doubtNothing {
			m.metrics.outOfRange.WithLabelValues(string(d)).Inc()
		}
	}
	trusted := believed(partitions, server)
	v.closed = closedUntil(trusted, server, m.cfg.Idle, m.cfg.Grace)
	if m.cfg.Clock == ClockEvent {
		v.now = newestLogTime(trusted)
	}
	return v, nil
}

// integrities checks every check of the file, once per closed bound.
func (m *Monitor) integrities(ctx context.Context, v view) (map[string]*Integrity, error) {
	if v.closed.IsZero() || (v.closed.Equal(m.checkedTo) && m.checked != nil) {
		return m.checked, nil
	}
	checked := make(map[string]*Integrity, len(m.file.Checks))
	for _, c := range m.file.Checks {
		r, err := m.integrity(ctx, c, v)
		if err != nil {
			return nil, err
		}
		checked[c.Name] = r
	}
	m.checked, m.checkedTo = checked, v.closed
	return checked, nil
}
