package monitor

import (
	"errors"
	"fmt"
	"time"
)

// The clocks that windows may end at.
const (
	ClockWall  = "wall"  // the machine's
	ClockEvent = "event" // the newest timestamp of the log
)

// Config is the ASSAY_MONITOR_ part of the environment.
type Config struct {
	Every    time.Duration `env:"EVERY, default=15s" help:"time between two rounds, a duration"`
	Grace    time.Duration `env:"GRACE, default=5m" help:"how far the log must be past a minute's end before the minute is closed, a duration of log time"`
	Idle     time.Duration `env:"IDLE, default=10m" help:"a partition without new ledger rows for this long no longer holds minutes open, a duration of wall-clock time; longer than any join_wait that is often used up"`
	Clock    string        `env:"CLOCK, default=wall" help:"what windows end at: wall (the machine's clock) or event (the log's newest timestamp, for simulated time)"`
	Lookback time.Duration `env:"LOOKBACK, default=5m" help:"how far before the last round rows are looked for again, a duration: covers slow inserts"`
	Stale    time.Duration `env:"STALE, default=5m" help:"quality metrics disappear when the last complete round is older than this, a duration"`
}

// Validate reports every fault, by the variable's name.
func (c Config) Validate() error {
	var errs []error
	between := func(name string, d, lo, hi time.Duration) {
		if d < lo || d > hi {
			errs = append(errs, fmt.Errorf("ASSAY_MONITOR_%s=%v: want %v to %v", name, d, lo, hi))
		}
	}
	between("EVERY", c.Every, 10*time.Millisecond, time.Hour)
	between("GRACE", c.Grace, 0, 24*time.Hour)
	between("IDLE", c.Idle, time.Second, 24*time.Hour)
	between("LOOKBACK", c.Lookback, time.Second, 24*time.Hour)
	between("STALE", c.Stale, time.Second, 24*time.Hour)
	if c.Clock != ClockWall && c.Clock != ClockEvent {
		errs = append(errs, fmt.Errorf("ASSAY_MONITOR_CLOCK=%q: want %s or %s", c.Clock, ClockWall, ClockEvent))
	}
	return errors.Join(errs...)
}
