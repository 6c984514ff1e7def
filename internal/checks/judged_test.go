package checks

import (
	"errors"
	"strings"
	"testing"

	"assay/evaluators"
)

// withCheck is a small file with that check.
func withCheck(lines string) string {
	head, _, _ := strings.Cut(base(), "    evaluator:")
	return head + "    " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ") + "\n    judge: m\n    sample: { rate: 0.1 }\n"
}

func TestEveryJudgedEvaluatorCanBeACheck(t *testing.T) {
	for _, spec := range evaluators.Table() {
		if !spec.NeedsJudge() {
			continue
		}
		lines := "evaluator: " + spec.Name
		for _, field := range spec.Required {
			switch field {
			case "criteria":
				lines += "\ncriteria: { text: Polite. }"
			case "expected":
				lines += "\nreference: { field: expected }"
			}
		}
		c := parse(t, withCheck(lines)).Checks[0]
		if c.Evaluator != spec.Name || len(c.Version) != 16 || (c.PassLine == nil) != (spec.PassLine == nil) || c.Refusals == "" {
			t.Errorf("%s: %+v", spec.Name, c)
		}
	}
}

func TestSettingsOfClaimsAreRead(t *testing.T) {
	c := parse(t, withCheck(`
evaluator: answer_correctness
reference: { field: expected }
dialect: statements
max_claims: 5
similarity: true
weights: [0.5, 0.5]`)).Checks[0]
	if c.Dialect != "statements" || c.MaxClaims != 5 || !c.Similarity || len(c.Weights) != 2 || c.Weights[1] != .5 {
		t.Errorf("%+v", c)
	}
	c = parse(t, withCheck("evaluator: hallucination_rate\ncount: contradicted\npass: 0.2")).Checks[0]
	if c.Count != "contradicted" || *c.PassLine != .2 || c.Refusals != "not_applicable" {
		t.Errorf("%+v", c)
	}
	e, err := evaluators.New(c.Evaluator, c.Settings())
	if err != nil || e.Definition().Count != "contradicted" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestBatchedClaimsAreForStructuredJudges(t *testing.T) {
	c := parse(t, strings.Replace(withCheck("evaluator: faithfulness\nclaims: batched"), "method: logprobs", "method: structured", 1)).Checks[0]
	if c.Claims != "batched" {
		t.Errorf("%+v", c)
	}
}

// An alias is the same check: its version is the evaluator's.
func TestAnAliasIsTheSameCheck(t *testing.T) {
	a, b := parse(t, withCheck("evaluator: answer_relevance")).Checks[0], parse(t, withCheck("evaluator: answer_relevancy")).Checks[0]
	if a.Evaluator != "answer_relevancy" || a.Version != b.Version {
		t.Errorf("%s %s, %s %s", a.Evaluator, a.Version, b.Evaluator, b.Version)
	}
}

func TestAnOptionalReferenceMayBeNamedOrNot(t *testing.T) {
	with := parse(t, withCheck("evaluator: llm_judge\ncriteria: { text: Polite. }\nreference: { field: attributes.gold }")).Checks[0]
	without := parse(t, withCheck("evaluator: llm_judge\ncriteria: { text: Polite. }")).Checks[0]
	if with.Reference.Field != "attributes.gold" || without.Reference != (Text{}) || with.Version == without.Version {
		t.Errorf("%+v, %+v", with.Reference, without.Reference)
	}
}

func TestFaultsOfClaimSettingsPointAtTheirKey(t *testing.T) {
	f := func(lines, want string) {
		t.Helper()
		_, err := Parse("assay.yaml", []byte(withCheck(lines)))
		var faults Faults
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v, want %q", lines, err, want)
		}
	}
	f("evaluator: faithfulness\nmax_claims: 60", "assay.yaml:8:5: check c: max_claims: 60: want 1 to 50")
	f("evaluator: faithfulness\nmax_claims: 0", "max_claims")
	f("evaluator: noncommittal\nmax_claims: 3", "assay.yaml:8:5: check c: max_claims: this evaluator does not take a text apart")
	f("evaluator: answer_correctness\nreference: { field: expected }\ndialect: statement", "did you mean statements?")
	f("evaluator: hallucination_rate\ncount: all", "count: \"all\"")
	f("evaluator: hallucination_rate\npass: 1", "pass: 1: want a number from 0, below 1")
	f("evaluator: answer_relevancy\ncriteria: { text: x }", "answer_relevancy takes none; remove the key")
	f("evaluator: faithfulness\nclaims: batched", "claims: batched needs a judge with method structured; m has method logprobs")
	f("evaluator: faithfulness\nclaims: guessed", "claims")
	f("evaluator: citation_recall\nclaims: single", "assay.yaml:8:5: check c: claims: this evaluator has one way of asking")
	f("evaluator: faithfulnes", "did you mean faithfulness?")
}

func TestTheEmbeddedJudgeServesNoneOfTheOthers(t *testing.T) {
	embedded := strings.Replace(withCheck("evaluator: short_answer\nreference: { field: expected }"),
		`m: { kind: openai, base_url: "http://h/v1", model: x, method: logprobs, budget: { calls_per_day: 10 } }`, "m: { kind: embedded }", 1)
	_, err := Parse("assay.yaml", []byte(embedded))
	if err == nil || !strings.Contains(err.Error(), "short_answer needs a language-model judge") {
		t.Errorf("%v", err)
	}
}
