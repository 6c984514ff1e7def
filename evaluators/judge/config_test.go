package judge

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sethvargo/go-envconfig"
)

func load(t *testing.T, env map[string]string) Config {
	t.Helper()
	var c Config
	if err := envconfig.ProcessWith(context.Background(), &envconfig.Config{Target: &c, Lookuper: envconfig.MapLookuper(env)}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheDefaultsAreValid(t *testing.T) {
	c := load(t, nil)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.Deadline != time.Minute || c.Timeout != 20*time.Second || c.Attempts != 4 || c.CacheEntries != 10_000 {
		t.Errorf("defaults %+v", c)
	}
	if p := c.Breaker(); p.Window != 50 || p.Failures != 20 {
		t.Errorf("breaker %+v, want 20 of 50", p)
	}
}

func TestAllFaultsComeAtOnceByTheirVariables(t *testing.T) {
	err := Config{Deadline: time.Millisecond, Timeout: time.Hour, Attempts: 0, PauseBase: time.Hour, PauseMax: 30 * time.Minute, CacheEntries: -1}.Validate()
	if err == nil {
		t.Fatal("want faults")
	}
	for _, name := range []string{"DEADLINE", "TIMEOUT", "ATTEMPTS", "PAUSE_BASE", "PAUSE_MAX", "CACHE_ENTRIES", "BREAKER_PAUSE"} {
		if !strings.Contains(err.Error(), "ASSAY_JUDGE_"+name+"=") {
			t.Errorf("%s is not named in %q", name, err)
		}
	}
}
