package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"assay/evaluators/judge"
)

// claims asks about two blocks at once.
func claims() judge.Question {
	q := boolean("It is red. It is old.")
	q.Each = "claim"
	q.Fields = append(q.Fields, judge.Field{Name: "claim", Value: "It is red."}, judge.Field{Name: "claim", Value: "It is old."})
	return q
}

func TestSeveralBlocksAreAnsweredEachByItself(t *testing.T) {
	f := func(text string, one, two float64) {
		t.Helper()
		r, err := readText(claims(), text, "stop")
		if err != nil || len(r.parts) != 2 || r.probabilities != nil || math.Abs(r.parts[0][0]-one) > 1e-9 || math.Abs(r.parts[1][0]-two) > 1e-9 {
			t.Errorf("%s: %v, %v, want %v and %v", text, r.parts, err, one, two)
		}
	}
	const object = `{"reason":"so","answers":{"2":{"A":0.2,"B":0.8,"C":0},"1":{"A":0.9,"B":0.1,"C":0}}}`
	f(object, .9, .2)
	f("```json\n"+object+"\n```", .9, .2)
	f("I say "+object+" and again "+object, .9, .2)
	f(`{"answers":{"1":{"A":0.9,"B":0.3,"C":0},"2":{"A":0.4,"B":0.4,"C":0.2}}}`, .75, .5)
}

func TestAnAnswerToSomeOfTheBlocksIsNone(t *testing.T) {
	f := func(name, text, want string) {
		t.Helper()
		_, err := readText(claims(), text, "stop")
		if got := outcome(err); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	const one = `"1":{"A":0.9,"B":0.1,"C":0}`
	f("one of two", `{"answers":{`+one+`}}`, "unusable malformed")
	f("three of two", `{"answers":{`+one+`,"2":{"A":1,"B":0,"C":0},"3":{"A":1,"B":0,"C":0}}}`, "unusable malformed")
	f("another number", `{"answers":{`+one+`,"3":{"A":1,"B":0,"C":0}}}`, "unusable malformed")
	f("null", `{"answers":{`+one+`,"2":null}}`, "unusable malformed")
	f("no object", `{"answers":[1,2]}`, "unusable malformed")
	f("a number", `{"answers":{`+one+`,"2":1}}`, "unusable malformed")
	f("a missing letter", `{"answers":{`+one+`,"2":{"A":1,"B":0}}}`, "unusable malformed")
	f("a number twice", `{"answers":{`+one+`,`+one+`}}`, "unusable ambiguous")
	f("a letter twice", `{"answers":{`+one+`,"2":{"A":1,"A":0,"B":0,"C":0}}}`, "unusable ambiguous")
	f("one abstained", `{"answers":{`+one+`,"2":{"A":0,"B":0,"C":1}}}`, "unusable judge_abstained")
	f("one for all", `{"probabilities":{"A":0.9,"B":0.1,"C":0}}`, "unusable malformed")
	f("two that differ", `{"answers":{`+one+`}} {"answers":{"1":{"A":0,"B":1,"C":0}}}`, "unusable ambiguous")
	f("prose", "Both are right.", "reask prose")

	// and one answer is not read off an answer to several
	if _, err := readText(boolean("x"), `{"answers":{`+one+`}}`, "stop"); outcome(err) != "unusable malformed" {
		t.Errorf("answers to a single question: %v", err)
	}
}

func TestTheSheetOfSeveralBlocksAsksForEach(t *testing.T) {
	q := claims()
	text := newSheet(q).userText(judge.Structured, "0123456789abcdef")
	for _, want := range []string{"<<< begin claim 1 of 2 ", "<<< begin claim 2 of 2 ", `named by its number ("1" to "2")`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if got := sheetBytes(judge.Structured, q); got < len(systemText(judge.Structured))+len(text) {
		t.Errorf("reserve of %d for a sheet of %d", got, len(text))
	}
	data, err := json.Marshal(newSheet(q).responseFormat())
	if err != nil || !strings.Contains(string(data), `"required":["1","2"]`) || !strings.Contains(string(data), `"required":["reason","answers"]`) {
		t.Errorf("%s, %v", data, err)
	}
	j := newJudge(t, "http://localhost/v1", structured)
	if j.CanAnswer(q) != nil || j.maxTokens(q) <= j.maxTokens(boolean("x")) {
		t.Errorf("%v, %d tokens", j.CanAnswer(q), j.maxTokens(q))
	}
	var refused *judge.RefusedError
	if err := newJudge(t, "http://localhost/v1", nil).CanAnswer(q); err == nil {
		t.Error("token probabilities stand beside one letter: there is no list of them for several blocks")
	} else if refused, _ = err.(*judge.RefusedError); refused == nil || refused.Reason != "needs_structured" {
		t.Errorf("%v", err)
	}
}
