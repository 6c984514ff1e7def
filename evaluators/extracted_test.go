package evaluators_test

import (
	"context"
	"strings"
	"testing"

	"assay/evaluators"
	"assay/evaluators/judge"
)

// lists answers the list of claims with that text, and claims by their words.
func lists(text string, verdicts map[string]string) (j judgeFunc, asked *[]judge.Question) {
	asked = new([]judge.Question)
	ask := finds(verdicts)
	return func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if q.Kind == judge.Text {
			*asked = append(*asked, q)
			return judge.Answer{Text: text, Model: "chat-1", Method: judge.Logprobs, Attempts: 1, Usage: judge.Usage{InputTokens: 50, OutputTokens: 20, USD: .001}}, nil
		}
		return ask(ctx, q)
	}, asked
}

func extractedBy(t *testing.T, name, list string, verdicts map[string]string) (evaluators.Result, []judge.Question) {
	t.Helper()
	j, asked := lists(list, verdicts)
	return evaluate(t, evaluator(t, name, evaluators.Settings{Claims: "extracted", MaxClaims: 4}), j, bridge()), *asked
}

func TestExtractedClaimsAreHeldAgainstTheContext(t *testing.T) {
	const list = `2: The bridge opened in 1937.
3: The bridge is red.
4. The bridge is 2.7 km long.
- 4: The bridge is long.
5) The bridge cost nothing.
5: the bridge cost NOTHING.`
	verdicts := map[string]string{
		"The bridge opened in 1937.": "S", "The bridge is red.": "C", "The bridge is 2.7 km long.": "S", "The bridge is long.": "S", "The bridge cost nothing.": "N",
	}
	r, asked := extractedBy(t, "faithfulness", list, verdicts)
	// of five claims, said twice or not, four are asked about
	if r.Status != evaluators.OK || !near(*r.Score, .75) || r.Label != "3 of 4" || r.Detail["claims_cut"] != 1 || len(asked) != 1 || r.Attempts != 5 {
		t.Errorf("%+v", r)
	}
	if r.Usage.InputTokens != 50+4*300 {
		t.Errorf("usage %+v: want the list and four claims", r.Usage)
	}
	q := asked[0]
	if q.Name != "claims_extracted/1" || len(q.FieldValues("sentence")) != 5 || len(q.FieldValues("context")) != 0 {
		t.Errorf("%+v: who lists claims must not see what they are held against", q)
	}
	for _, f := range q.Fields {
		if !strings.Contains(q.Text, `"`+f.Name+`"`) {
			t.Errorf("the task does not say what the block %s is", f.Name)
		}
	}
}

func TestAListThatLeavesOutHalfOfTheTextIsNone(t *testing.T) {
	f := func(list string, status evaluators.Status, reason string, covered int) {
		t.Helper()
		r, _ := extractedBy(t, "groundedness", list, map[string]string{"a": "S", "b": "S", "c": "S"})
		if r.Status != status || r.Reason != reason || status == evaluators.Unscored && reason == "claims_incomplete" && (r.Detail["sentences_covered"] != covered || r.Detail["sentences"] != 5 || r.Usage.USD != .001) {
			t.Errorf("%q: %+v, want %s %s", list, r, status, reason)
		}
	}
	f("1: a\n3: b\n5: c", evaluators.OK, "", 3)
	f("1: a\n3: b", evaluators.Unscored, "claims_incomplete", 2)
	f("1: a\n1: b\n1: c", evaluators.Unscored, "claims_incomplete", 1)
	// greetings and questions are no gaps, and a text of nothing else states nothing
	f("1: None.\n2: a\n3: none\n5: none", evaluators.OK, "", 4)
	f("1: a\n3: none", evaluators.Unscored, "claims_incomplete", 2)
	f("1: none\n2: none\n3: none\n4: none\n5: **none**", evaluators.NotApplicable, "no_statements", 5)
	// a list in another form is asked for once more and then given up
	for _, list := range []string{"", "Here are the claims:\n1: a\n3: b\n5: c", "1: a\n3: b\n6: c", "0: a", "1 a", "1:", "[\"a\"]", "None."} {
		r, asked := extractedBy(t, "groundedness", list, nil)
		if r.Status != evaluators.Unscored || r.Reason != "malformed" || len(asked) != 2 || asked[0].Vote == asked[1].Vote || r.Attempts != 2 {
			t.Errorf("%q: %+v after %d lists", list, r, len(asked))
		}
	}
}

func TestStatementsCanBeExtractedOnBothSides(t *testing.T) {
	it := complete()
	it.Output, it.Expected = text("Canberra, inland."), []string{"It is Canberra."}
	j, asked := lists("1: Canberra is the capital.\n1: It lies inland.", map[string]string{"Canberra is the capital.": "S", "It lies inland.": "N"})
	e := evaluator(t, "answer_correctness", evaluators.Settings{Dialect: "statements", Claims: "extracted"})
	r := evaluate(t, e, j, it)
	if r.Status != evaluators.OK || r.Detail["tp"] != 1 || r.Detail["fp"] != 1 || r.Detail["fn"] != 1 || len(*asked) != 2 {
		t.Errorf("%+v, %d lists", r, len(*asked))
	}
}

func TestExtractingIsAVersionOfItsOwn(t *testing.T) {
	single, extracted := evaluator(t, "faithfulness", evaluators.Settings{}), evaluator(t, "faithfulness", evaluators.Settings{Claims: "extracted"})
	if single.Definition().Hash() == extracted.Definition().Hash() || !extracted.Definition().Drafts || single.Definition().Drafts {
		t.Errorf("%+v", extracted.Definition())
	}
	dry, err := evaluators.Dry(t.Context(), extracted, bridge())
	if err != nil || len(dry.Questions) != 1 || dry.Questions[0].Kind != judge.Text || !dry.More {
		t.Errorf("%+v, %v", dry, err)
	}
	// the judge that cannot write is told apart
	r := evaluate(t, extracted, fails(&judge.RefusedError{Reason: judge.NeedsLanguageModel}), bridge())
	if r.Status != evaluators.Unscored || r.Reason != judge.NeedsLanguageModel {
		t.Errorf("%+v", r)
	}
	blank := bridge()
	blank.Output = text("...")
	if r := evaluate(t, extracted, nobody(t), blank); r.Reason != "no_statements" && r.Reason != "empty_output" {
		t.Errorf("%+v", r)
	}
}

// A text of single words would be a prompt of many times its size.
func TestATextOfThousandsOfSentencesIsNotListed(t *testing.T) {
	e := evaluator(t, "faithfulness", evaluators.Settings{Claims: "extracted"})
	it := bridge()
	it.Output = text(strings.Repeat("It is. ", 1001))
	r := evaluate(t, e, nobody(t), it)
	if r.Status != evaluators.NotApplicable || r.Reason != "too_long" || r.Detail["sentences"] != 1001 {
		t.Errorf("%s %s %v", r.Status, r.Reason, r.Detail)
	}
	dry, err := evaluators.Dry(t.Context(), e, it)
	if err != nil || dry.Result == nil || dry.Questions != nil {
		t.Errorf("%+v, %v", dry, err)
	}
	it.Output = text(strings.Repeat("It is. ", 1000))
	if questions, err := e.Questions(it); err != nil || len(questions) != 1 {
		t.Errorf("%d questions, %v", len(questions), err)
	}
}
