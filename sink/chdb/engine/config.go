package engine

import (
	"errors"
	"fmt"
	"time"
)

// Config is how one engine process serves. cmd/assay-chdb fills it from its
// flags; the defaults stand here once.
type Config struct {
	Path        string        // the engine's data directory
	Library     string        // libchdb.so
	Token       string        // expected in X-ClickHouse-Key or as the password
	Queue       int           // requests that may wait per lane
	MaxTime     time.Duration // max_execution_time of reads that state none
	MaxMemory   int64         // max_memory_usage in bytes of statements that state none
	MaxResult   int64         // max_result_bytes of reads that state none: an answer is held whole
	InsertSpool int           // bytes of an insert taken in before the engine sees the first one
	StopWait    time.Duration // how long running statements may go on after the stop
}

// Default is the configuration without the three fields that have no default.
func Default() Config {
	return Config{
		Queue:       256,
		MaxTime:     2 * time.Minute,
		MaxMemory:   4 << 30,
		MaxResult:   1 << 30,
		InsertSpool: 64 << 20,
		StopWait:    10 * time.Second,
	}
}

// Validate reports every fault at once.
func (c Config) Validate() error {
	var errs []error
	if c.Path == "" {
		errs = append(errs, errors.New("path: want the engine's data directory"))
	}
	if c.Library == "" {
		errs = append(errs, errors.New("lib: want the file libchdb.so"))
	}
	if len(c.Token) < 16 {
		errs = append(errs, errors.New("token: want at least 16 characters in ASSAY_CHDB_TOKEN or on the first line of stdin"))
	}
	if c.Queue < 1 || c.Queue > 100_000 {
		errs = append(errs, fmt.Errorf("queue=%d: want 1 to 100000", c.Queue))
	}
	if c.MaxTime < time.Second {
		errs = append(errs, fmt.Errorf("max-time=%s: want at least 1s", c.MaxTime))
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"max-memory", c.MaxMemory}, {"max-result", c.MaxResult}, {"insert-spool", int64(c.InsertSpool)}} {
		if f.value < 1<<20 {
			errs = append(errs, fmt.Errorf("%s=%d: want at least 1 MiB", f.name, f.value))
		}
	}
	if c.StopWait < 0 {
		errs = append(errs, fmt.Errorf("stop-wait=%s: want 0s or more", c.StopWait))
	}
	return errors.Join(errs...)
}
