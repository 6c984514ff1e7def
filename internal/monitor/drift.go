package monitor

import (
	"context"
	"fmt"
	"time"

	"assay/internal/checks"
	"assay/sink"
)

// Rows are read in spans of this length, so that a monitor that was away for days
// holds a few hours of rows at a time.
const readSpan = 6 * time.Hour

// A detector without a stored state begins this far back: a day of backlog, or the
// whole of a simulated day, is read; the year before a slice was declared is not.
const firstReach = 24 * time.Hour

// watch is one check's detectors, the whole check first; empty with a reason when the
// check has none.
type watch struct {
	detectors []*detector
	off       string
}

func (w watch) clone() watch {
	c := watch{off: w.off}
	for _, d := range w.detectors {
		c.detectors = append(c.detectors, d.clone())
	}
	return c
}

// watched counts the detectors that share the file's false alarms.
func watched(f *checks.File) int {
	n := 0
	for _, c := range f.Checks {
		if !c.Alert.Off && c.Alert.Target != 0 {
			n += len(f.DeclaredSlices())
		}
	}
	return n
}

// advance returns every check's detectors after the rows of the minutes before until,
// by check. It works on copies: what it read counts when the round has stored it.
// Before there is a log there are no detectors: where they begin depends on it.
func (m *Monitor) advance(ctx context.Context, until time.Time) (map[string]watch, error) {
	if until.IsZero() {
		return nil, nil
	}
	after := make(map[string]watch, len(m.file.Checks))
	for _, c := range m.file.Checks {
		before, ok := m.watches[c.Name]
		if !ok {
			var err error
			if before, err = m.loadWatch(ctx, c, until); err != nil {
				return nil, err
			}
		}
		w := before.clone()
		if err := m.readRows(ctx, c, w.detectors, until); err != nil {
			return nil, err
		}
		after[c.Name] = w
	}
	return after, nil
}

// loadWatch restores a check's detectors from their last stored states.
func (m *Monitor) loadWatch(ctx context.Context, c checks.Check, until time.Time) (watch, error) {
	l, off := limitsOf(c, watched(m.file), m.file.Alerts.MaxFalseAlarmsPerYear)
	if off != "" {
		return watch{off: off}, nil
	}
	states, err := m.store.DetectorStates(ctx, c.Name, c.Version)
	if err != nil {
		return watch{}, fmt.Errorf("detector states of check %s version %s: %w", c.Name, c.Version, err)
	}
	stored := make(map[uint64]sink.DetectorState, len(states))
	for _, s := range states {
		if s.Detector == esrDetector {
			stored[s.SliceID] = s
		}
	}
	var w watch
	for _, slice := range m.file.DeclaredSlices() {
		d := newDetector(c, slice, l, until.Add(-firstReach))
		if s, ok := stored[slice.ID()]; ok {
			if d, err = restore(s, slice, l); err != nil {
				return watch{}, err
			}
		}
		w.detectors = append(w.detectors, &d)
	}
	return w, nil
}

// readRows gives the detectors every judged row of the closed minutes that they have
// not read. A closed bound that moved back, because a slow partition came alive again,
// has nothing for them.
func (m *Monitor) readRows(ctx context.Context, c checks.Check, detectors []*detector, until time.Time) error {
	if len(detectors) == 0 {
		return nil
	}
	from := detectors[0].minute
	for _, d := range detectors {
		if d.minute.Before(from) {
			from = d.minute
		}
	}
	for from.Before(until) {
		to := from.Add(readSpan)
		if to.After(until) {
			to = until
		}
		rows, err := m.store.JudgedRows(ctx, c.Name, c.Version, from, to)
		if err != nil {
			return fmt.Errorf("judged rows of check %s version %s from %s to %s: %w", c.Name, c.Version, from, to, err)
		}
		for _, row := range order(rows) {
			for _, d := range detectors {
				d.read(row)
			}
		}
		for _, d := range detectors {
			d.finish(to)
		}
		from = to
	}
	return nil
}

// storeDetectors writes the states that moved since the last round.
func (m *Monitor) storeDetectors(ctx context.Context, after map[string]watch, computedAt time.Time) error {
	var states []sink.DetectorState
	for _, c := range m.file.Checks {
		before := m.watches[c.Name].detectors
		for i, d := range after[c.Name].detectors {
			if i < len(before) && before[i].same(d) {
				continue
			}
			s, err := d.state(computedAt)
			if err != nil {
				return err
			}
			states = append(states, s)
		}
	}
	if len(states) == 0 {
		return nil
	}
	if err := m.store.PutDetectorStates(ctx, states); err != nil {
		return fmt.Errorf("%d detector states: %w", len(states), err)
	}
	return nil
}

// same reports whether a later state of the detector need not be stored.
func (d *detector) same(o *detector) bool {
	return d.minute.Equal(o.minute) && d.latched == o.latched && d.samples == o.samples &&
		d.note.AlarmID == o.note.AlarmID && len(d.note.Restarts) == len(o.note.Restarts)
}
