package monitor

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/stats"
	"assay/sink"
)

// esrDetector is the detector's name in detector_state, alarms and metrics.
const esrDetector = "esr"

// dailyRows is how many rows a day a detector reads at most. Above, a wobble of one
// point that harms nobody carries enough evidence by itself (statistics.md, 5.1: 16
// alarms a year at 100,000).
const dailyRows = 10_000

// firstDayRows is what a year is taken to hold before a day has been counted: with
// the rows so far alone, the limit would start low enough to be reached by chance.
const firstDayRows = 1000

// limits is what a detector of one check holds its rows against. It follows from the
// checks file alone.
type limits struct {
	aim       float64 // failure rate that is aimed at: 1 - target
	tolerance float64 // how much more is not looked for
	null      float64 // aim + tolerance, in the detector's range
	wMax      float64 // largest weight the rate in force can give
	share     float64 // detectors that share the budget / false alarms a year
}

// limitsOf is false, with the reason, for a check without a detector.
func limitsOf(c checks.Check, watched int, alarmsPerYear float64) (limits, string) {
	switch {
	case c.Alert.Off:
		return limits{}, "alert is off in the checks file"
	case c.Alert.Target == 0:
		return limits{}, "no alert.target: a learned baseline is not built yet"
	}
	l := limits{aim: 1 - c.Alert.Target, wMax: 1, share: float64(watched) / alarmsPerYear}
	// Without a baseline auto is its floor. A hundredth flat would never find .99
	// falling to .98, so it is at most half of what fails anyway.
	l.tolerance = min(0.01, l.aim/2)
	if c.Alert.Tolerance != nil {
		l.tolerance = *c.Alert.Tolerance
	}
	l.null = stats.NullRate(l.aim + l.tolerance)
	if c.Sample.Rate > 0 {
		l.wMax = 1 / c.Sample.Rate
	}
	return l, ""
}

// A detector reads the judged rows of one check version and declared slice. It is a
// value: a round works on copies and keeps them only when everything was stored.
type detector struct {
	check, version string
	slice          interaction.Slice
	limits         limits

	esr     stats.ESR
	samples uint64    // read since the last reset
	minute  time.Time // rows of earlier minutes have been read
	latched bool      // an alarm is open; a second one is not opened
	note    baseline
	digest  [16]byte // of every row read, in order

	opened *opening // set by the row that crossed the limit, this round
}

// An opening is the moment at which the evidence crossed its limit.
type opening struct {
	at        time.Time // end of the minute of the row that crossed
	eValue    float64
	threshold float64
	samples   uint64
}

// baseline is what the detector has learned of its traffic; JSON in detector_state.
type baseline struct {
	Started  time.Time        `json:"started"` // days are counted from here, so that the first is whole
	Days     []uint64         `json:"days"`    // rows read on each of the last 28 finished days
	Today    uint64           `json:"today"`
	Offered  uint64           `json:"offered_today"` // before the share was taken
	Day      int              `json:"day"`
	Share    float64          `json:"share"` // of the offered rows that is read today
	Hours    map[int64]uint64 `json:"hours"` // rows offered by Unix hour, the last 24: what late rows are counted against
	Models   []string         `json:"models,omitempty"`
	Restarts []restart        `json:"restarts,omitempty"`
	Clipped  uint64           `json:"clipped"` // weights above the largest
	AlarmID  string           `json:"alarm_id,omitempty"`
}

// A restart is why the evidence began anew.
type restart struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

const (
	baselineDays  = 28
	maxModels     = 20 // a judge behind a balancer may name many; the oldest is forgotten
	maxRestarts   = 20
	detectorDay   = 24 * time.Hour
	lateRowsHours = 24
)

func newDetector(c checks.Check, slice interaction.Slice, l limits, from time.Time) detector {
	return detector{
		check: c.Name, version: c.Version, slice: slice, limits: l, minute: from,
		note: baseline{Started: from, Share: 1, Hours: map[int64]uint64{}},
	}
}

// clone shares nothing that a later row would change.
func (d *detector) clone() *detector {
	c := *d
	c.opened = nil
	c.note.Days = slices.Clone(d.note.Days)
	c.note.Models = slices.Clone(d.note.Models)
	c.note.Restarts = slices.Clone(d.note.Restarts)
	c.note.Hours = make(map[int64]uint64, len(d.note.Hours))
	for h, n := range d.note.Hours {
		c.note.Hours[h] = n
	}
	return &c
}

// orderedRow is a judged row with its place inside the minute.
type orderedRow struct {
	sink.JudgedRow
	order uint64
}

// order sorts the rows of closed minutes as every detector reads them: by minute, then
// by a hash with a salt of its own. In the order of the sampling hash, oversampled
// rows would come last in each minute, and in the order of ids a producer's naming
// would; both shorten the run (statistics.md, 5.1).
func order(rows []sink.JudgedRow) []orderedRow {
	ordered := make([]orderedRow, len(rows))
	for i, r := range rows {
		h := sha256.Sum256([]byte("assay drift order v1\x00" + r.InteractionID))
		ordered[i] = orderedRow{r, binary.BigEndian.Uint64(h[:8])}
	}
	slices.SortFunc(ordered, func(a, b orderedRow) int {
		return cmp.Or(a.Minute.Compare(b.Minute), cmp.Compare(a.order, b.order), cmp.Compare(a.InteractionID, b.InteractionID))
	})
	return ordered
}

// read takes one row. Rows outside the slice and of minutes already read pass by.
func (d *detector) read(row orderedRow) {
	if row.Minute.Before(d.minute) || !d.slice.Contains(row.Slice) {
		return
	}
	d.reachDay(row.Minute)
	d.note.Offered++
	d.note.Hours[row.Minute.Unix()/3600]++
	if float64(row.order>>11)/(1<<53) >= d.note.Share {
		return
	}
	d.meet(row.JudgeModel, row.Minute)
	d.note.Today++
	d.samples++
	// before the row's outcome is looked at: a limit that knew it would bound nothing
	limit := d.threshold()
	fail := 1.0
	if row.Passed {
		fail = 0
	}
	if d.esr.Step(fail, 1/row.Pi, d.limits.wMax, d.limits.null) {
		d.note.Clipped++
	}
	d.addToDigest(row, fail)
	if m := d.esr.M(); m >= limit && !d.latched {
		d.opened = &opening{at: row.Minute.Add(time.Minute), eValue: m, threshold: limit, samples: d.samples}
		d.latched = true
		d.note.AlarmID = alarmID(d.check, d.version, d.slice, row.Minute)
		d.reset()
	}
}

// finish marks the minutes before until as read.
func (d *detector) finish(until time.Time) {
	if until.After(d.minute) {
		d.minute = until
	}
	oldest := d.minute.Unix()/3600 - lateRowsHours
	for hour := range d.note.Hours {
		if hour < oldest {
			delete(d.note.Hours, hour)
		}
	}
}

// reset throws the evidence away: after an alarm, at its end, under a new judge.
func (d *detector) reset() {
	d.esr, d.samples = stats.ESR{}, 0
}

// restart resets and keeps the reason.
func (d *detector) restart(at time.Time, reason string) {
	d.reset()
	d.note.Restarts = append(d.note.Restarts, restart{at, reason})
	if n := len(d.note.Restarts) - maxRestarts; n > 0 {
		d.note.Restarts = slices.Delete(d.note.Restarts, 0, n)
	}
}

// meet restarts the evidence when the provider returns a model it has not returned
// before: what follows may be the judge's change and not the assistant's. A model that
// comes back, as from behind a balancer, is no news.
func (d *detector) meet(model string, at time.Time) {
	if model == "" || slices.Contains(d.note.Models, model) {
		return
	}
	if len(d.note.Models) > 0 {
		d.restart(at, "the judge answers as "+model+", before as "+d.note.Models[len(d.note.Models)-1])
	}
	d.note.Models = append(d.note.Models, model)
	if n := len(d.note.Models) - maxModels; n > 0 {
		d.note.Models = slices.Delete(d.note.Models, 0, n)
	}
}

// reachDay ends every day before the one that minute lies in. The share for a day is
// set by the day before it, and so is known before its rows.
func (d *detector) reachDay(minute time.Time) {
	day := int(minute.Sub(d.note.Started) / detectorDay)
	for d.note.Day < day {
		d.note.Days = append(d.note.Days, d.note.Today)
		if len(d.note.Days) > baselineDays {
			d.note.Days = slices.Delete(d.note.Days, 0, 1)
		}
		d.note.Share = 1
		if d.note.Offered > dailyRows {
			d.note.Share = dailyRows / float64(d.note.Offered)
		}
		d.note.Today, d.note.Offered = 0, 0
		d.note.Day++
	}
}

// perDay is the rows a day that the false-alarm budget is reckoned with: the largest of
// the means of 28 and of 3 days and of today so far, so that a launch that multiplies
// the traffic raises the limit as it happens.
func (d *detector) perDay() float64 {
	days := d.note.Days
	if len(days) == 0 {
		return max(firstDayRows, float64(d.note.Today))
	}
	recent := days[max(0, len(days)-3):]
	return max(mean(days), mean(recent), float64(d.note.Today))
}

func mean(counts []uint64) float64 {
	var sum uint64
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / float64(len(counts))
}

// threshold is the limit of the e-value: rows a year over false alarms a year, with
// the budget shared equally by all detectors of the file.
func (d *detector) threshold() float64 { return 365 * d.perDay() * d.limits.share }

// addToDigest chains the row to those before it, so that two monitors, or one before
// and after a restart, can be compared by 16 bytes.
func (d *detector) addToDigest(row orderedRow, fail float64) {
	b := bytes.NewBuffer(make([]byte, 0, 48))
	b.Write(d.digest[:])
	for _, v := range []uint64{uint64(row.Minute.Unix()), row.order, math.Float64bits(row.Pi), math.Float64bits(fail)} {
		b.Write(binary.BigEndian.AppendUint64(nil, v))
	}
	h := sha256.Sum256(b.Bytes())
	copy(d.digest[:], h[:])
}
