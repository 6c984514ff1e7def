package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/stats"
	"assay/sink"
)

// The states of an alarm, as alarms stores them.
const (
	alarmOpen         = "open"
	alarmAcknowledged = "acknowledged"
	alarmClosed       = "closed"
)

// closedBy signs what the monitor closes; a person's name stands there otherwise.
const closedBy = "assay"

// recoveryRows is the effective n below which a good window says nothing yet.
const recoveryRows = 30

// recoveryReach is how far the window of the recovery bound reaches back, at most.
const recoveryReach = 24 * time.Hour

// alarmsShown is how long a closed alarm stays in the snapshot.
const alarmsShown = 7 * 24 * time.Hour

// alarmID is the same in every monitor and after every replay, so that one crossing
// is one alarm.
func alarmID(check, version string, slice interaction.Slice, minute time.Time) string {
	key := fmt.Sprintf("%s\x00%s\x00%s\x00%d\x00", check, version, esrDetector, minute.Unix())
	h := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(key), slice.ID()))
	return hex.EncodeToString(h[:6])
}

// judgeAlarms opens the alarms of detectors that crossed their limit this round and
// closes those that may close. It changes the detectors in after, which are copies,
// and returns every alarm that is open or was lately, newest revision each.
func (m *Monitor) judgeAlarms(ctx context.Context, after map[string]watch, v view) (map[string]sink.Alarm, error) {
	since := v.now.Add(-alarmsShown)
	if v.now.IsZero() {
		since = time.Unix(0, 0) // no log yet: year 0 is no time that ClickHouse knows
	}
	stored, err := m.store.Alarms(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("alarms: %w", err)
	}
	known := make(map[string]sink.Alarm, len(stored))
	for _, a := range stored {
		known[a.ID] = a
	}
	for id, a := range m.alarms {
		// a replica may not have yet what this monitor wrote a round ago
		if s, ok := known[id]; ok && s.Revision < a.Revision {
			known[id] = a
		} else if !ok && a.State != alarmClosed {
			known[id] = a
		}
	}
	var changed []sink.Alarm
	for _, c := range m.file.Checks {
		for _, d := range after[c.Name].detectors {
			next, err := m.judgeAlarm(ctx, c, d, known, v)
			if err != nil {
				return nil, fmt.Errorf("alarm of check %s version %s on %s: %w", c.Name, c.Version, d.slice, err)
			}
			if next != nil {
				changed = append(changed, *next)
				known[next.ID] = *next
			}
		}
	}
	for _, a := range known {
		if next := m.orphaned(a, after, v); next != nil {
			changed = append(changed, *next)
			known[next.ID] = *next
		}
	}
	if len(changed) > 0 {
		if err := m.store.PutAlarms(ctx, changed); err != nil {
			return nil, fmt.Errorf("%d alarms: %w", len(changed), err)
		}
	}
	for _, a := range changed {
		m.log.Info("alarm "+a.State, "check", a.Check, "version", a.CheckVersion, "slice", interaction.Slice(a.Slice).String(), "alarm", a.ID)
	}
	return known, nil
}

// judgeAlarm returns the alarm's next revision, or nil when nothing changed.
func (m *Monitor) judgeAlarm(ctx context.Context, c checks.Check, d *detector, known map[string]sink.Alarm, v view) (*sink.Alarm, error) {
	a, exists := known[d.note.AlarmID]
	if d.opened != nil && !exists {
		return m.open(ctx, c, d)
	}
	if !d.latched {
		// Alarms are stored before detectors. A crash between the two leaves an open
		// alarm beside a detector that would have crossed again; if the checks file
		// changed meanwhile it may not, and the alarm must still be able to close.
		for _, o := range known {
			if o.State != alarmClosed && belongs(o, d) {
				d.latched, d.note.AlarmID = true, o.ID
				a, exists = o, true
			}
		}
		if !d.latched {
			return nil, nil
		}
	}
	if !exists || a.State == alarmClosed {
		// a person closed it, or retention took it
		d.release()
		return nil, nil
	}
	if c.Alert.Close == "manual" {
		return nil, nil
	}
	note, err := m.recovered(ctx, d, a, v)
	if err != nil || note == "" {
		return nil, err
	}
	d.release()
	return closing(a, note, v.closed), nil
}

// release makes the detector ready for the next alarm, with no evidence yet.
func (d *detector) release() {
	d.latched, d.note.AlarmID = false, ""
	d.reset()
}

func belongs(a sink.Alarm, d *detector) bool {
	return a.Check == d.check && a.CheckVersion == d.version && a.SliceID == d.slice.ID() && a.Detector == esrDetector
}

// open is the first revision of an alarm, with its evidence.
func (m *Monitor) open(ctx context.Context, c checks.Check, d *detector) (*sink.Alarm, error) {
	ev, err := m.gather(ctx, c, d)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(ev)
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	return &sink.Alarm{
		ID: d.note.AlarmID, Check: c.Name, CheckVersion: c.Version, SliceID: d.slice.ID(), Slice: d.slice,
		Detector: esrDetector, OpenedAt: d.opened.at, Revision: 1, State: alarmOpen, UpdatedAt: d.opened.at,
		By: closedBy, Summary: summary(c, d, ev), Evidence: string(text),
	}, nil
}

// closing is the alarm's last revision.
func closing(a sink.Alarm, note string, at time.Time) *sink.Alarm {
	if at.Before(a.OpenedAt) {
		at = a.OpenedAt
	}
	a.Revision++
	a.State, a.UpdatedAt, a.ClosedAt, a.By, a.Note = alarmClosed, at, &at, closedBy, note
	return &a
}

// recovered says why the alarm may close, or nothing.
//
// The bound: over the closed minutes since the alarm opened, at most the last 24 hours,
// the interval's lower limit is above target - tolerance at an effective n of at least
// 30. Minutes before the opening do not count: right at the opening, 24 hours still
// hold the good ones from before the fall, and the alarm would close as it opens.
//
// Without a judged row in the newest hour nothing closes, however good the window is:
// a window that slides past the bad rows while nobody asks the assistant anything has
// not recovered (the alarm's data state says no_data).
func (m *Monitor) recovered(ctx context.Context, d *detector, a sink.Alarm, v view) (string, error) {
	from := v.closed.Add(-recoveryReach)
	if a.OpenedAt.After(from) {
		from = a.OpenedAt
	}
	if !from.Before(v.closed) {
		return "", nil
	}
	s, err := m.sums(ctx, d.check, d.version, d.slice, from, v.closed)
	if err != nil {
		return "", err
	}
	e, err := verdicts(s).PassRate(level95)
	if err != nil {
		return "", fmt.Errorf("recovery bound from %s to %s: %w", from, v.closed, err)
	}
	bound := 1 - d.limits.null
	if e.Mean == nil || e.NEff < recoveryRows || e.Lo <= bound {
		return "", nil
	}
	newest, err := m.sums(ctx, d.check, d.version, d.slice, v.closed.Add(-time.Hour), v.closed)
	if err != nil || newest.N == 0 {
		return "", err
	}
	return fmt.Sprintf("recovered: %s since %s, all of it above %s",
		rateText(e, s.N), from.UTC().Format("2006-01-02 15:04 MST"), percent(bound)), nil
}

// orphaned closes an alarm whose detector is no more: the check has a new version that
// is being judged, or the checks file no longer watches it. Nothing else could.
func (m *Monitor) orphaned(a sink.Alarm, after map[string]watch, v view) *sink.Alarm {
	if a.State == alarmClosed || a.Detector != esrDetector || after == nil {
		return nil
	}
	c, ok := m.file.Check(a.Check)
	w := after[a.Check]
	switch {
	case !ok:
		return closing(a, "closed: the check is no longer in the checks file", v.closed)
	case len(w.detectors) == 0:
		return closing(a, "closed: no longer watched: "+w.off, v.closed)
	}
	for _, d := range w.detectors {
		switch {
		case d.slice.ID() != a.SliceID:
		case a.CheckVersion == c.Version || d.samples == 0:
			return nil
		default:
			return closing(a, "closed: the check is now version "+c.Version+", whose detector begins anew", v.closed)
		}
	}
	return closing(a, "closed: the checks file no longer declares the slice", v.closed)
}

// level95 and level999 are the confidences that are exported.
const (
	level95  = 0.95
	level999 = 0.999
)

// verdicts and scores are the sums of a window as stats wants them; a verdict's square
// is itself.
func verdicts(s sink.QualitySums) stats.Sums {
	return stats.Sums{N: s.N, SW: s.SW, SW2: s.SW2, SWT: s.SWV, SW2T: s.SW2V, SWT2: s.SWV, SW2T2: s.SW2V}
}

func scores(s sink.QualitySums) stats.Sums {
	return stats.Sums{N: s.N, SW: s.SW, SW2: s.SW2, SWT: s.SWS, SW2T: s.SW2S, SWT2: s.SWS2, SW2T2: s.SW2S2}
}
