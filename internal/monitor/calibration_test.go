package monitor

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/interaction"
	"assay/sink"
)

func (m *memory) LabelCounts(context.Context, time.Time) ([]sink.LabelCount, error) {
	return []sink.LabelCount{{Check: "refund", Waiting: 1, Placed: uint64(len(m.labelled))}}, m.call("LabelCounts")
}

func (m *memory) PlaceLabels(context.Context, time.Time, time.Time) (int, error) {
	return 0, m.call("PlaceLabels")
}

func (m *memory) LabelQueues(context.Context, time.Time) ([]sink.LabelQueue, error) {
	return m.queue, m.call("LabelQueues")
}

func (m *memory) LabelledRows(_ context.Context, _ string, from, to time.Time) ([]sink.LabelledRow, error) {
	var rows []sink.LabelledRow
	for _, r := range m.labelled {
		if !r.Time.Before(from) && r.Time.Before(to) {
			rows = append(rows, r)
		}
	}
	return rows, m.call("LabelledRows")
}

// people labels n judged rows of a slice at a time: scores s, of which agree are as the
// judge said.
func people(at time.Time, slice, origin string, n, agree int, score func(i int) float64) []sink.LabelledRow {
	rows := make([]sink.LabelledRow, n)
	for i := range rows {
		s := score(i)
		rows[i] = sink.LabelledRow{CheckVersion: "v1", Time: at.Add(time.Duration(i) * time.Second), Slice: sliceOf(slice), Pi: .5, Pi2: 1, Origin: origin,
			Says: s, Passed: s >= .5, People: 0}
		if rows[i].Passed == (i < agree) {
			rows[i].People = 1
		}
	}
	return rows
}

func alternate(i int) float64 { return []float64{.2, .9}[i%2] }

func (s Slice) calibrationOf(window, origin string) *Calibration {
	for i, c := range s.Calibration {
		if c.Window == window && c.Origin == origin {
			return &s.Calibration[i]
		}
	}
	return nil
}

func TestCalibrationIsPerSliceWindowAndOrigin(t *testing.T) {
	store := newMemory()
	w := newWorld(t, store, aFile(.90, .02, .5, 4, "app=support", "app=sales"))
	old, lately := morning.Add(-3*24*time.Hour), morning.Add(-time.Hour)
	store.labelled = slices.Concat(
		people(old, "app=support", "imported", 100, 60, alternate),
		people(lately, "app=support", "imported", 40, 36, alternate),
		people(lately, "app=sales", "sampled", 20, 20, alternate))
	store.queue = []sink.LabelQueue{{Check: "refund", Waiting: 3, Unmatched: 2}, {Check: "gone", Waiting: 9}}
	w.pass(10 * time.Minute)
	w.round()
	f := func(slice, window, origin string, labels uint64, agreement float64) {
		t.Helper()
		c := w.state(slice).calibrationOf(window, origin)
		switch {
		case c == nil && labels > 0:
			t.Errorf("%s %s %s: nothing, want %d labels", slice, window, origin, labels)
		case c != nil && (c.Labels != labels || math.Abs(*c.Agreement.Value-agreement) > 1e-12 || !c.To.Equal(c.From.Add(24*time.Hour)) && window == "24h"):
			t.Errorf("%s %s %s: %+v, want %d labels and agreement %v", slice, window, origin, *c, labels, agreement)
		}
	}
	f("all", "24h", "imported", 40, .9)
	f("all", "7d", "imported", 140, .96*100/140)
	f("all", "7d", "sampled", 20, 1)
	f("app=support", "7d", "imported", 140, .96*100/140)
	f("app=support", "7d", "sampled", 0, 0)
	f("app=sales", "24h", "sampled", 20, 1)
	f("app=sales", "24h", "imported", 0, 0)
	c, _ := w.mon.Snapshot().Check("refund")
	if c.LabelQueue != (LabelQueue{Waiting: 3, Unmatched: 2}) {
		t.Errorf("queue %+v", c.LabelQueue)
	}

	// the labels leave the windows as the log goes on
	w.pass(24 * time.Hour)
	w.round()
	f("all", "24h", "imported", 0, 0)
	f("all", "7d", "imported", 140, .96*100/140)
}

func TestTheExporterShowsCalibration(t *testing.T) {
	store := newMemory()
	w := newWorld(t, store, aFile(.90, .02, .5, 4, "app=support"))
	w.pass(10 * time.Minute)
	w.round()
	for name := range gathered(t, w) {
		if strings.HasPrefix(name, "assay_calibration_") {
			t.Errorf("%s without labels", name)
		}
	}
	store.labelled = people(morning.Add(-time.Hour), "app=support", "imported", 40, 36, alternate)
	w.round()
	series := gathered(t, w)
	const of = "{app=support,check=refund,check_version=v1,origin=imported,window=24h}"
	f := func(name string, want float64) {
		t.Helper()
		got, ok := series[name]
		if !ok || math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v (there: %t), want %v", name, got, ok, want)
		}
	}
	c := w.state("app=support").calibrationOf("24h", "imported")
	f("assay_calibration_labels"+of, 40)
	f("assay_calibration_agreement"+of, .9)
	f("assay_calibration_kappa"+of, .8)
	f("assay_calibration_brier"+of, *c.Brier)
	f("assay_calibration_error_debiased"+of, *c.Error)
	f("assay_calibration_p_value"+of, *c.PValue)
	f("assay_calibration_agreement_lower{app=support,check=refund,check_version=v1,level=0.95,origin=imported,window=24h}", c.Agreement.Lower)
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, family := range families {
		if strings.HasPrefix(family.GetHelp(), "undocumented") {
			t.Errorf("%s is undocumented", family.GetName())
		}
		if _, ok := calibrationHelp[family.GetName()]; ok {
			shown++
		}
	}
	if shown != len(calibrationHelp) {
		t.Errorf("%d of %d documented gauges are shown", shown, len(calibrationHelp))
	}
}

// Scores may be no probabilities; verdicts are compared all the same.
func TestWhatHasNoValueIsNil(t *testing.T) {
	f := func(name string, rows []sink.LabelledRow, turn bool, want func(c Calibration) bool) {
		t.Helper()
		c, err := calibrationOf(rows, turn, 1)
		if err != nil || !want(c) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	f("scores above 1", people(morning, "all", "imported", 10, 5, func(int) float64 { return 3 }), false, func(c Calibration) bool {
		return c.Labels == 10 && *c.Agreement.Value == .5 && c.Brier == nil && c.Error == nil && c.PValue == nil
	})
	f("one label", people(morning, "all", "imported", 1, 1, alternate), false, func(c Calibration) bool {
		return c.Kappa == nil && c.Brier != nil && c.Error == nil && c.PValue == nil && c.Agreement.Lower < .5
	})
	// less is better: a score of .1 passes, and says .9 for passing
	low := people(morning, "all", "imported", 1, 0, func(int) float64 { return .1 }) // people passed it, and the judge
	low[0].Passed = true
	f("less is better", low, true, func(c Calibration) bool { return math.Abs(*c.Brier-.01) < 1e-12 })
}

func TestTheSameRowsAreNotDrawnTwice(t *testing.T) {
	store := newMemory()
	w := newWorld(t, store, aFile(.90, .02, .5, 4))
	store.labelled = people(morning.Add(-time.Hour), "all", "imported", 40, 30, alternate)
	w.pass(time.Minute)
	w.round()
	first := w.mon.calibrations
	w.round()
	if len(first) == 0 || len(first) != len(w.mon.calibrations) {
		t.Fatalf("%d and %d sets", len(first), len(w.mon.calibrations))
	}
	for key, known := range first {
		// a computation makes numbers of its own
		if w.mon.calibrations[key].result.PValue != known.result.PValue {
			t.Errorf("%q was computed again", key)
		}
	}
	before := *w.state("all").calibrationOf("24h", "imported").Brier
	store.labelled[0].People = 1 - store.labelled[0].People
	w.round()
	if *w.state("all").calibrationOf("24h", "imported").Brier == before {
		t.Error("another label changed nothing")
	}
	w.restart()
	w.round()
	if again := *w.state("all").calibrationOf("24h", "imported").PValue; again != *w.mon.calibrations[labelledSet{check: w.file.Checks[0], version: "v1", slice: interaction.Slice{}, window: calibrationSpans[0], origin: "imported"}.key()].result.PValue {
		t.Errorf("p value %v after a restart", again)
	}
}
