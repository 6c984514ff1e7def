package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// Deps are the parts an engine works with; every field is required.
type Deps struct {
	Listener net.Listener // on a loopback address; Run closes it
	Ready    io.Writer    // gets one Report line as soon as the engine answers
	Log      *slog.Logger
}

// A Report is the one JSON line that tells the parent how the start went.
type Report struct {
	Addr    string `json:"addr,omitempty"`
	Library string `json:"library,omitempty"` // version of libchdb
	Version string `json:"version,omitempty"` // version of ClickHouse
	Error   string `json:"error,omitempty"`
}

// Engine is libchdb with its front.
type Engine struct {
	cfg  Config
	deps Deps
}

// New checks cfg and starts nothing; Run does the work.
func New(cfg Config, deps Deps) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Listener == nil || deps.Ready == nil || deps.Log == nil {
		return nil, errors.New("engine: a dependency is missing")
	}
	addr, ok := deps.Listener.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("listen on %s: want a loopback address, for the engine has no users and grants", deps.Listener.Addr())
	}
	return &Engine{cfg: cfg, deps: deps}, nil
}

// Run serves until ctx ends, lets running statements finish for StopWait and
// closes the engine. Only one Run per process: the library is one engine.
func (e *Engine) Run(ctx context.Context) error {
	defer func() { _ = e.deps.Listener.Close() }()
	lock, err := lockDir(e.cfg.Path)
	if err != nil {
		return err
	}
	defer lock.unlock()
	lib, err := openLibrary(e.cfg.Library)
	if err != nil {
		return err
	}
	// Before connect: Go's runtime owns the signals of this process.
	lib.setSignalHandlersEnabled(0)
	broken := make(chan error, 1)
	f, closeAll, err := e.open(lib, func(err error) {
		select {
		case broken <- err:
		default: // the first one ends the process already
		}
	})
	if err != nil {
		return err
	}
	version, err := text(f.kill.conn, "SELECT version()")
	if err != nil {
		closeAll()
		return err
	}

	srv := &http.Server{Handler: f.handler(), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(e.deps.Log.Handler(), slog.LevelDebug)}
	var serving sync.WaitGroup
	served := make(chan error, 1)
	serving.Go(func() { served <- srv.Serve(e.deps.Listener) })
	if err := json.NewEncoder(e.deps.Ready).Encode(Report{Addr: e.deps.Listener.Addr().String(), Library: lib.version(), Version: version}); err != nil {
		e.deps.Log.Warn("ready line was not taken", "err", err)
	}
	select {
	case <-ctx.Done():
		err = nil
	case err = <-served:
	case err = <-broken: // the parent starts another one
	}
	idle := e.drain(srv)
	serving.Wait()
	if !idle {
		// A statement is still inside the library: closing its connection under it
		// would crash. What was acknowledged is on disk either way.
		return fmt.Errorf("statements still ran %s after the stop", e.cfg.StopWait)
	}
	closeAll()
	return err
}

// drain waits for running requests, and tells whether all of them ended.
func (e *Engine) drain(srv *http.Server) bool {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.StopWait)
	defer cancel()
	return srv.Shutdown(ctx) == nil
}

// open makes the connections: the first one boots the engine.
func (e *Engine) open(lib *library, broken func(error)) (*front, func(), error) {
	l := &lanes{}
	closeAll := func() {
		for _, c := range l.all {
			c.close()
		}
	}
	// implicit_select would read a typing mistake as an expression.
	for range 5 {
		c, err := connect(lib, e.cfg.Path, broken, "--implicit_select=0")
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		l.all = append(l.all, c)
	}
	l.inserts = newLane("inserts", e.cfg.Queue, l.all[0])
	l.monitor = newLane("monitor", e.cfg.Queue, l.all[1])
	l.reads = newLane("reads", e.cfg.Queue, l.all[2], l.all[3])
	l.bodies = newLane("insert bodies", e.cfg.Queue, make([]*conn, insertBodies)...)
	f := &front{cfg: e.cfg, lanes: l, kill: &killer{conn: l.all[4], log: e.deps.Log}, known: make(map[string]bool), log: e.deps.Log}
	names, err := text(f.kill.conn, "SELECT name FROM system.settings")
	if err != nil {
		closeAll()
		return nil, nil, err
	}
	for name := range strings.Lines(names) {
		f.known[strings.TrimSpace(name)] = true
	}
	return f, closeAll, nil
}

// text runs a query of our own and returns its lines.
func text(c *conn, sql string) (string, error) {
	res, err := c.query(sql, "TabSeparated", nil)
	if err != nil {
		return "", fmt.Errorf("%s: %w", sql, err)
	}
	defer res.close()
	return strings.TrimSpace(string(res.bytes)), nil
}

// Fail writes the report of a start that came to nothing.
func Fail(ready io.Writer, err error) {
	_ = json.NewEncoder(ready).Encode(Report{Error: err.Error()})
	if f, ok := ready.(*os.File); ok {
		_ = f.Sync()
	}
}
