package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"assay/internal/testkit"
)

func TestUnknownVariablesAreRefusedWithTheNearestName(t *testing.T) {
	f := func(wantErr string, environ ...string) {
		t.Helper()
		err := unknownVariables(environ)
		switch {
		case wantErr == "" && err != nil:
			t.Errorf("%v: %v", environ, err)
		case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("%v: %v, want an error with %q", environ, err, wantErr)
		}
	}

	f("", "ASSAY_KAFKA_BROKERS=a:1", "HOME=/h", "ASSAYER=1")
	// what the tests use
	f("", "ASSAY_CASES=x", "ASSAY_DATA=y")
	// what Kubernetes injects for a service called assay
	f("", "ASSAY_PORT=tcp://10.0.0.7:8420", "ASSAY_SERVICE_HOST=10.0.0.7", "ASSAY_SERVICE_PORT=8420",
		"ASSAY_SERVICE_PORT_HTTP=8420", "ASSAY_PORT_8420_TCP=tcp://10.0.0.7:8420", "ASSAY_PORT_8420_TCP_PROTO=tcp",
		"ASSAY_PORT_8420_TCP_PORT=8420", "ASSAY_PORT_8420_TCP_ADDR=10.0.0.7")
	// and for one called assay-worker
	f("", "ASSAY_WORKER_SERVICE_HOST=10.0.0.8", "ASSAY_WORKER_PORT=tcp://10.0.0.8:8420", "ASSAY_WORKER_PORT_8420_TCP_ADDR=10.0.0.8")
	// a slip of a person, in each part
	f("ASSAY_KAFKA_BROKERS", "ASSAY_KAFKA_BROKER=a:1")
	f("ASSAY_CLICKHOUSE_ADDR", "ASSAY_CLICKHOUSE_ADR=a:1")
	f("ASSAY_CONSUMER_WINDOW_BYTES", "ASSAY_CONSUMER_WINDOW_BYTE=1MiB")
	f("no such variable", "ASSAY_CLICKHOUSE_PORT=9000")
}

func TestEveryVariableIsDocumentedAndNamedOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, v := range variables() {
		if v.Help == "" {
			t.Errorf("%s has no meaning", v.Name)
		}
		if seen[v.Name] {
			t.Errorf("%s is there twice", v.Name)
		}
		seen[v.Name] = true
	}
	for _, name := range []string{
		"ASSAY_CHECKS", "ASSAY_DATA_DIR", "ASSAY_KAFKA_BROKERS", "ASSAY_KAFKA_START", "ASSAY_CONSUMER_WINDOW", "ASSAY_DEAD_LETTER_MAX_RATIO",
		"ASSAY_CLICKHOUSE_ADDR", "ASSAY_SINK_BATCH_ROWS", "ASSAY_JUDGE_DEADLINE", "ASSAY_MONITOR_CLOCK", "ASSAY_MONITOR_IDLE", "ASSAY_HTTP_ADDR", "ASSAY_CHDB_LIB",
	} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

// exec runs the program and returns what it printed and its exit code.
func execAssay(t *testing.T, env []string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, "assay"), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestStartsAreRefusedInOneLineAndKubernetesIsNot(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	valid := write("valid.yaml", killChecks("http://127.0.0.1:1/v1"))
	priced := write("priced.yaml", strings.Replace(killChecks("http://127.0.0.1:1/v1"),
		"budget: { calls_per_day: 10000000 }", "price: { input_per_million: 1, output_per_million: 2 }", 1))
	typo := write("typo.yaml", strings.Replace(killChecks("http://127.0.0.1:1/v1"), "evaluator: closed_qa", "evaluator: closed_qs", 1))

	f := func(env []string, args []string, code int, want string) {
		t.Helper()
		out, got := execAssay(t, env, args...)
		if got != code || !strings.Contains(out, want) {
			t.Errorf("assay %v with %v: exit %d and\n%s\nwant exit %d and %q", args, env, got, out, code, want)
		}
		if code == exitUsage && strings.Count(strings.TrimSpace(out), "\n") > 0 {
			t.Errorf("assay %v with %v: more than one line:\n%s", args, env, out)
		}
	}
	f([]string{"ASSAY_PORT=tcp://10.0.0.7:8420", "ASSAY_SERVICE_HOST=10.0.0.7"}, []string{"validate", valid}, exitDone, "is valid")
	f([]string{"ASSAY_KAFKA_BROKER=a:1"}, []string{"validate", valid}, exitUsage, "ASSAY_KAFKA_BROKERS")
	f(nil, []string{"validate", priced}, exitUsage, "usd_per_day")
	f(nil, []string{"validate", typo}, exitUsage, "typo.yaml:")
	f(nil, []string{"validate", typo}, exitUsage, "closed_qa")
	f([]string{"ASSAY_CHECKS=" + valid}, []string{"run"}, exitUsage, "ASSAY_KAFKA_BROKERS")
	f([]string{"ASSAY_CHECKS=" + valid, "ASSAY_KAFKA_BROKERS=127.0.0.1:1"}, []string{"run"}, exitUsage, "ASSAY_CLICKHOUSE_ADDR")
	f([]string{"ASSAY_CHECKS=" + valid, "ASSAY_KAFKA_BROKERS=127.0.0.1:1", "ASSAY_CLICKHOUSE_ADDR=127.0.0.1:1"}, []string{"run"}, exitFailed, "127.0.0.1:1")
	f(nil, []string{"run", "--roles", "worker,boss"}, exitUsage, "--roles boss")
	f(nil, []string{"nonsense"}, exitUsage, "nonsense")
	f(nil, []string{"validat"}, exitUsage, "did you mean validate")
	f(nil, []string{"evaluate", "x.jsonl"}, exitUsage, "--evaluator")
	f(nil, []string{"why"}, exitUsage, "why")
	f(nil, []string{"version", "--json"}, exitDone, `"version"`)
	f(nil, []string{"config", "--json"}, exitDone, "ASSAY_MONITOR_CLOCK")
}

// The worker starts on any Linux: nothing in it needs a libc.
func TestTheBinaryIsStatic(t *testing.T) {
	out, err := exec.Command("go", "version", "-m", testkit.Program(t, "assay")).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "CGO_ENABLED=0") {
		t.Errorf("built with cgo:\n%s", out)
	}
	raw, err := os.ReadFile(testkit.Program(t, "assay"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "ld-linux-x86-64.so.2\x00") {
		t.Error("the binary asks for glibc's loader")
	}
}
