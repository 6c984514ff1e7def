package embedded

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"assay/evaluators/judge"
)

// coarse lays out the question as the factuality evaluator does.
func coarse(input, output string, expected ...string) judge.Question {
	q := judge.Question{
		Name:    "factuality_coarse/1",
		Kind:    judge.Choice,
		Fields:  []judge.Field{{Name: "output", Value: output}},
		Options: []judge.Option{{Key: "agree"}, {Key: "disagree"}},
	}
	if input != "" {
		q.Fields = append(q.Fields, judge.Field{Name: "input", Value: input})
	}
	for _, e := range expected {
		q.Fields = append(q.Fields, judge.Field{Name: "expected", Value: e})
	}
	return q
}

func TestAnswersAlignWithTheOptions(t *testing.T) {
	j := newJudge(t, Config{})
	q := coarse("Which river runs through Vienna?", "The Danube does.", "Danube")
	a, err := j.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	q.Options[0], q.Options[1] = q.Options[1], q.Options[0]
	b, err := j.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if a.Probabilities[0] != b.Probabilities[1] || a.Probabilities[0] < 0.8 {
		t.Errorf("agree first %v, agree second %v", a.Probabilities, b.Probabilities)
	}
	if a.Method != judge.Model || !strings.HasPrefix(a.Model, "embedded/1-") || a.Attempts != 1 {
		t.Errorf("answer %+v: want method model, the model's name, one attempt", a)
	}
	if a.Detail["coarse"] != true || a.Detail["reference"] != 0 || len(a.Detail["because"].([]string)) != 3 {
		t.Errorf("detail %v: want coarse, the reference's index and three reasons", a.Detail)
	}
}

func TestTheComparedReferenceIsNamedByItsPlaceInTheQuestion(t *testing.T) {
	j := newJudge(t, Config{})
	a, err := j.Ask(t.Context(), coarse("Which moon?", "Europa", "", "木衛二", "Io", "Europa"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Detail["reference"] != 3 {
		t.Errorf("detail %v: want reference 3", a.Detail)
	}
}

func TestOtherQuestionsAreRefused(t *testing.T) {
	f := func(name string, keys []string, want string) {
		t.Helper()
		q := coarse("q", "a", "a")
		q.Name, q.Options = name, nil
		for _, k := range keys {
			q.Options = append(q.Options, judge.Option{Key: k})
		}
		j := newJudge(t, Config{})
		_, asked := j.Ask(t.Context(), q)
		for _, err := range []error{asked, CanAnswer(q)} {
			var refused *judge.RefusedError
			if !errors.As(err, &refused) || refused.Reason != want {
				t.Errorf("%s %v: error %v, want refused %s", name, keys, err, want)
			}
		}
	}
	f("factuality/1", []string{"A", "B", "C", "D", "E"}, "coarse_only")
	f("closed_qa/1", []string{"yes", "no"}, "needs_language_model")
	f("claim_supported/1", []string{"S", "C", "N", "X"}, "needs_language_model")
	// the name alone is not enough, and neither are the options
	f("factuality_coarse/1", []string{"yes", "no"}, "needs_language_model")
	f("factuality_coarse/1", []string{"agree", "disagree", "unsure"}, "needs_language_model")
	f("factuality_coarse/1", []string{"agree", "agree"}, "needs_language_model")
	f("short_answer/1", []string{"agree", "disagree"}, "needs_language_model")

	if err := CanAnswer(coarse("q", "", "")); err != nil {
		t.Errorf("the coarse question is refused: %v", err)
	}
}

func TestAbstentionsAreUnusableAnswersWithAReason(t *testing.T) {
	j := newJudge(t, Config{})
	_, err := j.Ask(t.Context(), coarse("q", "a thing"))
	var unusable *judge.UnusableError
	if !errors.As(err, &unusable) {
		t.Fatalf("error %v, want unusable", err)
	}
	if unusable.Reason != "no_reference" || unusable.Method != judge.Model || unusable.Model != j.Model() || unusable.Detail["coarse"] != true {
		t.Errorf("abstention %+v", unusable)
	}
}

func TestLowConfidenceAbstainsOnlyWhenAskedTo(t *testing.T) {
	// the answer holds half of the reference: nobody could be sure
	q := coarse("Who wrote the play?", "It was written by one of the Gordons, in London.", "Peter Gordon of London and Hannah Marsh")
	plain, err := newJudge(t, Config{}).Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if p := plain.Probabilities[0]; p <= 0.2 || p >= 0.8 {
		t.Fatalf("p %.2f: the case is none of doubt", p)
	}
	_, err = newJudge(t, Config{AbstainLowConfidence: true}).Ask(t.Context(), q)
	var unusable *judge.UnusableError
	if !errors.As(err, &unusable) || unusable.Reason != "low_confidence" || unusable.Detail["p_agree"] != plain.Probabilities[0] {
		t.Errorf("error %v, want low_confidence with p %.2f", err, plain.Probabilities[0])
	}
	sure := coarse("Which river?", "Danube", "Danube")
	if _, err := newJudge(t, Config{AbstainLowConfidence: true}).Ask(t.Context(), sure); err != nil {
		t.Errorf("a sure answer was withheld: %v", err)
	}
}

func TestTheWeightsVersionIsTheJudges(t *testing.T) {
	if got, want := "embedded/"+WeightsVersion(), newJudge(t, Config{}).Model(); got != want || WeightsVersion() == "" {
		t.Errorf("version %q, the judge is %q", got, want)
	}
}

func TestSettingsChangeTheFingerprint(t *testing.T) {
	a, b, c := newJudge(t, Config{}), newJudge(t, Config{}), newJudge(t, Config{AbstainLowConfidence: true})
	if a.Fingerprint() != b.Fingerprint() || a.Fingerprint() == c.Fingerprint() {
		t.Errorf("fingerprints %s, %s and with abstention %s", a.Fingerprint(), b.Fingerprint(), c.Fingerprint())
	}
	other := *a.model
	other.Version = "1-0"
	if FromModel(&other, Config{}).Fingerprint() == a.Fingerprint() {
		t.Error("other weights have the same fingerprint")
	}
}

func TestAnOutputThatCannotBeReadIsAnErrorOfItsOwn(t *testing.T) {
	j := newJudge(t, Config{})
	var rejected *judge.RejectedError
	if _, err := j.Ask(t.Context(), coarse("q", " \u200b", "Danube")); !errors.As(err, &rejected) {
		t.Errorf("blank output: %v, want rejected", err)
	}
	var long *judge.TooLongError
	if _, err := j.Ask(t.Context(), coarse("q", strings.Repeat("word ", maxAnswerWords+1), "Danube")); !errors.As(err, &long) {
		t.Errorf("output of %d words: %v, want too long", maxAnswerWords+1, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Ask(ctx, coarse("q", "Danube", "Danube")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestOneJudgeServesManyAtOnceWithTheSameAnswers(t *testing.T) {
	j := newJudge(t, Config{})
	var pairs []Pair
	for _, c := range handMade() {
		pairs = append(pairs, Pair{Question: c.question, Answer: c.answer, References: c.references})
	}
	want := make([]float64, len(pairs))
	for i, p := range pairs {
		want[i], _ = j.Compare(p)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i, p := range pairs {
				if got, _ := j.Compare(p); got != want[i] {
					t.Errorf("pair %d: %v beside others, %v alone", i, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

func TestTheWeightsAreSmallAndTellTheirOrigin(t *testing.T) {
	if len(weights) > 200_000 {
		t.Errorf("the weights file has %d bytes, want at most 200,000", len(weights))
	}
	m, err := Decode(weights)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Origin.SHA256) != 64 || m.Origin.Date == "" || m.Origin.Split == "" || m.Origin.Rows != m.Origin.Short+m.Origin.Sentences+m.Origin.Traps {
		t.Errorf("origin %+v", m.Origin)
	}
	if f := m.Figures.Short; f.Agreement < 0.9 || f.Low >= f.Agreement || f.High <= f.Agreement || f.Rows < 1000 {
		t.Errorf("figures %+v", f)
	}
}

func TestWeightsForOtherFeaturesAreNotRead(t *testing.T) {
	f := func(old, new string) {
		t.Helper()
		raw := strings.Replace(string(weights), old, new, 1)
		if raw == string(weights) {
			t.Fatalf("%q is not in the weights file", old)
		}
		if _, err := Decode([]byte(raw)); err == nil {
			t.Errorf("weights with %q for %q were read", new, old)
		}
	}
	f(`"schema": 1`, `"schema": 2`)
	f(`"name": "recall"`, `"name": "recoil"`)
	f(`"scale": 0`, `"scale": -0`)
	f(`{`, `[`)
}

// TestKnownFailuresAreStillOnes keeps the list of doc.go honest: a failure that has
// been mended must leave it.
func TestKnownFailuresAreStillOnes(t *testing.T) {
	j := newJudge(t, Config{})
	f := func(why, question, answer, reference string, agree bool) {
		t.Helper()
		p, reason := j.Compare(Pair{Question: question, Answer: answer, References: []string{reference}})
		if reason != "" || (p >= 0.5) == agree {
			t.Errorf("%s: p %.2f %s is right by now; take it out of doc.go", why, p, reason)
		}
	}
	f("one word swapped", "What powers the lamp?", "The lamp draws its power from a small lithium battery that sits under the brass foot and lasts for weeks.",
		"The lamp draws its power from a small solar panel that sits under the brass foot and lasts for weeks.", false)
	f("roles swapped", "How did the match end?", "Norwich beat Ipswich.", "Ipswich beat Norwich.", false)
	f("items left out", "Which colours are on the sign?", "Blue and white.", "Blue, white and grey.", false)
	f("slip in arithmetic", "How much is nine times six?", "Nine times six is ten times six less six: 60 less 6, which is 54. So the answer is 56.", "54", false)
	f("day and month change places", "When is the lease over?", "On 07/05/2024 (7 May 2024).", "5 July 2024", false)
	f("another name", "Where does the ferry land?", "In the capital of Portugal.", "Lisbon", true)
	f("named in passing", "Who wrote the report?", "The report was written by Ms Hale, who worked with David Orme at the time.", "David Orme", false)
}

func FuzzAsk(f *testing.F) {
	for _, c := range handMade() {
		f.Add(c.question, c.answer, c.references[0], strings.Join(c.references, " "))
	}
	f.Add("", "12,34,567.8.9% 1-2 -3 2025-13-40 U.S.A. I.V. x'y '", "II. or 1e9", "two hundred thousand and and one million dozen")
	f.Add("\xff\xfe", "a\x00b\xc3", "\u0301\u0301", "ﷺ ǅ İ ß")
	j := newJudge(f, Config{})
	f.Fuzz(func(t *testing.T, input, output, first, second string) {
		a, err := j.Ask(t.Context(), coarse(input, output, first, second))
		if err != nil {
			var unusable *judge.UnusableError
			var rejected *judge.RejectedError
			var long *judge.TooLongError
			if !errors.As(err, &unusable) && !errors.As(err, &rejected) && !errors.As(err, &long) {
				t.Fatalf("error %v", err)
			}
			return
		}
		p := a.Probabilities
		if len(p) != 2 || !(p[0] >= 0.05 && p[0] <= 0.95) || math.Abs(p[0]+p[1]-1) > 1e-12 {
			t.Fatalf("probabilities %v", p)
		}
		b, err := j.Ask(t.Context(), coarse(input, output, first, second))
		if err != nil || b.Probabilities[0] != p[0] {
			t.Fatalf("%v at first, then %v (%v)", p, b.Probabilities, err)
		}
	})
}

func BenchmarkAsk(b *testing.B) {
	j := newJudge(b, Config{})
	f := func(name, output string, expected ...string) {
		b.Run(name, func(b *testing.B) {
			q := coarse("Which river runs through Vienna?", output, expected...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := j.Ask(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	answer := "Vienna lies on the Danube, which crosses the city from northwest to southeast. "
	f("short", answer, "Danube")
	f("paragraph", strings.Repeat(answer, 8), "Danube", "the Danube river", "Donau")
	f("sentence_reference", strings.Repeat(answer, 4), "The Danube, the second longest river of Europe, runs through Vienna from the northwest to the southeast of the city.")
}
