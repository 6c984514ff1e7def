package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/sink"
)

const topic = "assistant.log"

// logTime is the log's time of every record unless a test says otherwise.
var logTime = time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)

// rules are two checks of one judge and one of another.
const rules = `
version: 1
dimensions: [app]
sources: [{ topic: assistant.log, format: flat, fields: { expected: reference, attributes.kind: kind, attributes.note: note } }]
judges:
  a: { kind: simulated }
  b: { kind: simulated }
checks:
  - name: polite
    evaluator: closed_qa
    criteria: { text: "Greets the customer." }
    when: app != "internal"
    judge: a
    sample: { rate: 1 }
  - name: right
    evaluator: factuality
    reference: { field: expected }
    judge: a
    sample: { rate: 1 }
  - name: short
    evaluator: closed_qa
    criteria: { text: "Has at most two sentences." }
    when: has(attributes.kind) && attributes.kind == "chat"
    judge: b
    sample: { rate: 1 }
`

func parse(tb testing.TB, yaml string) *checks.File {
	tb.Helper()
	f, err := checks.Parse("assay.yaml", []byte(yaml), checks.AllowSimulated())
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// fakeJudge answers the first option with certainty unless told otherwise.
type fakeJudge struct {
	answer func(ctx context.Context, q judge.Question) (judge.Answer, error)
	calls  atomic.Int64
}

func (j *fakeJudge) Ask(ctx context.Context, q judge.Question) (judge.Answer, error) {
	j.calls.Add(1)
	if j.answer != nil {
		return j.answer(ctx, q)
	}
	return certain(q), nil
}

func certain(q judge.Question) judge.Answer {
	p := make([]float64, len(q.Options))
	p[0] = 1
	return judge.Answer{Probabilities: p, Method: judge.Simulated, Model: "fake-1", Attempts: 1,
		Usage: judge.Usage{InputTokens: 10, OutputTokens: 1, USD: 0.000001}}
}

// world is a pipeline between a log and a ClickHouse in memory.
type world struct {
	t     testing.TB
	file  *checks.File
	judge *fakeJudge
	store *store
	reg   *prometheus.Registry
	p     *Pipeline
	log   *lines
}

type option func(*Config, *Deps)

func newWorld(t testing.TB, yaml string, options ...option) *world {
	t.Helper()
	w := &world{t: t, file: parse(t, yaml), judge: &fakeJudge{}, store: newStore(), log: &lines{}}
	w.p = w.pipeline(w.file, options...)
	return w
}

// pipeline is a process's: the store and the judge outlive it.
func (w *world) pipeline(f *checks.File, options ...option) *Pipeline {
	w.t.Helper()
	w.reg = prometheus.NewRegistry()
	var sources []decode.Source
	for _, s := range f.Sources {
		sources = append(sources, decode.Source{Topic: s.Topic, Format: s.Format, Fields: s.Fields, JoinWait: s.JoinWait})
	}
	decoder, err := decode.New(decode.Defaults(), sources)
	if err != nil {
		w.t.Fatal(err)
	}
	judges := make(map[string]Judge)
	for _, j := range f.Judges {
		judges[j.Name] = Judge{Judge: w.judge, InFlight: 4}
	}
	cfg := Config{Deadline: time.Minute, Worker: "w1", Version: "test"}
	deps := Deps{
		Checks: f, Decoder: decoder, Sources: sources, Judges: judges, Rows: w.store, Labels: w.store, Recovery: w.store,
		Now: func() time.Time { return logTime.Add(time.Hour) }, Log: slog.New(slog.NewTextHandler(w.log, nil)), Reg: w.reg,
	}
	for _, o := range options {
		o(&cfg, &deps)
	}
	p, err := New(cfg, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// assigned is a partition in the hands of a reader that plays the consumer's part.
type assigned struct {
	w        *world
	pt       *partition
	below    int64
	open     map[int64]*record
	next     int64
	resolved map[int64]consumer.Outcome
	mu       sync.Mutex // guards open, held and resolved
	held     map[int64]bool
	revoked  bool
}

type record struct {
	a        *assigned
	offset   int64
	released int
}

func (r *record) Resolve(o consumer.Outcome) {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	if r.a.revoked || r.a.open[r.offset] != r {
		return
	}
	delete(r.a.open, r.offset)
	delete(r.a.held, r.offset)
	r.a.resolved[r.offset] = o
}

func (r *record) Release() {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	r.released++
}

func (r *record) Hold() {
	r.a.mu.Lock()
	defer r.a.mu.Unlock()
	if !r.a.revoked && r.a.open[r.offset] == r {
		r.a.held[r.offset] = true
	}
}

func (w *world) assign(p *Pipeline, a consumer.Assignment) *assigned {
	w.t.Helper()
	if a.Reach == nil {
		a.Reach = nothingBefore
	}
	part, from, err := p.Assign(w.t.Context(), a)
	if err != nil {
		w.t.Fatal(err)
	}
	return &assigned{
		w: w, pt: part.(*partition), below: max(a.Committed, from), next: max(from, a.LogStart),
		open: make(map[int64]*record), held: make(map[int64]bool), resolved: make(map[int64]consumer.Outcome),
	}
}

// nothingBefore is a Reach that finds no older record.
func nothingBefore(_ context.Context, offset int64, _ time.Duration) (int64, error) {
	return offset, nil
}

// fresh is partition 0 read from its start.
func (w *world) fresh() *assigned {
	return w.assign(w.p, consumer.Assignment{Topic: topic, LogEnd: 1 << 40})
}

// handle does what Handle does, with a record of ours in place of the consumer's.
func (a *assigned) handle(ctx context.Context, rec interaction.Record) *record {
	r := &record{a: a, offset: rec.Offset}
	d := consumer.Delivery{Record: rec, Below: rec.Offset < a.below}
	a.next = rec.Offset + 1
	if !d.Below {
		a.mu.Lock()
		a.open[rec.Offset] = r
		a.mu.Unlock()
	}
	t := a.pt.take(&d)
	switch {
	case d.Below:
	case t.unit == nil:
		t.finish(r)
	default:
		a.pt.start(ctx, t, r)
	}
	return r
}

func (a *assigned) read(offset int64, value string) *record {
	rec := interaction.Record{Topic: topic, Offset: offset, Time: logTime, Value: []byte(value)}
	return a.handle(a.w.t.Context(), rec)
}

func (a *assigned) outcome(offset int64) consumer.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.resolved[offset]
}

func (a *assigned) watermark() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	low := max(a.next, a.below)
	for o := range a.open {
		low = min(low, o)
	}
	return low
}

func (a *assigned) revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked = true
}

// settle lets judgements end and makes their rows durable, until nothing is left.
func (w *world) settle() {
	for synctest.Wait(); w.store.step(nil); synctest.Wait() {
	}
}

func (w *world) metric(name string, labels prometheus.Labels) float64 {
	w.t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	series:
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) != len(labels) {
				continue
			}
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] != l.GetValue() {
					continue series
				}
			}
			return m.GetCounter().GetValue()
		}
	}
	w.t.Errorf("no series %s%v", name, labels)
	return 0
}

// item is a record with what every check of the rules needs.
func item(id string) string {
	return fmt.Sprintf(`{"id":%q,"input":"Where is my parcel?","output":"Good day, it comes on Monday.","reference":"On Monday.","app":"shop","kind":"chat"}`, id)
}

// store is a ClickHouse in memory: rows by their keys, as FINAL shows them.
type store struct {
	mu          sync.Mutex
	evaluations map[evaluationKey]sink.Evaluation
	inserted    map[evaluationKey]time.Time // without those that a test puts there
	texts       map[position]sink.Text
	letters     map[position]sink.DeadLetter
	labels      map[[4]string]sink.LabelChange // by check, question, interaction and rater
	labelRows   int
	population  map[populationKey]sink.Population
	counted     time.Time // when the ledger was last written

	rawEvaluations, rawTexts int // rows inserted, before replacing

	pending []*pendingRow
	refuse  func(row any) error // why a row can never be stored
	full    bool                // Add waits
	ended   error               // Add refuses
	down    error               // InsertPopulation and reads fail
}

type position struct {
	offset  uint64
	element uint16
}

type evaluationKey struct {
	check, version string
	minute         int64
	id             string
	position
}

type populationKey struct {
	partition      uint32
	block, from    uint64
	minute         int64
	check, version string
	stratum        string
	decision       string
	reason         string
	pi             float64
	epoch          uint32
}

// pendingRow is a row that was added and is not durable yet.
type pendingRow struct {
	row     any
	settled func(error)
}

func newStore() *store {
	return &store{
		evaluations: make(map[evaluationKey]sink.Evaluation), inserted: make(map[evaluationKey]time.Time), texts: make(map[position]sink.Text),
		letters: make(map[position]sink.DeadLetter), labels: make(map[[4]string]sink.LabelChange), population: make(map[populationKey]sink.Population),
	}
}

func (s *store) add(ctx context.Context, row any, settled func(error)) error {
	for {
		s.mu.Lock()
		full, ended := s.full, s.ended
		if !full && ended == nil {
			s.pending = append(s.pending, &pendingRow{row, settled})
		}
		s.mu.Unlock()
		switch {
		case ended != nil:
			return ended
		case !full:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("buffer full: %w", context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *store) AddEvaluations(ctx context.Context, rows []sink.Evaluation, settled func(error)) error {
	return s.add(ctx, rows[0], settled)
}

func (s *store) AddTexts(ctx context.Context, rows []sink.Text, settled func(error)) error {
	return s.add(ctx, rows[0], settled)
}

func (s *store) AddDeadLetters(ctx context.Context, rows []sink.DeadLetter, settled func(error)) error {
	return s.add(ctx, rows[0], settled)
}

// step settles one pending row: the oldest, or the one that pick chooses.
func (s *store) step(pick func(n int) int) bool {
	s.mu.Lock()
	if len(s.pending) == 0 {
		s.mu.Unlock()
		return false
	}
	i := 0
	if pick != nil {
		i = pick(len(s.pending))
	}
	p := s.pending[i]
	s.pending = slices.Delete(s.pending, i, i+1)
	err := s.put(p.row)
	s.mu.Unlock()
	p.settled(err)
	return true
}

// put stores a row; the lock is held.
func (s *store) put(row any) error {
	if s.refuse != nil {
		if err := s.refuse(row); err != nil {
			return &sink.PoisonError{Table: fmt.Sprintf("%T", row), Row: "somewhere", Err: err}
		}
	}
	switch r := row.(type) {
	case sink.Evaluation:
		s.rawEvaluations++
		k := evaluationKey{r.Check, r.CheckVersion, r.Time.Unix() / 60, r.InteractionID, position{r.Offset, r.Element}}
		if old, ok := s.evaluations[k]; !ok || !r.EvaluatedAt.Before(old.EvaluatedAt) {
			s.evaluations[k], s.inserted[k] = r, time.Now()
		}
	case sink.Text:
		s.rawTexts++
		s.texts[position{r.Offset, r.Element}] = r
	case sink.DeadLetter:
		s.letters[position{r.Offset, 0}] = r
	}
	return nil
}

// WriteLabels keeps the newest revision of each label, as the sink does.
func (s *store) WriteLabels(_ context.Context, changes []sink.LabelChange, _ time.Time) ([]sink.LabelOutcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return nil, s.down
	}
	for _, c := range changes {
		if s.refuse != nil {
			if err := s.refuse(c); err != nil {
				return nil, &sink.PoisonError{Table: "labels", Row: c.InteractionID, Err: err}
			}
		}
	}
	for _, c := range changes {
		k := [4]string{c.Check, c.Question, c.InteractionID, c.Rater}
		if old, ok := s.labels[k]; !ok || old.Revision < c.Revision {
			s.labels[k] = c
			s.labelRows++
		}
	}
	return make([]sink.LabelOutcome, len(changes)), nil
}

// crash loses every pending row, but for those that the server had taken already.
func (s *store) crash(taken func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if taken() {
			_ = s.put(p.row)
		}
	}
	s.pending = nil
}

func (s *store) InsertPopulation(_ context.Context, rows []sink.Population) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	for _, r := range rows {
		k := populationKey{r.Partition, r.Block, r.SegmentFrom, r.Minute.Unix(), r.Check, r.CheckVersion, r.Stratum, r.Decision, r.Reason, r.Pi, r.Epoch}
		if old, ok := s.population[k]; !ok || r.UptoOffset >= old.UptoOffset {
			s.population[k] = r
		}
	}
	s.counted = time.Now()
	return nil
}

func (s *store) Flush(ctx context.Context) error {
	for s.step(nil) {
	}
	return ctx.Err()
}

func (s *store) Answered(_ context.Context, _ string, partition uint32, from uint64, since time.Time) (map[sink.AnswerKey]struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(map[sink.AnswerKey]struct{})
	for k, r := range s.evaluations {
		if at, ok := s.inserted[k]; ok && at.Before(since) {
			continue
		}
		if r.Partition == partition && r.Offset >= from && r.Answered() {
			found[sink.AnswerKey{Offset: r.Offset, Element: r.Element, Check: r.Check, Version: r.CheckVersion}] = struct{}{}
		}
	}
	return found, s.down
}

func (s *store) Segments(_ context.Context, _ string, partition uint32, fromBlock uint64) ([]sink.Segment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	type key struct{ block, from uint64 }
	found := make(map[key]sink.Segment)
	for _, r := range s.population {
		if r.Partition != partition || r.Block < fromBlock {
			continue
		}
		k := key{r.Block, r.SegmentFrom}
		seg, ok := found[k]
		if !ok || r.UptoOffset > seg.UptoOffset {
			seg = sink.Segment{Block: r.Block, SegmentFrom: r.SegmentFrom, UptoOffset: r.UptoOffset, ChecksHash: r.ChecksHash, InsertedAt: s.counted, Kept: seg.Kept}
		}
		seg.Kept = seg.Kept || r.Check == "" && r.Reason == sink.ReasonKept
		found[k] = seg
	}
	var out []sink.Segment
	for _, seg := range found {
		out = append(out, seg)
	}
	slices.SortFunc(out, func(a, b sink.Segment) int {
		return int(int64(a.Block)-int64(b.Block))*1_000_000 + int(int64(a.SegmentFrom)-int64(b.SegmentFrom))
	})
	return out, s.down
}

func (s *store) LastSegment(ctx context.Context, topic string, partition uint32) (sink.Segment, bool, error) {
	segments, err := s.Segments(ctx, topic, partition, 0)
	if err != nil || len(segments) == 0 {
		return sink.Segment{}, false, err
	}
	return segments[len(segments)-1], true, nil
}

// counts sums the ledger over segments.
func (s *store) counts(check, decision string) (n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.population {
		if r.Check == check && r.Decision == decision {
			n += r.N
		}
	}
	return n
}

var errDown = errors.New("clickhouse is down")
