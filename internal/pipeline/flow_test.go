package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/evaluators/judge"
	"assay/internal/interaction"
	"assay/sink"
)

func TestARecordIsResolvedExactlyWhenAllItsRowsAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		a := w.fresh()
		defer a.pt.Close()
		r := a.read(7, item("i-1"))
		synctest.Wait()
		// two judgements wait for their rows, the third for its text and then its row
		for left := 4; left > 0; left-- {
			if got := a.outcome(7); got != "" {
				t.Fatalf("resolved as %q with %d rows open", got, left)
			}
			if a.watermark() != 7 {
				t.Fatalf("watermark %d with %d rows open", a.watermark(), left)
			}
			if !w.store.step(nil) {
				t.Fatalf("no row waits, want %d", left)
			}
		}
		if got := a.outcome(7); got != consumer.Durable {
			t.Errorf("resolved as %q, want durable", got)
		}
		if r.released != 1 {
			t.Errorf("bytes were given back %d times", r.released)
		}
		if len(w.store.evaluations) != 3 || w.store.rawTexts != 1 {
			t.Errorf("%d judgements and %d texts, want 3 and 1", len(w.store.evaluations), w.store.rawTexts)
		}
		for _, e := range w.store.evaluations {
			if e.Status != "ok" || e.Reason != "" || e.Score == nil || e.Topic != topic || e.Offset != 7 || e.Pi != 1 ||
				e.Slice["app"] != "shop" || e.Worker != "w1" || e.CostNanoUSD != 1000 || e.EvaluatedAt.Year() != 2026 {
				t.Errorf("row %+v", e)
			}
		}
	})
}

func TestBytesAreGivenBackWhenNothingIsJudgedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		answer := make(chan struct{})
		w.judge.answer = func(ctx context.Context, q judge.Question) (judge.Answer, error) {
			<-answer
			return certain(q), nil
		}
		a := w.fresh()
		defer a.pt.Close()
		r := a.read(1, item("i-1"))
		answer <- struct{}{}
		answer <- struct{}{}
		synctest.Wait()
		if r.released != 0 {
			t.Error("released while a judge still reads")
		}
		answer <- struct{}{}
		synctest.Wait()
		if r.released != 1 {
			t.Errorf("released %d times after the last judgement", r.released)
		}
		w.settle()
	})
}

func TestWhatBecomesOfARecord(t *testing.T) {
	f := func(name, value string, want consumer.Outcome, judgements, letters int, decisions map[string]uint64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, rules)
			a := w.fresh()
			defer a.pt.Close()
			rec := interaction.Record{Topic: topic, Offset: 3, Time: logTime, Value: []byte(value)}
			if value == "" {
				rec.Value = nil
			}
			a.handle(t.Context(), rec)
			w.settle()
			if got := a.outcome(3); got != want {
				t.Errorf("%s: resolved as %q, want %q", name, got, want)
			}
			if len(w.store.evaluations) != judgements || len(w.store.letters) != letters {
				t.Errorf("%s: %d judgements, %d dead letters, want %d, %d", name, len(w.store.evaluations), len(w.store.letters), judgements, letters)
			}
			if err := a.pt.Flush(t.Context(), a.watermark()); err != nil {
				t.Fatal(err)
			}
			for key, n := range decisions {
				check, decision, _ := strings.Cut(key, " ")
				if got := w.store.counts(check, decision); got != n {
					t.Errorf("%s: ledger says %d %s, want %d", name, got, key, n)
				}
			}
		})
	}

	f("a tombstone", "", consumer.NoInteraction, 0, 0, map[string]uint64{" no_interaction": 1, " interaction": 0})
	f("no JSON", "<html>", consumer.DeadLettered, 0, 1, map[string]uint64{" dead_lettered": 1, " interaction": 0})
	f("filtered, and without a reference", `{"input":"q","output":"a","app":"internal"}`, consumer.NotNeeded, 0, 0,
		map[string]uint64{" interaction": 1, "polite filtered": 1, "right not_applicable": 1, "short filtered": 1})
	f("an empty answer", `{"input":"q","output":"","reference":"r","kind":"chat"}`, consumer.NotNeeded, 0, 0,
		map[string]uint64{" interaction": 1, "polite not_applicable": 1, "right not_applicable": 1, "short not_applicable": 1})
	f("one check wants it", `{"input":"q","output":"a"}`, consumer.Durable, 1, 0,
		map[string]uint64{" interaction": 1, "polite selected": 1, "right not_applicable": 1, "short filtered": 1})
	f("a list with a bad element", `[`+item("i-1")+`, 7, `+item("i-2")+`]`, consumer.Durable, 6, 1,
		map[string]uint64{" interaction": 2, " dead_lettered": 1, "polite selected": 2, "right selected": 2, "short selected": 2})
	f("a list with two bad elements and nothing to judge", `["x", 7, {"input":"q","output":"a","app":"internal"}]`, consumer.DeadLettered, 0, 1,
		map[string]uint64{" interaction": 1, " dead_lettered": 2, "polite filtered": 1})
	f("one id twice", `[`+item("same")+`,`+item("same")+`]`, consumer.Durable, 6, 0,
		map[string]uint64{" interaction": 2, "polite selected": 2})
}

func TestARecordBelowTheCommittedOffsetIsCountedAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		a := w.fresh()
		defer a.pt.Close()
		a.below = 12
		r := a.read(10, item("i-1"))
		a.read(11, "<html>")
		w.settle()
		if w.judge.calls.Load() != 0 || w.store.rawEvaluations+w.store.rawTexts+len(w.store.letters) != 0 || r.released != 0 {
			t.Errorf("%d questions, %d rows", w.judge.calls.Load(), w.store.rawEvaluations)
		}
		if len(a.resolved) != 0 {
			t.Errorf("resolved %v", a.resolved)
		}
		if got := w.metric("assay_decisions_total", prometheus.Labels{"check": "polite", "decision": "selected"}); got != 0 {
			t.Errorf("counted in the process's metrics: %v", got)
		}
		if err := a.pt.Flush(t.Context(), a.watermark()); err != nil {
			t.Fatal(err)
		}
		if w.store.counts("polite", "selected") != 1 || w.store.counts("", "dead_lettered") != 1 {
			t.Errorf("ledger %v", w.store.population)
		}
	})
}

// The consumer's own deliveries end here; the others go through the same two steps with
// a record of the tests.
func TestHandleTakesTheConsumersDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		a := w.fresh()
		defer a.pt.Close()
		for offset, value := range []string{item("i-0"), item("i-1"), `{"input":"q","output":""}`, "<html>"} {
			a.pt.Handle(t.Context(), consumer.Delivery{Below: offset == 0,
				Record: interaction.Record{Topic: topic, Offset: int64(offset), Time: logTime, Value: []byte(value)}})
		}
		w.settle()
		if row := w.only(); row.InteractionID != "i-1" || len(w.store.letters) != 1 {
			t.Errorf("row %+v, letters %v", row, w.store.letters)
		}
		if err := a.pt.Flush(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		if w.store.counts("", "interaction") != 3 || w.store.counts("polite", "selected") != 2 {
			t.Errorf("ledger %v", w.store.population)
		}
	})
}

// The text does not wait for the judge, and the answer not for the text.
func TestTheTextIsStoredOnceBesideItsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, `[`+item("i-1")+`,`+item("i-2")+`]`)
		synctest.Wait()
		var texts, answers int
		for _, p := range w.store.pending {
			switch p.row.(type) {
			case sink.Text:
				texts++
			case sink.Evaluation:
				answers++
			}
		}
		if texts != 2 || answers != 6 {
			t.Fatalf("%d texts and %d judgements on the way, want 2 and 6", texts, answers)
		}
		w.settle()
		if w.store.rawTexts != 2 || len(w.store.texts) != 2 || len(w.store.evaluations) != 6 {
			t.Errorf("%d texts of %d interactions, %d judgements", w.store.rawTexts, len(w.store.texts), len(w.store.evaluations))
		}
	})
}

func TestALostTextIsCountedAndCostsNoJudgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		w.store.refuse = func(row any) error {
			if _, ok := row.(sink.Text); ok {
				return errors.New("no room for it")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		w.settle()
		if a.outcome(1) != consumer.Durable || len(w.store.evaluations) != 3 {
			t.Errorf("outcome %q, %d judgements", a.outcome(1), len(w.store.evaluations))
		}
		if got := w.metric("assay_texts_lost_total", nil); got != 1 {
			t.Errorf("lost texts %v", got)
		}
	})
}

// A text that the stopping writer leaves open leaves its record open: the next owner
// finds the answer and stores the text again.
func TestATextLeftOpenLeavesItsRecordOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, `{"id":"i-1","input":"q","output":"a"}`)
		synctest.Wait()
		for i, p := range w.store.pending {
			if _, ok := p.row.(sink.Text); ok {
				w.store.pending = append(w.store.pending[:i], w.store.pending[i+1:]...)
				p.settled(sink.ErrStopped)
				break
			}
		}
		w.settle()
		if a.outcome(1) != "" || len(w.store.evaluations) == 0 {
			t.Errorf("outcome %q, %d judgements, want none and some", a.outcome(1), len(w.store.evaluations))
		}
		if got := w.metric("assay_texts_lost_total", nil); got != 0 {
			t.Errorf("%v texts counted as lost; it comes again", got)
		}
	})
}

func TestARowLeftOpenKeepsItsRecordOpen(t *testing.T) {
	f := func(name string, spoil func(w *world)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, rules)
			a := w.fresh()
			defer a.pt.Close()
			spoil(w)
			a.read(1, `[`+item("i-1")+`, 7]`)
			synctest.Wait()
			w.store.mu.Lock()
			pending := w.store.pending
			w.store.pending = nil
			w.store.mu.Unlock()
			for _, p := range pending {
				p.settled(sink.ErrStopped)
			}
			w.settle()
			if a.outcome(1) != "" || a.watermark() != 1 {
				t.Errorf("%s: outcome %q, watermark %d", name, a.outcome(1), a.watermark())
			}
		})
	}
	f("the writer stops with the rows", func(*world) {})
	f("the writer takes no rows", func(w *world) { w.store.ended = sink.ErrStopped })
}

func TestARefusedRowBecomesADeadLetterAndThenTheRecordIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		w.store.refuse = func(row any) error {
			if e, ok := row.(sink.Evaluation); ok && e.Check != "short" {
				return errors.New("column " + e.Check + " does not take jane@example.org")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		value := item("i-1")
		a.read(1, value)
		for range 4 { // a text and three judgements, two of them refused
			synctest.Wait()
			w.store.step(nil)
		}
		synctest.Wait()
		if a.outcome(1) != "" {
			t.Fatalf("resolved as %q before its dead letter is durable", a.outcome(1))
		}
		w.settle()
		if a.outcome(1) != consumer.DeadLettered {
			t.Errorf("resolved as %q", a.outcome(1))
		}
		letter := w.store.letters[position{1, 0}]
		if letter.Reason != "row_rejected" || !letter.Stub || letter.BodyBytes != uint64(len(value)) || !letter.LogTime.Equal(logTime) {
			t.Errorf("dead letter %+v", letter)
		}
		for _, part := range []string{"check polite", "check right", "interaction i-1", "[email]"} {
			if !strings.Contains(letter.Error, part) {
				t.Errorf("error %q does not contain %q", letter.Error, part)
			}
		}
		if got := w.metric("assay_dead_letters_total", prometheus.Labels{"topic": topic, "reason": "row_rejected"}); got != 2 {
			t.Errorf("%v rejected rows counted, want 2", got)
		}
	})
}

// The table keeps one dead letter a record: the one of a refused row must say what was
// bad in the record too, with its body.
func TestTheDeadLetterOfARefusedRowKeepsWhatWasBadInTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		w.store.refuse = func(row any) error {
			if e, ok := row.(sink.Evaluation); ok && e.Check == "polite" {
				return errors.New("refused")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		value := `[7,` + item("i-1") + `]`
		a.read(1, value)
		w.settle()
		letter := w.store.letters[position{1, 0}]
		if letter.Reason != "not_an_object" || letter.Stub || string(letter.Body) != value ||
			!strings.Contains(letter.Error, "element 0") || !strings.Contains(letter.Error, "check polite") {
			t.Errorf("dead letter %+v", letter)
		}
		if a.outcome(1) != consumer.DeadLettered {
			t.Errorf("resolved as %q", a.outcome(1))
		}
	})
}

// A dead letter is the last way out of the log: if ClickHouse refuses one, what came
// from outside is left out and the coordinates go again.
func TestARefusedDeadLetterGoesAgainWithoutItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		w.store.refuse = func(row any) error {
			if l, ok := row.(sink.DeadLetter); ok && !l.Stub {
				return errors.New("not this body")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, "<html>")
		w.settle()
		letter := w.store.letters[position{1, 0}]
		if a.outcome(1) != consumer.DeadLettered || !letter.Stub || letter.Body != nil || letter.Reason != "not_json" || letter.BodyBytes != 6 {
			t.Errorf("outcome %q, dead letter %+v", a.outcome(1), letter)
		}
	})
}

func TestARecordWhoseDeadLetterIsImpossibleStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		w.store.refuse = func(row any) error {
			if _, ok := row.(sink.DeadLetter); ok {
				return errors.New("no such table")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, "<html>")
		w.settle()
		if a.outcome(1) != "" || a.watermark() != 1 {
			t.Errorf("outcome %q, watermark %d", a.outcome(1), a.watermark())
		}
		if !strings.Contains(w.log.String(), "stays open") {
			t.Errorf("nobody was told: %s", w.log)
		}
	})
}

func TestARecordThatPanickedAgainAndAgainIsADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		a := w.fresh()
		defer a.pt.Close()
		r := &record{a: a, offset: 1}
		a.open[1], a.next = r, 2
		d := consumer.Delivery{Fault: "panic", Record: interaction.Record{Topic: topic, Offset: 1, Time: logTime, Value: []byte(item("i-1"))}}
		a.pt.start(t.Context(), a.pt.take(&d), r)
		w.settle()
		if a.outcome(1) != consumer.DeadLettered || w.judge.calls.Load() != 0 || w.store.letters[position{1, 0}].Reason != "panic" {
			t.Errorf("outcome %q, letter %+v", a.outcome(1), w.store.letters)
		}
		if got := w.metric("assay_dead_letters_total", prometheus.Labels{"topic": topic, "reason": "panic"}); got != 1 {
			t.Errorf("counted %v times", got)
		}
	})
}

// A producer that wrote microseconds for milliseconds is in the year 58,000. Such a time
// cannot be stored: the ledger's flush would be refused for ever, and nothing committed.
func TestAnImpossibleTimeIsReplaced(t *testing.T) {
	f := func(log time.Time, value string, want time.Time) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, rules)
			a := w.fresh()
			defer a.pt.Close()
			a.handle(t.Context(), interaction.Record{Topic: topic, Offset: 1, Time: log, Value: []byte(value)})
			w.settle()
			if err := a.pt.Flush(t.Context(), a.watermark()); err != nil {
				t.Fatal(err)
			}
			for _, r := range w.store.population {
				if !r.Minute.Equal(want.Truncate(time.Minute)) || r.LogTime.Year() > 2105 || r.LogTime.Unix() < 0 {
					t.Errorf("log %s: ledger minute %s, log time %s, want minute of %s", log, r.Minute, r.LogTime, want)
				}
			}
			for _, e := range w.store.evaluations {
				if !e.Time.Equal(want) {
					t.Errorf("log %s: row at %s, want %s", log, e.Time, want)
				}
			}
			for _, l := range w.store.letters {
				if l.LogTime.Year() > 2105 || l.LogTime.Unix() < 0 {
					t.Errorf("dead letter at %s", l.LogTime)
				}
			}
			if len(w.store.evaluations)+len(w.store.letters)+len(w.store.population) == 0 || a.outcome(1) == "" {
				t.Errorf("nothing came of the record; outcome %q", a.outcome(1))
			}
		})
	}
	micros := time.UnixMilli(logTime.UnixMicro()).UTC()
	none := time.UnixMilli(-1).UTC()
	start := time.Unix(0, 0).UTC()
	plain := `{"input":"q","output":"a"}`
	f(micros, plain, start)
	f(micros, "<html>", start)
	f(none, plain, start)
	f(none, "<html>", start)
	// the record's own time is good, whatever the log says
	f(micros, `{"input":"q","output":"a","time":"2026-03-01T10:00:00Z"}`, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	// neither is
	f(none, fmt.Sprintf(`{"input":"q","output":"a","time":%d}`, int64(1)<<45), start)
}

func TestReadingWaitsWhileNoDeadLetterFitsAndADrainEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		w.store.full = true
		a := w.fresh()
		ctx, stop := context.WithCancel(t.Context())
		returned := make(chan struct{})
		go func() {
			a.handle(ctx, interaction.Record{Topic: topic, Offset: 1, Time: logTime, Value: []byte("<html>")})
			close(returned)
		}()
		time.Sleep(time.Hour)
		select {
		case <-returned:
			t.Fatal("handle returned with its dead letter nowhere")
		default:
		}
		// the consumer ends ctx and drains only once Handle is back
		stop()
		<-returned
		if err := a.pt.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		a.pt.Close()
		if a.outcome(1) != "" {
			t.Errorf("resolved as %q", a.outcome(1))
		}
	})
}

func TestTheLedgersRowsComeAgainUntilTheyAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, `{"input":"q","output":"a","app":"internal"}`)
		w.store.down = errDown
		if err := a.pt.Flush(t.Context(), 2); !errors.Is(err, errDown) {
			t.Fatalf("err %v", err)
		}
		w.store.down = nil
		if err := a.pt.Flush(t.Context(), 2); err != nil || w.store.counts("", "interaction") != 1 {
			t.Fatalf("err %v, counts %v", err, w.store.population)
		}
		w.store.down = errDown
		if err := a.pt.Flush(t.Context(), 2); err != nil {
			t.Errorf("nothing changed, and still something was sent: %v", err)
		}
	})
}

func TestCountersOfClosedListsStartAtZero(t *testing.T) {
	w := newWorld(t, rules)
	for _, reason := range []string{"not_json", "not_an_object", "unknown_shape", "row_rejected", "panic"} {
		if got := w.metric("assay_dead_letters_total", prometheus.Labels{"topic": topic, "reason": reason}); got != 0 {
			t.Errorf("%s starts at %v", reason, got)
		}
	}
	for _, status := range []string{"ok", "unscored", "not_applicable", "shed", "error"} {
		w.metric("assay_evaluations_total", prometheus.Labels{"check": "right", "status": status})
	}
	w.metric("assay_judging_panics_total", prometheus.Labels{"check": "right"})
	w.metric("assay_recovery_skipped_total", prometheus.Labels{"check": "right"})
	w.metric("assay_interactions_total", prometheus.Labels{"topic": topic})
}

func TestAPipelineIsRefusedWithoutAJudgeOrADeadline(t *testing.T) {
	f := func(want string, option option) {
		t.Helper()
		w := &world{t: t, file: parse(t, rules), judge: &fakeJudge{}, store: newStore(), log: &lines{}}
		good := w.pipeline(w.file)
		cfg, deps := good.cfg, good.deps
		deps.Reg = prometheus.NewRegistry()
		option(&cfg, &deps)
		if _, err := New(cfg, deps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err %v, want %q", err, want)
		}
	}
	f("deadline", func(c *Config, _ *Deps) { c.Deadline = 0 })
	f(`no judge "b"`, func(_ *Config, d *Deps) { d.Judges = map[string]Judge{"a": d.Judges["a"]} })
	f("check right", func(_ *Config, d *Deps) {
		f := *d.Checks
		f.Checks = append(f.Checks[:0:0], f.Checks...)
		f.Checks[1].Evaluator = "reads_minds"
		d.Checks = &f
	})
}
