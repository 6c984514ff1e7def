package monitor

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge/embedded"
	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/testkit"
	"assay/sink"
)

// apps are the assistants whose answers people judged, by the file's keys.
var apps = []string{"fid", "gpt35", "chatgpt", "gpt4", "newbing"}

// A said is one answer with the judge's row and what people say of it now.
type said struct {
	row    sink.Evaluation
	people map[string]bool // by rater; the rater panel is the drawn sample
}

// judgedAnswers are the first questions' answers, judged by the embedded judge, two days
// of a log that ends at end. Inclusion probabilities differ, so that weights matter.
func judgedAnswers(t *testing.T, questions int, end time.Time) []*said {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testkit.Data(t), "EVOUNA", "EVOUNA__NQ.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file []map[string]any
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	small, err := embedded.New()
	if err != nil {
		t.Fatal(err)
	}
	factuality, err := evaluators.New("factuality", evaluators.Settings{Coarse: true})
	if err != nil {
		t.Fatal(err)
	}
	var all []*said
	begin := end.Add(-47 * time.Hour)
	for i, q := range file[:questions] {
		for k, app := range apps {
			question, _ := q["question"].(string)
			answer, _ := q["answer_"+app].(string)
			reference, ok := q["golden_answer"].(string)
			verdict, judged := q["judge_"+app].(bool)
			if !ok || !judged || strings.TrimSpace(answer) == "" {
				continue
			}
			result, err := factuality.Evaluate(t.Context(), small, evaluators.Item{Input: &question, Output: &answer, Expected: []string{reference}, Judgeable: true})
			if err != nil {
				t.Fatal(err)
			}
			s := interaction.Slice{"app": app}
			e := sink.Evaluation{
				Check: "facts", CheckVersion: "v1", InteractionID: fmt.Sprintf("q%d-%s", i, app), Topic: "log", Offset: uint64(i*len(apps) + k),
				Time:    begin.Add(time.Duration(i)*47*time.Hour/time.Duration(questions) + time.Duration(k)*time.Millisecond).Truncate(time.Millisecond),
				SliceID: s.ID(), Slice: s, Pi: []float64{1, .5, .2}[(i+k)%3], Status: string(result.Status), Reason: result.Reason,
				Method: string(result.Method), Judge: "small", JudgeModel: "embedded", EvaluatedAt: end,
			}
			if result.Score != nil {
				e.Score, e.Passed, e.Option, e.OptionNames = new(float32(*result.Score)), result.Passed, result.Option, result.OptionNames
				e.OptionProbs = make([]float32, len(result.Probabilities))
				for j, p := range result.Probabilities {
					e.OptionProbs[j] = float32(p)
				}
			}
			one := &said{row: e, people: map[string]bool{"people": verdict}}
			if i%4 == 0 {
				one.people["second"] = verdict != (i%8 == 0)
			}
			if i%3 == 0 {
				one.people["panel"] = verdict
			}
			all = append(all, one)
		}
	}
	return all
}

const panelPi2 = .25

func (s *said) labels() []sink.LabelChange {
	var changes []sink.LabelChange
	for rater, passed := range s.people {
		changes = append(changes, s.label(rater, passed))
	}
	return changes
}

func (s *said) label(rater string, passed bool) sink.LabelChange {
	c := sink.LabelChange{Check: "facts", InteractionID: s.row.InteractionID, Rater: rater, Passed: &passed, Pi2: 1, Origin: "imported"}
	if rater == "panel" {
		c.Origin, c.Pi2 = "sampled", panelPi2
	}
	return c
}

// agreeing is the probability that the judge gave to the option that passes.
func agreeing(e sink.Evaluation) float64 {
	return float64(e.OptionProbs[slices.Index(e.OptionNames, "agree")])
}

// An independent is what a Calibration should hold, computed from the answers in plain
// loops and in another order than the product's.
type independent struct {
	n                                          int
	agreement, kappa, brier, logLoss, debiased float64
}

func independently(all []*said, app, origin string, from time.Time) independent {
	type item struct{ p, y, w, judge float64 }
	var items []item
	for i := len(all) - 1; i >= 0; i-- {
		s := all[i]
		if s.row.Status != "ok" || s.row.Time.Before(from) || app != "" && s.row.Slice["app"] != app {
			continue
		}
		votes, n, pi := 0., 0., s.row.Pi
		for rater, passed := range s.people {
			if (rater == "panel") != (origin == "sampled") {
				continue
			}
			n++
			if passed {
				votes++
			}
		}
		if n == 0 {
			continue
		}
		if origin == "sampled" {
			pi *= panelPi2
		}
		one := item{p: agreeing(s.row), y: votes / n, w: 1 / pi}
		if *s.row.Passed {
			one.judge = 1
		}
		items = append(items, one)
	}
	out := independent{n: len(items)}
	var weight, judgePassed, peoplePassed float64
	for _, i := range items {
		verdict := 0.
		if 2*i.y >= 1 {
			verdict = 1
		}
		weight += i.w
		judgePassed += i.w * i.judge
		peoplePassed += i.w * verdict
		if verdict == i.judge {
			out.agreement += i.w
		}
		out.brier += i.w * math.Pow(i.p-i.y, 2)
		p := math.Min(math.Max(i.p, 1e-6), 1-1e-6)
		out.logLoss -= i.w * (i.y*math.Log(p) + (1-i.y)*math.Log(1-p))
	}
	out.agreement, out.brier, out.logLoss = out.agreement/weight, out.brier/weight, out.logLoss/weight
	judgePassed, peoplePassed = judgePassed/weight, peoplePassed/weight
	chance := judgePassed*peoplePassed + (1-judgePassed)*(1-peoplePassed)
	out.kappa = (out.agreement - chance) / (1 - chance)

	sort.Slice(items, func(a, b int) bool { return items[a].p < items[b].p })
	var cuts []float64
	at := 0
	for b := range 9 {
		at += (len(items) + 9 - b) / 10 // the sizes of ten parts, the longer ones first
		cuts = append(cuts, (items[at-1].p+items[at].p)/2)
	}
	bins := map[float64][]item{}
	for _, i := range items {
		edge := 1.
		for _, c := range slices.Backward(cuts) {
			if i.p <= c {
				edge = c
			}
		}
		bins[edge] = append(bins[edge], i)
	}
	for _, in := range bins {
		var w, w2, said, came float64
		for _, i := range in {
			w, w2, said, came = w+i.w, w2+i.w*i.w, said+i.w*i.p, came+i.w*i.y
		}
		if kish := w * w / w2; kish >= 2 {
			out.debiased += w / weight * (math.Pow(said/w-came/w, 2) - came/w*(1-came/w)/(kish-1))
		}
	}
	return out
}

// holdAgainst compares every slice, window and origin, to 1e-9.
func holdAgainst(t *testing.T, w *world, all []*said, when string) {
	t.Helper()
	c, ok := w.mon.Snapshot().Check("facts")
	if !ok {
		t.Fatal("no check facts in the snapshot")
	}
	compared := 0
	for _, s := range c.Slices {
		for _, span := range calibrationSpans {
			for _, origin := range labelOrigins {
				got := s.calibrationOf(span.name, origin)
				want := independently(all, s.Slice["app"], origin, windowEnd(w.now).Add(-span.length))
				where := fmt.Sprintf("%s: %s, %s, %s", when, s.Slice, span.name, origin)
				if got == nil || got.Labels != uint64(want.n) || want.n < 50 {
					t.Errorf("%s: %+v, want %+v", where, got, want)
					continue
				}
				near := func(name string, got *float64, want float64) {
					t.Helper()
					if got == nil || math.Abs(*got-want) > 1e-9 {
						t.Errorf("%s: %s %v, want %v", where, name, got, want)
					}
				}
				near("agreement", got.Agreement.Value, want.agreement)
				near("kappa", got.Kappa, want.kappa)
				near("brier", got.Brier, want.brier)
				near("log loss", got.LogLoss, want.logLoss)
				near("debiased error squared", got.ErrorSquared, want.debiased)
				near("debiased error", got.Error, math.Sqrt(math.Max(0, want.debiased)))
				if got.PValue == nil || *got.PValue < 1./1001 || *got.PValue > 1 {
					t.Errorf("%s: p value %v", where, got.PValue)
				}
				compared++
			}
		}
	}
	if want := (1 + len(apps)) * len(calibrationSpans) * len(labelOrigins); compared != want {
		t.Errorf("%s: %d sets compared, want %d", when, compared, want)
	}
}

// Real answers, the embedded judge and people's verdicts as labels: some before their
// judgement, some after, then late ones, corrections and removals.
func TestCalibrationOnRealVerdictsEqualsAnIndependentComputation(t *testing.T) {
	file := &checks.File{Path: "assay.yaml", Dimensions: []string{"app"}, Hash: "h1"}
	for _, app := range apps {
		file.Slices = append(file.Slices, interaction.Slice{"app": app})
	}
	file.Checks = []checks.Check{{Name: "facts", Version: "v1", Evaluator: "factuality", Coarse: true, Judge: "small", Sample: checks.Sample{Rate: .2}, Alert: checks.Alert{Off: true}}}
	file.Alerts.MaxFalseAlarmsPerYear = 4
	store := newEngine(t)
	w := newWorld(t, store, file)
	w.now = morning.Add(48 * time.Hour)
	all := judgedAnswers(t, 900, w.now)
	if len(all) < 3000 {
		t.Fatalf("only %d answers with a verdict", len(all))
	}
	write := func(changes []sink.LabelChange) {
		t.Helper()
		if _, err := store.WriteLabels(t.Context(), changes, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	late := all[len(all)-400:]
	var before, after []sink.LabelChange
	for i, s := range all[:len(all)-400] {
		if i%2 == 0 {
			before = append(before, s.labels()...)
		} else {
			after = append(after, s.labels()...)
		}
	}
	lateLabels := make([]map[string]bool, len(late))
	for i, s := range late {
		lateLabels[i], s.people = s.people, nil
	}

	write(before)
	w.pass(time.Minute)
	w.round()
	if c, _ := w.mon.Snapshot().Check("facts"); c.LabelQueue.Waiting != uint64(len(before)) || len(c.Slices[0].Calibration) != 0 {
		t.Errorf("before any judgement %d of %d labels wait, calibration %+v", c.LabelQueue.Waiting, len(before), c.Slices[0].Calibration)
	}
	rows := make([]sink.Evaluation, len(all))
	for i, s := range all {
		rows[i] = s.row
	}
	if err := store.PutCheckVersions(t.Context(), []sink.CheckVersion{{Check: "facts", Version: "v1", QuestionKind: "choice", OptionNames: []string{"agree", "disagree"}, PassOptions: []string{"agree"}}}); err != nil {
		t.Fatal(err)
	}
	store.put(t, rows, nil)
	write(after)
	w.round()
	holdAgainst(t, w, all, "labels before and after their judgements")
	if c, _ := w.mon.Snapshot().Check("facts"); c.LabelQueue.Waiting != 0 {
		t.Errorf("%d labels still wait", c.LabelQueue.Waiting)
	}
	for _, s := range w.mon.Snapshot().Checks[0].Slices {
		if c := s.calibrationOf("7d", "imported"); c != nil {
			t.Logf("%-12s labels %4d agreement %.4f kappa %.4f brier %.4f error %.4f p %.4f", s.Slice, c.Labels, *c.Agreement.Value, *c.Kappa, *c.Brier, *c.Error, *c.PValue)
		}
	}

	// late ones, and of the others a correction and a removal
	var changes []sink.LabelChange
	for i, s := range late {
		s.people = lateLabels[i]
		changes = append(changes, s.labels()...)
	}
	for i, s := range all[:300] {
		if i%2 == 0 {
			s.people["people"] = !s.people["people"]
			changes = append(changes, s.label("people", s.people["people"]))
		} else {
			delete(s.people, "people")
			changes = append(changes, sink.LabelChange{Check: "facts", InteractionID: s.row.InteractionID, Rater: "people", Removed: true, Origin: "imported", Pi2: 1})
		}
	}
	write(changes)
	w.round()
	holdAgainst(t, w, all, "after late labels, corrections and removals")
	w.restart()
	w.round()
	holdAgainst(t, w, all, "after a restart")
}
