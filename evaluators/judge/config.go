package judge

import (
	"errors"
	"fmt"
	"time"
)

// Config is the ASSAY_JUDGE_ part of the environment: how patient we are with every
// judge. What a judge is, and what it may cost, stands in the checks file.
type Config struct {
	Deadline     time.Duration `env:"DEADLINE, default=60s" help:"one interaction's judging at most, from its slot on: rate limits, every try and every pause included"`
	Timeout      time.Duration `env:"TIMEOUT, default=20s" help:"one try at most"`
	Attempts     int           `env:"ATTEMPTS, default=4" help:"tries per question inside the deadline, the first included"`
	PauseBase    time.Duration `env:"PAUSE_BASE, default=250ms" help:"longest pause before the second try; it doubles with every further one"`
	PauseMax     time.Duration `env:"PAUSE_MAX, default=15s" help:"longest pause between two tries, unless the judge names a longer one"`
	CacheEntries int           `env:"CACHE_ENTRIES, default=10000" help:"usable answers kept in memory per judge; 0 keeps none"`
	BreakerPause time.Duration `env:"BREAKER_PAUSE, default=5s" help:"how long a failing judge is left alone before one question probes it; doubles up to 16 times this"`
}

// Validate reports every fault by its variable.
func (c Config) Validate() error {
	var errs []error
	fault := func(name string, value any, want string) {
		errs = append(errs, fmt.Errorf("ASSAY_JUDGE_%s=%v: want %s", name, value, want))
	}
	if c.Deadline < time.Second || c.Deadline > time.Hour {
		fault("DEADLINE", c.Deadline, "1s to 1h")
	}
	if c.Timeout < 100*time.Millisecond || c.Timeout > c.Deadline {
		fault("TIMEOUT", c.Timeout, fmt.Sprintf("100ms to ASSAY_JUDGE_DEADLINE (%s)", c.Deadline))
	}
	if c.Attempts < 1 || c.Attempts > 20 {
		fault("ATTEMPTS", c.Attempts, "1 to 20")
	}
	if c.PauseBase < time.Millisecond || c.PauseBase > c.PauseMax {
		fault("PAUSE_BASE", c.PauseBase, fmt.Sprintf("1ms to ASSAY_JUDGE_PAUSE_MAX (%s)", c.PauseMax))
	}
	if c.PauseMax > 10*time.Minute {
		fault("PAUSE_MAX", c.PauseMax, "at most 10m")
	}
	if c.CacheEntries < 0 || c.CacheEntries > 10_000_000 {
		fault("CACHE_ENTRIES", c.CacheEntries, "0 to 10000000")
	}
	if c.BreakerPause < 100*time.Millisecond || c.BreakerPause > time.Hour {
		fault("BREAKER_PAUSE", c.BreakerPause, "100ms to 1h")
	}
	return errors.Join(errs...)
}

// Retry returns the policy for NewRetry.
func (c Config) Retry() RetryPolicy {
	return RetryPolicy{Attempts: c.Attempts, Base: c.PauseBase, Max: c.PauseMax}
}

// Breaker returns the policy for NewBreaker.
func (c Config) Breaker() BreakerPolicy {
	return BreakerPolicy{Window: 50, Failures: 20, Pause: c.BreakerPause, MaxPause: 16 * c.BreakerPause}
}
