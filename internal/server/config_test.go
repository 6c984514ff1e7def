package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sethvargo/go-envconfig"
)

func TestTheDefaultsAreValid(t *testing.T) {
	var cfg Config
	if err := envconfig.ProcessWith(context.Background(), &envconfig.Config{Target: &cfg, Lookuper: envconfig.MapLookuper(nil)}); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	if cfg.Addr != ":8420" || cfg.MaxBody != 8<<20 {
		t.Errorf("addr %q, body %s: want :8420 and 8MiB", cfg.Addr, cfg.MaxBody)
	}
}

func TestEveryFaultOfTheConfigurationIsNamedByItsVariable(t *testing.T) {
	err := Config{Addr: "8420", MaxBody: 3, ReadTimeout: time.Microsecond, EvaluateTime: 1, Grace: -1, PerRequest: 9, InFlight: 0}.Validate()
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, name := range []string{"ADDR", "MAX_BODY", "READ_TIMEOUT", "EVALUATE_TIME", "GRACE", "EVALUATE_PER_REQUEST", "EVALUATE_IN_FLIGHT"} {
		if !strings.Contains(err.Error(), "ASSAY_HTTP_"+name+"=") {
			t.Errorf("no word of ASSAY_HTTP_%s in %q", name, err)
		}
	}
}
