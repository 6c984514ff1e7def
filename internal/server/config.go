package server

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/alecthomas/units"
)

// Config is the ASSAY_HTTP_ part of the environment.
type Config struct {
	Addr         string           `env:"ADDR, default=:8420" help:"address to listen on, host:port; port 0 takes a free one"`
	MaxBody      units.Base2Bytes `env:"MAX_BODY, default=8MiB" help:"largest request body, bytes with a unit"`
	ReadTimeout  time.Duration    `env:"READ_TIMEOUT, default=30s" help:"how long a client may take to send a request, a duration"`
	EvaluateTime time.Duration    `env:"EVALUATE_TIME, default=10m" help:"how long one evaluate request may take, a duration; what is not judged by then ends with reason timeout"`
	PerRequest   int              `env:"EVALUATE_PER_REQUEST, default=64" help:"judgements of one evaluate request at the same time"`
	InFlight     int              `env:"EVALUATE_IN_FLIGHT, default=256" help:"judgements of all evaluate requests at the same time"`
	Grace        time.Duration    `env:"GRACE, default=10s" help:"how long running requests may take to end when the process stops, a duration"`
}

// Validate reports every fault, by the variable's name.
func (c Config) Validate() error {
	var errs []error
	if _, port, err := net.SplitHostPort(c.Addr); err != nil || port == "" {
		errs = append(errs, fmt.Errorf("ASSAY_HTTP_ADDR=%q: want host:port, such as :8420 or 127.0.0.1:0", c.Addr))
	}
	if c.MaxBody < 1<<10 || c.MaxBody > 1<<30 {
		errs = append(errs, fmt.Errorf("ASSAY_HTTP_MAX_BODY=%s: want 1KiB to 1GiB", c.MaxBody))
	}
	duration := func(name string, d, lo, hi time.Duration) {
		if d < lo || d > hi {
			errs = append(errs, fmt.Errorf("ASSAY_HTTP_%s=%v: want %v to %v", name, d, lo, hi))
		}
	}
	duration("READ_TIMEOUT", c.ReadTimeout, time.Second, time.Hour)
	duration("EVALUATE_TIME", c.EvaluateTime, time.Second, 24*time.Hour)
	duration("GRACE", c.Grace, 0, time.Hour)
	if c.PerRequest < 1 || c.PerRequest > c.InFlight {
		errs = append(errs, fmt.Errorf("ASSAY_HTTP_EVALUATE_PER_REQUEST=%d: want 1 to ASSAY_HTTP_EVALUATE_IN_FLIGHT (%d)", c.PerRequest, c.InFlight))
	}
	if c.InFlight < 1 || c.InFlight > 100_000 {
		errs = append(errs, fmt.Errorf("ASSAY_HTTP_EVALUATE_IN_FLIGHT=%d: want 1 to 100000", c.InFlight))
	}
	return errors.Join(errs...)
}
