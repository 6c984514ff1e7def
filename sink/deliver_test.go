package sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestClassesOfErrors(t *testing.T) {
	f := func(err error, want Class) {
		t.Helper()
		if got := classify(fmt.Errorf("batch: %w", err)); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
	}
	for _, c := range []int32{3, 159, 202, 209, 210, 242, 285, 319, 425, 999} {
		f(code(c), Transient)
	}
	f(code(252), Overload)
	f(code(241), Memory)
	for _, c := range []int32{6, 27, 53, 69, 469} {
		f(code(c), Poison)
	}
	for _, c := range []int32{16, 60, 81, 497, 516} {
		f(code(c), Fatal)
	}
	f(code(164), ReadOnly)
	f(code(243), ReadOnly)
	f(code(62), Unknown)
	f(errors.New("something else"), Unknown)

	// the server's code outranks the status it came with
	f(&clickhouse.HTTPError{StatusCode: 500, Err: code(469)}, Poison)
	f(&clickhouse.HTTPError{StatusCode: 503, Err: errors.New("queue full")}, Transient)
	f(&clickhouse.HTTPError{StatusCode: 502, Err: errors.New("bad gateway")}, Transient)
	f(&clickhouse.HTTPError{StatusCode: 401, Err: errors.New("no")}, Fatal)
	f(&clickhouse.HTTPError{StatusCode: 404, Err: errors.New("what")}, Unknown)

	f(io.EOF, Transient)
	f(io.ErrUnexpectedEOF, Transient)
	f(context.DeadlineExceeded, Transient)
	f(clickhouse.ErrAcquireConnTimeout, Transient)
	f(&net.OpError{Op: "dial", Err: errors.New("no route")}, Transient)
	_, err := (&http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("nobody there")
	}}}).Get("http://nowhere.invalid")
	f(err, Transient)
}

func TestATransientFailureIsRepeatedUnderItsTokenUntilStored(t *testing.T) {
	n := 0
	s := &server{answer: func(insertion) error {
		if n++; n <= 4 {
			return code(codeNetworkError)
		}
		return nil
	}}
	bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		o.add(t, w, 1, 2)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.inserts) != 5 || s.stored["int-000001"] != 1 {
			t.Fatalf("%d inserts, stored %v", len(s.inserts), s.stored)
		}
		for i, in := range s.inserts {
			if in.token != s.inserts[0].token || !slices.Equal(in.ids, ids(1, 2)) {
				t.Errorf("attempt %d: token %s over %v", i+1, in.token, in.ids)
			}
			if i == 0 {
				continue
			}
			pause, full := in.at-s.inserts[i-1].at, backoffFirst<<(i-1)
			if pause < full/2 || pause > full {
				t.Errorf("pause %d is %v, want %v to %v", i, pause, full/2, full)
			}
		}
		if n := testutil.ToFloat64(w.shared.met.retries.WithLabelValues("evaluations", "transient")); n != 4 {
			t.Errorf("%v failures counted", n)
		}
		if o.told["int-000001"][0] != nil {
			t.Errorf("told %v", o.told)
		}
	})
}

// An hour without a server: nothing is lost, and the server that comes back is not met
// by a crowd.
func TestALongOutageIsWaitedOutAtALowRate(t *testing.T) {
	for _, failure := range []int32{codeNetworkError, codeTooManyParts, codeNotEnoughSpace} {
		t.Run(fmt.Sprint(failure), func(t *testing.T) {
			var up atomic.Bool
			s := &server{answer: func(insertion) error {
				if !up.Load() {
					return code(failure)
				}
				return nil
			}}
			bubble(t, func(c *WriterConfig) { c.BatchRows = 10 }, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
				o.add(t, w, numbers(50)...)
				lapse(time.Hour)
				if n := len(s.soFar()); n > 25 || n < 12 {
					t.Errorf("%d inserts in an hour, want one per 5 minutes after the start", n)
				}
				if !w.Blocked() {
					t.Error("the breaker is closed")
				}
				if n, err := testutil.GatherAndCount(reg, "assay_sink_breaker_state"); n != 1 || err != nil {
					t.Errorf("%d breaker series (%v)", n, err)
				}
				if o.soFar() != 0 {
					t.Errorf("%d calls told during the outage", o.soFar())
				}
				up.Store(true)
				if err := w.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if w.Blocked() || len(o.told) != 50 || len(s.stored) != 50 {
					t.Errorf("blocked %t, %d told, %d stored", w.Blocked(), len(o.told), len(s.stored))
				}
			})
		})
	}
}

func TestTooManyPartsOpensTheBreakerAtOnceAndProbesAlone(t *testing.T) {
	n := 0
	s := &server{answer: func(insertion) error {
		if n++; n <= 3 {
			return code(codeTooManyParts)
		}
		return nil
	}}
	bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		o.add(t, w, 1)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		var at []time.Duration
		for _, in := range s.inserts {
			at = append(at, in.at)
		}
		if want := []time.Duration{0, 30 * time.Second, 90 * time.Second, 210 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("inserts at %v, want %v", at, want)
		}
	})
}

// While one table's batch probes, the others wait for its report.
func TestAHalfOpenBreakerAdmitsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		b.failed(true)
		admitted := make(chan error, 3)
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() { admitted <- b.admit(ctx) }()
		}
		time.Sleep(breakerFirst)
		synctest.Wait()
		if len(admitted) != 1 || b.now() != breakerHalfOpen {
			t.Fatalf("%d admitted in state %d, want one probe", len(admitted), b.now())
		}
		b.failed(false)
		time.Sleep(2*breakerFirst - time.Nanosecond)
		synctest.Wait()
		if len(admitted) != 1 {
			t.Fatalf("%d admitted before the doubled pause", len(admitted))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b.answered()
		synctest.Wait()
		if len(admitted) != 3 || b.now() != breakerClosed {
			t.Errorf("%d admitted in state %d, want all", len(admitted), b.now())
		}
		b.failed(true)
		cancel()
		if err := b.admit(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting with an ended context gave %v", err)
		}
	})
}

func TestFiveFailuresInARowOpenTheBreakerAndAnAnswerBetweenDoesNot(t *testing.T) {
	b := newBreaker()
	for range 4 {
		b.failed(false)
	}
	b.answered()
	for range 4 {
		b.failed(false)
	}
	if b.now() != breakerClosed {
		t.Fatal("open after four in a row")
	}
	b.failed(false)
	if b.now() != breakerOpen {
		t.Error("closed after five in a row")
	}
}

func TestABlockTooLargeForTheServersMemoryIsHalved(t *testing.T) {
	s := &server{answer: func(in insertion) error {
		if len(in.ids) > 13 {
			return code(codeMemoryLimit)
		}
		return nil
	}}
	bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
		o.add(t, w, numbers(100)...)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.stored) != 100 || len(o.told) != 100 || s.failures() != 7 {
			t.Errorf("%d stored, %d told, %d failures; want 100, 100 and 7 (100, 2 x 50, 4 x 25)", len(s.stored), len(o.told), s.failures())
		}
	})
}

func TestPoisonRowsAreFoundAndTheOthersStored(t *testing.T) {
	f := func(rows int, poison ...int) {
		t.Helper()
		bad := map[string]bool{}
		for _, id := range ids(poison...) {
			bad[id] = true
		}
		s := &server{answer: func(in insertion) error {
			for _, id := range in.ids {
				if bad[id] {
					return code(codeConstraint)
				}
			}
			return nil
		}}
		bubble(t, nil, s, func(t *testing.T, w *Writer, o *outcomes, reg *prometheus.Registry) {
			o.add(t, w, numbers(rows)...)
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			told := slices.Sorted(maps.Keys(o.told))
			if len(told) != rows || len(s.stored) != rows-len(bad) {
				t.Fatalf("%d of %d rows: %d told, %d stored", len(bad), rows, len(told), len(s.stored))
			}
			for _, id := range told {
				var p *PoisonError
				if isPoison := errors.As(o.told[id][0], &p); isPoison != bad[id] || !isPoison && o.told[id][0] != nil {
					t.Errorf("%s was told %v", id, o.told[id])
				}
			}
			// the block itself, then two per halving for each row
			bound := 1 + 2*len(bad)*int(math.Ceil(math.Log2(float64(rows))))
			if len(s.inserts) > bound {
				t.Errorf("%d of %d rows: %d inserts, want at most %d", len(bad), rows, len(s.inserts), bound)
			}
			if took := s.inserts[len(s.inserts)-1].at; s.failures() > errorBurst+int(took.Seconds())+1 {
				t.Errorf("%d refusals within %v", s.failures(), took)
			}
			if n := testutil.ToFloat64(w.shared.met.rejected.WithLabelValues("evaluations", "server")); n != float64(len(bad)) {
				t.Errorf("%v rows counted as refused", n)
			}
			if w.Blocked() {
				t.Error("refused rows opened the breaker")
			}
		})
	}
	f(1, 0)
	f(2, 1)
	f(1024, 700)
	f(1000, 0, 1, 499, 500, 999)
	f(5000, 17, 18, 19, 1234, 4321, 4999)
}

// A broken schema refuses every row, often with a code of the data class. Dead-lettering
// them all would empty the log into the wrong table.
func TestTooMuchPoisonStopsTheWriterAndBuriesNothing(t *testing.T) {
	s := &server{answer: func(in insertion) error { return code(codeTypeMismatch) }}
	stops(t, s, 500, Fatal)
}

// The same break under little traffic: no batch is large enough to tell by itself.
func TestTooMuchPoisonInSmallBatchesStopsTheWriterToo(t *testing.T) {
	s := &server{answer: func(in insertion) error { return code(codeTypeMismatch) }}
	synctest.Test(t, func(t *testing.T) {
		w, _ := bubbleWriter(t, defaults(), s)
		done := make(chan error, 1)
		go func() { done <- w.Run(t.Context()) }()
		o := &outcomes{}
		for i := 0; ; i++ {
			if err := w.AddEvaluations(t.Context(), []Evaluation{evaluation(i)}, o.of(fmt.Sprint(i))); err != nil {
				break
			}
			lapse(time.Minute)
		}
		var refused *InsertError
		err := <-done
		buried := 0
		var poison *PoisonError
		for _, told := range o.told {
			if errors.As(told[0], &poison) {
				buried++
			}
		}
		if !errors.As(err, &refused) || refused.Class != Fatal || buried != poisonFloor {
			t.Errorf("run ended with %v after %d dead letters, want the class of a broken schema after %d", err, buried, poisonFloor)
		}
	})
}

func TestFatalAndUnknownErrorsStopTheWriter(t *testing.T) {
	for _, c := range []int32{codeNoSuchColumn, codeUnknownTable, codeNotEnoughPrivileges, codeAuthentication} {
		stops(t, &server{answer: func(in insertion) error { return code(c) }}, 10, Fatal)
	}
	stops(t, &server{answer: func(in insertion) error { return code(62) }}, 10, Unknown)
}

// stops runs a writer into a server that refuses everything: Run ends with the error,
// every row is unresolved, nothing is dead-lettered and nothing more is taken.
func stops(t *testing.T, s *server, rows int, want Class) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := newWriter(defaults(), WriterDeps{Log: slog.New(slog.DiscardHandler), Reg: prometheus.NewRegistry(), ProcessID: "p"}, inserts{evaluations: s.insert(time.Now())})
		if err != nil {
			t.Fatal(err)
		}
		o := &outcomes{}
		o.add(t, w, numbers(rows)...)
		err = w.Run(t.Context())
		var refused *InsertError
		if !errors.As(err, &refused) || refused.Class != want || refused.Table != "evaluations" || refused.Token == "" {
			t.Fatalf("run ended with %v, want class %v with its coordinates", err, want)
		}
		if len(o.told) != rows {
			t.Fatalf("%d of %d calls told", len(o.told), rows)
		}
		for id, told := range o.told {
			var poison *PoisonError
			if len(told) != 1 || told[0] == nil || errors.As(told[0], &poison) {
				t.Fatalf("%s was told %v, want once that it is unresolved", id, told)
			}
		}
		if err := w.AddEvaluations(t.Context(), []Evaluation{evaluation(1)}, nil); !errors.As(err, &refused) {
			t.Errorf("adding to a stopped writer gave %v", err)
		}
	})
}

func TestTheLedgerIsInsertedAtOnceAndSaysWhatWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tokens []string
		answers := []error{code(codeTimeout), nil}
		in := inserts{population: func(_ context.Context, token string, rows []Population) error {
			tokens = append(tokens, token)
			err := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			return err
		}}
		w, err := newWriter(defaults(), WriterDeps{Log: slog.New(slog.DiscardHandler), Reg: prometheus.NewRegistry(), ProcessID: "p"}, in)
		if err != nil {
			t.Fatal(err)
		}
		cell := Population{Topic: "chat", Minute: noon, Decision: "interaction", N: 1}
		if err := w.InsertPopulation(t.Context(), []Population{cell}); err != nil || len(tokens) != 2 || tokens[0] != tokens[1] {
			t.Errorf("%v after tokens %v, want one resend under the same", err, tokens)
		}
		bad := cell
		bad.Pi = 2
		var poison *PoisonError
		if err := w.InsertPopulation(t.Context(), []Population{cell, bad}); !errors.As(err, &poison) {
			t.Errorf("an impossible cell gave %v", err)
		}

		answers = []error{code(codeNetworkError)}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := w.InsertPopulation(ctx, []Population{cell}); !errors.Is(err, ErrStopped) || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %v, want the end of the caller's patience", err, time.Since(start))
		}
	})
}

// The insert in flight outlives its caller: a cancelled one may or may not be stored.
func TestALedgerInsertInFlightOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored := false
		in := inserts{population: func(ctx context.Context, token string, rows []Population) error {
			select {
			case <-time.After(10 * time.Second):
				stored = true
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		w, err := newWriter(defaults(), WriterDeps{Log: slog.New(slog.DiscardHandler), Reg: prometheus.NewRegistry(), ProcessID: "p"}, in)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.InsertPopulation(ctx, []Population{{Topic: "chat", Minute: noon, Decision: "interaction", N: 1}}); err != nil || !stored {
			t.Errorf("%v, stored %t", err, stored)
		}
	})
}
