package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"assay/evaluators/judge"
)

func readText(q judge.Question, text, finish string) (reading, error) {
	content, _ := json.Marshal(text)
	c, err := decode(fmt.Appendf(nil, `{"choices":[{"message":{"content":%s},"finish_reason":%q}]}`, content, finish))
	if err != nil {
		return reading{}, err
	}
	return readStructured(c, inOrder(q), 0.5)
}

func TestAStatedDistributionIsReadWhereverItStands(t *testing.T) {
	const object = `{"reason":"use ` + "```" + ` in code, {or} \"}","probabilities":{"A":0.6,"B":0.4,"C":0}}`
	f := func(name, text string) {
		t.Helper()
		r, err := readText(boolean("x"), text, "stop")
		if err != nil || math.Abs(r.probabilities[0]-.6) > 1e-12 || math.Abs(r.probabilities[1]-.4) > 1e-12 {
			t.Errorf("%s: %v, %v, want .6 and .4", name, r.probabilities, err)
		}
	}

	f("bare", object)
	f("with space", "\n  "+object+"\n")
	f("in a fence", "```json\n"+object+"\n```")
	f("in a fence without a name", "```\n"+object+"\n```")
	f("in a fence on one line", "```json "+object+" ```")
	f("after prose", "Here is my grade:\n"+object)
	f("in a fence inside prose", "My grade:\n```json\n"+object+"\n```\nI hope that helps.")
	f("after an object that is no answer", `Given {"input": 1} I say `+object)
	f("after an open brace", "I weigh { for a while: "+object)
	f("said twice alike", object+"\n\n"+object)
}

func TestAStatedAnswerThatIsNoneIsUnusable(t *testing.T) {
	f := func(name, text, want string) {
		t.Helper()
		_, err := readText(boolean("x"), text, "stop")
		if got := outcome(err); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}

	f("empty", " ", "reask empty_answer")
	f("prose", "The answer is A, with 90%.", "reask prose")
	f("a letter is no object", `"A"`, "unusable malformed")
	f("a number is no object", `0.9`, "unusable malformed")
	f("an array", `[{"A":1}]`, "unusable malformed")
	f("neither form", `{"score":0.6}`, "unusable malformed")
	f("null", `{"probabilities":null}`, "unusable malformed")
	f("a missing letter", `{"probabilities":{"A":0.6,"B":0.4}}`, "unusable malformed")
	f("an unknown letter", `{"probabilities":{"A":0.6,"B":0.4,"C":0,"D":0}}`, "unusable malformed")
	f("another letter", `{"probabilities":{"A":0.6,"B":0.4,"X":0}}`, "unusable malformed")
	f("negative", `{"probabilities":{"A":1.2,"B":-0.2,"C":0}}`, "unusable malformed")
	f("text for a number", `{"probabilities":{"A":"0.6","B":0.4,"C":0}}`, "unusable malformed")
	f("null for a number", `{"probabilities":{"A":null,"B":0.4,"C":0.6}}`, "unusable malformed")
	f("NaN", `{"probabilities":{"A":NaN,"B":0.4,"C":0.6}}`, "unusable malformed")
	f("too large for a number", `{"probabilities":{"A":1e999,"B":0.4,"C":0.6}}`, "unusable malformed")
	f("sum far off", `{"probabilities":{"A":60,"B":40,"C":0}}`, "unusable malformed")
	f("sum 3", `{"probabilities":{"A":1,"B":1,"C":1}}`, "unusable malformed")
	f("nothing anywhere", `{"probabilities":{"A":0,"B":0,"C":0}}`, "unusable malformed")
	f("one letter twice", `{"probabilities":{"A":0.9,"A":0.1,"B":0.1,"C":0}}`, "unusable ambiguous")
	f("two answers", `{"probabilities":{"A":0.9,"B":0.1,"C":0}} or {"probabilities":{"A":0.1,"B":0.9,"C":0}}`, "unusable ambiguous")
	f("choice against probabilities", `{"choice":"B","probabilities":{"A":0.9,"B":0.1,"C":0}}`, "unusable ambiguous")
	f("unknown choice", `{"choice":"yes"}`, "unusable malformed")
	f("abstained", `{"choice":"C"}`, "unusable judge_abstained")
	f("mostly abstained", `{"probabilities":{"A":0.3,"B":0.2,"C":0.5}}`, "unusable judge_abstained")
}

func TestSumsNearOneAreNormalised(t *testing.T) {
	f := func(text string, want float64, noted bool) {
		t.Helper()
		r, err := readText(boolean("x"), text, "stop")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, has := r.detail["renormalised"]; has != noted || math.Abs(r.probabilities[0]-want) > 1e-9 || math.Abs(r.probabilities[0]+r.probabilities[1]-1) > 1e-9 {
			t.Errorf("%s: %v %v, want %v, noted %t", text, r.probabilities, r.detail, want, noted)
		}
	}
	f(`{"probabilities":{"A":0.5,"B":0.49,"C":0}}`, .5/.99, false)
	f(`{"probabilities":{"A":0.9,"B":0.3,"C":0}}`, .75, true)
	f(`{"probabilities":{"A":0.6,"B":0.2,"C":0.2}}`, .75, false)
	f(`{"reason":"sure","choice":"B"}`, 0, false)
}

func TestAnAnswerThatWasCutIsAskedForWithMoreTokens(t *testing.T) {
	_, err := readText(boolean("x"), `{"reason":"it is`, "length")
	if got := outcome(err); got != "reask cut" {
		t.Errorf("%s, want reask cut", got)
	}
	// the object was whole before the limit came
	if _, err := readText(boolean("x"), `{"choice":"A"} and so`, "length"); err != nil {
		t.Errorf("a whole answer before the limit: %v", err)
	}
	j := newJudge(t, "http://localhost/v1", structured)
	q := boolean("x")
	first := j.maxTokens(q)
	q.Reask = 1
	if j.maxTokens(q) != 2*first {
		t.Error("the second try has no more tokens than the first")
	}
}

func TestToolCallsAreAnAnswerOnlyAlone(t *testing.T) {
	f := func(message, want string) {
		t.Helper()
		c, err := decode(fmt.Appendf(nil, `{"choices":[{"message":%s,"finish_reason":"tool_calls"}]}`, message))
		if err != nil {
			t.Fatal(err)
		}
		_, err = readStructured(c, inOrder(boolean("x")), .5)
		if got := outcome(err); got != want {
			t.Errorf("%s: %s, want %s", message, got, want)
		}
	}
	const call = `{"function":{"arguments":"{\"choice\":\"A\"}"}}`
	f(`{"content":null,"tool_calls":[`+call+`]}`, "ok")
	f(`{"content":null,"tool_calls":[`+call+`,`+call+`]}`, "unusable ambiguous")
	f(`{"content":"{\"choice\":\"B\"}","tool_calls":[`+call+`]}`, "unusable ambiguous")
}

func TestTheSchemaAsksForEveryLetterAndNothingElse(t *testing.T) {
	data, err := json.Marshal(inOrder(five("x")).responseFormat())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema struct {
			Schema struct {
				Properties struct {
					Probabilities struct {
						Required             []string `json:"required"`
						AdditionalProperties bool     `json:"additionalProperties"`
					} `json:"probabilities"`
				} `json:"properties"`
			} `json:"schema"`
		} `json:"json_schema"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	p := got.Schema.Schema.Properties.Probabilities
	if len(p.Required) != 6 || p.AdditionalProperties {
		t.Errorf("schema wants %v and takes more: %t", p.Required, p.AdditionalProperties)
	}
}
