package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"assay/evaluators/judge/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the repository's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test's folder")
	return ""
}

func dataFile(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ASSAY_DATA")
	if dir == "" {
		dir = filepath.Join(root(t), "..", "shared", "data")
	}
	return filepath.Join(dir, "EVOUNA", "EVOUNA__NQ.json")
}

// TestTrainingReproducesTheCommittedWeights is the proof that the weights come from
// the data and this program, and from nothing else.
func TestTrainingReproducesTheCommittedWeights(t *testing.T) {
	out := filepath.Join(t.TempDir(), "weights.json")
	var report bytes.Buffer
	if err := run(&report, dataFile(t), out, defaultDate, false); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(root(t), "evaluators", "judge", "embedded", "weights.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("training gives other weights than the committed ones; `make train-judge` writes them\n%s", report.String())
	}
	for _, part := range []string{"short references", "fid", "newbing", "sentence references", "abstentions", "heaviest features"} {
		if !strings.Contains(report.String(), part) {
			t.Errorf("the report lacks %q:\n%s", part, report.String())
		}
	}
}

func TestHeldOutQuestionsChangeNothing(t *testing.T) {
	questions, _, err := load(dataFile(t))
	if err != nil {
		t.Fatal(err)
	}
	some := questions[:400]
	all := func(question) bool { return true }
	with, err := train(some, all)
	if err != nil {
		t.Fatal(err)
	}
	without, err := train(slices.DeleteFunc(slices.Clone(some), func(q question) bool { return embedded.HeldOut(q.text) }), all)
	if err != nil {
		t.Fatal(err)
	}
	a, err := with.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := without.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("the model differs when the held-out questions are taken from the data")
	}
}

func TestImproperQuestionsAndMissingVerdictsMakeNoRows(t *testing.T) {
	yes, no := true, false
	q := question{text: "who won", golds: []string{"Ann Lee"}, answers: []answer{
		{"fid", "Ann Lee", &yes},
		{"gpt35", "The race was won by Ann Lee from Leeds.", &yes},
		{"gpt4", "It was Bo.", &no},
		{"newbing", "Unknown", nil},
	}}
	made := rows([]question{q})
	counts := map[kind]int{}
	for _, r := range made {
		counts[r.kind]++
		if r.kind == sentence && (r.pair.References[0] != q.answers[1].text || r.pair.Answer == q.answers[1].text) {
			t.Errorf("sentence row %+v: want another assistant's approved answer as the reference", r.pair)
		}
	}
	if counts[short] != 3 || counts[sentence] != 2 {
		t.Errorf("rows %v, want 3 short and 2 sentence rows", counts)
	}
	q.improper = true
	if n := len(rows([]question{q})); n != 0 {
		t.Errorf("an improper question made %d rows", n)
	}
}

func TestGoldsArePartedAndListedOnce(t *testing.T) {
	f := func(gold string, want ...string) {
		t.Helper()
		if got := splitGolds(gold); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", gold, got, want)
		}
	}
	f("Lima", "Lima")
	f("Lima/ lima /Lima", "Lima", "lima")
	f("/", []string{}...)
}

func TestTrapsSayWhatTheirVerdictSays(t *testing.T) {
	for _, tpl := range templates() {
		if !strings.Contains(tpl.text, "{g}") && tpl.agree {
			t.Errorf("%q agrees without the reference", tpl.text)
		}
	}
	if got, ok := negate("The hall is open."); !ok || got != "The hall is not open." {
		t.Errorf("negated: %q %t", got, ok)
	}
	if _, ok := negate("Nothing here."); ok {
		t.Error("negated a sentence without a verb it knows")
	}
	if got, ok := otherNumber("In 1932, 40 came."); !ok || got != "In 1935, 40 came." {
		t.Errorf("other number: %q %t", got, ok)
	}
	if _, ok := otherNumber("none"); ok {
		t.Error("changed a number in a text without any")
	}
}

func TestFitRecoversTheWeightsBehindTheLabels(t *testing.T) {
	// p(agree) is .8 where the first feature is 1 and .2 where it is 0; the second says nothing.
	var samples []sample
	for i := range 1000 {
		x, y := float64(i%2), 0.0
		if i/2%5 < 1 != (i%2 == 1) {
			y = 1
		}
		samples = append(samples, sample{values: []float64{x, float64(i / 10 % 2)}, agree: y, weight: 1})
	}
	features, bias, err := fit(samples, []string{"tells", "idle"}, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	m := embedded.Model{Features: features, Bias: bias}
	high, low := m.Probability([]float64{1, 0.5}), m.Probability([]float64{0, 0.5})
	if high < 0.79 || high > 0.81 || low < 0.19 || low > 0.21 {
		t.Errorf("p %.3f and %.3f, want .8 and .2; weights %+v", high, low, features)
	}
	if w := features[1].Weight; w > 0.02 || w < -0.02 {
		t.Errorf("the idle feature weighs %v", w)
	}
}

func TestTheFigureDrawsQuestionsAndSetsAbstentionsApart(t *testing.T) {
	var verdicts []verdict
	for q := range 40 {
		for range 5 {
			// all answers of a question are right, or all wrong: five rows are one observation
			verdicts = append(verdicts, verdict{row: row{question: q, agree: q%4 != 0}, p: 0.9, raw: 0.9})
		}
	}
	verdicts = append(verdicts, verdict{row: row{question: 1}, abstained: embedded.Units})
	f := figure(verdicts)
	if f.Rows != 200 || f.Questions != 40 || f.Abstained != 1 || f.Agreement != 0.75 || f.Sure != 1 {
		t.Errorf("figure %+v", f)
	}
	// the standard error over questions is .068, over rows it would be .031
	if width := f.High - f.Low; width < 0.22 || width > 0.32 {
		t.Errorf("interval [%v, %v]: want about .27 wide", f.Low, f.High)
	}
	if f.ECE < 0.14 || f.ECE > 0.35 {
		t.Errorf("ece %v: predicted .9, came true .75", f.ECE)
	}
}

func TestDataThatIsNotEVOUNAIsNamed(t *testing.T) {
	f := func(content, want string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "data.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", content, err, want)
		}
	}
	f(`{`, "data.json")
	f(`[{"question": "q"}]`, "entry 0: no field golden_answer")
	f(`[{"question": 3}]`, "field question")
	if err := run(&bytes.Buffer{}, "", "", defaultDate, false); err == nil || !strings.Contains(err.Error(), "-data") {
		t.Errorf("no data file: %v", err)
	}
}
