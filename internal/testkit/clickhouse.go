package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/sink/chdb"
)

// engineWait bounds a start of the embedded ClickHouse, a build of its program
// included.
const engineWait = 2 * time.Minute

// An Engine is a running ClickHouse with a database that belongs to one test.
type Engine struct {
	Addr     string // HTTP interface, host:port
	Token    string // the password, or X-ClickHouse-Key
	Database string // empty and fresh, dropped with the test
	shared   *sharedClickHouse
}

// ClickHouse returns a fresh database on the embedded ClickHouse of this test
// process. The first call starts it, the last test that uses it ends it; Engines
// keeps it from test to test.
func ClickHouse(tb testing.TB) *Engine {
	tb.Helper()
	s, number, err := clickHouse.acquire()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := clickHouse.release(); err != nil {
			tb.Error(err)
		}
	})
	e := &Engine{Addr: s.at.Addr, Token: s.at.Token, Database: fmt.Sprintf("test_%d", number), shared: s}
	if err := e.post(context.Background(), "CREATE DATABASE "+e.Database, "default"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.post(context.Background(), "DROP DATABASE "+e.Database+" SYNC", "default"); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// ClickHouseProgram builds the embedded ClickHouse's program and finds its
// library, for tests that run a process of their own.
func ClickHouseProgram(tb testing.TB) (program, library string) {
	tb.Helper()
	library, err := testLibrary()
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), engineWait)
	defer cancel()
	program, remove, err := buildProgram(ctx, "assay-chdb")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(remove)
	return program, library
}

// Options are what the driver needs to reach the test's database.
func (e *Engine) Options() *clickhouse.Options {
	return &clickhouse.Options{
		Protocol: clickhouse.HTTP,
		Addr:     []string{e.Addr},
		Auth:     clickhouse.Auth{Database: e.Database, Username: "default", Password: e.Token},
	}
}

// Conn opens the driver on the test's database and closes it with the test.
func (e *Engine) Conn(tb testing.TB) clickhouse.Conn {
	tb.Helper()
	conn, err := clickhouse.Open(e.Options())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Exec runs one statement in the test's database.
func (e *Engine) Exec(tb testing.TB, sql string) {
	tb.Helper()
	if err := e.post(context.Background(), sql, e.Database); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// Kill ends the engine's process with SIGKILL and returns at once; it starts
// again on the same port with the same data. Other tests of the package that run
// at the same time lose it too.
func (e *Engine) Kill(tb testing.TB) {
	tb.Helper()
	pid := e.shared.child.PID()
	if pid == 0 {
		tb.Fatal("the embedded ClickHouse is not running")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		tb.Fatal(err)
	}
}

// post sends one statement over HTTP, without a connection that stays open:
// leak checks of the caller see nothing of it.
func (e *Engine) post(ctx context.Context, sql, database string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.Addr+"/?database="+database, strings.NewReader(sql))
	if err != nil {
		return err
	}
	req.Header.Set("X-ClickHouse-Key", e.Token)
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(body)))
	}
	return nil
}

// clickHouse is the engine of this process. It has to be the package's: the
// library allows one directory per process, and a start costs half a second.
var clickHouse engineHolder

// engineHolder counts who needs the engine.
type engineHolder struct {
	mu     sync.Mutex // guards the fields below, also while the engine starts or ends
	users  int
	tests  int
	engine *sharedClickHouse
}

type sharedClickHouse struct {
	child  *chdb.Child
	at     chdb.Endpoint
	stop   context.CancelFunc
	done   chan error
	dir    string
	remove func() // the program's copy
}

func (h *engineHolder) acquire() (*sharedClickHouse, int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.engine == nil {
		engine, err := startClickHouse()
		if err != nil {
			return nil, 0, err
		}
		h.engine = engine
	}
	h.users++
	h.tests++
	return h.engine, h.tests, nil
}

func (h *engineHolder) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users--
	if h.users > 0 || h.engine == nil {
		return nil
	}
	engine := h.engine
	h.engine = nil
	return engine.end()
}

// hold counts one user without starting anything.
func (h *engineHolder) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
}

func startClickHouse() (*sharedClickHouse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), engineWait)
	defer cancel()
	library, err := testLibrary()
	if err != nil {
		return nil, err
	}
	program, remove, err := buildProgram(ctx, "assay-chdb")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "assay-test-clickhouse-")
	if err != nil {
		remove()
		return nil, err
	}
	child, err := chdb.New(chdb.Config{
		DataDir: filepath.Join(dir, "data"), Library: library, Binary: program,
		Queue: 256, MaxMemory: 4 << 30, MaxTime: 2 * time.Minute,
		StartWait: time.Minute, StopWait: 10 * time.Second, MaxRestarts: 100,
	}, chdb.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		remove()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	run, stop := context.WithCancel(context.Background())
	s := &sharedClickHouse{child: child, stop: stop, done: make(chan error, 1), dir: dir, remove: remove}
	go func() { s.done <- child.Run(run) }()
	if s.at, err = child.Ready(ctx); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// end stops the child, waits for it and removes its directory and program.
func (s *sharedClickHouse) end() error {
	s.stop()
	err := <-s.done
	s.remove()
	return errors.Join(err, os.RemoveAll(s.dir))
}

// testLibrary is the library that the tests use. Without it they fail: a skipped
// engine test would look like a passed one.
func testLibrary() (string, error) {
	dataDir, err := chdb.DefaultDataDir()
	if err != nil {
		return "", err
	}
	library, err := chdb.FindLibrary(os.Getenv("ASSAY_CHDB_LIB"), dataDir)
	if err != nil {
		return "", fmt.Errorf("tests need the embedded ClickHouse, `make engine` installs it: %w", err)
	}
	return library, nil
}
