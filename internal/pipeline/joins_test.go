package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/evaluators/judge"
	"assay/internal/interaction"
)

const joinRules = `
version: 1
dimensions: [app]
sources: [{ topic: assistant.log, join_wait: 1m }]
judges: { a: { kind: simulated } }
checks:
  - { name: polite, evaluator: closed_qa, criteria: { text: "Greets." }, judge: a, sample: { rate: 1 } }
  - { name: half, evaluator: closed_qa, criteria: { text: "Is short." }, judge: a, when: 'app != "app 1"', sample: { rate: 0.5, salt: s } }
`

// events makes a record of a trace store's events.
func events(events ...string) string { return `{"batch":[` + strings.Join(events, ",") + `]}` }

func begun(id string) string {
	return fmt.Sprintf(`{"type":"generation-create","body":{"id":%q,"traceId":"t","input":"Where is my parcel?"}}`, id)
}

func ended(id string) string {
	return fmt.Sprintf(`{"type":"generation-update","body":{"id":%q,"output":"In Lyon.","endTime":"2026-03-01T12:00:00Z"}}`, id)
}

func (a *assigned) readAt(offset int64, after time.Duration, value string) *record {
	return a.handle(a.w.t.Context(), interaction.Record{Topic: topic, Offset: offset, Time: logTime.Add(after), Value: []byte(value)})
}

func (a *assigned) heldOffsets() []int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []int64
	for o := range a.held {
		out = append(out, o)
	}
	slices.Sort(out)
	return out
}

func TestAHalfHoldsItsOffsetUntilTheRowsOfTheWholeAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, joinRules)
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, events(begun("g-1")))
		if got := a.heldOffsets(); !slices.Equal(got, []int64{1}) {
			t.Fatalf("held %v, want 1", got)
		}
		a.read(2, `{"id":"f-1","input":"q","output":"a"}`)
		w.settle()
		if a.outcome(2) != consumer.Durable || a.watermark() != 1 {
			t.Fatalf("offset 2 is %q, watermark %d: want it durable and the half waiting", a.outcome(2), a.watermark())
		}
		a.read(3, events(ended("g-1")))
		synctest.Wait()
		if a.outcome(1) != "" || a.watermark() != 1 {
			t.Fatalf("the half is resolved as %q while the whole has rows open", a.outcome(1))
		}
		w.settle()
		if a.outcome(1) != consumer.NoInteraction || a.outcome(3) != consumer.Durable || a.watermark() != 4 {
			t.Errorf("outcomes %v, watermark %d", a.resolved, a.watermark())
		}
		found := false
		for k, e := range w.store.evaluations {
			if k.id == "g-1" {
				found = e.Offset == 3 && e.Status == "ok"
			}
		}
		if !found {
			t.Errorf("no judgement of the whole at the offset that completed it: %+v", w.store.evaluations)
		}
		if err := a.pt.Flush(t.Context(), a.watermark()); err != nil {
			t.Fatal(err)
		}
		if n, none := w.store.counts("", "interaction"), w.store.counts("", "no_interaction"); n != 2 || none != 1 {
			t.Errorf("%d interactions and %d records without one, want 2 and 1", n, none)
		}
		if got := w.metric("assay_decode_joins_total", prometheus.Labels{"topic": topic, "outcome": "joined"}); got != 1 {
			t.Errorf("%v joined", got)
		}
	})
}

// Each record ends one call and begins the next, so there is no offset that no pair
// spans. The watermark follows all the same, one record behind.
func TestPairsThatOverlapDoNotWaitForOneAnotherForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, joinRules)
		a := w.fresh()
		defer a.pt.Close()
		a.read(0, events(begun("g-0")))
		for i := int64(1); i < 50; i++ {
			a.read(i, events(ended(fmt.Sprint("g-", i-1)), begun(fmt.Sprint("g-", i))))
			w.settle()
			if a.watermark() != i {
				t.Fatalf("watermark %d after record %d", a.watermark(), i)
			}
		}
		a.read(50, events(ended("g-49")))
		w.settle()
		if a.watermark() != 51 || len(a.heldOffsets()) != 0 {
			t.Errorf("watermark %d, held %v", a.watermark(), a.heldOffsets())
		}
		if a.outcome(7) != consumer.Durable || a.outcome(0) != consumer.NoInteraction {
			t.Errorf("outcomes %q and %q: one record had rows of its own, the first had none", a.outcome(7), a.outcome(0))
		}
	})
}

// While a record's own judgements run it takes its room in the window; held it is only
// when nothing but the half is left.
func TestARecordWithAHalfIsHeldWhenItsOwnRowsAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, joinRules)
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, events(begun("g-1"), ended("g-1"), begun("g-2")))
		synctest.Wait()
		if len(a.heldOffsets()) != 0 {
			t.Fatal("held with its own rows open")
		}
		w.settle()
		if got := a.heldOffsets(); !slices.Equal(got, []int64{1}) || a.outcome(1) != "" {
			t.Fatalf("held %v, outcome %q", got, a.outcome(1))
		}
		a.read(2, events(ended("g-2")))
		w.settle()
		if a.outcome(1) != consumer.Durable || a.watermark() != 3 {
			t.Errorf("outcome %q, watermark %d", a.outcome(1), a.watermark())
		}
	})
}

// The rest of the half may be durable first.
func TestARecordThatIsFreeWaitsForItsOwnRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, joinRules)
		answer := make(chan struct{})
		w.judge.answer = func(ctx context.Context, q judge.Question) (judge.Answer, error) {
			select {
			case <-answer:
				return certain(q), nil
			case <-ctx.Done():
				return judge.Answer{}, ctx.Err()
			}
		}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, events(begun("g-1"), ended("g-1"), begun("g-2")))
		// given up by a record that needs no row
		a.readAt(2, 2*time.Minute, "")
		w.settle()
		if a.outcome(2) != consumer.NotNeeded || a.outcome(1) != "" || len(a.heldOffsets()) != 0 {
			t.Fatalf("outcomes %v, held %v", a.resolved, a.heldOffsets())
		}
		close(answer)
		w.settle()
		if a.outcome(1) != consumer.Durable {
			t.Errorf("outcome %q", a.outcome(1))
		}
	})
}

func TestAHalfWhoseRestNeverComesIsIncompleteAfterItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, joinRules)
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, events(begun("g-1")))
		a.readAt(2, time.Minute, "")
		if a.outcome(1) != "" {
			t.Fatalf("given up within its wait: %q", a.outcome(1))
		}
		a.readAt(3, 61*time.Second, "")
		if a.outcome(1) != consumer.NoInteraction || a.watermark() != 4 {
			t.Errorf("outcome %q, watermark %d", a.outcome(1), a.watermark())
		}
		if err := a.pt.Flush(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, r := range w.store.population {
			if r.Check == "polite" {
				reasons = append(reasons, r.Decision+" "+r.Reason)
			}
		}
		if !slices.Equal(reasons, []string{"not_applicable incomplete"}) || w.judge.calls.Load() != 0 {
			t.Errorf("counted as %v, %d questions", reasons, w.judge.calls.Load())
		}
		if got := w.metric("assay_decode_joins_total", prometheus.Labels{"topic": topic, "outcome": "expired"}); got != 1 {
			t.Errorf("%v expired", got)
		}
	})
}

// On a silent partition no record moves the log's clock. The offset is let go and nothing
// is counted, so that the rest, when it comes, still finds its half: here and after a
// restart.
func TestASilentPartitionLetsGoOfTheOffsetAndKeepsTheHalf(t *testing.T) {
	f := func(name string, restart bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, joinRules)
			a := w.fresh()
			a.read(1, events(begun("g-1")))
			time.Sleep(59 * time.Second)
			a.pt.CaughtUp(time.Now())
			if a.outcome(1) != "" {
				t.Fatalf("%s: let go too early", name)
			}
			time.Sleep(time.Second)
			a.pt.CaughtUp(time.Now())
			if a.outcome(1) != consumer.NoInteraction || a.watermark() != 2 {
				t.Fatalf("%s: outcome %q, watermark %d", name, a.outcome(1), a.watermark())
			}
			if err := a.pt.Flush(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			if n := w.store.counts("", "interaction"); n != 0 {
				t.Fatalf("%s: %d interactions counted, and the rest may still come", name, n)
			}
			if restart {
				a.revoke()
				a.pt.Close()
				a = w.assign(w.pipeline(w.file), consumer.Assignment{Topic: topic, Committed: 2, LogEnd: 2,
					Reach: func(context.Context, int64, time.Duration) (int64, error) { return 1, nil }})
				if a.next > 1 {
					t.Fatalf("%s: read from %d on", name, a.next)
				}
				a.read(1, events(begun("g-1")))
			}
			defer func() { a.pt.Close() }()
			a.readAt(2, time.Second, events(ended("g-1")))
			w.settle()
			if err := a.pt.Flush(t.Context(), a.watermark()); err != nil {
				t.Fatal(err)
			}
			if n, none := w.store.counts("", "interaction"), w.store.counts("", "no_interaction"); n != 1 || none != 1 || a.watermark() != 3 {
				t.Errorf("%s: %d interactions, %d records without one, watermark %d", name, n, none, a.watermark())
			}
			if n := len(w.store.evaluations); n == 0 {
				t.Errorf("%s: the whole was not judged", name)
			}
		})
	}
	f("same owner", false)
	f("after a restart", true)
}

// A partition without halves is not read from further back, however busy it is.
func TestOnlyAPartitionWithHalvesIsReadFromFurtherBack(t *testing.T) {
	f := func(name, value string, want int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, joinRules)
			a := w.assign(w.p, consumer.Assignment{Topic: topic, Committed: 32700, LogEnd: 40000})
			a.readAt(32750, 0, value)
			for offset := int64(32751); offset < 32790; offset++ {
				a.read(offset, fmt.Sprintf(`{"id":"f-%d","input":"q","output":"a"}`, offset))
			}
			w.settle()
			a.pt.CaughtUp(time.Now().Add(time.Hour))
			if err := a.pt.Flush(t.Context(), 32790); err != nil {
				t.Fatal(err)
			}
			a.revoke()
			a.pt.Close()
			b := w.assign(w.pipeline(w.file), consumer.Assignment{Topic: topic, Committed: 32780, LogEnd: 40000,
				Reach: func(_ context.Context, offset int64, _ time.Duration) (int64, error) { return offset - 50, nil }})
			defer b.pt.Close()
			if b.next != want || b.below != 32780 {
				t.Errorf("%s: reads from %d, below %d; want from %d", name, b.next, b.below, want)
			}
		})
	}
	f("none", `{"id":"f","input":"q","output":"a"}`, 32768)
	f("a half", events(begun("g-1")), 32718)
	f("facts for others", events(`{"type":"trace-create","body":{"id":"t","name":"shop"}}`), 32718)
	f("a whole that later parts may belong to", events(begun("g-1"), ended("g-1")), 32718)
}

// pairs are records of a trace store: calls begin and end in different ones, overlap,
// come in any order, more than once, too late or never; between them facts for others,
// silences, bad records and plain ones.
func pairs(s *sim, offset int64) interaction.Record {
	at := logTime
	if n := len(s.log); n > 0 {
		at = s.log[n-1].Time
	}
	switch s.r.IntN(15) {
	case 0:
		at = at.Add(time.Duration(s.r.IntN(100)) * time.Second)
	case 1:
		at = at.Add(time.Hour)
	default:
		at = at.Add(time.Duration(s.r.IntN(4)) * time.Second)
	}
	// all that is said of a call lies within two minutes
	call := func() string {
		return fmt.Sprintf("g-%d-%d", int(at.Sub(logTime)/time.Minute)-s.r.IntN(2), s.r.IntN(8))
	}
	var some []string
	for range 1 + s.r.IntN(3) {
		switch s.r.IntN(9) {
		case 0:
			some = append(some, fmt.Sprintf(`{"type":"trace-create","body":{"id":"t","name":"app %d"}}`, s.r.IntN(3)))
		case 1:
			some = append(some, `{"type":"span-create","body":{"id":"s"}}`)
		case 2, 3, 4, 5:
			some = append(some, begun(call()))
		default:
			some = append(some, ended(call()))
		}
	}
	value := events(some...)
	switch s.r.IntN(12) {
	case 0:
		value = "7"
	case 1, 2:
		value = fmt.Sprintf(`{"id":"f-%d","input":"q","output":"a%d"}`, offset, offset)
	}
	return interaction.Record{Topic: topic, Offset: offset, Time: at, Value: []byte(value)}
}

// What was joined before a crash is joined after it: the same interactions with the same
// ids at the same places, none lost, none counted twice, wherever the crash came between
// the halves, and whatever the clock let go of.
func TestConservationIsExactWhenHalvesAreJoined(t *testing.T) {
	for seed := range uint64(80) {
		synctest.Test(t, func(t *testing.T) {
			s := simOf(t, seed, pairs, joinRules)
			s.caughtUp = true
			s.keeps(seed, joinRules)
		})
	}
}

// A new segment begins where counting stands, in the midst of pairs: what is counted there
// is what the log holds, under whatever rules.
func TestTheLedgerStaysExactWhenRulesChangeBetweenHalves(t *testing.T) {
	other := strings.ReplaceAll(joinRules, "rate: 1 }", "rate: 0.3 }")
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			s := simOf(t, seed, pairs, joinRules, other)
			s.caughtUp = true
			s.changes(seed, []string{"polite", "half"}, joinRules, other)
		})
	}
}

// What stands behind a half may be judged long before the watermark gets there, and must
// not be paid for again.
func TestAnswersFromBehindAHalfAreFoundAfterItsWholeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(joinRules, "join_wait: 1m", "join_wait: 30m", 1))
		a := w.fresh()
		a.read(0, events(begun("g-0")))
		a.read(1, events(begun("g-1")))
		a.read(2, `{"id":"f-1","input":"q","output":"a"}`)
		w.settle()
		time.Sleep(29 * time.Minute)
		a.readAt(3, 29*time.Minute, events(ended("g-0")))
		w.settle()
		if a.watermark() != 1 {
			t.Fatalf("watermark %d, want 1", a.watermark())
		}
		if err := a.pt.Flush(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		a.revoke()
		a.pt.Close()
		calls := w.judge.calls.Load()
		b := w.assign(w.pipeline(w.file), consumer.Assignment{Topic: topic, Committed: 1, LogEnd: 4})
		defer b.pt.Close()
		b.read(0, events(begun("g-0")))
		b.read(1, events(begun("g-1")))
		b.read(2, `{"id":"f-1","input":"q","output":"a"}`)
		b.readAt(3, 29*time.Minute, events(ended("g-0")))
		w.settle()
		if n := w.judge.calls.Load() - calls; calls == 0 || n != 0 {
			t.Errorf("%d questions at first, %d again", calls, n)
		}
	})
}
