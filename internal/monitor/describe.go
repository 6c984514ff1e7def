package monitor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"assay/internal/interaction"
	"assay/internal/stats"
	"assay/sink"
)

// describeDetectors puts the stored detectors into the current version's state.
func (m *Monitor) describeDetectors(ctx context.Context, c *Check) error {
	w, ok := m.watches[c.Name]
	if !ok {
		return nil
	}
	if w.off != "" {
		for i := range c.Slices {
			c.Slices[i].Detector = &Detector{Name: esrDetector, State: DetectorOff, Reason: w.off}
		}
		return nil
	}
	for i, d := range w.detectors {
		s := d.describe()
		if last, ok := c.Slices[i].Window("24h"); ok {
			if drop, ok := stats.SmallestDrop(float64(last.N), s.Threshold, d.limits.aim, d.limits.null); ok {
				s.SmallestDrop = &drop
			}
		}
		if len(d.slice) == 0 {
			late, share, err := m.lateRows(ctx, d)
			if err != nil {
				return err
			}
			s.LateRows, s.LateShare = late, share
			c.Tolerance = &s.Tolerance
		}
		c.Slices[i].Detector = &s
	}
	return nil
}

func (d *detector) describe() Detector {
	s := Detector{
		Name: esrDetector, State: DetectorWatching, EValue: d.esr.M(), Threshold: d.threshold(),
		NullRate: d.limits.null, Tolerance: d.limits.tolerance, Samples: d.samples, PerDay: d.perDay(),
		Clipped: d.note.Clipped, AlarmID: d.note.AlarmID, ReadUntil: d.minute, Started: d.note.Started,
	}
	if d.latched {
		s.State = DetectorAlarm
	}
	if n := len(d.note.Restarts); n > 0 {
		s.LastRestart, s.RestartedFor = &d.note.Restarts[n-1].At, d.note.Restarts[n-1].Reason
	}
	return s
}

// lateRows compares the rows that the estimates hold of the last 24 hours with those
// that the detector was offered before their minutes closed. Nil without rows.
func (m *Monitor) lateRows(ctx context.Context, d *detector) (*uint64, *float64, error) {
	from := d.minute.Truncate(time.Hour).Add(-(lateRowsHours - 1) * time.Hour)
	if d.note.Started.After(from) {
		from = d.note.Started
	}
	if !from.Before(d.minute) {
		return nil, nil, nil
	}
	s, err := m.sums(ctx, d.check, d.version, d.slice, from, d.minute)
	if err != nil || s.N == 0 {
		return nil, nil, err
	}
	var offered uint64
	for hour, n := range d.note.Hours {
		if hour >= from.Unix()/3600 {
			offered += n
		}
	}
	var late uint64
	if s.N > offered {
		late = s.N - offered
	}
	share := float64(late) / float64(s.N)
	return &late, &share, nil
}

// describeAlarms orders alarms for readers and says of each open one whether there is
// data that could close or confirm it.
func (m *Monitor) describeAlarms(alarms map[string]sink.Alarm, states []Check) []Alarm {
	shown := make([]Alarm, 0, len(alarms))
	for _, a := range alarms {
		s := Alarm{
			ID: a.ID, Check: a.Check, Version: a.CheckVersion, Slice: interaction.Slice(a.Slice), Detector: a.Detector,
			State: a.State, OpenedAt: a.OpenedAt, ClosedAt: a.ClosedAt, UpdatedAt: a.UpdatedAt,
			By: a.By, Note: a.Note, Summary: a.Summary, Evidence: a.Evidence, Revision: a.Revision,
		}
		if c, ok := m.file.Check(a.Check); ok {
			s.Severity = c.Alert.Severity
		}
		if a.State != alarmClosed {
			s.Data = dataOf(a, states)
		}
		shown = append(shown, s)
	}
	slices.SortFunc(shown, func(a, b Alarm) int {
		return cmp.Or(cmp.Compare(closedRank(a), closedRank(b)), b.OpenedAt.Compare(a.OpenedAt), cmp.Compare(a.ID, b.ID))
	})
	return shown
}

func closedRank(a Alarm) int {
	if a.State == alarmClosed {
		return 1
	}
	return 0
}

func dataOf(a sink.Alarm, states []Check) string {
	for _, c := range states {
		if c.Name != a.Check || c.Version != a.CheckVersion {
			continue
		}
		if s, ok := c.Of(a.Slice); ok {
			if w, ok := s.Window(dataSpan); ok && w.N > 0 {
				return DataOK
			}
		}
	}
	return DataNone
}

func (m *Monitor) describePartitions(v view) []Partition {
	shown := make([]Partition, 0, len(v.partitions))
	for _, p := range v.partitions {
		shown = append(shown, Partition{p.Topic, p.Partition, p.LogTime, p.InsertedAt, active(p, v.server, m.cfg.Idle)})
	}
	slices.SortFunc(shown, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return shown
}
