package chdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	restartWindow = 10 * time.Minute // MaxRestarts count within it
	firstPause    = 500 * time.Millisecond
	longestPause  = 30 * time.Second
)

// Deps are the parts a child works with; every field is required.
type Deps struct {
	Log *slog.Logger
}

// An Endpoint is where the engine answers and what it wants to be told.
type Endpoint struct {
	Addr  string // host:port on loopback, ClickHouse's HTTP interface
	Token string // the password; the user name is free
}

// A Child is the embedded ClickHouse's process, started again when it dies.
type Child struct {
	cfg     Config
	log     *slog.Logger
	library string
	binary  string

	mu      sync.Mutex // guards the fields below
	at      Endpoint
	up      bool
	pid     int
	ended   error         // why Run returned
	changed chan struct{} // closed and replaced at every change
}

// errStopped is what Ready says after a Run that ended as asked.
var errStopped = errors.New("the embedded ClickHouse has been stopped")

// New checks cfg, finds library and program, and starts nothing; Run does the
// work.
func New(cfg Config, deps Deps) (*Child, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		return nil, errors.New("chdb: Deps.Log is missing")
	}
	dataDir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	cfg.DataDir = dataDir
	library, err := FindLibrary(cfg.Library, cfg.DataDir)
	if err != nil {
		return nil, err
	}
	binary := cfg.Binary
	if binary == "" {
		if binary, err = FindBinary(); err != nil {
			return nil, err
		}
	} else if err := isFile(binary); err != nil {
		return nil, fmt.Errorf("ASSAY_CHDB_BIN=%s: %w", binary, err)
	}
	return &Child{cfg: cfg, log: deps.Log, library: library, binary: binary, changed: make(chan struct{})}, nil
}

// Run keeps a child running until ctx ends, then ends it in peace. The listening
// socket is opened here and inherited by every child, so the port stays the same
// and a client that comes while one is being replaced waits in the socket's
// queue. Run gives up, with the child's last words, when the first start fails
// or when the child has died more than MaxRestarts times within 10 minutes.
func (c *Child) Run(ctx context.Context) (err error) {
	defer func() { c.end(err) }()
	if err := PrepareDataDir(c.cfg.DataDir); err != nil {
		return err
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("embedded clickhouse: %w", err)
	}
	defer func() { _ = ln.Close() }()
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		return fmt.Errorf("embedded clickhouse: %w", err)
	}
	defer func() { _ = socket.Close() }()
	at := Endpoint{Addr: ln.Addr().String(), Token: rand.Text() + rand.Text()}

	// The child is told of its parent's death by the thread that started it: the
	// kernel watches that thread, so it has to live as long as we do.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var deaths []time.Time
	for started := 0; ; started++ {
		p := c.newProcess(socket, at.Token)
		err := p.run(ctx, func(pid int) { c.running(at, pid) })
		c.down()
		if ctx.Err() != nil {
			return nil
		}
		if started == 0 && !p.answered {
			return fmt.Errorf("embedded clickhouse: %w", err)
		}
		now := time.Now()
		deaths = append(recent(deaths, now), now)
		if len(deaths) > c.cfg.MaxRestarts {
			return fmt.Errorf("embedded clickhouse ended %d times within %s: %w; its last lines:\n%s",
				len(deaths), restartWindow, err, strings.Join(p.stderr.lines(), "\n"))
		}
		pause := pauseAfter(len(deaths))
		c.log.Warn("embedded clickhouse ended, starting again", "err", err, "try", len(deaths), "pause", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// pauseAfter doubles with every death in the window.
func pauseAfter(deaths int) time.Duration {
	pause := firstPause
	for ; deaths > 1 && pause < longestPause; deaths-- {
		pause *= 2
	}
	return min(pause, longestPause)
}

// recent drops deaths that the window has left behind.
func recent(deaths []time.Time, now time.Time) []time.Time {
	for len(deaths) > 0 && now.Sub(deaths[0]) > restartWindow {
		deaths = deaths[1:]
	}
	return deaths
}

// Ready waits until the engine answers. It fails when ctx ends, and with Run's
// error once Run has returned.
func (c *Child) Ready(ctx context.Context) (Endpoint, error) {
	for {
		c.mu.Lock()
		at, up, ended, changed := c.at, c.up, c.ended, c.changed
		c.mu.Unlock()
		switch {
		case ended != nil:
			return Endpoint{}, ended
		case up:
			return at, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Endpoint{}, fmt.Errorf("embedded clickhouse is not ready: %w", ctx.Err())
		}
	}
}

// PID is the running child's process number, 0 while there is none.
func (c *Child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

func (c *Child) running(at Endpoint, pid int) {
	c.change(func() { c.at, c.up, c.pid = at, true, pid })
	c.log.Info("embedded clickhouse answers", "addr", at.Addr, "pid", pid)
}

func (c *Child) down() { c.change(func() { c.up, c.pid = false, 0 }) }

func (c *Child) end(err error) {
	if err == nil {
		err = errStopped
	}
	c.change(func() { c.up, c.pid, c.ended = false, 0, err })
}

func (c *Child) change(set func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set()
	close(c.changed)
	c.changed = make(chan struct{})
}

// clickhousePath is the engine's own directory.
func (c *Child) clickhousePath() string { return filepath.Join(c.cfg.DataDir, clickhouseDir) }

// environment is all the child gets of ours: no secret of the parent's is in it.
func environment() []string {
	env := []string{
		"TZ=UTC",            // the engine's server time zone
		"GOMEMLIMIT=512MiB", // the front's part; the engine's is bounded per statement
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
