package embedded

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bank is the folder that an environment variable names, or the one of that name in
// the directory beside the repository.
func bank(t testing.TB, variable, name string) string {
	t.Helper()
	if dir := os.Getenv(variable); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "..", "shared", name)
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

// tally counts agreement with people on one question's answers.
type tally struct{ right, n int }

// interval is the 95% bootstrap interval of the agreement, drawn over questions.
func interval(tallies []tally) (mean, low, high float64) {
	rng := rand.New(rand.NewPCG(11, 7))
	rate := func(draw func(i int) tally) float64 {
		var sum tally
		for i := range tallies {
			d := draw(i)
			sum.right, sum.n = sum.right+d.right, sum.n+d.n
		}
		return float64(sum.right) / float64(sum.n)
	}
	means := make([]float64, 2000)
	for i := range means {
		means[i] = rate(func(int) tally { return tallies[rng.IntN(len(tallies))] })
	}
	slices.Sort(means)
	return rate(func(i int) tally { return tallies[i] }), means[50], means[1949]
}

func TestItAgreesWithPeopleOnQuestionsItNeverSaw(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(bank(t, "ASSAY_DATA", "data"), "EVOUNA", "EVOUNA__NQ.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []map[string]any
	if err := json.Unmarshal(raw, &entries); err != nil {
		t.Fatal(err)
	}
	j := newJudge(t, Config{})
	var tallies []tally
	abstained, contained, n := map[Reason]int{}, 0, 0
	for _, e := range entries {
		question := e["question"].(string)
		gold, ok := e["golden_answer"].(string)
		// Improper questions are those whose reference is out of date: people judged
		// them, where they did, by what was so later.
		if !ok || e["improper"] == true || !HeldOut(question) {
			continue
		}
		var one tally
		for _, assistant := range []string{"fid", "gpt35", "chatgpt", "gpt4", "newbing"} {
			answer, answered := e["answer_"+assistant].(string)
			verdict, judged := e["judge_"+assistant].(bool)
			if !answered || !judged {
				continue
			}
			references := strings.Split(gold, "/")
			p, reason := j.Compare(Pair{Question: question, Answer: answer, References: references})
			if reason != "" {
				abstained[reason]++
				continue
			}
			one.n++
			if (p >= 0.5) == verdict {
				one.right++
			}
			n++
			if slices.ContainsFunc(references, func(r string) bool {
				return strings.Contains(strings.ToLower(answer), strings.ToLower(r))
			}) == verdict {
				contained++
			}
		}
		if one.n > 0 {
			tallies = append(tallies, one)
		}
	}
	mean, low, high := interval(tallies)
	containment := float64(contained) / float64(n)
	t.Logf("%d answers to %d held-out questions: agreement with people %.3f [%.3f, %.3f]; abstained %v; containment alone %.3f",
		n, len(tallies), mean, low, high, abstained, containment)
	if n < 1000 || mean < 0.90 {
		t.Errorf("agreement %.3f over %d answers, want at least .90 over 1,000", mean, n)
	}
	if low <= containment {
		t.Errorf("the interval begins at %.3f, containment alone reaches %.3f", low, containment)
	}
	if total := abstained[Units] + abstained[OtherKind] + abstained[UnsupportedLanguage]; total*20 > n {
		t.Errorf("%d abstentions beside %d answers: more than one in twenty", total, n)
	}
	if f := newJudge(t, Config{}).Figures().Short; f.Rows != n || f.Agreement-mean > 0.001 || mean-f.Agreement > 0.001 {
		t.Errorf("the weights file states %.4f over %d rows, measured %.4f over %d", f.Agreement, f.Rows, mean, n)
	}
}

func TestTheSplitIsATenthAndIgnoresSpelling(t *testing.T) {
	n := 0
	for i := range 5000 {
		if HeldOut("question number " + strings.Repeat("x", i%70) + string(rune('a'+i%26)) + strings.Repeat("y", i/70)) {
			n++
		}
	}
	if n < 400 || n > 600 {
		t.Errorf("%d of 5000 held out, want about 500", n)
	}
	if HeldOut("Who  wrote it") != HeldOut(" who wrote it\n") {
		t.Error("case and spacing move a question across the split")
	}
}

// TestTheBankIsAnsweredInEnglishOnlyAndBetterThanByContainment runs the bank's
// factuality rows. Rows whose question trained the judge prove nothing and are left
// out; so are those whose only right answer is A, which agree and disagree cannot say.
func TestTheBankIsAnsweredInEnglishOnlyAndBetterThanByContainment(t *testing.T) {
	file, err := os.Open(filepath.Join(bank(t, "ASSAY_CASES", "cases"), "judge.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := newJudge(t, Config{})
	right, contained, answered, abstained := 0, 0, 0, map[Reason]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c bankCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		agree, ok := c.wanted()
		if c.Metric != "factuality" || !ok || c.trainedOn() || isBlank(c.Output) {
			continue
		}
		p, reason := j.Compare(Pair{Question: c.Input, Answer: c.Output, References: c.references()})
		if reason != "" {
			abstained[reason]++
			continue
		}
		if foreign := slices.Contains(c.Tags, "multilingual") && !slices.Contains(c.Tags, "en"); foreign {
			t.Errorf("%s: %q was answered (p %.2f), want unsupported_language", c.ID, c.Output, p)
			continue
		}
		answered++
		if (p >= 0.5) == agree {
			right++
		} else {
			t.Logf("%s: p %.2f for %q against %q, agree %t", c.ID, p, c.Output, c.references(), agree)
		}
		if slices.ContainsFunc(c.references(), func(r string) bool {
			return strings.Contains(strings.ToLower(c.Output), strings.ToLower(r))
		}) == agree {
			contained++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d right of %d answered, %d by containment, abstained %v", right, answered, contained, abstained)
	if answered < 15 || right <= contained {
		t.Errorf("%d right of %d answered; containment alone is right on %d", right, answered, contained)
	}
}

// A bankCase is one row of judge.jsonl.
type bankCase struct {
	ID         string
	Metric     string
	Input      string
	Output     string
	Expected   any
	Label      any
	Acceptable []any
	Tags       []string
	Source     string
}

func (c bankCase) references() []string {
	switch e := c.Expected.(type) {
	case string:
		return []string{e}
	case []any:
		var out []string
		for _, r := range e {
			out = append(out, r.(string))
		}
		return out
	}
	return nil
}

// wanted is the verdict in two options, if the row has one.
func (c bankCase) wanted() (agree, ok bool) {
	if slices.Contains(c.Tags, "label_noise") {
		return false, false
	}
	right := c.Acceptable
	if len(right) == 0 {
		right = []any{c.Label}
	}
	if slices.ContainsFunc(right, func(k any) bool { return k == "B" || k == "C" || k == "E" }) {
		return true, true
	}
	return false, slices.Contains(right, any("D"))
}

func (c bankCase) trainedOn() bool {
	return strings.Contains(c.Source, "EVOUNA") && !HeldOut(c.Input)
}
