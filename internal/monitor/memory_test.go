package monitor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"assay/internal/interaction"
	"assay/sink"
)

// memory is a store for what needs thousands of rounds or a store that fails. The
// scenarios run on it and on the real engine, so it cannot drift away from SQL unseen.
type memory struct {
	clock      time.Time
	rows       map[string]map[time.Time][]sink.Evaluation // by check and minute, one per interaction
	cells      []sink.Population
	dirty      map[string]map[time.Time]bool
	dirtyCells map[string]map[time.Time]bool
	quality    map[string]map[time.Time][]sink.Evaluation // what was rolled up
	population map[string]map[time.Time][]sink.Population
	logTime    time.Time
	others     []sink.LogTime                // of further partitions
	inserted   map[uint64]time.Time          // by a row's offset
	states     map[string]sink.DetectorState // by check, version, slice and detector
	alarms     map[string]sink.Alarm
	labelled   []sink.LabelledRow
	queue      []sink.LabelQueue
	refuse     map[string]int // by method: calls until it fails once
}

var errRefused = errors.New("refused by the test")

func newMemory() *memory {
	return &memory{
		clock: time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC),
		rows:  map[string]map[time.Time][]sink.Evaluation{}, dirty: map[string]map[time.Time]bool{}, dirtyCells: map[string]map[time.Time]bool{},
		quality: map[string]map[time.Time][]sink.Evaluation{}, population: map[string]map[time.Time][]sink.Population{},
		inserted: map[uint64]time.Time{}, states: map[string]sink.DetectorState{}, alarms: map[string]sink.Alarm{}, refuse: map[string]int{},
	}
}

// call counts down to a planned failure.
func (m *memory) call(method string) error {
	n, planned := m.refuse[method]
	if !planned {
		return nil
	}
	if n > 1 {
		m.refuse[method] = n - 1
		return nil
	}
	delete(m.refuse, method)
	return errRefused
}

func under[V any](m map[string]map[time.Time]V, check string) map[time.Time]V {
	if m[check] == nil {
		m[check] = map[time.Time]V{}
	}
	return m[check]
}

func (m *memory) put(_ testing.TB, rows []sink.Evaluation, cells []sink.Population) {
	for _, r := range rows {
		m.inserted[r.Offset] = m.clock
		minute := r.Time.Truncate(time.Minute)
		under(m.rows, r.Check)[minute] = append(under(m.rows, r.Check)[minute], r)
		under(m.dirty, r.Check)[minute] = true
	}
	for _, c := range cells {
		m.cells = append(m.cells, c)
		under(m.dirtyCells, c.Check)[c.Minute] = true
		if c.LogTime.After(m.logTime) {
			m.logTime = c.LogTime
		}
	}
}

func (m *memory) Now(context.Context) (time.Time, error) {
	m.clock = m.clock.Add(time.Second)
	return m.clock, m.call("Now")
}

func (m *memory) LogTimes(context.Context) ([]sink.LogTime, error) {
	if m.logTime.IsZero() {
		return nil, m.call("LogTimes")
	}
	own := sink.LogTime{Topic: "log", LogTime: m.logTime, InsertedAt: m.clock}
	return append([]sink.LogTime{own}, m.others...), m.call("LogTimes")
}

func (m *memory) LastRollup(context.Context) (time.Time, error) {
	return time.Time{}, m.call("LastRollup")
}

func dirtyOf(all map[string]map[time.Time]bool) []sink.DirtyMinutes {
	var out []sink.DirtyMinutes
	for check, minutes := range all {
		d := sink.DirtyMinutes{Check: check}
		for minute := range minutes {
			d.Minutes = append(d.Minutes, minute)
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b sink.DirtyMinutes) int { return -cmp.Compare(a.Check, b.Check) })
	return out
}

func (m *memory) DirtyQuality(context.Context, time.Time) ([]sink.DirtyMinutes, error) {
	return dirtyOf(m.dirty), m.call("DirtyQuality")
}

func (m *memory) DirtyPopulation(context.Context, time.Time) ([]sink.DirtyMinutes, error) {
	return dirtyOf(m.dirtyCells), m.call("DirtyPopulation")
}

func (m *memory) RollupQuality(_ context.Context, check string, minutes []time.Time, _ time.Time) error {
	if err := m.call("RollupQuality"); err != nil {
		return err
	}
	for _, minute := range minutes {
		under(m.quality, check)[minute] = slices.Clone(m.rows[check][minute])
	}
	delete(m.dirty, check)
	return nil
}

func (m *memory) RollupPopulation(_ context.Context, check string, minutes []time.Time, _ time.Time) error {
	if err := m.call("RollupPopulation"); err != nil {
		return err
	}
	for _, minute := range minutes {
		under(m.population, check)[minute] = nil
	}
	for _, c := range m.cells {
		if _, ok := m.population[check][c.Minute]; ok && c.Check == check && slices.ContainsFunc(minutes, c.Minute.Equal) {
			under(m.population, check)[c.Minute] = append(m.population[check][c.Minute], c)
		}
	}
	delete(m.dirtyCells, check)
	return nil
}

// minutesOf are the keys in [from, to), ascending.
func minutesOf[V any](all map[time.Time]V, from, to time.Time) []time.Time {
	var minutes []time.Time
	for minute := range all {
		if !minute.Before(from) && minute.Before(to) {
			minutes = append(minutes, minute)
		}
	}
	slices.SortFunc(minutes, time.Time.Compare)
	return minutes
}

func (m *memory) Quality(_ context.Context, check string, slice map[string]string, from, to time.Time) ([]sink.QualitySums, error) {
	var sums []sink.QualitySums
	for _, minute := range minutesOf(m.quality[check], from, to) {
		for _, r := range m.quality[check][minute] {
			if !interaction.Slice(slice).Contains(r.Slice) {
				continue
			}
			i := slices.IndexFunc(sums, func(s sink.QualitySums) bool { return s.CheckVersion == r.CheckVersion })
			if i < 0 {
				i = len(sums)
				sums = append(sums, sink.QualitySums{CheckVersion: r.CheckVersion, From: from, PiMin: 1})
			}
			addRow(&sums[i], r)
			sums[i].LastMinute = minute
		}
	}
	slices.SortStableFunc(sums, func(a, b sink.QualitySums) int { return a.LastMinute.Compare(b.LastMinute) })
	return sums, m.call("Quality")
}

func addRow(s *sink.QualitySums, r sink.Evaluation) {
	w := 1 / r.Pi
	s.PiMin = min(s.PiMin, r.Pi)
	switch r.Status {
	case "unscored":
		s.NUnscored++
		s.SWUnscored += w
	case "shed":
		s.NShed++
		s.SWShed += w
	case "error":
		s.NError++
		s.SWError += w
	case "not_applicable":
		s.NNotApplicable++
	default:
		v, score := 0.0, float64(*r.Score)
		if *r.Passed {
			v = 1
			s.X++
		}
		s.N++
		s.NOK++
		s.SW += w
		s.SW2 += w * w
		s.SWV += w * v
		s.SW2V += w * w * v
		s.SWS += w * score
		s.SW2S += w * w * score
		s.SWS2 += w * score * score
		s.SW2S2 += w * w * score * score
		if s.ChosenW == nil {
			s.OptionNames, s.ChosenW = r.OptionNames, make([]float64, len(r.OptionNames))
		}
		if i := slices.Index(r.OptionNames, r.Option); i >= 0 {
			s.ChosenW[i] += w
		}
	}
}

func (m *memory) QualityBuckets(ctx context.Context, check, version string, slice map[string]string, from, to time.Time, step time.Duration) ([]sink.QualitySums, error) {
	var buckets []sink.QualitySums
	for start := from.Truncate(step); start.Before(to); start = start.Add(step) {
		sums, err := m.Quality(ctx, check, slice, start, start.Add(step))
		if err != nil {
			return nil, err
		}
		for _, s := range sums {
			if s.CheckVersion == version {
				s.From = start
				buckets = append(buckets, s)
			}
		}
	}
	return buckets, nil
}

func (m *memory) PopulationSums(_ context.Context, check string, from, to time.Time) ([]sink.PopulationSums, error) {
	byVersion := map[string]*sink.PopulationSums{}
	for _, minute := range minutesOf(m.population[check], from, to) {
		for _, c := range m.population[check][minute] {
			p := byVersion[c.CheckVersion]
			if p == nil {
				p = &sink.PopulationSums{CheckVersion: c.CheckVersion}
				byVersion[c.CheckVersion] = p
			}
			switch c.Decision {
			case "filtered":
				p.Filtered += c.N
			case "not_applicable":
				p.NotApplicable += c.N
			case "sampled_out":
				p.SampledOut += c.N
			case "selected":
				p.Selected += c.N
			case "interaction":
				p.Interactions += c.N
			case "no_interaction":
				p.NoInteraction += c.N
			}
		}
	}
	var out []sink.PopulationSums
	for _, p := range byVersion {
		out = append(out, *p)
	}
	return out, m.call("PopulationSums")
}

func (m *memory) SelectedWeights(_ context.Context, check string, from, to, settled time.Time) (s sink.SelectedSums, err error) {
	rows, old, selected := map[time.Time]uint64{}, map[time.Time]uint64{}, map[time.Time]uint64{}
	for _, minute := range minutesOf(m.population[check], from, to) {
		for _, c := range m.population[check][minute] {
			if c.Decision == "selected" {
				selected[minute] += c.N
			}
		}
		rows[minute] += 0 // a minute of the ledger is one without rows too
	}
	for _, minute := range minutesOf(m.rows[check], from, to) {
		for _, r := range m.rows[check][minute] {
			s.SW += 1 / r.Pi
			s.VarSum += (1 - r.Pi) / (r.Pi * r.Pi)
			s.N++
			rows[minute]++
			if !m.inserted[r.Offset].After(settled) {
				old[minute]++
			}
		}
	}
	for minute, n := range rows {
		s.Missing += max(selected[minute], n) - n
		s.Surplus += max(old[minute], selected[minute]) - selected[minute]
	}
	return s, m.call("SelectedWeights")
}

func (m *memory) JudgedRows(_ context.Context, check, version string, from, to time.Time) ([]sink.JudgedRow, error) {
	var out []sink.JudgedRow
	for _, minute := range minutesOf(m.rows[check], from, to) {
		for _, r := range m.rows[check][minute] {
			if r.CheckVersion == version && r.Status == "ok" {
				out = append(out, sink.JudgedRow{Time: r.Time, Minute: minute, InteractionID: r.InteractionID, Pi: r.Pi, Passed: *r.Passed, Slice: r.Slice, JudgeModel: r.JudgeModel})
			}
		}
	}
	return out, m.call("JudgedRows")
}

func (m *memory) WorstItems(_ context.Context, check, version string, slice map[string]string, from, to time.Time, limit int) ([]sink.WorstItem, error) {
	var out []sink.WorstItem
	for _, minute := range minutesOf(m.rows[check], from, to) {
		for _, r := range m.rows[check][minute] {
			if r.CheckVersion == version && r.Status == "ok" && interaction.Slice(slice).Contains(r.Slice) {
				out = append(out, sink.WorstItem{InteractionID: r.InteractionID, Time: r.Time, Score: float64(*r.Score), Option: r.Option, Slice: r.Slice})
			}
		}
	}
	slices.SortFunc(out, func(a, b sink.WorstItem) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.InteractionID, b.InteractionID))
	})
	return out[:min(limit, len(out))], m.call("WorstItems")
}

func stateKey(s sink.DetectorState) string {
	return s.Check + "\x00" + s.CheckVersion + "\x00" + s.Detector + "\x00" + interaction.Slice(s.Slice).String()
}

func (m *memory) DetectorStates(_ context.Context, check, version string) ([]sink.DetectorState, error) {
	var out []sink.DetectorState
	for _, s := range m.states {
		if s.Check == check && s.CheckVersion == version {
			out = append(out, s)
		}
	}
	return out, m.call("DetectorStates")
}

func (m *memory) PutDetectorStates(_ context.Context, states []sink.DetectorState) error {
	if err := m.call("PutDetectorStates"); err != nil {
		return err
	}
	for _, s := range states {
		m.states[stateKey(s)] = s
	}
	return nil
}

func (m *memory) Alarms(_ context.Context, since time.Time) ([]sink.Alarm, error) {
	var out []sink.Alarm
	for _, a := range m.alarms {
		if a.State != alarmClosed || !a.OpenedAt.Before(since) {
			out = append(out, a)
		}
	}
	return out, m.call("Alarms")
}

func (m *memory) PutAlarms(_ context.Context, alarms []sink.Alarm) error {
	if err := m.call("PutAlarms"); err != nil {
		return err
	}
	for _, a := range alarms {
		if old, ok := m.alarms[a.ID]; !ok || old.Revision <= a.Revision {
			m.alarms[a.ID] = a
		}
	}
	return nil
}
