package evaluators_test

import (
	"strings"
	"testing"

	"assay/evaluators"
	"assay/internal/interaction"
)

func TestAnUnknownEvaluatorNamesTheKnownOnes(t *testing.T) {
	f := func(name, nearest string) {
		t.Helper()
		_, err := evaluators.New(name, evaluators.Settings{})
		if err == nil {
			t.Fatalf("%q was taken", name)
		}
		for _, want := range []string{"closed_qa", "factuality", nearest} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v does not say %q", name, err, want)
			}
		}
		if nearest == "" && strings.Contains(err.Error(), "mean") {
			t.Errorf("%q: %v guesses", name, err)
		}
	}
	f("factualty", "did you mean factuality?")
	f("ClosedQA", "did you mean closed_qa?")
	f("closed-qa", "did you mean closed_qa?")
	f("Factuality", "did you mean factuality?")
	f("faithfulness_of_the_answer_to_its_context", "")
	f("", "")
}

func TestSettingsThatMakeNoSenseAreRefusedAllAtOnce(t *testing.T) {
	line, high, zero := .5, 1.5, 0.0
	f := func(name string, s evaluators.Settings, want ...string) {
		t.Helper()
		_, err := evaluators.New(name, s)
		if err == nil {
			t.Errorf("%s %+v was taken", name, s)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}
	f("factuality", evaluators.Settings{PassLine: &line}, "list of options (A, B, C, D, E)")
	f("closed_qa", evaluators.Settings{Pass: []string{"yes"}}, "number above 0")
	f("closed_qa", evaluators.Settings{PassLine: &high}, "1.5")
	f("closed_qa", evaluators.Settings{PassLine: &zero}, "above 0") // every answer would pass
	f("factuality", evaluators.Settings{Pass: []string{}}, "0 of 5")
	f("factuality", evaluators.Settings{Pass: []string{"A", "B", "C", "D", "E"}}, "5 of 5")
	f("factuality", evaluators.Settings{Pass: []string{"C", "F", "C"}}, `"F"`, `"C" twice`)
	f("factuality", evaluators.Settings{Pass: []string{"C"}, Coarse: true}, "agree, disagree")
	f("closed_qa", evaluators.Settings{Coarse: true}, "coarse")
	f("closed_qa", evaluators.Settings{EmptyOutput: "pass", Refusals: "no", Truncated: "fail", MaxInputRunes: -1, Orders: 3},
		"empty_output", "refusals", "truncated", "max_input_runes", "orders")
}

func TestTheVersionChangesWithWhatChangesAVerdict(t *testing.T) {
	hash := func(name string, s evaluators.Settings) string { return evaluator(t, name, s).Definition().Hash() }
	base := hash("factuality", evaluators.Settings{})
	// defaults written out, or in another order, are the same check
	same := evaluators.Settings{Pass: []string{"E", "C", "B"}, EmptyOutput: "not_applicable", Refusals: "judge", Truncated: "judge", MaxInputRunes: 24_000, Orders: 1}
	if hash("factuality", same) != base {
		t.Error("defaults written out are another version")
	}
	seen := map[string]bool{base: true, hash("closed_qa", evaluators.Settings{}): true}
	line := .7
	for _, s := range []evaluators.Settings{
		{Pass: []string{"C"}}, {Coarse: true}, {EmptyOutput: "fail"}, {Refusals: "fail"}, {Truncated: "not_applicable"}, {MaxInputRunes: 10}, {Orders: 2},
	} {
		h := hash("factuality", s)
		if seen[h] {
			t.Errorf("%+v: a version that another check has", s)
		}
		seen[h] = true
	}
	if h := hash("closed_qa", evaluators.Settings{PassLine: &line}); seen[h] || len(h) != 16 {
		t.Errorf("pass line: %q", h)
	}
}

func TestTheTableSaysWhatTheEvaluatorsDo(t *testing.T) {
	for _, spec := range evaluators.Table() {
		if !spec.NeedsJudge() {
			continue // rule_test.go
		}
		e := evaluator(t, spec.Name, evaluators.Settings{})
		d := e.Definition()
		// evaluators over claims ask the one question of claim_supported
		if e.Name() != spec.Name || d.Evaluator != spec.Name || d.Kind != spec.Kind ||
			!strings.HasPrefix(d.Template, spec.Name+"/") && d.Template != "claim_supported/1" {
			t.Errorf("%s: definition %+v", spec.Name, d)
		}
		if (spec.PassLine == nil) == (spec.DefaultPass() == nil) {
			t.Errorf("%s: want either a line or options that pass", spec.Name)
		}
		names := make(map[string]bool)
		for _, s := range spec.Settings {
			if s.Name == "" || s.Type == "" || s.Help == "" || names[s.Name] {
				t.Errorf("%s: setting %+v", spec.Name, s)
			}
			names[s.Name] = true
		}
		texts := make(map[string]bool)
		for _, o := range spec.Options() {
			if texts[o.Text] || o.Text == "" || o.Score < 0 || o.Score > 1 {
				t.Errorf("%s: option %+v", spec.Name, o)
			}
			texts[o.Text] = true
			if score, err := d.ScoreOf(o.Key); err != nil || score != o.Score {
				t.Errorf("%s: ScoreOf(%s) %v, %v", spec.Name, o.Key, score, err)
			}
		}
		if _, err := d.ScoreOf("F"); err == nil {
			t.Errorf("%s: an unknown option has a score", spec.Name)
		}
		it := complete()
		it.Output = text("Canberra [1].")
		list, err := e.Questions(it)
		if err != nil || len(list) == 0 || list[0].Name != d.Template {
			t.Fatalf("%s: %d questions, %v", spec.Name, len(list), err)
		}
		for _, q := range list {
			for _, f := range q.Fields {
				if !strings.Contains(q.Text, `"`+f.Name+`"`) && f.Name != "input" {
					t.Errorf("%s: the question does not say what the block %s is", spec.Name, f.Name)
				}
			}
		}
	}
}

func TestADefinitionIsItsCallersOwn(t *testing.T) {
	e := evaluator(t, "factuality", evaluators.Settings{})
	d := e.Definition()
	d.Options[0].Score, d.Pass[0] = 9, "X"
	if again := e.Definition(); again.Options[0].Score != .4 || again.Pass[0] != "B" {
		t.Error("a caller changed the evaluator")
	}
}

func TestAnItemIsTheInteractionsOwnWords(t *testing.T) {
	it := &interaction.Interaction{
		Input: text("q"), Output: text("a"), Expected: []string{"e"}, Criteria: text("c"), Context: []string{"d"},
		Status: interaction.Refusal, Judgeable: true, Flags: []string{"refusal_like"},
		Attributes: map[string]string{"claim": "x", "evidence": "y"},
	}
	got := evaluators.ItemOf(it)
	if *got.Input != "q" || *got.Output != "a" || got.Expected[0] != "e" || *got.Criteria != "c" || got.Context[0] != "d" ||
		*got.Claim != "x" || got.Evidence[0] != "y" || got.Status != interaction.Refusal || !got.Judgeable || got.SkipReason != "" || got.Flags[0] != "refusal_like" {
		t.Errorf("%+v", got)
	}
}
