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
	"assay/sink"
)

const feedbackRules = `
version: 1
sources:
  - topic: assistant.log
    feedback:
      thumbs: polite
      stars: { check: polite, pass: 4 }
      verdict: { check: polite, pass: [good] }
judges: { a: { kind: simulated } }
checks:
  - { name: polite, evaluator: closed_qa, criteria: { text: "Greets." }, judge: a, sample: { rate: 1 } }
`

// score is an event of a trace store.
func score(name, about, value string) string {
	return fmt.Sprintf(`{"type":"score-create","timestamp":"2026-03-01T12:00:00Z","body":{"name":%q,%s,%s}}`, name, about, value)
}

func (w *world) feedback(outcome string) float64 {
	return w.metric("assay_feedback_total", prometheus.Labels{"topic": topic, "outcome": outcome})
}

// said is a stored label in one line, "" if there is none.
func (w *world) said(check, question, id, rater string) string {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	l, ok := w.store.labels[[4]string{check, question, id, rater}]
	if !ok {
		return ""
	}
	text := l.Origin
	if l.Passed != nil {
		text += fmt.Sprint(" passed ", *l.Passed)
	}
	if l.Value != nil {
		text += fmt.Sprint(" value ", *l.Value)
	}
	return strings.Join(strings.Fields(text+" "+l.Option+" "+l.Comment), " ")
}

func TestFeedbackBecomesLabelsOfTheCheckThatItsSourceNames(t *testing.T) {
	f := func(record, check, question, id, rater, want, outcome string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, feedbackRules)
			a := w.fresh()
			defer a.pt.Close()
			a.read(1, record)
			w.settle()
			if got := w.said(check, question, id, rater); got != want {
				t.Errorf("%s:\nlabel %q, want %q; stored are %+v", record, got, want, w.store.labels)
			}
			if n := w.feedback(outcome); n != 1 {
				t.Errorf("%s: %v counted as %s", record, n, outcome)
			}
			if a.watermark() != 2 {
				t.Errorf("%s: not resolved", record)
			}
		})
	}
	const generation = `"observationId":"g-1"`
	f(events(score("thumbs", generation, `"value":1`)), "polite", "", "g-1", "feedback:thumbs", "volunteered passed true", "labelled")
	f(events(score("thumbs", generation, `"value":-1,"comment":"mail me at ann@example.com"`)),
		"polite", "", "g-1", "feedback:thumbs", "volunteered passed false mail me at [email]", "labelled")
	f(events(score("stars", generation, `"value":3`)), "polite", "", "g-1", "feedback:stars", "volunteered passed false", "labelled")
	f(events(score("verdict", generation, `"value":0,"stringValue":"good","dataType":"CATEGORICAL"`)),
		"polite", "", "g-1", "feedback:verdict", "volunteered passed true", "labelled")
	// kept, and no check's
	f(events(score("tone", generation, `"value":0.7`)), "", "tone", "g-1", "feedback:tone", "volunteered value 0.7", "foreign")
	f(events(score("thumbs", generation, `"value":0.7`)), "", "thumbs", "g-1", "feedback:thumbs", "volunteered value 0.7", "unclear")
	f(events(score("thumbs", `"traceId":"t-1"`, `"value":1`)), "", "thumbs", "t-1", "feedback:thumbs", "volunteered value 1", "trace")
	f(events(score("thumbs", `"x":1`, `"value":1`)), "polite", "", "", "feedback:thumbs", "", "nameless")
	// of other families, and with its own interaction
	f(`{"run_id":"r-1","key":"stars","score":5}`, "polite", "", "r-1", "feedback:stars", "volunteered passed true", "labelled")
	f(`{"id":"f-1","input":"q","output":"a","feedback":{"name":"thumbs","value":1}}`, "polite", "", "f-1", "feedback:thumbs", "volunteered passed true", "labelled")
	f(`{"id":"f-1","input":"q","output":"","feedback":{"name":"tone","value":2}}`, "", "tone", "f-1", "feedback:tone", "volunteered value 2", "foreign")
}

// Later records win, in whatever order they are read again, and reading them again
// writes nothing.
func TestFeedbackThatIsReadAgainChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feedbackRules)
		log := []string{
			events(score("thumbs", `"observationId":"g-1"`, `"value":1`), score("tone", `"observationId":"g-1"`, `"value":3`)),
			events(score("thumbs", `"observationId":"g-2"`, `"value":1`)),
			events(score("thumbs", `"observationId":"g-1"`, `"value":0`)),
		}
		life := func(from int64) {
			a := w.assign(w.pipeline(w.file), consumer.Assignment{Topic: topic, Committed: from, LogEnd: 3})
			for offset := a.next; offset < 3; offset++ {
				a.read(offset, log[offset])
			}
			w.settle()
			if a.watermark() != 3 || a.outcome(2) != consumer.Durable {
				t.Errorf("watermark %d, outcomes %v", a.watermark(), a.resolved)
			}
			if err := a.pt.Flush(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
			if n := w.store.counts("", "no_interaction"); n != 3 {
				t.Errorf("the ledger has %d records without an interaction, want 3", n)
			}
			a.revoke()
			a.pt.Close()
		}
		life(0)
		rows := w.store.labelRows
		for from := range int64(3) {
			life(from)
		}
		if got := w.said("polite", "", "g-1", "feedback:thumbs"); got != "volunteered passed false" || len(w.store.labels) != 3 {
			t.Errorf("the label says %q, %d labels; want the last word, and 3", got, len(w.store.labels))
		}
		if w.store.labelRows != rows {
			t.Errorf("%d rows were written, %d of them by reading again", w.store.labelRows, w.store.labelRows-rows)
		}
	})
}

func TestARecordWithFeedbackIsResolvedWhenItsLabelsAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feedbackRules)
		a := w.fresh()
		defer a.pt.Close()
		w.store.mu.Lock()
		w.store.down = errDown
		w.store.mu.Unlock()
		for offset := range int64(5) {
			a.read(offset, events(score("thumbs", fmt.Sprintf(`"observationId":"g-%d"`, offset), `"value":1`)))
		}
		time.Sleep(time.Minute)
		w.settle()
		if a.watermark() != 0 || len(a.resolved) != 0 {
			t.Fatalf("watermark %d, outcomes %v, and nothing could be stored", a.watermark(), a.resolved)
		}
		w.store.mu.Lock()
		w.store.down = nil
		w.store.mu.Unlock()
		time.Sleep(time.Minute)
		w.settle()
		if a.watermark() != 5 || len(w.store.labels) != 5 {
			t.Errorf("watermark %d, %d labels", a.watermark(), len(w.store.labels))
		}
		if !strings.Contains(w.log.String(), "labels wait for ClickHouse") {
			t.Error("nobody was told")
		}
	})
}

func TestADrainLeavesFeedbackOpenThatCouldNotBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feedbackRules)
		a := w.fresh()
		w.store.down = errDown
		a.read(0, events(score("thumbs", `"observationId":"g-1"`, `"value":1`)))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := a.pt.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain: %v", err)
		}
		if a.watermark() != 0 {
			t.Errorf("watermark %d", a.watermark())
		}
		a.revoke()
		a.pt.Close()
	})
}

// One label that ClickHouse will never take must not keep the others of its batch out, nor
// the partition at its offset.
func TestFeedbackThatIsRefusedIsCountedAndTheRestStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, feedbackRules)
		w.store.refuse = func(row any) error {
			if l, ok := row.(sink.LabelChange); ok && l.InteractionID == "g-3" {
				return errors.New("no")
			}
			return nil
		}
		a := w.fresh()
		defer a.pt.Close()
		var some []string
		for i := range 8 {
			some = append(some, score("thumbs", fmt.Sprintf(`"observationId":"g-%d"`, i), `"value":1`))
		}
		a.read(0, events(some...))
		w.settle()
		if a.watermark() != 1 || len(w.store.labels) != 7 || w.feedback("refused") != 1 {
			t.Errorf("watermark %d, %d labels, %v refused", a.watermark(), len(w.store.labels), w.feedback("refused"))
		}
	})
}
