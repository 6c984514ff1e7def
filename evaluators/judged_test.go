package evaluators_test

import (
	"slices"
	"strings"
	"testing"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/interaction"
)

func TestLevelsScoreTheirMean(t *testing.T) {
	line := .9
	f := func(name string, p map[string]float64, s evaluators.Settings, score float64, option, label string, confidence float64, passed bool) {
		t.Helper()
		r := evaluate(t, evaluator(t, name, s), says(p), complete())
		if r.Status != evaluators.OK || !near(*r.Score, score) || r.Option != option || r.Label != label || !near(*r.Confidence, confidence) || *r.Passed != passed {
			t.Errorf("%s %v: %v %s %q %v %v, want %v %s %q %v %v", name, p, *r.Score, r.Option, r.Label, *r.Confidence, *r.Passed,
				score, option, label, confidence, passed)
		}
	}
	var d evaluators.Settings
	f("answer_similarity", map[string]float64{"1": .01, "2": .06, "3": .93}, d, (.01+.12+2.79)/3, "3", "2.9 / 3", .93, true)
	f("answer_similarity", map[string]float64{"0": 1}, d, 0, "0", "0.0 / 3", 1, false)
	f("answer_correctness", map[string]float64{"3": .25, "2": .75}, d, .75, "2", "2.3 / 3", .75, true) // 2.25 is half up, and the line is inside
	f("answer_relevancy", map[string]float64{"2": .5, "3": .5}, evaluators.Settings{PassLine: &line}, 2.5/3, "2", "2.5 / 3", .5, false)
	f("answer_relevance", map[string]float64{"3": 1}, d, 1, "3", "3.0 / 3", 1, true)
	f("llm_judge", map[string]float64{"4": .1, "3": .9}, d, 3.1/4, "3", "3.1 / 4", .9, true)
	f("llm_judge", map[string]float64{"2": 1}, d, .5, "2", "2.0 / 4", 1, false)
}

func TestEachQuestionPointsTheRightWay(t *testing.T) {
	f := func(name, option string, score float64, passed bool) {
		t.Helper()
		r := evaluate(t, evaluator(t, name, evaluators.Settings{}), says(map[string]float64{option: 1}), complete())
		if r.Status != evaluators.OK || !near(*r.Score, score) || r.Option != option || *r.Passed != passed {
			t.Errorf("%s answered %s: %v %s %v, want %v, passed %v", name, option, *r.Score, r.Option, *r.Passed, score, passed)
		}
	}
	f("short_answer", "CORRECT", 1, true)
	f("short_answer", "INCORRECT", 0, false)
	f("short_answer", "NOT_ATTEMPTED", 0, false)
	f("noncommittal", "yes", 1, false)
	f("noncommittal", "no", 0, true)
	f("hallucination", "yes", 1, false)
	f("hallucination", "no", 0, true)
	f("math_equivalent", "yes", 1, true)
	f("math_equivalent", "no", 0, false)
	f("claim_supported", "S", 1, true)
	f("claim_supported", "C", 0, false)
	f("claim_supported", "N", 0, false)
	f("claim_supported", "X", 0, false)
	f("claim_verification", "true", 1, true)
	f("claim_verification", "false", 0, false)
	f("claim_verification", "not_enough_evidence", 0, false)
	f("claim_evidence_stance", "completely-support", 1, true)
	f("claim_evidence_stance", "partially-support", .5, false)
	f("claim_evidence_stance", "refute", 0, false)
	f("claim_evidence_stance", "irrelevant", 0, false)
	f("answer_similarity", "3", 1, true)
	f("answer_correctness", "1", 1./3, false)
	f("answer_relevancy", "0", 0, false)
	f("llm_judge", "4", 1, true)
}

// Where yes is bad, doubt is bad too: neither a tie nor the line itself passes.
func TestWhereYesIsBadDoubtIsToo(t *testing.T) {
	for _, name := range []string{"noncommittal", "hallucination"} {
		f := func(yes float64, option string, passed bool) {
			t.Helper()
			r := evaluate(t, evaluator(t, name, evaluators.Settings{}), says(map[string]float64{"yes": yes, "no": 1 - yes}), complete())
			if r.Option != option || *r.Passed != passed || !near(*r.Score, yes) {
				t.Errorf("%s p(yes) %v: %s %v", name, yes, r.Option, *r.Passed)
			}
		}
		f(.5, "yes", false)
		f(.49, "no", true)
		f(.51, "yes", false)

		it := complete()
		it.Output = text(" ")
		r := evaluate(t, evaluator(t, name, evaluators.Settings{EmptyOutput: "fail"}), nobody(t), it)
		if *r.Score != 1 || *r.Passed || r.Option != "yes" || r.Label != "100% yes" {
			t.Errorf("%s of nothing: %v %v %s", name, *r.Score, *r.Passed, r.Option)
		}
	}
	it := complete()
	it.Output = text(" ")
	for _, spec := range evaluators.Table() {
		if !spec.NeedsJudge() || !slices.Contains(spec.Required, "output") {
			continue
		}
		r := evaluate(t, evaluator(t, spec.Name, evaluators.Settings{EmptyOutput: "fail"}), nobody(t), it)
		if r.Status != evaluators.OK || *r.Passed || r.Detail["rule"] != "empty_output" || r.Method != judge.None {
			t.Errorf("%s of nothing: %+v", spec.Name, r)
		}
	}
}

func TestEveryEvaluatorNamesWhatIsMissing(t *testing.T) {
	for _, spec := range evaluators.Table() {
		if !spec.NeedsJudge() {
			continue
		}
		e := evaluator(t, spec.Name, evaluators.Settings{})
		r := evaluate(t, e, nobody(t), evaluators.Item{Judgeable: true})
		if want := "missing:" + strings.Join(spec.Required, ","); r.Status != evaluators.NotApplicable || r.Reason != want {
			t.Errorf("%s: %s %s, want %s", spec.Name, r.Status, r.Reason, want)
		}
	}
}

// A claim is judged by itself: what the answer around it was does not matter.
func TestAClaimDoesNotNeedAnOutput(t *testing.T) {
	for _, name := range []string{"claim_supported", "claim_verification", "claim_evidence_stance"} {
		it := complete()
		it.Output, it.Status = text(" "), interaction.Refusal
		q, err := onlyQuestion(evaluator(t, name, evaluators.Settings{}), it)
		if err != nil || q.Fields[len(q.Fields)-1].Name != "claim" {
			t.Errorf("%s: %+v, %v", name, q.Fields, err)
		}
		if _, has := q.Field("output"); has {
			t.Errorf("%s reads the output", name)
		}
		if reason, ok := evaluator(t, name, evaluators.Settings{}).Applicable(it); !ok {
			t.Errorf("%s: %s", name, reason)
		}
	}
}

// A fake judge and a person find an option by its text, so no text may stand for two.
func TestATextIsOneOption(t *testing.T) {
	keys := make(map[string]string)
	for _, spec := range evaluators.Table() {
		for _, o := range spec.Options() {
			if key, has := keys[o.Text]; has && key != o.Key {
				t.Errorf("%q is %s and %s", o.Text, key, o.Key)
			}
			keys[o.Text] = o.Key
		}
	}
}

func TestSettingsOfOthersAreRefused(t *testing.T) {
	zero, one, half := 0.0, 1.0, .5
	f := func(name string, s evaluators.Settings, want ...string) {
		t.Helper()
		_, err := evaluators.New(name, s)
		if (err == nil) != (want == nil) {
			t.Fatalf("%s %+v: %v", name, s, err)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}
	f("hallucination_rate", evaluators.Settings{PassLine: &zero})
	f("hallucination_rate", evaluators.Settings{PassLine: &one}, "from 0, below 1")
	f("hallucination_rate", evaluators.Settings{Count: "all"}, `count: "all": want unsupported or contradicted`)
	f("faithfulness", evaluators.Settings{PassLine: &zero}, "above 0")
	f("faithfulness", evaluators.Settings{Count: "unsupported"}, "count")
	f("faithfulness", evaluators.Settings{MaxClaims: 51}, "max_claims: 51: want 1 to 50")
	f("faithfulness", evaluators.Settings{Pass: []string{"S"}}, "not a list")
	f("closed_qa", evaluators.Settings{MaxClaims: 3, Dialect: "x"}, "dialect: this evaluator has one way only")
	f("closed_qa", evaluators.Settings{MaxClaims: 3}, "max_claims: this evaluator does not")
	f("answer_correctness", evaluators.Settings{Dialect: "statement"}, "levels or statements", "did you mean statements?")
	f("answer_correctness", evaluators.Settings{MaxClaims: 3}, "only dialects statements")
	f("answer_correctness", evaluators.Settings{Similarity: true}, "only answer_correctness with dialect statements")
	f("answer_correctness", evaluators.Settings{Coarse: true}, "coarse")
	f("answer_correctness", evaluators.Settings{Dialect: "statements", Weights: []float64{1, 1}}, "similarity: true")
	f("answer_correctness", evaluators.Settings{Dialect: "statements", Similarity: true, Weights: []float64{0, 0}}, "not both 0")
	f("answer_correctness", evaluators.Settings{Dialect: "statements", Similarity: true, Weights: []float64{1, -1}}, "at least 0")
	f("answer_correctness", evaluators.Settings{Dialect: "statements", Similarity: true, MaxClaims: 3, PassLine: &half})
	f("short_answer", evaluators.Settings{Pass: []string{"CORRECT", "NOT_ATTEMPTED"}})
	f("noncommittal", evaluators.Settings{PassLine: &zero}, "above 0")
	f("claim_supported", evaluators.Settings{Refusals: "fail"}, "refusals: this evaluator does not read")
	f("claim_supported", evaluators.Settings{Refusals: "judge"})
}

// The dialect written out is the dialect left out; every other setting is another check.
func TestTheVersionKnowsTheSettingsOfClaims(t *testing.T) {
	hash := func(name string, s evaluators.Settings) string { return evaluator(t, name, s).Definition().Hash() }
	if hash("answer_correctness", evaluators.Settings{}) != hash("answer_correctness", evaluators.Settings{Dialect: "levels"}) ||
		hash("faithfulness", evaluators.Settings{}) != hash("faithfulness", evaluators.Settings{MaxClaims: 8, Refusals: "not_applicable"}) ||
		hash("hallucination_rate", evaluators.Settings{}) != hash("hallucination_rate", evaluators.Settings{Count: "unsupported"}) {
		t.Error("defaults written out are another version")
	}
	seen := make(map[string]bool)
	for _, h := range []string{
		hash("answer_correctness", evaluators.Settings{}),
		hash("answer_correctness", evaluators.Settings{Dialect: "statements"}),
		hash("answer_correctness", evaluators.Settings{Dialect: "statements", MaxClaims: 3}),
		hash("answer_correctness", evaluators.Settings{Dialect: "statements", Similarity: true}),
		hash("answer_correctness", evaluators.Settings{Dialect: "statements", Similarity: true, Weights: []float64{1, 1}}),
		hash("faithfulness", evaluators.Settings{}), hash("faithfulness", evaluators.Settings{MaxClaims: 3}), hash("groundedness", evaluators.Settings{}),
		hash("hallucination_rate", evaluators.Settings{}), hash("hallucination_rate", evaluators.Settings{Count: "contradicted"}),
		hash("citation_recall", evaluators.Settings{}), hash("citation_precision", evaluators.Settings{}), hash("claim_supported", evaluators.Settings{}),
	} {
		if seen[h] {
			t.Errorf("version %s twice", h)
		}
		seen[h] = true
	}
}
