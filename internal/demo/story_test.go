package demo

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"assay/evaluators/judge"
	"assay/evaluators/judge/embedded"
	"assay/evaluators/judge/simulated"
	"assay/internal/stats"
)

// The demo tells a story: the alarm opens on the version that went bad, and closes in
// the same day. Here it is told with the product's detector and judges' known
// confusion; the limit and the recovery bound are those of the monitor: eight
// detectors share four false alarms a year, and an alarm closes when what came since
// its opening is surely above target - tolerance.
func TestTheDayOpensAndClosesAnAlarm(t *testing.T) {
	passes := map[string]map[Class]float64{ // the judge's pass probability
		CheckPolicy: {Good: 0.96, Partial: 0.04, Wrong: 0.04},
		CheckFacts:  {Good: 0.99, Partial: 0.99, Wrong: 0.06},
	}
	tell := func(day []Truth, seed uint64, check string, rate, target float64, keep func(Truth) bool) (opened, closed time.Duration) {
		rng := rand.New(rand.NewPCG(seed, 7))
		const tolerance = 0.02
		var esr stats.ESR
		rows, since, passed := 0.0, 0.0, 0.0
		for _, tr := range day {
			if tr.Class == None || !keep(tr) || rng.Float64() >= rate {
				continue
			}
			rows++
			pass := rng.Float64() < passes[check][tr.Class]
			after := tr.Time.Sub(dayStart)
			if opened > 0 {
				since++
				if pass {
					passed++
				}
				lower, _, err := stats.Wilson(passed, since, 0.95)
				if err != nil {
					t.Fatal(err)
				}
				if since >= 30 && lower > target-tolerance {
					return opened, after
				}
				continue
			}
			fail := 1.0
			if pass {
				fail = 0
			}
			esr.Step(fail, 1, 1, stats.NullRate(1-target+tolerance))
			if esr.M() >= 365*max(1000, rows)*8/4 {
				opened = after
			}
		}
		return opened, 0
	}
	newer := func(tr Truth) bool { return tr.PromptVersion == NewPrompt }
	billing := func(tr Truth) bool { return tr.App == "billing-bot" }
	drop := dayOptions().Drop
	for seed := uint64(1); seed <= 4; seed++ {
		opts := dayOptions()
		opts.Seed = seed
		day := truths(simulate(t, opts))
		for _, c := range []struct {
			check        string
			rate, target float64
		}{{CheckPolicy, 0.25, 0.85}, {CheckFacts, 0.5, 0.92}} {
			opened, closed := tell(day, seed, c.check, c.rate, c.target, newer)
			t.Logf("seed %d, %s: opened %s after the drop, closed %s after the repair", seed, c.check, opened-drop.From, closed-drop.To)
			if opened < drop.From || opened > drop.From+100*time.Minute {
				t.Errorf("seed %d, %s: opened after %s, the drop began after %s", seed, c.check, opened, drop.From)
			}
			if closed < drop.To || closed > 22*time.Hour {
				t.Errorf("seed %d, %s: closed after %s, the repair came after %s", seed, c.check, closed, drop.To)
			}
			if opened, _ := tell(day, seed, c.check, c.rate, c.target, billing); opened > 0 {
				t.Errorf("seed %d, %s: an alarm on the assistant that stayed well", seed, c.check)
			}
		}
	}
}

// The facts check needs references that the embedded judge understands, and answers
// that it can tell apart.
func TestTheEmbeddedJudgeKnowsTheBanksClasses(t *testing.T) {
	j, err := embedded.New()
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{"agree", "disagree"}
	asked, right, abstained := 0, 0, 0
	for _, it := range bank(t).Items() {
		for _, class := range []Class{Good, Partial, Wrong} {
			for _, a := range it.Answers(class) {
				asked++
				ans, err := j.Ask(t.Context(), coarseQuestion(it, a))
				var unusable *judge.UnusableError
				if errors.As(err, &unusable) {
					abstained++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				chosen := keys[0]
				if ans.Probabilities[1] > ans.Probabilities[0] {
					chosen = keys[1]
				}
				if want, _ := class.Option(keys); chosen == want {
					right++
				}
			}
		}
	}
	t.Logf("%d of %d right, %d abstained", right, asked, abstained)
	if abstained*100 > asked {
		t.Errorf("abstained on %d of %d", abstained, asked)
	}
	if float64(right) < 0.94*float64(asked-abstained) {
		t.Errorf("right on %d of %d", right, asked-abstained)
	}
}

func coarseQuestion(it Item, output string) judge.Question {
	return judge.Question{
		Name: "factuality_coarse/1",
		Kind: judge.Choice,
		Fields: []judge.Field{
			{Name: "input", Value: it.Questions[0]},
			{Name: "output", Value: output},
			{Name: "expected", Value: it.Reference},
		},
		Options: []judge.Option{{Key: "agree"}, {Key: "disagree"}},
	}
}

// This is how the demo wires its judge: the bank's grade is the truth.
func TestTheSimulatedJudgeIsToldByTheBank(t *testing.T) {
	b := bank(t)
	j, err := simulated.New(simulated.Config{
		Accuracy: 1,
		Truth: func(q judge.Question) (string, bool) {
			input, _ := q.Field("input")
			output, _ := q.Field("output")
			class, ok := b.Grade(input, output)
			if !ok {
				return "", false
			}
			keys := make([]string, len(q.Options))
			for i, o := range q.Options {
				keys[i] = o.Key
			}
			return class.Option(keys)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	it := b.Items()[0]
	ans, err := j.Ask(t.Context(), coarseQuestion(it, "Hello! "+it.Wrong[0]))
	if err != nil || ans.Probabilities[1] != 1 {
		t.Errorf("a wrong answer: %+v, %v", ans, err)
	}
	ans, err = j.Ask(t.Context(), coarseQuestion(it, it.Partial[0]+" Enjoy your home!"))
	if err != nil || ans.Probabilities[0] != 1 {
		t.Errorf("a partial answer: %+v, %v", ans, err)
	}
	var unusable *judge.UnusableError
	if _, err = j.Ask(t.Context(), coarseQuestion(it, "The moon.")); !errors.As(err, &unusable) || unusable.Reason != "judge_abstained" {
		t.Errorf("an answer that is not the bank's: %v", err)
	}
}
