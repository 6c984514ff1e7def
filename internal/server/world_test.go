package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/monitor"
	"assay/sink"
)

const checksFile = `
version: 1
dimensions: [app, prompt_version]
slices:
  - { app: support }
  - { prompt_version: v42 }
sources:
  - { topic: llm.interactions, format: auto }
judges:
  main: { kind: openai, base_url: "http://llm.example/v1", model: m, method: logprobs, budget: { calls_per_day: 1000 } }
  small: { kind: embedded }
checks:
  - name: refunds
    evaluator: closed_qa
    criteria: { text: "Says when the money arrives." }
    judge: main
    sample: { rate: 0.25 }
    alert: { target: 0.9, tolerance: 0.02 }
  - name: facts
    evaluator: factuality
    coarse: true
    reference: { field: expected }
    pass: [agree]
    judge: small
    sample: { rate: 0.5 }
alerts: { max_false_alarms_per_year: 4 }
`

func parseChecks(t testing.TB, text string) *checks.File {
	t.Helper()
	file, err := checks.Parse("assay.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// a memory is a Store that holds what a test puts in.
type memory struct {
	mu      sync.Mutex // guards the fields below
	err     error      // of every answer
	rows    []sink.Evaluation
	texts   []sink.Text
	letters []sink.DeadLetter
	cells   []sink.Population
	alarms  []sink.Alarm
	labels  []sink.LabelChange
	said    []sink.Label
	buckets func(check string, slice map[string]string, from, to time.Time, step time.Duration) []sink.QualitySums
}

func (m *memory) EvaluationsOf(_ context.Context, id string) (found []sink.Evaluation, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.rows {
		if r.InteractionID == id {
			found = append(found, r)
		}
	}
	return found, m.err
}

func (m *memory) TextOf(_ context.Context, id string) (*sink.Text, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.texts {
		if m.texts[i].InteractionID == id {
			return &m.texts[i], m.err
		}
	}
	return nil, m.err
}

func (m *memory) DeadLettersAt(_ context.Context, topic string, partition uint32, offset uint64) (found []sink.DeadLetter, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.letters {
		if d.Topic == topic && d.Partition == partition && d.Offset == offset {
			found = append(found, d)
		}
	}
	return found, m.err
}

func (m *memory) LedgerCell(_ context.Context, topic string, partition uint32, offset uint64) (found []sink.Population, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.cells {
		if c.Topic == topic && c.Partition == partition && c.Block == offset/32768 {
			found = append(found, c)
		}
	}
	return found, m.err
}

func (m *memory) QualityBuckets(_ context.Context, check, _ string, slice map[string]string, from, to time.Time, step time.Duration) ([]sink.QualitySums, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.buckets == nil || m.err != nil {
		return nil, m.err
	}
	return m.buckets(check, slice, from, to, step), nil
}

func (m *memory) Alarms(context.Context, time.Time) ([]sink.Alarm, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alarms, m.err
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

type fakeMonitor struct {
	atomic.Pointer[monitor.Snapshot]
}

func (m *fakeMonitor) Snapshot() *monitor.Snapshot { return m.Load() }

// judgeFunc answers as a test says.
type judgeFunc func(ctx context.Context, q judge.Question) (judge.Answer, error)

func (f judgeFunc) Ask(ctx context.Context, q judge.Question) (judge.Answer, error) { return f(ctx, q) }

// sure puts p on the first option and the rest on the last.
func sure(p float64) judgeFunc {
	return func(_ context.Context, q judge.Question) (judge.Answer, error) {
		a := judge.Answer{Probabilities: make([]float64, len(q.Options)), Method: judge.Logprobs, Model: "m", Attempts: 1}
		a.Probabilities[0], a.Probabilities[len(q.Options)-1] = p, 1-p
		return a, nil
	}
}

// a world is a running server with everything around it faked but HTTP.
type world struct {
	t       testing.TB
	server  *Server
	url     string
	store   *memory
	monitor *fakeMonitor
	reg     *prometheus.Registry
	logs    *lockedBuffer
	client  *http.Client
	stop    func() error
}

type setting func(*Config, *Deps)

func withJudges(judges map[string]judge.Judge) setting {
	return func(_ *Config, d *Deps) { d.Judges = judges }
}

func withJudge(j judge.Judge) setting { return withJudges(map[string]judge.Judge{"main": j}) }

func start(t testing.TB, settings ...setting) *world {
	t.Helper()
	w := &world{t: t, store: &memory{}, monitor: &fakeMonitor{}, reg: prometheus.NewRegistry(), logs: &lockedBuffer{}}
	cfg := Config{
		Addr: "127.0.0.1:0", MaxBody: 1 << 20, ReadTimeout: 5 * time.Second, EvaluateTime: time.Minute,
		PerRequest: 8, InFlight: 16, Grace: time.Second,
	}
	deps := Deps{
		Log: slog.New(slog.NewTextHandler(w.logs, nil)), Reg: w.reg, Gatherer: w.reg, Checks: parseChecks(t, checksFile),
		Judges: map[string]judge.Judge{"main": sure(.9)}, Monitor: w.monitor, Store: w.store,
		Ready: func(context.Context) error { return nil },
		Mode:  "test: everything invented", Version: "v0-test", Deadline: 10 * time.Second,
	}
	for _, set := range settings {
		set(&cfg, &deps)
	}
	var err error
	if w.server, err = New(cfg, deps); err != nil {
		t.Fatal(err)
	}
	if err := w.server.Listen(); err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + w.server.Addr()
	transport := &http.Transport{}
	w.client = &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Run(ctx) }()
	w.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		transport.CloseIdleConnections()
		return err
	})
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return w
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	closed bool // the connection ends with it
}

func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// object is the body as a program without our types sees it.
func (a answer) object(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	a.into(t, &m)
	return m
}

func (w *world) do(method, path, body string, headers ...string) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, raw, res.Close}
}

func (w *world) get(path string) answer { w.t.Helper(); return w.do("GET", path, "") }

func (w *world) evaluate(body string) answer {
	w.t.Helper()
	return w.do("POST", "/api/v1/evaluate", body, "Content-Type", "application/json")
}

type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var errDown = errors.New("connection refused")

// aDay is a snapshot of a day in which quality falls at noon, as the monitor would make
// it, and fills the store with the series behind it.
func aDay(w *world, now time.Time) *monitor.Snapshot {
	file := w.server.deps.Checks
	fell := now.Add(-11 * time.Hour)
	w.store.buckets = func(check string, slice map[string]string, from, to time.Time, step time.Duration) (sums []sink.QualitySums) {
		for at := from; at.Before(to); at = at.Add(step) {
			hours := now.Sub(at).Hours()
			n := 40 + 30*math.Sin(hours/4)
			switch {
			case hours > 16 && hours < 18:
				continue // a gap
			case hours > 20:
				n = 4 // too few to rely on
			}
			rate, pi, missing := .93+.02*math.Sin(hours), .25, .01
			if check == "refunds" && hours < 11 && hours > 4 {
				rate = .7
			}
			if hours < 3 && hours > 2 {
				missing = .4
			}
			if len(slice) > 0 {
				n /= 2
			}
			k := math.Round(n)
			pass := math.Round(k * rate)
			sums = append(sums, sink.QualitySums{
				CheckVersion: "x", From: at, N: uint64(k), X: uint64(pass), SW: k / pi, SW2: k / pi / pi, SWV: pass / pi, SW2V: pass / pi / pi,
				SWError: missing * k / pi, NError: uint64(missing * k), NOK: uint64(k),
			})
		}
		return sums
	}
	alarm := monitor.Alarm{
		ID: "a1", Check: "refunds", Version: file.Checks[0].Version, Slice: interaction.Slice{}, Detector: "esr", Severity: "ticket",
		State: "open", Data: "ok", OpenedAt: fell.Add(40 * time.Minute), UpdatedAt: now, Revision: 1,
		Summary:  "refunds on all: pass rate 71.2% (95% interval 62.0% to 78.9%, 104 judged) in the hour to 13:40 UTC, target 90.0% less a tolerance of 2.0%.",
		Evidence: `{"worst":[{"id":"conv-1","time":"2026-11-30T12:00:00Z","score":0.02,"option":"no","slice":{},"excerpt":"Where is my refund? <img src=x onerror=alert(1)>","answer_excerpt":"I cannot say."}]}`,
	}
	closedAt := now.Add(-20 * time.Hour)
	past := alarm
	past.ID, past.Check, past.State, past.OpenedAt, past.ClosedAt = "a0", "facts", "closed", now.Add(-23*time.Hour), &closedAt
	past.Summary, past.Evidence = "facts on all: pass rate 80.0% in the hour to 14:40 UTC.", "{}"
	s := &monitor.Snapshot{
		At: now, Now: now, Clock: "wall", ClosedUntil: now.Add(-5 * time.Minute),
		Alarms:     []monitor.Alarm{alarm, past},
		Partitions: []monitor.Partition{{Topic: "llm.interactions", LogTime: now, WrittenAt: now, Active: true}},
	}
	for i, c := range file.Checks {
		state := monitor.Check{Name: c.Name, Version: c.Version, Evaluator: c.Evaluator, Current: true, Severity: "ticket", LastJudged: &now}
		if c.Alert.Target > 0 {
			state.Target = &c.Alert.Target
		}
		for j, slice := range file.DeclaredSlices() {
			d := &monitor.Detector{Name: "esr", State: monitor.DetectorAlarm, EValue: 4.2e6, Threshold: 182_500, Tolerance: .02, Samples: 803, ReadUntil: now.Add(-5 * time.Minute)}
			switch {
			case i == 1:
				d = &monitor.Detector{Name: "esr", State: monitor.DetectorOff, Reason: "no alert.target: learning one from a baseline comes later"}
			case j > 0:
				drop := .031
				d.State, d.EValue, d.SmallestDrop = monitor.DetectorWatching, 38.5, &drop
			}
			state.Slices = append(state.Slices, monitor.Slice{Slice: slice, LastJudged: &now, Windows: windows(now, .712-.1*float64(j)), Detector: d})
		}
		if i == 0 {
			state.LabelQueue.Waiting = 12
			state.Slices[0].Calibration = []monitor.Calibration{
				{Window: "24h", Origin: "imported", Labels: 240, NEff: 200, Agreement: monitor.Rate{Value: new(.91), NEff: 200, Lower: .86, Upper: .94}},
				{Window: "7d", Origin: "imported", Labels: 1905, NEff: 1700, Agreement: monitor.Rate{Value: new(.88), NEff: 1700, Lower: .865, Upper: .894},
					Kappa: new(.712), Brier: new(.081), Error: new(.034), ErrorSquared: new(.034 * .034), PValue: new(.012)},
			}
		}
		s.Checks = append(s.Checks, state)
	}
	return s
}

func windows(now time.Time, rate float64) []monitor.Window {
	var list []monitor.Window
	for i, name := range []string{"5m", "1h", "6h", "24h"} {
		length := []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}[i]
		n := []uint64{3, 104, 511, 2104}[i]
		value, missing, covered := rate+.05*float64(i), .012, .988
		half := 1 / math.Sqrt(float64(n))
		list = append(list, monitor.Window{
			Name: name, From: now.Add(-length), To: now, N: n, Missing: n / 80, Population: float64(4 * n), PopulationExact: true,
			Coverage: &covered, MissingShare: &missing, LowConfidence: n < 5,
			PassRate: monitor.Rate{Value: &value, NEff: float64(n), Lower: value - half, Upper: min(1, value+half)},
		})
	}
	return list
}

// post sends an evaluate request and returns how the client saw it end.
func (w *world) post(ctx context.Context, body string) error {
	req, err := http.NewRequestWithContext(ctx, "POST", w.url+"/api/v1/evaluate", strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != 200 {
		err = errors.New(res.Status)
	}
	return err
}
