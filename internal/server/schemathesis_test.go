package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// schemathesis invents requests from the served document, right ones and wrong ones, and
// holds every answer against it: no 5xx, nothing that the document does not describe,
// wrong requests refused. (That right ones are taken is not asked: which options go with
// which evaluators no schema says.) It runs for 20 s; ASSAY_LONG=1 for three minutes, and
// then with wrong requests too: those are rare finds, and no build should fail by one.
func TestNoInventedRequestBreaksTheServer(t *testing.T) {
	program := schemathesis(t)
	w := start(t, func(c *Config, _ *Deps) { c.PerRequest, c.InFlight = 32, 64 })
	now := time.Now().UTC()
	w.monitor.Store(aDay(w, now))
	w.store.alarms = nil
	seconds, long := 20, os.Getenv("ASSAY_LONG") != ""
	if long {
		seconds = 180
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second+3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "run", w.url+"/openapi.json",
		"--max-time", strconv.Itoa(seconds), "--seed", "1", "--workers", "1", "--continue-on-failure",
		"--no-color", "--request-timeout", "60")
	cmd.Dir = t.TempDir() // where it keeps what it has tried
	if err := os.WriteFile(filepath.Join(cmd.Dir, "schemathesis.toml"), fmt.Appendf(nil, exceptions, long), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "PYTHONIOENCODING=utf-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	generated := regexp.MustCompile(`([0-9]+) generated`).FindSubmatch(out)
	if generated == nil {
		t.Fatalf("it says nothing of what it did:\n%s", out)
	}
	if n, _ := strconv.Atoi(string(generated[1])); n < 20 {
		t.Errorf("only %d requests in %d s:\n%s", n, seconds, out)
	}
	t.Logf("%s requests in %d s", generated[1], seconds)
}

// Labels are taken one by one: the wrong ones of a batch have their faults in a 200.
const exceptions = `
[checks]
positive_data_acceptance.enabled = false
negative_data_rejection.enabled = %t

[[operations]]
include-name = "POST /api/v1/labels"
checks.negative_data_rejection.enabled = false
`

const schemathesisVersion = "4.32.5"

// schemathesis finds the program where `make api-test` puts it.
func schemathesis(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cache, "assay", "schemathesis-"+schemathesisVersion, "bin", "schemathesis")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; `make api-test` installs it", err)
	}
	return path
}
