package pipeline

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/internal/interaction"
	"assay/sink"
)

// Every selected interaction has its row, whatever ClickHouse thinks of a judgement.
func TestARefusedRowLeavesABareOneInItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		w.store.refuse = func(row any) error {
			if e, ok := row.(sink.Evaluation); ok && e.Check == "polite" && e.Reason != reasonRowRejected {
				return errors.New("no")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		w.settle()
		if err := a.pt.Flush(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		var bare sink.Evaluation
		for _, e := range w.store.evaluations {
			if e.Check == "polite" {
				bare = e
			} else if e.Status != "ok" {
				t.Errorf("another check suffered: %+v", e)
			}
		}
		want := w.p.identity(&w.p.checks[0], job{it: &w.p.deps.Decoder.Decode(record1(item("i-1"))).Interactions[0]})
		if bare.Check != want.Check || bare.CheckVersion != want.CheckVersion || !bare.Time.Equal(want.Time) || bare.InteractionID != "i-1" ||
			bare.Topic != topic || bare.Offset != 1 || bare.App != "shop" || bare.SliceID != want.SliceID || bare.Slice["app"] != "shop" ||
			bare.Pi != 1 || bare.Judge != "a" || bare.Worker != "w1" {
			t.Errorf("not the identity of the judgement: %+v", bare)
		}
		if bare.Status != "error" || bare.Reason != "row_rejected" || bare.Method != "none" || bare.EvaluatedAt.Unix() != 0 {
			t.Errorf("not a failure: %+v", bare)
		}
		if bare.Detail != "" || bare.Excerpt != "" || bare.AnswerExcerpt != "" || bare.Attributes != nil || bare.JudgeModel != "" ||
			bare.Score != nil || bare.Passed != nil || bare.Confidence != nil || bare.Option != "" || bare.OptionNames != nil || bare.OptionProbs != nil {
			t.Errorf("more than the identity: %+v", bare)
		}
		if bare.Attempts != 1 || bare.InputTokens != 10 || bare.CostNanoUSD != 1000 {
			t.Errorf("the budget of a restart would not know what was paid: %+v", bare)
		}
		if n := w.store.counts("polite", "selected"); n != 1 || len(w.store.evaluations) != 3 {
			t.Errorf("%d selected, %d rows of three checks", n, len(w.store.evaluations))
		}
		if a.outcome(1) != consumer.DeadLettered || w.store.letters[position{1, 0}].Reason != "row_rejected" {
			t.Errorf("outcome %q, letters %+v", a.outcome(1), w.store.letters)
		}
		if got := w.metric("assay_dead_letters_total", prometheus.Labels{"topic": topic, "reason": "row_rejected"}); got != 1 {
			t.Errorf("%v rejected rows counted, want 1", got)
		}
	})
}

func record1(value string) interaction.Record {
	return interaction.Record{Topic: topic, Offset: 1, Time: logTime, Value: []byte(value)}
}

func TestARowRefusedEvenBareIsLoggedOnceAndItsRecordIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.store.refuse = func(row any) error {
			if _, ok := row.(sink.Evaluation); ok {
				return errors.New("no")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		for offset := range int64(3) {
			a.read(offset, item(fmt.Sprint("i-", offset)))
		}
		w.settle()
		for offset := range int64(3) {
			if a.outcome(offset) != consumer.DeadLettered {
				t.Errorf("offset %d: outcome %q", offset, a.outcome(offset))
			}
		}
		if len(w.store.letters) != 3 || len(w.store.evaluations) != 0 {
			t.Errorf("%d letters, %d rows", len(w.store.letters), len(w.store.evaluations))
		}
		if log := w.log.String(); strings.Count(log, "not even bare") != 1 || !strings.Contains(log, "check=polite") {
			t.Errorf("want one line with coordinates, got %s", log)
		}
	})
}

// The bare row belongs to the record: it is not resolved before that is durable.
func TestARecordWaitsForItsBareRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.store.refuse = func(row any) error {
			if e, ok := row.(sink.Evaluation); ok && e.Reason != reasonRowRejected {
				return errors.New("no")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		synctest.Wait()
		w.store.step(nil) // the text
		w.store.step(nil) // the judgement, refused
		synctest.Wait()
		w.store.mu.Lock()
		pending := w.store.pending
		w.store.pending = nil
		w.store.mu.Unlock()
		if len(pending) != 1 {
			t.Fatalf("%d rows on the way, want the bare one", len(pending))
		}
		pending[0].settled(sink.ErrStopped)
		w.settle()
		if a.outcome(1) != "" || len(w.store.letters) != 0 {
			t.Errorf("outcome %q, letters %v", a.outcome(1), w.store.letters)
		}
	})
}
