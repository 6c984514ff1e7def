package monitor

import (
	"bufio"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/testkit"
	"assay/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.Engines(m)) }

// engine is the real store with the real writer before it.
type engine struct {
	*sink.DB
	writer *sink.Writer
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	e := testkit.ClickHouse(t)
	db, err := sink.Open(t.Context(), sink.ConnConfig{Addr: e.Addr, Protocol: "http", Database: e.Database, Token: e.Token}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := sink.Migrate(t.Context(), db, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	writer, err := sink.NewWriter(
		sink.WriterConfig{BatchRows: 100_000, BatchBytes: 32 << 20, BatchAge: 10 * time.Millisecond, BufferRows: 400_000, BufferBytes: 128 << 20, Grace: time.Second},
		sink.WriterDeps{DB: db, Log: slog.New(slog.DiscardHandler), Reg: prometheus.NewRegistry(), ProcessID: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- writer.Run(t.Context()) }() // ends with the test's context
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &engine{db, writer}
}

func (e *engine) put(t testing.TB, rows []sink.Evaluation, cells []sink.Population) {
	t.Helper()
	if len(rows) > 0 {
		settled := make(chan error, 1)
		if err := e.writer.AddEvaluations(t.Context(), rows, func(err error) { settled <- err }); err != nil {
			t.Fatal(err)
		}
		if err := e.writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-settled; err != nil {
			t.Fatal(err)
		}
	}
	if len(cells) > 0 {
		if err := e.writer.InsertPopulation(t.Context(), cells); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScenariosOnTheEngine(t *testing.T) {
	scenarios(t, func(t *testing.T) backend { return newEngine(t) })
}

func TestScenariosInMemory(t *testing.T) {
	scenarios(t, func(*testing.T) backend { return newMemory() })
}

func scenarios(t *testing.T, store func(*testing.T) backend) {
	files, err := filepath.Glob("testdata/*.scenario")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".scenario"), func(t *testing.T) {
			play(t, file, store(t))
		})
	}
}

// play runs a scenario file. Its lines, `#` begins a comment:
//
//	check NAME target=.9 tolerance=.02 rate=.05    the check; before the first load
//	slices app=support app=sales                   declared slices
//	alarms 4                                       false alarms a year for the file
//	load 60m NAME app=support pi=.05 ok=50 pass=47 [unscored= shed= error= na= hole= model=]
//	also NAME ...                                  more over the same span as the load before
//	pass 2h                                        the log goes on without anything for the check
//	late 40m NAME ...                              rows whose event time lies 40 minutes back
//	restart                                        a new monitor over the same tables
//	eval 1h NAME [on app=support] pass_rate = .94, n = 50
//	drift NAME [on app=support] state = watching, samples = 50
//	alarm NAME [on app=support] = open | closed | no_data | none
//	health NAME gap = 0
//
// A number is right when it agrees in every decimal that is written; `none` is an
// estimate that must not exist, and `>`, `<` stand in place of `=` where a bound is
// meant.
func play(t *testing.T, path string, store backend) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file := aFile(0, 0, 1, 4)
	file.Checks = nil
	var w *world
	var last time.Duration
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if w == nil && !slices.Contains([]string{"check", "slices", "alarms"}, words[0]) {
			w = newWorld(t, store, file)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("%s:%d: %s: %s", path, n, strings.TrimSpace(text), fmt.Sprintf(format, args...))
		}
		switch words[0] {
		case "check":
			file.Checks = append(file.Checks, checkOf(words[1:]))
		case "slices":
			for _, s := range words[1:] {
				file.Slices = append(file.Slices, sliceOf(s))
			}
		case "alarms":
			file.Alerts.MaxFalseAlarmsPerYear = number(t, words[1])
		case "load":
			last = duration(t, words[1])
			w.load(last, batchOf(t, words[2:]))
		case "also":
			w.now = w.now.Add(-last)
			w.load(last, batchOf(t, words[1:]))
		case "pass":
			w.pass(duration(t, words[1]))
		case "late":
			w.late(duration(t, words[1]), batchOf(t, words[2:]))
		case "restart":
			w.restart()
		case "eval", "drift", "alarm", "health":
			w.round()
			subject, wants, _ := strings.Cut(strings.TrimSpace(text), " ")
			window := ""
			if subject == "eval" {
				window, wants, _ = strings.Cut(wants, " ")
			}
			name, slice, wants := subjectOf(wants)
			found := w.findings(subject, name, slice, window)
			for _, want := range strings.Split(wants, ",") {
				if problem := compare(found, want); problem != "" {
					fail("%s", problem)
				}
			}
		default:
			fail("unknown line")
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// subjectOf splits `NAME [on SLICE] rest`.
func subjectOf(text string) (name, slice, rest string) {
	words := strings.Fields(text)
	name, slice = words[0], "all"
	words = words[1:]
	if words[0] == "on" {
		slice, words = words[1], words[2:]
	}
	return name, slice, strings.Join(words, " ")
}

// findings are the values that a line may ask for; nil for what does not exist.
func (w *world) findings(subject, name, slice, window string) map[string]any {
	w.t.Helper()
	snapshot := w.mon.Snapshot()
	c, _ := snapshot.Check(name)
	s, ok := c.Of(sliceOf(slice))
	if !ok {
		w.t.Fatalf("no slice %s of check %q", slice, name)
	}
	switch subject {
	case "eval":
		v, ok := s.Window(window)
		if !ok {
			w.t.Fatalf("no window %q", window)
		}
		return map[string]any{
			"n": float64(v.N), "n_eff": v.PassRate.NEff, "pass_rate": orNil(v.PassRate.Value), "lower": v.PassRate.Lower, "upper": v.PassRate.Upper,
			"mean_score": orNil(v.MeanScore.Value), "missing": orNil(v.MissingShare), "population": v.Population, "coverage": orNil(v.Coverage),
			"judged": orNil(v.JudgedShare), "low_confidence": fmt.Sprint(v.LowConfidence), "not_applicable": float64(v.NotApplicable),
		}
	case "drift":
		d := s.Detector
		return map[string]any{"state": d.State, "samples": float64(d.Samples), "e_value": d.EValue, "threshold": d.Threshold, "tolerance": d.Tolerance, "late": lateOf(d)}
	case "health":
		return map[string]any{"gap": float64(c.Integrity.Gap), "z": orNil(c.Integrity.SamplingZ)}
	}
	state := "none"
	for _, a := range snapshot.Alarms {
		if a.Check == name && a.Slice.ID() == sliceOf(slice).ID() {
			state = a.State
			if a.Data == DataNone {
				state = DataNone
			}
			break // open ones come first, then the latest
		}
	}
	return map[string]any{"": state}
}

func orNil(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func lateOf(d *Detector) any {
	if d.LateRows == nil {
		return nil
	}
	return float64(*d.LateRows)
}

// compare checks one `key = value` and says what is wrong with it.
func compare(found map[string]any, want string) string {
	i := strings.IndexAny(want, "=<>")
	if i < 0 {
		return fmt.Sprintf("%q is not a comparison", want)
	}
	key, op, value := strings.TrimSpace(want[:i]), want[i], strings.TrimSpace(want[i+1:])
	got, ok := found[key]
	if !ok {
		return fmt.Sprintf("%q is none of %v", key, slices.Sorted(maps.Keys(found)))
	}
	number, isNumber := got.(float64)
	if !isNumber {
		if got == nil {
			got = "none"
		}
		if got != value {
			return fmt.Sprintf("%s is %v", key, got)
		}
		return ""
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Sprintf("%s is %v", key, number)
	}
	decimals := 0
	if _, after, found := strings.Cut(value, "."); found {
		decimals = len(after)
	}
	half := 0.5*math.Pow(10, -float64(decimals)) + 1e-12
	if (op == '=' && math.Abs(number-v) > half) || (op == '<' && number >= v) || (op == '>' && number <= v) {
		return fmt.Sprintf("%s is %v", key, number)
	}
	return ""
}

func checkOf(words []string) checks.Check {
	c := checks.Check{Name: words[0], Version: "v1", Evaluator: "closed_qa", Judge: "main", Sample: checks.Sample{Rate: 1}, Alert: checks.Alert{Severity: "ticket", Close: "auto"}}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		v, _ := strconv.ParseFloat(value, 64)
		switch key {
		case "target":
			c.Alert.Target = v
		case "tolerance":
			c.Alert.Tolerance = &v
		case "rate":
			c.Sample.Rate = v
		case "close":
			c.Alert.Close = value
		}
	}
	return c
}

func batchOf(t *testing.T, words []string) batch {
	t.Helper()
	b := batch{check: words[0], slice: interaction.Slice{}, pi: 1, model: "judge-1"}
	counts := map[string]*int{
		"ok": &b.ok, "pass": &b.pass, "unscored": &b.unscored, "shed": &b.shed, "error": &b.failed, "na": &b.notApplicable,
		"hole": &b.uncounted, "undecided": &b.undecided,
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "pi":
			b.pi = number(t, value)
		case key == "judge":
			b.model = value
		case counts[key] != nil:
			*counts[key] = int(number(t, value))
		default:
			b.slice[key] = value
		}
	}
	return b
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
