package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"assay/consumer"
	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/interaction/decode"
	"assay/internal/monitor"
	"assay/internal/pipeline"
	"assay/internal/server"
	"assay/sink"
)

// The roles of a process.
const (
	roleWorker  = "worker"
	roleMonitor = "monitor"
	roleServer  = "server"
)

// sinkPoll is how often a closed sink is looked at to pause and resume fetching.
const sinkPoll = time.Second

// system is what `assay run` and `assay demo` run: the parts of the process's roles,
// wired. Nothing in it works before run.
type system struct {
	log     *slog.Logger
	reg     *prometheus.Registry
	file    *checks.File
	db      *sink.DB
	stacks  map[string]stack
	writer  *sink.Writer
	worker  *consumer.Consumer // or nil
	monitor *monitor.Monitor   // or nil
	server  *server.Server     // or nil

	breakers sync.Mutex // held while followBreakers looks and acts
}

// wiring is what a system is made from.
type wiring struct {
	env     environment
	environ []string
	file    *checks.File
	db      *sink.DB
	roles   []string
	log     *slog.Logger
	mode    string // shown on the page
	poison  []string
	truth   func(judge.Question) (string, bool) // of the demo's simulated judge
}

// newSystem builds the parts. Every fault of the configuration is found here.
func newSystem(ctx context.Context, w wiring) (*system, error) {
	s := &system{log: w.log, reg: newRegistry(), file: w.file, db: w.db}
	maker := newStacker(w.env, w.environ, s.reg, w.log)
	maker.truth = w.truth
	maker.onBreaker = s.followBreakers
	var err error
	if s.stacks, err = maker.stacks(w.file); err != nil {
		return nil, err
	}
	if err := s.restoreBudgets(ctx, time.Now()); err != nil {
		return nil, err
	}
	if err := recordVersions(ctx, w.db, w.file, s.stacks, time.Now()); err != nil {
		return nil, err
	}
	if slices.Contains(w.roles, roleWorker) {
		if err := s.addWorker(w); err != nil {
			return nil, err
		}
	}
	if slices.Contains(w.roles, roleMonitor) {
		s.monitor, err = monitor.New(w.env.Monitor, monitor.Deps{
			Store: w.db, Checks: w.file, Log: w.log.With("part", roleMonitor), Reg: s.reg, Now: time.Now,
		})
		if err != nil {
			return nil, err
		}
	}
	if slices.Contains(w.roles, roleServer) {
		if err := s.addServer(w); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *system) addWorker(w wiring) error {
	sources, err := decodeSources(w.file, w.environ)
	if err != nil {
		return err
	}
	decoder, err := decode.New(w.env.Decode, sources)
	if err != nil {
		return err
	}
	s.writer, err = sink.NewWriter(w.env.Sink, sink.WriterDeps{
		DB: w.db, Log: w.log.With("part", "sink"), Reg: s.reg, ProcessID: processID(w.env.Worker),
	})
	if err != nil {
		return err
	}
	judges := make(map[string]pipeline.Judge, len(s.stacks))
	for name, st := range s.stacks {
		judges[name] = pipeline.Judge{Judge: st.Judge, InFlight: st.inFlight, Wait: st.wait}
	}
	handler, err := pipeline.New(pipeline.Config{
		Deadline: w.env.Judge.Deadline, Worker: w.env.Worker, Version: version,
	}, pipeline.Deps{
		Checks: w.file, Decoder: decoder, Sources: sources, Judges: judges, Rows: s.writer, Labels: w.db, Recovery: w.db,
		Now: time.Now, Log: w.log.With("part", "pipeline"), Reg: s.reg,
	})
	if err != nil {
		return err
	}
	s.worker, err = consumer.New(w.env.Kafka, w.env.Consumer, w.env.DeadLetter, consumer.Deps{
		Topics: w.file.Topics(), Handler: handler, Log: w.log.With("part", "consumer"), Reg: s.reg, AcceptPoison: w.poison, Share: s.share,
	})
	return err
}

func (s *system) addServer(w wiring) error {
	prompts := make(map[string]func(judge.Question) []judge.Message, len(s.stacks))
	judges := make(map[string]judge.Judge, len(s.stacks))
	for name, st := range s.stacks {
		judges[name] = st.Judge
		prompts[name] = st.prompt
	}
	deps := server.Deps{
		Log: w.log.With("part", roleServer), Reg: s.reg, Gatherer: s.reg, Checks: w.file, Judges: judges, Prompts: prompts,
		Store: w.db, Ready: s.ready, Mode: w.mode, Version: version, Deadline: w.env.Judge.Deadline,
		Stale: w.env.Monitor.Stale,
	}
	if s.monitor != nil {
		deps.Monitor = s.monitor
	}
	var err error
	if s.server, err = server.New(w.env.HTTP, deps); err != nil {
		return err
	}
	return s.server.Listen() // a port in use is found before anything runs
}

// run ends when every part has, with the first error. Parts end in the order of the
// data: the consumer's drain still needs judges and a sink that writes, so those are
// told to stop only after it has committed; monitor and server have nothing to save.
func (s *system) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	later, drained := context.WithCancel(context.WithoutCancel(ctx))
	defer drained()
	if s.worker != nil {
		g.Go(func() error {
			defer drained()
			return s.worker.Run(ctx)
		})
		g.Go(func() error { return s.writer.Run(later) })
		g.Go(func() error { return s.followSink(ctx) })
		for _, st := range s.stacks {
			if st.breaker != nil {
				g.Go(func() error { return st.breaker.Run(later) })
			}
		}
	}
	if s.monitor != nil {
		g.Go(func() error { return s.monitor.Run(ctx) })
	}
	if s.server != nil {
		g.Go(func() error { return s.server.Run(ctx) })
	}
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// share splits limits of judges between the workers of a group: two with half of the
// partitions each ask and spend half each.
func (s *system) share(share float64) {
	for _, st := range s.stacks {
		if st.limiter != nil {
			st.limiter.SetShare(share)
			st.budget.SetShare(share)
		}
	}
}

// followBreakers pauses fetching while a judge that some check needs is down. It looks
// at all of them under a lock, because changes may arrive out of order.
func (s *system) followBreakers() {
	if s.worker == nil {
		return
	}
	s.breakers.Lock()
	defer s.breakers.Unlock()
	for _, c := range s.file.Checks {
		if st := s.stacks[c.Judge]; st.breaker != nil && st.breaker.Open() {
			s.worker.Pause(consumer.PauseJudge)
			return
		}
	}
	s.worker.Resume(consumer.PauseJudge)
}

// followSink pauses fetching while ClickHouse takes nothing.
func (s *system) followSink(ctx context.Context) error {
	tick := time.NewTicker(sinkPoll)
	defer tick.Stop()
	blocked := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if now := s.writer.Blocked(); now != blocked {
			blocked = now
			if blocked {
				s.worker.Pause(consumer.PauseSink)
			} else {
				s.worker.Resume(consumer.PauseSink)
			}
		}
	}
}

// ready says why this process should not be counted on, or nil.
func (s *system) ready(ctx context.Context) error {
	if _, err := s.db.Now(ctx); err != nil {
		return err
	}
	if s.worker == nil {
		return nil
	}
	if s.writer.Blocked() {
		return errors.New("ClickHouse takes no rows")
	}
	return s.worker.Ready()
}

// restoreBudgets charges what earlier processes spent today, so that a restart does
// not start a new day.
func (s *system) restoreBudgets(ctx context.Context, now time.Time) error {
	today := now.UTC().Truncate(24 * time.Hour)
	spent, err := s.db.Spent(ctx, today)
	if err != nil {
		return fmt.Errorf("today's spending: %w", err)
	}
	for name, st := range s.stacks {
		if st.budget != nil {
			sum := spent[name]
			st.budget.Restore(now, judge.Spending{USD: sum.USD, Calls: sum.Calls, Tokens: sum.Tokens})
		}
	}
	return nil
}

func newRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "assay_build_info", Help: "1; the labels say which build this is.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision()},
	})
	info.Set(1)
	reg.MustRegister(info)
	return reg
}
