package simulated

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assay/evaluators/judge"
)

func question(output string, keys ...string) judge.Question {
	q := judge.Question{
		Name:   "closed_qa/1",
		Kind:   judge.Choice,
		Text:   "Which option holds?",
		Fields: []judge.Field{{Name: "input", Value: "how many"}, {Name: "output", Value: output}},
	}
	for _, k := range keys {
		q.Options = append(q.Options, judge.Option{Key: k, Text: "option " + k})
	}
	return q
}

func always(option string) func(judge.Question) (string, bool) {
	return func(judge.Question) (string, bool) { return option, true }
}

func newJudge(t *testing.T, cfg Config) *Judge {
	t.Helper()
	j, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func ask(t *testing.T, j *Judge, q judge.Question) judge.Answer {
	t.Helper()
	a, err := j.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func chosen(q judge.Question, a judge.Answer) string {
	best := 0
	for i, p := range a.Probabilities {
		if p > a.Probabilities[best] {
			best = i
		}
	}
	return q.Options[best].Key
}

func TestTheSameQuestionGetsTheSameAnswer(t *testing.T) {
	cfg := Config{Truth: always("yes"), Accuracy: 0.7, Noise: 0.3, Seed: 5}
	one, two := newJudge(t, cfg), newJudge(t, cfg)
	cfg.Seed++
	other := newJudge(t, cfg)
	differs := false
	for i := range 200 {
		q := question(fmt.Sprint("answer ", i), "yes", "no")
		a := ask(t, one, q)
		if b := ask(t, two, q); !reflect.DeepEqual(a, b) {
			t.Fatalf("%+v and %+v", a, b)
		}
		differs = differs || !reflect.DeepEqual(a, ask(t, other, q))
	}
	if !differs {
		t.Error("another seed changed nothing")
	}
}

func TestEveryPartOfTheQuestionCounts(t *testing.T) {
	j := newJudge(t, Config{Truth: always("yes"), Accuracy: 0.5, Noise: 0.49})
	base := question("a", "yes", "no")
	first := ask(t, j, base)
	for name, change := range map[string]func(*judge.Question){
		"name":   func(q *judge.Question) { q.Name += "x" },
		"text":   func(q *judge.Question) { q.Text += "x" },
		"field":  func(q *judge.Question) { q.Fields[1].Value += "x" },
		"fields": func(q *judge.Question) { q.Fields = q.Fields[:1] },
		"vote":   func(q *judge.Question) { q.Vote++ },
	} {
		q := question("a", "yes", "no")
		change(&q)
		if reflect.DeepEqual(first, ask(t, j, q)) {
			t.Errorf("another %s, the same answer", name)
		}
	}
}

func TestTheOrderOfOptionsDoesNotChangeTheChoice(t *testing.T) {
	j := newJudge(t, Config{Truth: always("B"), Accuracy: 0.4, Noise: 0.2})
	for i := range 300 {
		q := question(fmt.Sprint(i), "A", "B", "C", "D")
		r := question(fmt.Sprint(i), "D", "B", "A", "C")
		if a, b := chosen(q, ask(t, j, q)), chosen(r, ask(t, j, r)); a != b {
			t.Fatalf("question %d: %s, and %s in another order", i, a, b)
		}
	}
}

// With 20,000 questions a share is within four standard deviations of what was
// stated, or the judge does not err as it says.
func TestMistakesComeAsOftenAsStated(t *testing.T) {
	const n = 20_000
	f := func(cfg Config, keys []string, want map[string]float64) {
		t.Helper()
		j := newJudge(t, cfg)
		got := map[string]int{}
		for i := range n {
			q := question(fmt.Sprint(i), keys...)
			got[chosen(q, ask(t, j, q))]++
		}
		for _, k := range keys {
			p := want[k]
			if d := math.Abs(float64(got[k]) - n*p); d > 4*math.Sqrt(n*p*(1-p)) {
				t.Errorf("%s chosen %d times of %d, want a share of %g", k, got[k], n, p)
			}
		}
	}
	f(Config{Truth: always("yes"), Accuracy: 0.96, Noise: 0.3}, []string{"yes", "no"}, map[string]float64{"yes": 0.96, "no": 0.04})
	f(Config{Truth: always("no"), Accuracy: 1}, []string{"yes", "no"}, map[string]float64{"no": 1})
	// the other options share the mistakes
	f(Config{Truth: always("C"), Accuracy: 0.7, Noise: 0.49}, []string{"A", "B", "C", "D"},
		map[string]float64{"A": 0.1, "B": 0.1, "C": 0.7, "D": 0.1})
	// a row of the confusion goes before the accuracy
	row := map[string]float64{"no": 0.88, "yes": 0.12}
	f(Config{Truth: always("no"), Accuracy: 0.99, Confusion: map[string]map[string]float64{"no": row}}, []string{"yes", "no"}, row)
	// an option without a probability is never chosen
	row = map[string]float64{"A": 0.25, "B": 0.75, "C": 0}
	f(Config{Truth: always("A"), Confusion: map[string]map[string]float64{"A": row}}, []string{"A", "B", "C"}, row)
}

func TestAnswersAreDistributionsThatSayWhatTheyAre(t *testing.T) {
	j := newJudge(t, Config{Truth: always("A"), Accuracy: 0.8, Noise: 0.4})
	least := 1.0
	for i := range 2000 {
		q := question(fmt.Sprint(i), "A", "B", "C", "D", "E")
		a := ask(t, j, q)
		sum := 0.0
		for _, p := range a.Probabilities {
			if p < 0 {
				t.Fatalf("negative: %v", a.Probabilities)
			}
			sum += p
		}
		if len(a.Probabilities) != 5 || math.Abs(sum-1) > 1e-9 {
			t.Fatalf("%v sums to %g", a.Probabilities, sum)
		}
		top := slices.Max(a.Probabilities)
		if top < 0.6 {
			t.Fatalf("%v: noise of 0.4 at most took more", a.Probabilities)
		}
		least = min(least, top)
		if a.Method != judge.Simulated || a.Model != Model || a.Attempts != 1 || a.Outside != 0 || a.Cached {
			t.Fatalf("%+v", a)
		}
	}
	if least > 0.65 {
		t.Errorf("the noise never took more than %g", 1-least)
	}
}

func TestWhatItDoesNotKnowIsUnusable(t *testing.T) {
	f := func(truth func(judge.Question) (string, bool), reason string) {
		t.Helper()
		a, err := newJudge(t, Config{Truth: truth, Accuracy: 1}).Ask(t.Context(), question("x", "yes", "no"))
		var unusable *judge.UnusableError
		if !errors.As(err, &unusable) || unusable.Reason != reason || unusable.Method != judge.Simulated || unusable.Model != Model || a.Probabilities != nil {
			t.Errorf("%+v, error %#v, want %s", a, err, reason)
		}
	}
	f(func(judge.Question) (string, bool) { return "", false }, "judge_abstained")
	f(always("maybe"), "outside_options")
	if _, err := newJudge(t, Config{Truth: always("yes"), Accuracy: 1}).Ask(t.Context(), question("x")); err == nil {
		t.Error("a question without options was answered")
	}
}

func TestAnswersTakeTheirLatencyAndStopWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJudge(t, Config{Truth: always("yes"), Accuracy: 1, Latency: time.Second})
		var total time.Duration
		for i := range 200 {
			began := time.Now()
			a := ask(t, j, question(fmt.Sprint(i), "yes", "no"))
			took := time.Since(began)
			if took != a.Latency || took < 500*time.Millisecond || took > 1500*time.Millisecond {
				t.Fatalf("took %s, says %s", took, a.Latency)
			}
			total += took
		}
		if mean := total / 200; mean < 900*time.Millisecond || mean > 1100*time.Millisecond {
			t.Errorf("mean latency %s, want about 1s", mean)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := j.Ask(ctx, question("late", "yes", "no")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("stopped after %s, want 100ms", took)
		}
	})
	// without a latency, too, a context that is over is not answered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newJudge(t, Config{Truth: always("yes"), Accuracy: 1}).Ask(ctx, question("x", "yes", "no")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestManyMayAskAtOnce(t *testing.T) {
	j := newJudge(t, Config{Truth: always("yes"), Accuracy: 0.5, Noise: 0.2})
	want := ask(t, j, question("x", "yes", "no"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if a, err := j.Ask(t.Context(), question("x", "yes", "no")); err != nil || !reflect.DeepEqual(a, want) {
					t.Errorf("%+v, %v", a, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestTheFingerprintCoversWhatChangesAnswers(t *testing.T) {
	base := Config{Truth: always("yes"), Accuracy: 0.9, Noise: 0.1}
	seen := map[string]string{newJudge(t, base).Fingerprint(): "the base"}
	for name, change := range map[string]func(*Config){
		"accuracy":  func(c *Config) { c.Accuracy = 0.8 },
		"noise":     func(c *Config) { c.Noise = 0.2 },
		"seed":      func(c *Config) { c.Seed = 1 },
		"confusion": func(c *Config) { c.Confusion = map[string]map[string]float64{"yes": {"yes": 1}} },
	} {
		cfg := base
		change(&cfg)
		fp := newJudge(t, cfg).Fingerprint()
		if other, twice := seen[fp]; twice {
			t.Errorf("another %s has the fingerprint of %s", name, other)
		}
		seen[fp] = name
	}
	slow := base
	slow.Latency = time.Second
	if fp := newJudge(t, slow).Fingerprint(); seen[fp] != "the base" || !strings.HasPrefix(fp, Model) {
		t.Errorf("fingerprint %s: a slower judge is the same judge", fp)
	}
}

func TestBadSettingsAreAllReported(t *testing.T) {
	_, err := New(Config{
		Accuracy:  1.2,
		Confusion: map[string]map[string]float64{"yes": {"yes": 0.5}, "no": {"no": 2, "yes": -1}},
		Noise:     0.5,
		Latency:   -time.Second,
	})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{"no truth", "accuracy 1.2", `confusion of "yes" sums to 0.5`, `confusion of "no" holds -1`, "noise 0.5", "latency -1s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: does not say %q", err, want)
		}
	}
	if _, err := New(Config{Truth: always("yes"), Accuracy: math.NaN()}); err == nil {
		t.Error("accuracy NaN was taken")
	}
}
