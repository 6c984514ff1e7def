package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/monitor"
	"assay/sink"
)

// A monitored is where the newest snapshot comes from; *monitor.Monitor is one.
type monitored interface {
	Snapshot() *monitor.Snapshot // nil before the first round
}

// Store is what the server needs of ClickHouse; *sink.DB is one.
type Store interface {
	WhyStore
	QualityBuckets(ctx context.Context, check, version string, slice map[string]string, from, to time.Time, step time.Duration) ([]sink.QualitySums, error)
	Alarms(ctx context.Context, since time.Time) ([]sink.Alarm, error)
	WriteLabels(ctx context.Context, changes []sink.LabelChange, now time.Time) ([]sink.LabelOutcome, error)
}

var _ Store = (*sink.DB)(nil)

// Deps are the parts the server works with; every field is required but where it says
// so.
type Deps struct {
	Log      *slog.Logger
	Reg      prometheus.Registerer
	Gatherer prometheus.Gatherer
	Checks   *checks.File
	Judges   map[string]judge.Judge // by the names of the checks file
	// Prompts show a question as the judge of that name reads it, for those that read
	// prompts; or nil.
	Prompts  map[string]func(judge.Question) []judge.Message
	Monitor  monitored // or nil: this process has no monitor
	Store    Store
	Ready    func(context.Context) error
	Mode     string        // what this process runs on, shown on the page
	Version  string        // of the program
	Deadline time.Duration // of one judgement
	Stale    time.Duration // age at which a snapshot is called stale; 0: 5 minutes
}

// Server serves the API and the page.
type Server struct {
	cfg     Config
	deps    Deps
	handler http.Handler
	slots   chan struct{} // one per judgement in flight, of all requests
	suites  []evaluators.Suite

	mu       sync.Mutex // guards listener; a leaf
	listener net.Listener
}

// How long a client may take for a header, and how long an idle connection is kept.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
)

// New checks its arguments and registers metrics; it listens to nothing. Listen does.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	switch {
	case deps.Log == nil, deps.Reg == nil, deps.Gatherer == nil, deps.Checks == nil, deps.Store == nil, deps.Ready == nil:
		return nil, errors.New("server: every dependency but Monitor is required")
	case deps.Deadline <= 0:
		return nil, fmt.Errorf("server: deadline %v of a judgement: want more than 0", deps.Deadline)
	}
	if deps.Stale == 0 {
		deps.Stale = 5 * time.Minute
	}
	s := &Server{cfg: cfg, deps: deps, slots: make(chan struct{}, cfg.InFlight), suites: deps.Checks.AllSuites()}
	var err error
	if s.handler, err = s.routes(); err != nil {
		return nil, err
	}
	return s, nil
}

// Listen takes the address, so that it is known, and in use by somebody else is found
// out, before anything runs. Run does it when nobody has.
func (s *Server) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		return nil
	}
	l, err := net.Listen("tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("ASSAY_HTTP_ADDR=%s: %w", s.cfg.Addr, err)
	}
	s.listener = l
	return nil
}

// Addr is where a browser on this machine finds the server: the port is the real one
// once Listen has been called.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := s.cfg.Addr
	if s.listener != nil {
		addr = s.listener.Addr().String()
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// Run serves until ctx ends. Then it takes no new requests, gives the running ones the
// grace, and ends what is left: their judge calls stop with them.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(); err != nil {
		return err
	}
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	h := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return running },
		ReadHeaderTimeout: headerTimeout, // bodies have their own, see bodyDeadline
		WriteTimeout:      s.cfg.EvaluateTime + time.Minute,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.deps.Log.Handler(), slog.LevelDebug), // broken connections, mostly
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	s.deps.Log.Info("http server started", "addr", s.Addr())
	select {
	case err := <-served:
		return fmt.Errorf("http server on %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
	defer cancel()
	err := h.Shutdown(grace)
	if err != nil {
		s.deps.Log.Warn("requests cut off", "grace", s.cfg.Grace)
		end(errStopping)
		// The handlers see the end and return; a last moment lets their answer out.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if h.Shutdown(last) != nil {
			err = h.Close()
		} else {
			err = nil
		}
	}
	<-served
	return err
}

var errStopping = errors.New("the server is stopping")
