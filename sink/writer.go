package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// WriterDeps are the parts the writer works with; every field is required.
type WriterDeps struct {
	DB  *DB
	Log *slog.Logger
	Reg prometheus.Registerer

	// ProcessID begins every token. No two processes, and no two lives of one, may
	// share it: the server would drop the rows of the second as already stored.
	ProcessID string
}

// A Writer batches rows into ClickHouse, one loop per table.
type Writer struct {
	cfg         WriterConfig
	shared      shared
	evaluations *batcher[Evaluation]
	texts       *batcher[Text]
	deadLetters *batcher[DeadLetter]
	population  delivery[Population]
}

// inserts are the four ways to the server.
type inserts struct {
	evaluations insertFunc[Evaluation]
	texts       insertFunc[Text]
	deadLetters insertFunc[DeadLetter]
	population  insertFunc[Population]
}

// NewWriter checks cfg and starts nothing; Run does the work.
func NewWriter(cfg WriterConfig, deps WriterDeps) (*Writer, error) {
	if deps.ProcessID == "" {
		return nil, errors.New("sink: a writer needs a process id that no other process has")
	}
	return newWriter(cfg, deps, inserts{
		evaluations: into(deps.DB, evaluationsTable()),
		texts:       into(deps.DB, interactionsTable()),
		deadLetters: into(deps.DB, deadLettersTable()),
		population:  into(deps.DB, populationTable()),
	})
}

func into[R any](db *DB, t table[R]) insertFunc[R] {
	return func(ctx context.Context, token string, rows []R) error { return t.send(ctx, db, token, rows) }
}

func newWriter(cfg WriterConfig, deps WriterDeps, in inserts) (*Writer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := limits{
		batchRows: cfg.BatchRows, batchBytes: int(cfg.BatchBytes), age: cfg.BatchAge,
		bufferRows: cfg.BufferRows, bufferBytes: int(cfg.BufferBytes),
	}
	w := &Writer{cfg: cfg}
	w.shared = shared{
		tokens:  newTokens(deps.ProcessID),
		breaker: newBreaker(),
		pace:    rate.NewLimiter(rate.Every(time.Second), errorBurst),
		log:     deps.Log,
	}
	evaluations, texts, deadLetters, population := evaluationsTable(), interactionsTable(), deadLettersTable(), populationTable()
	w.shared.met = newMetrics(deps.Reg, []string{evaluations.name, texts.name, deadLetters.name, population.name},
		w.Fill, func() float64 { return float64(w.shared.breaker.now()) })
	w.evaluations = newBatcher(evaluations, in.evaluations, l, w.shared)
	w.texts = newBatcher(texts, in.texts, l, w.shared)
	w.deadLetters = newBatcher(deadLetters, in.deadLetters, l, w.shared)
	w.population = newDelivery(population, in.population, w.shared)
	return w, nil
}

// Run writes until ctx ends, then flushes what it holds inside the grace and settles
// the rest with ErrStopped. It returns an error when the server refuses every row:
// the schema, a right or the sign-in is wrong, and the process has to end.
func (w *Writer) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	life, end := graceful(ctx, w.cfg.Grace)
	defer end()
	g.Go(func() error { return w.evaluations.run(ctx, life) })
	g.Go(func() error { return w.texts.run(ctx, life) })
	g.Go(func() error { return w.deadLetters.run(ctx, life) })
	return g.Wait()
}

// graceful returns a context that ends a while after ctx does.
func graceful(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	late := make(chan *time.Timer, 1)
	stop := context.AfterFunc(ctx, func() { late <- time.AfterFunc(grace, cancel) })
	return life, func() {
		cancel()
		if !stop() {
			(<-late).Stop()
		}
	}
}

// AddEvaluations hands rows over and waits while the buffer is full; the end of ctx
// ends the wait. The rows belong to the writer from then on.
//
// settled is called exactly once if no error was returned, from a goroutine of the
// writer and under no lock: with nil when all rows are durable, with a *PoisonError
// when one can never be stored (the others are durable), with anything else when the
// rows stay unresolved because the writer stops. It must not wait for the writer.
func (w *Writer) AddEvaluations(ctx context.Context, rows []Evaluation, settled func(error)) error {
	return w.evaluations.add(ctx, rows, settled)
}

// AddTexts is AddEvaluations for the judged texts.
func (w *Writer) AddTexts(ctx context.Context, rows []Text, settled func(error)) error {
	return w.texts.add(ctx, rows, settled)
}

// AddDeadLetters is AddEvaluations for records that could not be used.
func (w *Writer) AddDeadLetters(ctx context.Context, rows []DeadLetter, settled func(error)) error {
	return w.deadLetters.add(ctx, rows, settled)
}

// InsertPopulation makes counts of the ledger durable before it returns nil. It
// repeats what the server could not take until ctx ends; an insert in flight then goes
// on inside the grace. It may be called before and after Run.
func (w *Writer) InsertPopulation(ctx context.Context, rows []Population) error {
	if len(rows) == 0 {
		return nil
	}
	d := w.population
	life, end := graceful(ctx, w.cfg.Grace)
	defer end()
	insert := d.insert
	d.insert = func(_ context.Context, token string, rows []Population) error { return insert(life, token, rows) }

	start := time.Now()
	var refused []error
	for len(rows) > 0 {
		n := min(len(rows), w.cfg.BatchRows)
		faults, stop := d.deliver(ctx, rows[:n])
		d.met.flushes.WithLabelValues(d.table.name, string(causeCommit)).Inc()
		d.met.batchRows.WithLabelValues(d.table.name).Observe(float64(n))
		if stop != nil {
			return fmt.Errorf("ledger: %w", stop)
		}
		refused = append(refused, faults...)
		rows = rows[n:]
	}
	d.met.flushSeconds.WithLabelValues(d.table.name).Observe(time.Since(start).Seconds())
	return errors.Join(refused...)
}

// Flush sends what is buffered and returns when every row added before is settled, and
// every row that a settled function of those added in turn: a caller may add the
// judgement once its text is durable, and the dead letter once the judgement was
// refused. So texts go first and dead letters last.
func (w *Writer) Flush(ctx context.Context) error {
	for _, flush := range []func(context.Context) error{w.texts.flush, w.evaluations.flush, w.deadLetters.flush} {
		if err := flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Fill is the fullest table's share of its buffer, 0 to 1. At 1 callers of Add wait.
func (w *Writer) Fill() float64 {
	return max(w.evaluations.fill(), w.texts.fill(), w.deadLetters.fill())
}

// Blocked reports that the breaker holds inserts back.
func (w *Writer) Blocked() bool { return w.shared.breaker.now() != breakerClosed }
