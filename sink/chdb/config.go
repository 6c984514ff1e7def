package chdb

import (
	"errors"
	"fmt"
	"time"
)

// Config is the ASSAY_CHDB_ part of the environment.
type Config struct {
	// DataDir is ASSAY_DATA_DIR, which other packages read too; the caller fills
	// it in (DefaultDataDir when it is not set).
	DataDir string

	Library     string        `env:"LIB" help:"path of libchdb.so; default: the installed one in the data directory"`
	Binary      string        `env:"BIN" help:"path of the assay-chdb program; default: beside assay, then on PATH"`
	Queue       int           `env:"QUEUE, default=256" help:"statements that may wait per lane (inserts, monitor, reads)"`
	MaxMemory   int64         `env:"MAX_MEMORY, default=4294967296" help:"memory of a statement that states no limit, bytes"`
	MaxTime     time.Duration `env:"MAX_TIME, default=2m" help:"time of a read that states no limit"`
	StartWait   time.Duration `env:"START_WAIT, default=1m" help:"how long the engine may take until it answers"`
	StopWait    time.Duration `env:"STOP_WAIT, default=10s" help:"how long running statements may go on at the end"`
	MaxRestarts int           `env:"MAX_RESTARTS, default=5" help:"restarts within 10 minutes; one more is given up"`
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("ASSAY_DATA_DIR is empty: want the data directory"))
	}
	if c.Queue < 1 || c.Queue > 100_000 {
		errs = append(errs, fmt.Errorf("ASSAY_CHDB_QUEUE=%d: want 1 to 100000", c.Queue))
	}
	if c.MaxMemory < 64<<20 {
		errs = append(errs, fmt.Errorf("ASSAY_CHDB_MAX_MEMORY=%d: want at least 67108864 (64 MiB)", c.MaxMemory))
	}
	if c.MaxTime < time.Second {
		errs = append(errs, fmt.Errorf("ASSAY_CHDB_MAX_TIME=%s: want at least 1s", c.MaxTime))
	}
	if c.StartWait < time.Second {
		errs = append(errs, fmt.Errorf("ASSAY_CHDB_START_WAIT=%s: want at least 1s", c.StartWait))
	}
	if c.StopWait < 0 {
		errs = append(errs, fmt.Errorf("ASSAY_CHDB_STOP_WAIT=%s: want 0s or more", c.StopWait))
	}
	if c.MaxRestarts < 0 {
		errs = append(errs, fmt.Errorf("ASSAY_CHDB_MAX_RESTARTS=%d: want 0 or more", c.MaxRestarts))
	}
	return errors.Join(errs...)
}
