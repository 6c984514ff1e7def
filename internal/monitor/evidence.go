package monitor

import (
	"context"
	"fmt"
	"math"
	"time"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/stats"
	"assay/sink"
)

// Evidence is what an alarm rests on: JSON in alarms.evidence.
type Evidence struct {
	EValue    float64 `json:"e_value"`
	Threshold float64 `json:"threshold"`
	Target    float64 `json:"target"`
	Tolerance float64 `json:"tolerance"`
	Samples   uint64  `json:"samples"` // read since the evidence began

	Before EvidenceWindow `json:"before"` // the day before After
	After  EvidenceWindow `json:"after"`  // the last hour, or six where the hour is thin

	Moved       *MovedSlice `json:"moved,omitempty"` // the declared slice that explains most of the change
	Worst       []WorstItem `json:"worst"`           // of After, lowest score first
	CostNanoUSD uint64      `json:"cost_nano_usd"`   // of both windows
}

// WorstItem is a judged interaction with one of the lowest scores.
type WorstItem struct {
	ID            string            `json:"id"`
	Time          time.Time         `json:"time"`
	Score         float64           `json:"score"`
	Option        string            `json:"option"`
	Slice         map[string]string `json:"slice"`
	Excerpt       string            `json:"excerpt"` // as far as privacy allows
	AnswerExcerpt string            `json:"answer_excerpt"`
}

// EvidenceWindow is a rate of the evidence with its interval.
type EvidenceWindow struct {
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	N            uint64    `json:"n"`
	NEff         float64   `json:"n_eff"`
	PassRate     *float64  `json:"pass_rate"`
	Lower        float64   `json:"lower"`
	Upper        float64   `json:"upper"`
	MissingShare *float64  `json:"missing_share"`
	BoundLower   *float64  `json:"bound_lower"` // had every missing judgement failed
	BoundUpper   *float64  `json:"bound_upper"` // had every one passed
}

// MovedSlice is a declared slice and its part in the change.
type MovedSlice struct {
	Slice  interaction.Slice `json:"slice"`
	Before float64           `json:"before"`
	After  float64           `json:"after"`
	Share  float64           `json:"share"`  // of the traffic after
	Points float64           `json:"points"` // share times change
}

const (
	worstItems   = 5
	thinHour     = 30 // judged rows below which an hour is too thin to show
	movedMinRows = 10 // of a slice, on both sides
)

// gather collects what the alarm of d, which crossed this round, rests on.
func (m *Monitor) gather(ctx context.Context, c checks.Check, d *detector) (Evidence, error) {
	ev := Evidence{
		EValue: d.opened.eValue, Threshold: d.opened.threshold, Samples: d.opened.samples,
		Target: c.Alert.Target, Tolerance: d.limits.tolerance,
	}
	to := d.opened.at
	from := to.Add(-time.Hour)
	after, err := m.sums(ctx, c.Name, c.Version, d.slice, from, to)
	if err != nil {
		return ev, err
	}
	if after.N < thinHour {
		from = to.Add(-6 * time.Hour)
		if after, err = m.sums(ctx, c.Name, c.Version, d.slice, from, to); err != nil {
			return ev, err
		}
	}
	start := from.Add(-24 * time.Hour)
	before, err := m.sums(ctx, c.Name, c.Version, d.slice, start, from)
	if err != nil {
		return ev, err
	}
	if ev.Before, err = evidenceWindow(before, start, from); err != nil {
		return ev, err
	}
	if ev.After, err = evidenceWindow(after, from, to); err != nil {
		return ev, err
	}
	ev.CostNanoUSD = before.CostNanoUSD + after.CostNanoUSD
	if ev.Moved, err = m.movedMost(ctx, c, d, start, from, to, after); err != nil {
		return ev, err
	}
	worst, err := m.store.WorstItems(ctx, c.Name, c.Version, d.slice, from, to, worstItems)
	if err != nil {
		return ev, fmt.Errorf("worst items: %w", err)
	}
	for _, w := range worst {
		ev.Worst = append(ev.Worst, WorstItem{w.InteractionID, w.Time, w.Score, w.Option, w.Slice, w.Excerpt, w.AnswerExcerpt})
	}
	return ev, nil
}

func evidenceWindow(s sink.QualitySums, from, to time.Time) (EvidenceWindow, error) {
	w := EvidenceWindow{From: from, To: to, N: s.N}
	e, err := verdicts(s).PassRate(level95)
	if err != nil {
		return w, fmt.Errorf("rate from %s to %s: %w", from, to, err)
	}
	w.NEff, w.PassRate, w.Lower, w.Upper = e.NEff, e.Mean, e.Lo, e.Hi
	b, err := verdicts(s).MissingBounds(missingWeight(s), level95)
	if err != nil {
		return w, fmt.Errorf("bounds from %s to %s: %w", from, to, err)
	}
	if b != nil {
		w.MissingShare, w.BoundLower, w.BoundUpper = &b.Share, &b.Lo, &b.Hi
	}
	return w, nil
}

// movedMost finds, among the declared slices inside the alarm's, the one whose own
// change weighs most in the whole's. Nil when none has enough rows on both sides.
func (m *Monitor) movedMost(ctx context.Context, c checks.Check, d *detector, start, change, end time.Time, whole sink.QualitySums) (*MovedSlice, error) {
	var most *MovedSlice
	for _, slice := range m.file.Slices {
		if slice.ID() == d.slice.ID() || !d.slice.Contains(slice) || whole.SW == 0 {
			continue
		}
		before, err := m.sums(ctx, c.Name, c.Version, slice, start, change)
		if err != nil {
			return nil, err
		}
		after, err := m.sums(ctx, c.Name, c.Version, slice, change, end)
		if err != nil {
			return nil, err
		}
		if before.N < movedMinRows || after.N < movedMinRows {
			continue
		}
		s := MovedSlice{Slice: slice, Before: before.SWV / before.SW, After: after.SWV / after.SW, Share: min(1, after.SW/whole.SW)}
		s.Points = s.Share * (s.After - s.Before)
		if most == nil || math.Abs(s.Points) > math.Abs(most.Points) {
			most = &s
		}
	}
	return most, nil
}

// summary is the alarm in a sentence or two.
func summary(c checks.Check, d *detector, ev Evidence) string {
	text := fmt.Sprintf("%s on %s: %s in the %s to %s, target %s less a tolerance of %s; evidence %.3g against a limit of %.3g.",
		c.Name, d.slice, rateText(stats.Estimate{Mean: ev.After.PassRate, Lo: ev.After.Lower, Hi: ev.After.Upper}, ev.After.N),
		spanText(ev.After.To.Sub(ev.After.From)), ev.After.To.UTC().Format("2006-01-02 15:04 MST"),
		percent(ev.Target), percent(ev.Tolerance), ev.EValue, ev.Threshold)
	if ev.Before.PassRate != nil {
		text += fmt.Sprintf(" The day before: %s.", percent(*ev.Before.PassRate))
	}
	if ev.Moved != nil {
		text += fmt.Sprintf(" %s moved most, from %s to %s.", ev.Moved.Slice, percent(ev.Moved.Before), percent(ev.Moved.After))
	}
	if a := ev.After; a.BoundLower != nil && *a.MissingShare > 0 && *a.BoundLower < ev.Target && *a.BoundUpper > ev.Target {
		text += fmt.Sprintf(" %s of the judgements are missing: had they all passed, the rate would be above the target.", percent(*a.MissingShare))
	}
	return text
}

func rateText(e stats.Estimate, n uint64) string {
	if e.Mean == nil {
		return "no rate"
	}
	return fmt.Sprintf("pass rate %s (95%% interval %s to %s, %d judged)", percent(*e.Mean), percent(e.Lo), percent(e.Hi), n)
}

func percent(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }

func spanText(d time.Duration) string {
	if d == time.Hour {
		return "hour"
	}
	return fmt.Sprintf("%d hours", int(d/time.Hour))
}
