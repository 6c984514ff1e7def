package pipeline

import (
	"testing"
	"testing/synctest"

	"assay/consumer"
)

const ruleChecks = `
version: 1
dimensions: [app]
sources: [{ topic: assistant.log, format: flat }]
checks:
  - name: short
    evaluator: length
    max: 3
    sample: { rate: 1 }
  - name: right
    evaluator: exact_match
    reference: { field: expected }
    sample: { rate: 1 }
`

// A check that computes has a row like any other, without a judge and without cost.
func TestAFileWithoutAJudgeIsJudgedByRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ruleChecks)
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, `{"id":"i-1","input":"q","output":"Oui","expected":"oui"}`)
		a.read(2, `{"id":"i-2","input":"q","output":"a long answer"}`)
		synctest.Wait()
		w.settle()
		if a.outcome(1) != consumer.Durable || a.outcome(2) != consumer.Durable {
			t.Fatalf("%q, %q", a.outcome(1), a.outcome(2))
		}
		if err := a.pt.Flush(t.Context(), a.watermark()); err != nil {
			t.Fatal(err)
		}
		if n := w.store.counts("right", "not_applicable"); n != 1 {
			t.Errorf("%d counted as not applicable, want the one without a reference", n)
		}
		if len(w.store.evaluations) != 3 {
			t.Fatalf("%d rows, want 3", len(w.store.evaluations))
		}
		for _, e := range w.store.evaluations {
			want := float32(1)
			if e.InteractionID == "i-2" {
				want = 0
			}
			if e.Status != "ok" || e.Score == nil || *e.Score != want || *e.Passed != (want == 1) || e.Judge != "" || e.Method != "none" ||
				e.Confidence != nil || e.Option != "" || e.OptionProbs != nil || e.Attempts != 0 || e.CostNanoUSD != 0 || e.CheckVersion == "" {
				t.Errorf("row %+v", e)
			}
		}
	})
}
