package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/alecthomas/units"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A server stands in for ClickHouse where the time of inserts is what a test is about.
// Its answer to an insert is a function; a nil one stores the rows.
type server struct {
	answer func(insertion) error

	mu       sync.Mutex
	inserts  []insertion
	stored   map[string]int // times a row was stored, by interaction
	byTokens map[string]string
}

type insertion struct {
	at    time.Duration // since the bubble began
	token string
	ids   []string
	err   error
}

func (s *server) insert(start time.Time) insertFunc[Evaluation] {
	return func(ctx context.Context, token string, rows []Evaluation) error {
		in := insertion{at: time.Since(start), token: token}
		for _, r := range rows {
			in.ids = append(in.ids, r.InteractionID)
		}
		if s.answer != nil {
			in.err = s.answer(in)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inserts = append(s.inserts, in)
		bytes := strings.Join(in.ids, ",")
		if before, used := s.byTokens[token]; used && before != bytes {
			return fmt.Errorf("token %s over other rows", token)
		}
		if s.byTokens == nil {
			s.byTokens, s.stored = map[string]string{}, map[string]int{}
		}
		s.byTokens[token] = bytes
		if in.err == nil {
			for _, id := range in.ids {
				s.stored[id]++
			}
		}
		return in.err
	}
}

// soFar is for looking while the writer goes on.
func (s *server) soFar() []insertion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.inserts)
}

func (s *server) failures() (n int) {
	for _, in := range s.inserts {
		if in.err != nil {
			n++
		}
	}
	return n
}

func code(n int32) error { return &clickhouse.Exception{Code: n, Message: "as the test wants it"} }

// bubbleWriter is a writer whose evaluations go to s; the other tables always work.
func bubbleWriter(t *testing.T, cfg WriterConfig, s *server) (*Writer, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	w, err := newWriter(cfg, WriterDeps{Log: slog.New(slog.DiscardHandler), Reg: reg, ProcessID: "p"}, inserts{
		evaluations: s.insert(time.Now()),
		texts:       func(context.Context, string, []Text) error { return nil },
		deadLetters: func(context.Context, string, []DeadLetter) error { return nil },
		population:  func(context.Context, string, []Population) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w, reg
}

// outcomes collects what callers are told, by the first row of their call.
type outcomes struct {
	mu   sync.Mutex
	told map[string][]error
}

func (o *outcomes) of(id string) func(error) {
	return func(err error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.told == nil {
			o.told = map[string][]error{}
		}
		o.told[id] = append(o.told[id], err)
	}
}

// soFar is for looking while the writer goes on.
func (o *outcomes) soFar() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.told)
}

// add hands over one row per number, each as a call of its own.
func (o *outcomes) add(t *testing.T, w *Writer, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		e := evaluation(n)
		if err := w.AddEvaluations(t.Context(), []Evaluation{e}, o.of(e.InteractionID)); err != nil {
			t.Fatal(err)
		}
	}
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func ids(n ...int) []string {
	var all []string
	for _, i := range n {
		all = append(all, fmt.Sprintf("int-%06d", i))
	}
	return all
}

// bubble runs a test of a writer over a server; the writer is stopped at its end.
func bubble(t *testing.T, change func(*WriterConfig), s *server, test func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry)) {
	synctest.Test(t, func(t *testing.T) {
		cfg := defaults()
		if change != nil {
			change(&cfg)
		}
		w, reg := bubbleWriter(t, cfg, s)
		runFor(t, w)
		test(t, w, &outcomes{}, reg)
	})
}

// lapse lets time go by in a bubble until everything that falls due in it is done.
func lapse(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAQuietBatchIsFlushedAtItsAge(t *testing.T) {
	s := &server{}
	bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		lapse(10 * time.Second)
		o.add(t, w, 1)
		time.Sleep(400 * time.Millisecond)
		o.add(t, w, 2)
		lapse(time.Minute)
		if len(s.inserts) != 1 || s.inserts[0].at != 11*time.Second || !slices.Equal(s.inserts[0].ids, ids(1, 2)) {
			t.Errorf("inserts %+v, want both rows one second after the first", s.inserts)
		}
		if len(o.told) != 2 || o.told["int-000002"][0] != nil {
			t.Errorf("told %v, want two durable rows", o.told)
		}
		if n := testutil.ToFloat64(w.shared.met.flushes.WithLabelValues("evaluations", "age")); n != 1 {
			t.Errorf("%v flushes by age", n)
		}
	})
}

func TestAFullBatchGoesOutAtOnceAndIsCutAtItsBounds(t *testing.T) {
	s := &server{}
	bubble(t, func(c *WriterConfig) { c.BatchRows = 3 }, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		rows := make([]Evaluation, 8) // one call over several batches
		for i := range rows {
			rows[i] = evaluation(i)
		}
		if err := w.AddEvaluations(t.Context(), rows, o.of("call")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if sent := s.soFar(); len(sent) != 2 || sent[1].at != 0 || o.soFar() != 0 {
			t.Fatalf("inserts %+v, %d told; want two full ones at once and nobody told yet", sent, o.soFar())
		}
		lapse(time.Minute)
		if len(s.inserts) != 3 || s.inserts[2].at != time.Second || !slices.Equal(s.inserts[2].ids, ids(6, 7)) {
			t.Errorf("last insert %+v, want the rest at its age", s.inserts[len(s.inserts)-1])
		}
		if got := o.told["call"]; len(got) != 1 || got[0] != nil {
			t.Errorf("told %v, want once that all is durable", got)
		}
	})
}

func TestABatchIsCutAtItsBytes(t *testing.T) {
	s := &server{}
	size := 0
	bubble(t, func(c *WriterConfig) {
		e := evaluation(1)
		size = evaluationsTable().size(&e)
		c.BatchBytes = units.Base2Bytes(4*size + size/2)
	}, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		o.add(t, w, numbers(10)...)
		lapse(time.Minute)
		for _, in := range s.inserts {
			if len(in.ids) > 4 {
				t.Errorf("%d rows of %d bytes in one insert of at most %d bytes", len(in.ids), size, w.cfg.BatchBytes)
			}
		}
		if len(s.stored) != 10 {
			t.Errorf("%d rows stored", len(s.stored))
		}
	})
}

func TestARowLargerThanABatchGoesAlone(t *testing.T) {
	s := &server{}
	bubble(t, func(c *WriterConfig) { c.BatchBytes, c.BufferBytes = 4096, 4096 }, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		large := evaluation(1)
		large.Detail = strings.Repeat("x", 10_000)
		if err := w.AddEvaluations(t.Context(), []Evaluation{evaluation(0), large, evaluation(2)}, o.of("call")); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var sent [][]string
		for _, in := range s.soFar() {
			sent = append(sent, in.ids)
		}
		if !reflect.DeepEqual(sent, [][]string{ids(0), ids(1), ids(2)}) || len(o.told["call"]) != 1 {
			t.Errorf("inserts %v, told %v", sent, o.told)
		}
	})
}

func TestAFullBufferMakesWritersWaitAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		s := &server{answer: func(insertion) error { <-hold; return nil }}
		cfg := defaults()
		cfg.BatchRows, cfg.BufferRows = 2, 4
		w, _ := bubbleWriter(t, cfg, s)
		runFor(t, w)
		o := &outcomes{}
		o.add(t, w, 0, 1, 2, 3)
		synctest.Wait()
		if w.Fill() != 1 {
			t.Errorf("fill %v, want 1", w.Fill())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := w.AddEvaluations(ctx, []Evaluation{evaluation(4)}, o.of("late"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("adding to a full buffer gave %v, want the end of the wait", err)
		}
		go func() {
			if err := w.AddEvaluations(t.Context(), []Evaluation{evaluation(5)}, o.of("int-000005")); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		close(hold)
		lapse(10 * time.Second)
		if len(s.stored) != 5 || len(o.told) != 5 || o.told["late"] != nil {
			t.Errorf("stored %v, told %v; want five rows and nothing of the refused call", s.stored, o.told)
		}
		if w.Fill() != 0 {
			t.Errorf("fill %v at the end", w.Fill())
		}
	})
}

func TestFlushReturnsWhenRowsAreSettledWithoutManySmallInserts(t *testing.T) {
	s := &server{}
	bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		start := time.Now()
		for i := range 5 { // five partitions commit one after the other
			o.add(t, w, i)
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if o.soFar() != i+1 {
				t.Fatalf("flush %d returned with %d calls told", i, o.soFar())
			}
		}
		if took := time.Since(start); took != 4*time.Second || s.inserts[0].at != 0 {
			t.Errorf("five flushes took %v, want the first at once and then one a second", took)
		}
		if err := w.Flush(t.Context()); err != nil || time.Since(start) != 4*time.Second {
			t.Errorf("a flush of nothing took until %v (%v)", time.Since(start), err)
		}
		if n := testutil.ToFloat64(w.shared.met.flushes.WithLabelValues("evaluations", "commit")); n != 5 {
			t.Errorf("%v flushes for a commit", n)
		}
	})
}

// The pipeline stores a judgement only when its text is durable; a flush has to bring
// both to an end.
func TestFlushIncludesRowsThatSettledFunctionsAdd(t *testing.T) {
	s := &server{}
	bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		text := Text{Time: noon, InteractionID: "i", Store: "full"}
		err := w.AddTexts(t.Context(), []Text{text}, func(err error) { o.add(t, w, 1) })
		if err == nil {
			err = w.Flush(t.Context())
		}
		if err != nil || len(o.told["int-000001"]) != 1 {
			t.Errorf("flush returned (%v) with %v told", err, o.told)
		}
	})
}

func TestTheEndFlushesInsideTheGraceAndTakesNothingMore(t *testing.T) {
	s := &server{answer: func(insertion) error { time.Sleep(20 * time.Second); return nil }}
	synctest.Test(t, func(t *testing.T) {
		w, _ := bubbleWriter(t, defaults(), s)
		o := &outcomes{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		o.add(t, w, 1, 2)
		synctest.Wait()
		cancel()
		start := time.Now()
		synctest.Wait()
		if err := w.AddEvaluations(t.Context(), []Evaluation{evaluation(3)}, o.of("3")); !errors.Is(err, ErrStopped) {
			t.Errorf("adding after the end gave %v", err)
		}
		if err := <-done; err != nil || time.Since(start) != 20*time.Second {
			t.Errorf("run ended with %v after %v, want nil after the insert", err, time.Since(start))
		}
		if len(o.told) != 2 || o.told["int-000001"][0] != nil {
			t.Errorf("told %v, want two durable rows", o.told)
		}
		if n := testutil.ToFloat64(w.shared.met.flushes.WithLabelValues("evaluations", "drain")); n != 1 {
			t.Errorf("%v flushes by the drain", n)
		}
	})
}

func TestWhatTheGraceCannotSaveIsToldAsUnresolved(t *testing.T) {
	s := &server{answer: func(insertion) error { return code(codeNetworkError) }}
	synctest.Test(t, func(t *testing.T) {
		w, _ := bubbleWriter(t, defaults(), s)
		o := &outcomes{}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		o.add(t, w, numbers(10)...)
		lapse(2 * time.Second)
		cancel()
		start := time.Now()
		if err := <-done; err != nil || time.Since(start) != 30*time.Second {
			t.Errorf("run ended with %v after %v, want nil at the end of the grace", err, time.Since(start))
		}
		var poison *PoisonError
		for id, told := range o.told {
			if len(told) != 1 || !errors.Is(told[0], ErrStopped) || errors.As(told[0], &poison) {
				t.Errorf("%s was told %v, want once that it is unresolved", id, told)
			}
		}
		if len(o.told) != 10 {
			t.Errorf("%d calls told, want all", len(o.told))
		}
	})
}

func TestOneBlockTouchesAtMostNinetyDays(t *testing.T) {
	s := &server{}
	bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		for i := range 400 {
			e := evaluation(i)
			e.Time = noon.AddDate(0, 0, -i%200)
			if err := w.AddEvaluations(t.Context(), []Evaluation{e}, o.of(e.InteractionID)); err != nil {
				t.Fatal(err)
			}
		}
		lapse(time.Minute)
		if len(s.inserts) != 3 || len(s.stored) != 400 || len(o.told) != 400 {
			t.Fatalf("%d inserts of %d rows, %d told; want 3 of 400", len(s.inserts), len(s.stored), len(o.told))
		}
		for _, in := range s.inserts {
			days := map[string]bool{}
			for _, id := range in.ids {
				var n int
				fmt.Sscanf(id, "int-%d", &n)
				days[fmt.Sprint(n%200)] = true
			}
			if len(days) > 90 {
				t.Errorf("%d days in one block", len(days))
			}
		}
	})
}

func TestEveryTokenIsForItsOwnRows(t *testing.T) {
	n := 0
	s := &server{answer: func(in insertion) error {
		n++
		return []error{nil, code(codeTimeout), code(codeMemoryLimit), nil, code(codeTooManyQueries)}[n%5]
	}}
	bubble(t, func(c *WriterConfig) { c.BatchRows = 64 }, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		o.add(t, w, numbers(500)...)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		// server.insert refuses a token over other rows, which would end the writer
		if len(o.told) != 500 || len(s.stored) != 500 {
			t.Errorf("%d told, %d stored", len(o.told), len(s.stored))
		}
	})
}

func TestInvalidRowsAreToldAndTheOthersOfTheirCallStored(t *testing.T) {
	s := &server{}
	bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		bad := evaluation(2)
		bad.Pi = 0
		if err := w.AddEvaluations(t.Context(), []Evaluation{evaluation(1), bad}, o.of("mixed")); err != nil {
			t.Fatal(err)
		}
		if err := w.AddEvaluations(t.Context(), nil, o.of("nothing")); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var poison *PoisonError
		if told := o.told["mixed"]; len(told) != 1 || !errors.As(told[0], &poison) || !strings.Contains(poison.Error(), "int-000002") || !strings.Contains(poison.Error(), "pi 0") {
			t.Errorf("told %v, want the row and what is wrong with it", told)
		}
		if told := o.told["nothing"]; len(told) != 1 || told[0] != nil {
			t.Errorf("a call without rows was told %v", told)
		}
		if s.stored["int-000001"] != 1 || s.stored["int-000002"] != 0 {
			t.Errorf("stored %v", s.stored)
		}
		if n := testutil.ToFloat64(w.shared.met.rejected.WithLabelValues("evaluations", "invalid")); n != 1 {
			t.Errorf("%v rows counted as invalid", n)
		}
	})
}
