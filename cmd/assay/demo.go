package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/monitor"
	"assay/sink"
	"assay/sink/chdb"
)

// How long a simulated day takes, and how long the end may wait for the last rows.
const (
	demoDay     = 105 * time.Second
	demoFastDay = 45 * time.Second
	demoSettle  = 60 * time.Second
)

// demoOptions are the flags of `assay demo`.
type demoOptions struct {
	fast, keep     bool
	installEngine  bool
	seed           uint64
	realJudge      string
	realModel      string
	realMethod     string
	realKeyEnv     string
	realCallsLimit int64
}

func (a *app) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "A day of a simulated assistant in about two minutes, everything embedded",
		Long: `Start an in-process Kafka and an embedded ClickHouse, write a day of a simulated support
assistant's traffic to the topic, and do with it what assay run does. One app version gets
worse around noon and is repaired later: the drift alarm opens and closes. The end puts
what was true beside what was estimated.

Assistant and judge "assistant-judge" are simulated and named so wherever they show; the
check "facts" is judged by the embedded statistical judge. Every run starts anew in the
folder demo of ASSAY_DATA_DIR. With ASSAY_CLICKHOUSE_ADDR or ASSAY_KAFKA_BROKERS set, those
are used in place of the embedded ones.`,
		Example: `  assay demo
  assay demo --fast
  assay demo --keep                                   # leaves the page up until Ctrl-C
  assay demo --real-judge http://127.0.0.1:11434/v1 --real-judge-model llama3 --real-judge-method structured`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.demo(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.fast, "fast", false, "a day in about 45 seconds")
	f.BoolVar(&o.keep, "keep", false, "go on serving the page after the day has ended")
	f.BoolVar(&o.installEngine, "install-engine", false, "only install the embedded ClickHouse, with npm")
	f.Uint64Var(&o.seed, "seed", 0, "another day than the usual one")
	f.StringVar(&o.realJudge, "real-judge", "", "judge answers_policy with an OpenAI-compatible endpoint")
	f.StringVar(&o.realModel, "real-judge-model", "", "the model at --real-judge")
	f.StringVar(&o.realMethod, "real-judge-method", "logprobs", "logprobs, structured or votes:N")
	f.StringVar(&o.realKeyEnv, "real-judge-key-env", "", "the variable that holds the key for --real-judge")
	f.Int64Var(&o.realCallsLimit, "real-judge-calls", 5000, "calls that --real-judge may get")
	return cmd
}

func (a *app) demo(ctx context.Context, o demoOptions) error {
	env, err := readEnvironment(ctx, a.environ)
	if err != nil {
		return err
	}
	if o.installEngine {
		return chdb.Install(ctx, env.DataDir, a.err)
	}
	file, err := demoChecks(o)
	if err != nil {
		return err
	}
	log, err := a.demoLogger(env)
	if err != nil {
		return err
	}
	if err := a.prepareDemo(&env, file); err != nil {
		return err
	}
	kafka, brokers, err := demoKafka(&env, file)
	if err != nil {
		return err
	}
	defer kafka()
	return withStore(ctx, &env, log, true, func(ctx context.Context, s store) error {
		d := demoRun{app: a, env: env, file: file, log: log, store: s, options: o, brokers: brokers}
		return d.run(ctx)
	})
}

// prepareDemo sets what a simulated day needs, unless the user has set it, and clears
// what an earlier demo left.
func (a *app) prepareDemo(env *environment, file *checks.File) error {
	set := environMap(a.environ)
	for name, apply := range map[string]func(){
		"ASSAY_MONITOR_CLOCK":         func() { env.Monitor.Clock = monitor.ClockEvent },
		"ASSAY_MONITOR_EVERY":         func() { env.Monitor.Every = time.Second },
		"ASSAY_MONITOR_IDLE":          func() { env.Monitor.Idle = 3 * time.Second },
		"ASSAY_MONITOR_LOOKBACK":      func() { env.Monitor.Lookback = 5 * time.Second },
		"ASSAY_CONSUMER_COMMIT_EVERY": func() { env.Consumer.CommitEvery = 250 * time.Millisecond },
		"ASSAY_SINK_BATCH_AGE":        func() { env.Sink.BatchAge = 250 * time.Millisecond },
		"ASSAY_KAFKA_START":           func() { env.Kafka.Start = "earliest" },
		"ASSAY_HTTP_ADDR":             func() { env.HTTP.Addr = freeAddr("127.0.0.1:8420") },
	} {
		if _, ok := set[name]; !ok {
			apply()
		}
	}
	if env.ClickHouse.Addr != "" {
		return nil
	}
	library, err := chdb.FindLibrary(env.Chdb.Library, env.DataDir)
	if err != nil {
		return errUsage{err}
	}
	env.Chdb.Library = library
	if err := chdb.PrepareDataDir(env.DataDir); err != nil {
		return errUsage{err}
	}
	env.DataDir = filepath.Join(env.DataDir, "demo")
	if chdb.IsDataDir(env.DataDir) {
		if err := os.RemoveAll(env.DataDir); err != nil {
			return fmt.Errorf("clear the last demo: %w", err)
		}
	}
	return chdb.PrepareDataDir(env.DataDir)
}

// demoKafka starts the in-process Kafka, or takes the brokers that the user named.
func demoKafka(env *environment, file *checks.File) (stop func(), chosen string, err error) {
	if len(env.Kafka.Brokers) > 0 {
		return func() {}, strings.Join(env.Kafka.Brokers, ",") + " (ASSAY_KAFKA_BROKERS)", nil
	}
	k, err := demo.StartKafka(demo.KafkaOptions{Partitions: 4, Topics: file.Topics()})
	if err != nil {
		return nil, "", err
	}
	env.Kafka.Brokers = k.Addrs()
	return k.Close, "in-process Kafka (no ASSAY_KAFKA_BROKERS)", nil
}

// demoChecks is the demo's checks file, with a real judge in place of the simulated
// one when the user has one.
func demoChecks(o demoOptions) (*checks.File, error) {
	raw := string(demo.Checks())
	if o.realJudge != "" {
		if o.realModel == "" {
			return nil, errUsage{errors.New("--real-judge needs --real-judge-model")}
		}
		real := fmt.Sprintf("kind: openai\n    base_url: %q\n    model: %q\n    method: %s\n    max_in_flight: 16\n    budget: { calls_per_day: %d }",
			o.realJudge, o.realModel, o.realMethod, o.realCallsLimit)
		if o.realKeyEnv != "" {
			real += "\n    api_key_env: " + o.realKeyEnv
		}
		raw = strings.Replace(raw, "kind: simulated", real, 1)
	}
	file, err := checks.Parse("demo/checks.yaml", []byte(raw), checks.AllowSimulated())
	if err != nil {
		return nil, errUsage{err}
	}
	return file, nil
}

// demoLogger keeps a demo's terminal quiet: warnings only, unless asked otherwise.
func (a *app) demoLogger(env environment) (*slog.Logger, error) {
	if _, ok := environMap(a.environ)["ASSAY_LOG_LEVEL"]; !ok {
		env.LogLevel = "error"
	}
	return a.logger(env)
}

// freeAddr is addr when nobody listens there, else any free port.
func freeAddr(addr string) string {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return addr
}

// demoRun is one demo: the system, the assistant that feeds it, the view of both.
type demoRun struct {
	app     *app
	env     environment
	file    *checks.File
	log     *slog.Logger
	store   store
	options demoOptions
	brokers string

	sys    *system
	sim    *demo.Simulator
	tally  *demo.Tally
	events []demo.Truth // what was really true of each interaction; of the playing goroutine, then of the summary
}

func (d *demoRun) run(ctx context.Context) error {
	if _, err := sink.Migrate(ctx, d.store.db, d.log); err != nil {
		return err
	}
	end := time.Now().UTC().Truncate(time.Minute)
	opts := demo.DefaultOptions(end.Add(-24*time.Hour), end)
	if d.options.seed != 0 {
		opts.Seed = d.options.seed
	}
	var err error
	if d.sim, err = demo.New(opts); err != nil {
		return err
	}
	d.tally = demo.NewTally()
	judges := "answers_policy by " + d.judgeName("assistant-judge") + ", facts by " + d.judgeName("embedded")
	d.sys, err = newSystem(ctx, wiring{
		env: d.env, environ: d.app.environ, file: d.file, db: d.store.db, log: d.log,
		roles: []string{roleWorker, roleMonitor, roleServer},
		mode:  "demo: simulated assistant; " + d.brokers + "; ClickHouse: " + d.store.chosen + "; " + judges,
		truth: d.truth,
	})
	if err != nil {
		return err
	}
	day := demoDay
	if d.options.fast {
		day = demoFastDay
	}
	d.announce(judges, day)

	// The system outlives the assistant: the last rows are still on their way when
	// the day has ended.
	g, gctx := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(gctx)
	g.Go(func() error { return d.sys.run(running) })
	g.Go(func() error {
		defer stop()
		return d.play(gctx, day)
	})
	err = g.Wait()
	if ctx.Err() != nil {
		fmt.Fprintln(d.app.out, "\nstopped.")
		return nil
	}
	return err
}

// play feeds a day, shows it, waits for its last rows and reports.
func (d *demoRun) play(ctx context.Context, day time.Duration) error {
	producer, err := demo.NewProducer(d.env.Kafka.Brokers)
	if err != nil {
		return err
	}
	defer producer.Close()

	view := newDemoView(d)
	watching, watched := context.WithCancel(ctx)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer watched()
		opts := d.sim.Options()
		speed := float64(opts.End.Sub(opts.Start)) / float64(day)
		err := d.sim.Play(gctx, speed, func(ctx context.Context, events []demo.Event) error {
			records := make([]interaction.Record, len(events))
			for i, e := range events {
				records[i] = e.Record
				records[i].Partition = demo.ByKey
			}
			if err := producer.Produce(ctx, opts.Topic, records...); err != nil {
				return err
			}
			view.produced(events)
			return nil
		})
		if err != nil {
			return err
		}
		return d.settle(gctx)
	})
	g.Go(func() error { return view.watch(watching) })
	if err := g.Wait(); err != nil {
		return err
	}
	if err := d.summary(ctx, view.alarms()); err != nil {
		return err
	}
	if d.options.keep {
		fmt.Fprintf(d.app.out, "\nstill serving on http://%s (Ctrl-C ends)\n", d.sys.server.Addr())
		<-ctx.Done()
	}
	return nil
}

// settle waits until every interaction of the day is in the ledger and the detectors
// have read its last minute.
func (d *demoRun) settle(ctx context.Context) error {
	want := uint64(d.tally.Counts(nil).Total())
	last := d.events[len(d.events)-1].Time
	ctx, cancel := context.WithTimeout(ctx, demoSettle)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		read, _, err := d.counted(ctx)
		closed := time.Time{}
		if s := d.sys.monitor.Snapshot(); s != nil {
			closed = s.ClosedUntil
		}
		if err == nil && read == want && !closed.Before(last.Truncate(time.Minute)) {
			return nil
		}
		select {
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("%d of %d interactions are counted, minutes are closed to %s of %s",
					read, want, closed.Format("15:04"), last.Format("15:04"))
			}
			return fmt.Errorf("the last rows of the day did not arrive within %s: %w", demoSettle, err)
		case <-tick.C:
		}
	}
}

// counted is how many interactions and dead letters of the day the ledger holds.
func (d *demoRun) counted(ctx context.Context) (interactions, dead uint64, err error) {
	opts := d.sim.Options()
	sums, err := d.store.db.PopulationSums(ctx, "", opts.Start.Add(-time.Hour), opts.End.Add(time.Hour))
	for _, s := range sums {
		interactions += s.Interactions
		dead += s.DeadLettered
	}
	return interactions, dead, err
}

// truth is what the simulated judge knows: the class that the bank gives an answer.
func (d *demoRun) truth(q judge.Question) (string, bool) {
	input, _ := q.Field("input")
	output, _ := q.Field("output")
	class, ok := d.sim.Bank().Grade(input, output)
	if !ok {
		return "", false
	}
	keys := make([]string, len(q.Options))
	for i, o := range q.Options {
		keys[i] = o.Key
	}
	return class.Option(keys)
}

func (d *demoRun) judgeName(name string) string {
	j, _ := d.file.Judge(name)
	switch j.Kind {
	case "simulated":
		return "a simulated judge (96% right)"
	case "embedded":
		return "the embedded statistical judge"
	}
	return j.Model + " at " + j.BaseURL
}

func (d *demoRun) announce(judges string, day time.Duration) {
	opts := d.sim.Options()
	out := d.app.out
	fmt.Fprintf(out, "engines  Kafka: %s\n         ClickHouse: %s\n", d.brokers, d.store.chosen)
	fmt.Fprintf(out, "judges   %s\n", judges)
	fmt.Fprintf(out, "clock    %s: windows end at the newest event, not at the wall clock\n", d.env.Monitor.Clock)
	fmt.Fprintf(out, "traffic  simulated: %d interactions from %s to %s in %s; %s of %s gets worse between %s and %s\n",
		opts.Interactions, opts.Start.Format("Jan 2 15:04"), opts.End.Format("Jan 2 15:04"), day,
		opts.Drop.PromptVersion, opts.Drop.App,
		opts.Start.Add(opts.Drop.From).Format("15:04"), opts.Start.Add(opts.Drop.To).Format("15:04"))
	fmt.Fprintf(out, "page     http://%s\n\n", d.sys.server.Addr())
}
