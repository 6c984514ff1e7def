package openai

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"assay/evaluators/judge"
)

// listed writes a token of top_logprobs.
func listed(text string, p float64) string {
	return fmt.Sprintf(`{"token":%q,"logprob":%v}`, text, logOf(p))
}

func logOf(p float64) string {
	if p == 0 {
		return "-9999.0"
	}
	return fmt.Sprint(math.Log(p))
}

// position writes a sampled token with its list; the first of the list was sampled.
func position(top ...string) string {
	return fmt.Sprintf(`%s,"top_logprobs":[%s]}`, strings.TrimSuffix(top[0], "}"), strings.Join(top, ","))
}

func completionOf(content string, positions ...string) string {
	return fmt.Sprintf(`{"model":"m-1","choices":[{"message":{"content":%q},"finish_reason":"length","logprobs":{"content":[%s]}}],
		"usage":{"prompt_tokens":120,"completion_tokens":1}}`, content, strings.Join(positions, ","))
}

func read(t *testing.T, q judge.Question, body string) (reading, error) {
	t.Helper()
	c, err := decode([]byte(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return readLogprobs(c, inOrder(q), 0.5)
}

func TestProbabilitiesAreThoseOfTheFirstTokenOverTheLetters(t *testing.T) {
	f := func(name, body string, want ...float64) {
		t.Helper()
		r, err := read(t, boolean("x"), body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		sum := 0.0
		for i, p := range r.probabilities {
			sum += p
			if math.Abs(p-want[i]) > 1e-9 {
				t.Errorf("%s: probabilities %v, want %v", name, r.probabilities, want[:2])
				break
			}
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(r.outside-want[2]) > 1e-9 {
			t.Errorf("%s: sum %v, outside %v, want 1 and %v", name, sum, r.outside, want[2])
		}
	}

	f("plain", completionOf("A", position(listed("A", .7), listed("B", .3))), .7, .3, 0)
	f("the sampled token is only a draw", completionOf("B", position(listed("B", .2), listed("A", .8))), .8, .2, 0)
	f("spellings of a letter add", completionOf("A",
		position(listed("A", .3), listed(" A", .2), listed("a", .1), listed("A.", .05), listed("**A**", .05), listed("\"B\"", .1), listed("(B)", .1), listed("C", .1))),
		.7/.9, .2/.9, .1)
	f("whole words count, beginnings do not", completionOf("Yes",
		position(listed("Yes", .3), listed(" true", .1), listed("CORRECT", .1), listed("no", .1), listed("Incorrect", .1), listed("An", .1), listed("Not", .1), listed("Based", .1))),
		.5/.7, .2/.7, .3)
	f("mass outside is told and taken out", completionOf("A", position(listed("A", .45), listed("B", .15), listed("The", .4))), .75, .25, .4)
	f("the abstain letter is outside", completionOf("A", position(listed("A", .6), listed("B", .2), listed("C", .2))), .75, .25, .2)
	f("the same raw token is listed twice", completionOf("A", position(listed("A", .6), listed("A", .6), listed("B", .4))), .6, .4, 0)
	f("-9999 is nothing", completionOf("A", position(listed("A", 1), listed("B", 0))), 1, 0, 0)
	f("quotes and space first", completionOf("\"A\"", position(listed("\"", .9), listed("A", .1)), position(listed("\n", 1)), position(listed("A", .9), listed("B", .1)), position(listed("\"", 1))), .9, .1, 0)
	f("bytes rule over the token's text", completionOf("A",
		`{"token":"\ufffd","bytes":[65],"logprob":-0.01,"top_logprobs":[{"token":"\ufffd","bytes":[65],"logprob":-0.2231435513142097},{"token":"\ufffd","bytes":[66],"logprob":-1.6094379124341003}]}`),
		.8, .2, 0)
	f("null is nothing", completionOf("A", `{"token":"A","logprob":null,"top_logprobs":[{"token":"A","logprob":-0.6931471805599453},{"token":"B","logprob":-0.6931471805599453},{"token":" B","logprob":null}]}`), .5, .5, 0)
	f("numbers that JSON does not have", completionOf("A", `{"token":"A","logprob":0.0,"top_logprobs":[{"token":"A","logprob":0.0},{"token":"B","logprob":-Infinity}]}`), 1, 0, 0)
	f("rounding above certainty", completionOf("A", `{"token":"A","logprob":1e-9,"top_logprobs":[{"token":"A","logprob":1e-9},{"token":"B","logprob":-30}]}`),
		1/(1+math.Exp(-30)), math.Exp(-30)/(1+math.Exp(-30)), 0)
}

func TestWhatIsNoAnswerIsNotRead(t *testing.T) {
	f := func(name, body, want string) {
		t.Helper()
		r, err := read(t, boolean("x"), body)
		if got := outcome(err); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if err != nil && r.probabilities != nil {
			t.Errorf("%s: probabilities %v beside the error", name, r.probabilities)
		}
	}

	f("no choices", `{"choices":[]}`, "reask empty_answer")
	f("empty content", completionOf(""), "reask empty_answer")
	f("only space", completionOf("\n", position(listed("\n", 1))), "reask empty_answer")
	f("three tokens of nothing", completionOf("\"\"\"A", position(listed("\"", 1)), position(listed("\"", 1)), position(listed("\"", 1)), position(listed("A", 1))), "reask prose")
	f("prose", completionOf("Based on", position(listed("Based", .9), listed("An", .1)), position(listed(" on", 1))), "reask prose")
	f("a letter that goes on", completionOf("A few", position(listed("A", .9), listed("B", .1)), position(listed(" few", 1))), "reask prose")
	f("a letter that goes on in its own word", completionOf("An", position(listed("A", .9), listed("B", .1)), position(listed("n", 1))), "reask prose")
	f("the draw was prose, the mass was not", completionOf("The answer", position(listed("The", .2), listed("A", .8)), position(listed(" answer", 1))), "ok")
	f("a full stop after the letter", completionOf("A.", position(listed("A", .9), listed("B", .1)), position(listed(".", 1))), "ok")
	f("too little on the options", completionOf("The", position(listed("The", .6), listed("A", .3), listed("B", .1))), "unusable outside_options")
	f("half on the options is enough", completionOf("A", position(listed("A", .3), listed("B", .2), listed("The", .5))), "ok")
	f("abstained", completionOf("C", position(listed("C", .5), listed("A", .3), listed("B", .2))), "unusable judge_abstained")
	f("abstained with little on the options", completionOf("C", position(listed("C", .9), listed("A", .1))), "unusable judge_abstained")
	f("a positive logarithm", completionOf("A", `{"token":"A","logprob":0.5,"top_logprobs":[]}`), "unusable malformed")
	f("NaN", completionOf("A", `{"token":"A","logprob":NaN,"top_logprobs":[]}`), "unusable malformed")
	f("more than everything", completionOf("A", position(listed("A", .9), listed("B", .9))), "unusable malformed")
	f("logprobs null", `{"choices":[{"message":{"content":"A"},"logprobs":null}]}`, "fatal")
	f("logprobs without tokens", `{"choices":[{"message":{"content":"A"},"logprobs":{"content":null}}]}`, "fatal")
	f("refusal field", `{"choices":[{"message":{"content":null,"refusal":"No."},"logprobs":null}]}`, "unusable judge_refused")
	f("content filter", `{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}`, "unusable judge_refused")
	f("two choices", `{"choices":[{"message":{"content":"A"}},{"message":{"content":"B"}}]}`, "unusable ambiguous")
}

// The options' keys are letters, and the sheet shows them under other letters: a
// token D answers the line D and not the option D.
func TestALetterMeansTheLineAndNotTheKey(t *testing.T) {
	s := sheetInOrder(five("x"), []int{3, 0, 4, 1, 2}) // line A shows option D
	c, err := decode([]byte(completionOf("A", position(listed("A", .8), listed("D", .2)))))
	if err != nil {
		t.Fatal(err)
	}
	r, err := readLogprobs(c, s, .5)
	if err != nil {
		t.Fatal(err)
	}
	if r.probabilities[3] != .8 || math.Abs(r.probabilities[1]-.2) > 1e-12 {
		t.Errorf("probabilities %v, want option D .8 and option B .2", r.probabilities)
	}
}

func TestTheFloorSaysWhatAnUnlistedOptionCanHave(t *testing.T) {
	r, err := read(t, boolean("x"), completionOf("A", position(listed("A", .98), listed("The", .015), listed("Well", .005))))
	if err != nil || math.Abs(r.detail["floor"].(float64)-.005) > 1e-12 || r.probabilities[1] != 0 {
		t.Errorf("%+v, %v, want p 0 with a floor of .005", r, err)
	}
	r, err = read(t, boolean("x"), completionOf("A", position(listed("A", .98), listed("B", .02))))
	if _, has := r.detail["floor"]; has || err != nil {
		t.Errorf("%+v, %v: a floor although every option was listed", r, err)
	}
}

func TestUnusableIsAlwaysAnUnusableErrorOfItsOwn(t *testing.T) {
	_, first := read(t, boolean("x"), completionOf(""))
	_, second := read(t, boolean("x"), completionOf(""))
	var a, b *judge.UnusableError
	if !errors.As(first, &a) || !errors.As(second, &b) || a == b {
		t.Error("two questions share one error: its cost would be added up twice")
	}
}
