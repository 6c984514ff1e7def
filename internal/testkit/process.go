package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program builds cmd/<name> of this repository and returns its file.
func Program(tb testing.TB, name string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), engineWait)
	defer cancel()
	path, unlock, err := buildProgram(ctx, name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(unlock)
	return path
}

// AssayOptions say how a test runs assay.
type AssayOptions struct {
	Args   []string          // "run" when empty
	Checks string            // text of the checks file
	Env    map[string]string // beside what Kafka, ClickHouse and HTTP need
	Kafka  []string
	Engine *Engine
}

// Assay is a running assay process. It is killed with the test.
type Assay struct {
	URL string // of its HTTP server

	cmd    *exec.Cmd
	done   chan struct{} // closed when the process has ended
	err    error         // of Wait; read after done
	output *lockedBuffer
}

// StartAssay starts the program against real engines. It returns at once; AwaitReady
// waits until it works.
func StartAssay(tb testing.TB, o AssayOptions) *Assay {
	tb.Helper()
	program := Program(tb, "assay")
	file := filepath.Join(tb.TempDir(), "assay.yaml")
	if err := os.WriteFile(file, []byte(o.Checks), 0o600); err != nil {
		tb.Fatal(err)
	}
	addr := freeAddr(tb)
	env := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"), "TZ": "UTC",
		"ASSAY_CHECKS": file, "ASSAY_HTTP_ADDR": addr, "ASSAY_KAFKA_BROKERS": strings.Join(o.Kafka, ","),
	}
	if o.Engine != nil {
		env["ASSAY_CLICKHOUSE_ADDR"] = o.Engine.Addr
		env["ASSAY_CLICKHOUSE_PROTOCOL"] = "http"
		env["ASSAY_CLICKHOUSE_PASSWORD"] = o.Engine.Token
		env["ASSAY_CLICKHOUSE_USERNAME"] = "default"
		env["ASSAY_CLICKHOUSE_DATABASE"] = o.Engine.Database
		env["ASSAY_CLICKHOUSE_MIGRATE"] = "true"
	}
	for k, v := range o.Env {
		env[k] = v
	}
	args := o.Args
	if len(args) == 0 {
		args = []string{"run"}
	}
	a := &Assay{URL: "http://" + addr, cmd: exec.Command(program, args...), done: make(chan struct{}), output: &lockedBuffer{}}
	for k, v := range env {
		a.cmd.Env = append(a.cmd.Env, k+"="+v)
	}
	a.cmd.Stdout, a.cmd.Stderr = a.output, a.output
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		a.err = a.cmd.Wait()
		close(a.done)
	}()
	tb.Cleanup(func() {
		a.Kill()
		if tb.Failed() {
			tb.Logf("assay printed:\n%s", a.Output())
		}
	})
	return a
}

// AwaitReady waits until the process says that it works.
func (a *Assay) AwaitReady(tb testing.TB, within time.Duration) {
	tb.Helper()
	Eventually(tb, within, "assay is ready", func() error {
		select {
		case <-a.done:
			return fmt.Errorf("it ended: %v\n%s", a.err, a.Output())
		default:
		}
		body, code, err := httpGet(a.URL + "/-/ready")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (a *Assay) Kill() {
	_ = a.cmd.Process.Kill()
	<-a.done
}

// Stop asks the process to end and returns its exit code.
func (a *Assay) Stop(tb testing.TB, within time.Duration) int {
	tb.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Fatal(err)
	}
	return a.Wait(tb, within)
}

// Wait waits for the process to end by itself and returns its exit code.
func (a *Assay) Wait(tb testing.TB, within time.Duration) int {
	tb.Helper()
	select {
	case <-a.done:
		return a.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		tb.Fatalf("assay has not ended within %s:\n%s", within, a.Output())
		return -1
	}
}

// Output is what the process printed so far.
func (a *Assay) Output() string { return a.output.String() }

// Get reads a path of the process's server.
func (a *Assay) Get(tb testing.TB, path string) string {
	tb.Helper()
	body, code, err := httpGet(a.URL + path)
	if err != nil {
		tb.Fatal(err)
	}
	if code != http.StatusOK {
		tb.Fatalf("GET %s: %d %s", path, code, body)
	}
	return body
}

// Eventually asks until there is no error, and fails with the last one.
func Eventually(tb testing.TB, within time.Duration, what string, check func() error) {
	tb.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("not within %s: %s: %v", within, what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func httpGet(url string) (body string, code int, err error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	return string(raw), res.StatusCode, err
}

// freeAddr is a loopback address that nobody listens on.
func freeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// lockedBuffer may be read while a process writes to it.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
