package monitor

import (
	"time"

	"assay/internal/interaction"
)

// A Snapshot is everything that a round found out. It never changes; readers may keep
// it as long as they like. Pointers are nil where there is no such number.
type Snapshot struct {
	At          time.Time   `json:"at"`           // wall clock when the round ended
	Now         time.Time   `json:"now"`          // what the windows end at; zero while there is no log on the event clock
	Clock       string      `json:"clock"`        // wall or event
	ClosedUntil time.Time   `json:"closed_until"` // detectors have read the minutes before; zero while there is no log
	Checks      []Check     `json:"checks"`       // in the file's order, a check's older versions before its current one
	Alarms      []Alarm     `json:"alarms"`       // open ones first, then the latest
	Partitions  []Partition `json:"partitions"`
}

// Check is the state of one version of a check.
type Check struct {
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Evaluator  string     `json:"evaluator"`
	Current    bool       `json:"current"` // the checks file's version
	Severity   string     `json:"severity"`
	Target     *float64   `json:"target"`
	Tolerance  *float64   `json:"tolerance"` // the detector's; nil without one
	LastJudged *time.Time `json:"last_judged"`
	Slices     []Slice    `json:"slices"`      // all first, then the declared ones in order
	Integrity  *Integrity `json:"integrity"`   // of all versions together, on the current one
	LabelQueue LabelQueue `json:"label_queue"` // on the current version
}

// Slice is a declared part of the traffic, or all of it.
type Slice struct {
	Slice      interaction.Slice `json:"slice"`
	LastJudged *time.Time        `json:"last_judged"`
	Windows    []Window          `json:"windows"`  // 5m, 1h, 6h, 24h
	Detector   *Detector         `json:"detector"` // of the current version, once there is a log
	// Against people's labels, 24h and 7d; those of each origin that has any.
	Calibration []Calibration `json:"calibration"`
}

// Window is what a span of event time says.
type Window struct {
	Name string    `json:"name"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"` // exclusive

	N             uint64 `json:"n"`              // judged rows
	Missing       uint64 `json:"missing"`        // selected, without a usable answer
	NotApplicable uint64 `json:"not_applicable"` // found while judging

	Population      float64  `json:"population"`       // interactions the check applies to
	PopulationExact bool     `json:"population_exact"` // counted by the ledger; else the sum of weights
	JudgedShare     *float64 `json:"judged_share"`     // n of population: how much was looked at
	Coverage        *float64 `json:"coverage"`         // the same by weight: below 1 where judgements are missing or not there yet
	MissingShare    *float64 `json:"missing_share"`    // by weight

	PassRate      Rate    `json:"pass_rate"`
	MeanScore     Rate    `json:"mean_score"`
	Bounds        *Bounds `json:"bounds"`         // of the pass rate, whatever the missing ones would have been
	LowConfidence bool    `json:"low_confidence"` // fewer than 5 effective rows

	Options      []OptionShare `json:"options"`
	InputTokens  uint64        `json:"input_tokens"`
	OutputTokens uint64        `json:"output_tokens"`
	CostNanoUSD  uint64        `json:"cost_nano_usd"`
}

// Rate is an estimate in [0, 1] with its intervals. Without rows Value is nil and the
// interval is [0, 1].
type Rate struct {
	Value    *float64 `json:"value"`
	NEff     float64  `json:"n_eff"`
	Lower    float64  `json:"lower"` // 95%
	Upper    float64  `json:"upper"`
	Lower999 float64  `json:"lower_999"`
	Upper999 float64  `json:"upper_999"`
}

// Bounds hold the rate had all missing judgements failed, or all passed; the limits
// add the sampling error at 95%.
type Bounds struct {
	Lower      float64 `json:"lower"`
	Upper      float64 `json:"upper"`
	LowerLimit float64 `json:"lower_limit"`
	UpperLimit float64 `json:"upper_limit"`
}

// OptionShare is the weighted share of the rows that chose an option.
type OptionShare struct {
	Option string  `json:"option"`
	Share  float64 `json:"share"`
}

// The states of a detector.
const (
	DetectorOff      = "off" // Reason says why
	DetectorWatching = "watching"
	DetectorAlarm    = "alarm" // latched until the alarm closes
)

// Detector is the state of a drift detector after the closed minutes.
type Detector struct {
	Name      string  `json:"name"`
	State     string  `json:"state"`
	Reason    string  `json:"reason,omitempty"`
	EValue    float64 `json:"e_value"`
	Threshold float64 `json:"threshold"`
	NullRate  float64 `json:"null_rate"` // failures that are tolerated: 1 - target + tolerance
	Tolerance float64 `json:"tolerance"`
	Samples   uint64  `json:"samples"` // read since the last reset
	PerDay    float64 `json:"per_day"` // rows a day that the limit reckons with
	Clipped   uint64  `json:"clipped"` // weights above the largest that the rate in force gives
	AlarmID   string  `json:"alarm_id,omitempty"`
	// The rows of the last 24 hours that came after their minute was closed, and their
	// share; on the whole check only. They count in the estimates and not here.
	LateRows     *uint64    `json:"late_rows"`
	LateShare    *float64   `json:"late_share"`
	SmallestDrop *float64   `json:"smallest_drop"` // below the target, found within 24 hours at the last 24 hours' rate
	ReadUntil    time.Time  `json:"read_until"`
	Started      time.Time  `json:"started"`
	LastRestart  *time.Time `json:"last_restart"`
	RestartedFor string     `json:"restarted_for,omitempty"`
}

// The data states of an open alarm.
const (
	DataOK = "ok"
	// No judged row in the last hour: the alarm neither closes nor is confirmed.
	DataNone = "no_data"
)

// Alarm is an alarm's newest revision.
type Alarm struct {
	ID        string            `json:"id"`
	Check     string            `json:"check"`
	Version   string            `json:"version"`
	Slice     interaction.Slice `json:"slice"`
	Detector  string            `json:"detector"`
	Severity  string            `json:"severity"`
	State     string            `json:"state"`          // open, acknowledged, closed
	Data      string            `json:"data,omitempty"` // ok or no_data, while not closed
	OpenedAt  time.Time         `json:"opened_at"`
	ClosedAt  *time.Time        `json:"closed_at"`
	UpdatedAt time.Time         `json:"updated_at"`
	By        string            `json:"by"`
	Note      string            `json:"note"`
	Summary   string            `json:"summary"`
	Evidence  string            `json:"evidence"` // JSON of Evidence
	Revision  uint64            `json:"revision"`
}

// Integrity is what a check's ledger and rows say about each other.
type Integrity struct {
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	Interactions uint64    `json:"interactions"`
	Decided      uint64    `json:"decided"`    // should be interactions
	Selected     uint64    `json:"selected"`   // by the ledger
	Rows         uint64    `json:"rows"`       // should be selected, or more while the ledger is about to count them
	Gap          uint64    `json:"gap"`        // both differences, added: the rows' minute by minute, without rows that the ledger may count yet
	SamplingZ    *float64  `json:"sampling_z"` // nil without population
}

// Partition is how far a partition's ledger has come.
type Partition struct {
	Topic     string    `json:"topic"`
	Partition uint32    `json:"partition"`
	LogTime   time.Time `json:"log_time"`
	WrittenAt time.Time `json:"written_at"`
	Active    bool      `json:"active"` // holds minutes open
}

// Check returns the current version of the check of that name.
func (s *Snapshot) Check(name string) (Check, bool) {
	for _, c := range s.Checks {
		if c.Name == name && c.Current {
			return c, true
		}
	}
	return Check{}, false
}

// Of returns the check's state on a declared slice; the empty one is all.
func (c Check) Of(slice interaction.Slice) (Slice, bool) {
	for _, s := range c.Slices {
		if s.Slice.ID() == slice.ID() {
			return s, true
		}
	}
	return Slice{}, false
}

// Window returns the window of that name.
func (s Slice) Window(name string) (Window, bool) {
	for _, w := range s.Windows {
		if w.Name == name {
			return w, true
		}
	}
	return Window{}, false
}
