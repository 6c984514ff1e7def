package monitor

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/sink"
)

// morning is the event time that worlds begin at.
var morning = time.Date(2026, 3, 14, 6, 0, 0, 0, time.UTC)

// A backend takes rows as workers write them and is the monitor's store.
type backend interface {
	Store
	bucketReader
	put(t testing.TB, rows []sink.Evaluation, cells []sink.Population)
}

// A world is a log with one partition, judged: it makes rows and ledger cells, and
// monitors over them. Time is the log's.
type world struct {
	t      testing.TB
	store  backend
	file   *checks.File
	now    time.Time
	offset uint64
	cells  map[sink.Population]uint64 // counts so far, by cell
	rng    *rand.Rand
	cfg    Config
	reg    *prometheus.Registry
	mon    *Monitor
}

func newWorld(t testing.TB, store backend, file *checks.File) *world {
	w := &world{
		t: t, store: store, file: file, now: morning, offset: 1,
		cells: map[sink.Population]uint64{}, rng: rand.New(rand.NewPCG(21, 22)),
		cfg: Config{Every: time.Second, Grace: 5 * time.Minute, Idle: 10 * time.Minute, Clock: ClockEvent, Lookback: 5 * time.Minute, Stale: 5 * time.Minute},
	}
	w.restart()
	return w
}

// restart is a new process over the same tables.
func (w *world) restart() {
	w.t.Helper()
	w.reg = prometheus.NewPedanticRegistry()
	mon, err := New(w.cfg, Deps{
		Store: w.store, Checks: w.file, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Reg: w.reg, Now: func() time.Time { return w.now },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mon = mon
}

func (w *world) round() *Snapshot {
	w.t.Helper()
	if err := w.mon.Round(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w.mon.Snapshot()
}

// A batch is judged traffic of one slice over a span.
type batch struct {
	check                                 string
	slice                                 interaction.Slice
	pi                                    float64
	ok, pass                              int
	unscored, shed, failed, notApplicable int
	model                                 string
	uncounted                             int // selected by the ledger, without a row: a hole
	undecided                             int // interactions without a decision
	score                                 func(passed bool) float32
}

// load spreads the batches over the next d of the log.
func (w *world) load(d time.Duration, batches ...batch) {
	w.t.Helper()
	w.spread(w.now, d, batches...)
	w.now = w.now.Add(d)
	w.flush()
}

// late adds a batch whose event times lie back in the minute ago.
func (w *world) late(ago time.Duration, batches ...batch) {
	w.t.Helper()
	w.spread(w.now.Add(-ago), time.Minute, batches...)
	w.flush()
}

// pass lets the log go on with nothing in it for any check.
func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.count(w.now.Add(-time.Minute), "", "no_interaction", 0, 1)
	w.flush()
}

func (w *world) spread(from time.Time, d time.Duration, batches ...batch) {
	w.t.Helper()
	var rows []sink.Evaluation
	for _, b := range batches {
		rows = append(rows, w.rows(from, d, b)...)
	}
	w.store.put(w.t, rows, nil)
}

// flush writes every cell up to now, as a worker's ledger does before it commits.
func (w *world) flush() {
	cells := make([]sink.Population, 0, len(w.cells))
	for cell, n := range w.cells {
		cell.N, cell.UptoOffset, cell.LogTime = n, w.offset, w.now
		cells = append(cells, cell)
	}
	w.store.put(w.t, nil, cells)
	clear(w.cells) // minutes are written whole in this world, but for late ones
}

func (w *world) count(at time.Time, check, decision string, pi float64, n uint64) {
	if n == 0 {
		return
	}
	version := ""
	if check != "" {
		version = w.check(check).Version
	}
	// every flush counts in a block of its own, so that cells only ever add
	w.cells[sink.Population{
		Topic: "log", Block: w.offset, SegmentFrom: w.offset, Minute: at.Truncate(time.Minute),
		Check: check, CheckVersion: version, Decision: decision, Pi: pi,
	}] += n
}

func (w *world) check(name string) checks.Check {
	c, ok := w.file.Check(name)
	if !ok {
		w.t.Fatalf("no check %q in this world", name)
	}
	return c
}

func (w *world) rows(from time.Time, d time.Duration, b batch) []sink.Evaluation {
	c := w.check(b.check)
	outcomes := make([]string, 0, b.ok+b.unscored+b.shed+b.failed+b.notApplicable)
	for _, o := range []struct {
		name string
		n    int
	}{{"pass", b.pass}, {"fail", b.ok - b.pass}, {"unscored", b.unscored}, {"shed", b.shed}, {"error", b.failed}, {"not_applicable", b.notApplicable}} {
		for range o.n {
			outcomes = append(outcomes, o.name)
		}
	}
	w.rng.Shuffle(len(outcomes), func(i, j int) { outcomes[i], outcomes[j] = outcomes[j], outcomes[i] })
	rows := make([]sink.Evaluation, 0, len(outcomes))
	for i, o := range outcomes {
		w.offset++
		at := from.Add(time.Duration((float64(i) + 0.5) / float64(len(outcomes)) * float64(d))).Truncate(time.Millisecond)
		rows = append(rows, row(c, b, o, at, w.offset))
		w.count(at, c.Name, "selected", b.pi, 1)
		// each selected one stands for 1/pi interactions, itself included
		w.count(at, c.Name, "sampled_out", b.pi, uint64(1/b.pi+0.5)-1)
		w.count(at, "", "interaction", 0, uint64(1/b.pi+0.5))
	}
	w.count(from, c.Name, "selected", b.pi, uint64(b.uncounted))
	w.count(from, "", "interaction", 0, uint64(b.uncounted+b.undecided))
	return rows
}

func row(c checks.Check, b batch, outcome string, at time.Time, offset uint64) sink.Evaluation {
	e := sink.Evaluation{
		Check: c.Name, CheckVersion: c.Version, Time: at, InteractionID: fmt.Sprintf("i-%08d", offset),
		Topic: "log", Offset: offset, SliceID: b.slice.ID(), Slice: b.slice, Pi: b.pi,
		Status: "ok", Method: "simulated", Judge: "main", JudgeModel: b.model, EvaluatedAt: at.Add(time.Second),
		Excerpt: "question", AnswerExcerpt: "answer",
	}
	switch outcome {
	case "pass", "fail":
		passed := outcome == "pass"
		score := float32(0.25)
		if passed {
			score = 0.75
		}
		if b.score != nil {
			score = b.score(passed)
		}
		e.Passed, e.Score = &passed, &score
		e.OptionNames, e.OptionProbs, e.Option = []string{"yes", "no"}, []float32{score, 1 - score}, "no"
		if passed {
			e.Option = "yes"
		}
	case "shed", "error":
		e.Status, e.Reason, e.EvaluatedAt = outcome, "test", time.Unix(0, 0)
		e.Method = "none"
	default:
		e.Status, e.Reason, e.Method = outcome, "test", "none"
	}
	return e
}

// aFile is a checks file with one check and the given declared slices.
func aFile(target, tolerance, rate, alarms float64, slices ...string) *checks.File {
	f := &checks.File{Path: "assay.yaml", Dimensions: []string{"app", "model"}, Hash: "h1"}
	for _, s := range slices {
		f.Slices = append(f.Slices, sliceOf(s))
	}
	f.Checks = []checks.Check{{
		Name: "refund", Version: "v1", Evaluator: "closed_qa", Judge: "main",
		Sample: checks.Sample{Rate: rate},
		Alert:  checks.Alert{Target: target, Tolerance: &tolerance, Severity: "ticket", Close: "auto"},
	}}
	f.Alerts.MaxFalseAlarmsPerYear = alarms
	return f
}

// sliceOf reads the form that a slice is written in.
func sliceOf(text string) interaction.Slice {
	if text == "all" {
		return interaction.Slice{}
	}
	s := interaction.Slice{}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		s[name] = value
	}
	return s
}

func (w *world) state(slice string) Slice {
	w.t.Helper()
	s := w.mon.Snapshot()
	if s == nil {
		w.t.Fatal("no snapshot")
	}
	c, ok := s.Check("refund")
	if !ok {
		w.t.Fatal("no check refund in the snapshot")
	}
	state, ok := c.Of(sliceOf(slice))
	if !ok {
		w.t.Fatalf("no slice %s in the snapshot", slice)
	}
	return state
}

func (w *world) window(slice, name string) Window {
	w.t.Helper()
	window, ok := w.state(slice).Window(name)
	if !ok {
		w.t.Fatalf("no window %s", name)
	}
	return window
}
