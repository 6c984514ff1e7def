package evaluators_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"assay/evaluators"
	"assay/evaluators/aggregate"
	"assay/evaluators/judge"
	"assay/internal/testkit"
)

// eachCase calls f with every line of a bank.
func eachCase[C any](t *testing.T, name string, f func(C)) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(caseFile(t, name)))
	lines.Buffer(nil, 1<<22)
	n := 0
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var c C
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f(c)
		n++
	}
	if err := lines.Err(); err != nil || n == 0 {
		t.Fatalf("%s: %d cases, %v", name, n, err)
	}
}

// references is a string or a list of them.
type references []string

func (r *references) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*r = references{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(r))
}

type judgeCase struct {
	ID         string     `json:"id"`
	Metric     string     `json:"metric"`
	Input      *string    `json:"input"`
	Output     *string    `json:"output"`
	Expected   references `json:"expected"`
	Criteria   *string    `json:"criteria"`
	Context    []string   `json:"context"`
	Claim      *string    `json:"claim"`
	Evidence   references `json:"evidence"`
	Label      any        `json:"label"`
	Acceptable []any      `json:"acceptable"`
	Score      *float64   `json:"score"`
	Tags       []string   `json:"tags"`
}

// doubtful are cases about whose label people differ.
func (c judgeCase) doubtful() bool {
	return slices.Contains(c.Tags, "label_noise") || slices.Contains(c.Tags, "disputed")
}

func (c judgeCase) evaluator() string {
	if c.Metric == "short_answer_grade" {
		return "short_answer"
	}
	return c.Metric
}

func (c judgeCase) item() evaluators.Item {
	return evaluators.Item{
		Input: c.Input, Output: c.Output, Expected: c.Expected, Criteria: c.Criteria, Context: c.Context,
		Claim: c.Claim, Evidence: c.Evidence, Judgeable: true,
	}
}

// truth is the option that a right judge would choose, of the question that the
// evaluator asks.
func (c judgeCase) truth() string {
	claims := c.Metric == "faithfulness" || c.Metric == "groundedness" || c.Metric == "claim_supported"
	switch label := c.Label.(type) {
	case float64:
		switch {
		case claims && label == 1:
			return "S"
		case claims:
			return "N"
		case c.Metric == "noncommittal" && label == 0:
			return "no"
		}
		return strconv.Itoa(int(label))
	case string:
		switch {
		case label == "Y" && claims:
			return "S"
		case label == "N" && claims:
			return "N"
		case label == "Y":
			return "yes"
		case label == "N":
			return "no"
		case c.Metric == "answer_correctness" && label == "correct", label == "high":
			return "3"
		case c.Metric == "answer_correctness":
			return "1"
		case label == "correct":
			return "C"
		case label == "incorrect":
			return "D"
		}
		return label
	}
	return ""
}

// right is the bank's own rule of what counts.
func (c judgeCase) right(r evaluators.Result) bool {
	if c.Label == nil {
		return r.Status == evaluators.NotApplicable && r.Reason == "missing:context" && r.Score == nil && r.Attempts == 0
	}
	if r.Status != evaluators.OK {
		return false
	}
	switch c.Metric {
	case "closed_qa", "math_equivalent", "hallucination", "noncommittal":
		return (*r.Score >= .5) == (c.truth() == "yes") && r.Option == c.truth()
	case "faithfulness", "groundedness":
		return (*r.Score >= .5) == (c.truth() == "S")
	case "claim_supported":
		return (r.Option == "S") == (c.Label == "Y")
	case "answer_correctness":
		return *r.Passed == (c.Label == "correct")
	case "answer_relevancy":
		return *r.Score >= .75
	case "answer_similarity":
		level := float64(r.Option[0] - '0')
		return r.Option == c.truth() || slices.Contains(c.Acceptable, any(level))
	}
	if c.Score != nil && *r.Score != *c.Score {
		return false
	}
	return r.Option == c.truth() || slices.Contains(c.Acceptable, any(r.Option))
}

// The bank's texts go through prompt, wire and mapping, with a judge that knows the
// truth: whatever is wrong then is ours. How well a real model judges them is another
// question.
func TestCasesJudge(t *testing.T) {
	for _, m := range []judge.Method{judge.Logprobs, judge.Structured, judge.Votes} {
		right, all, doubtful := 0, 0, 0
		var sent atomic.Int32
		var truth string
		fake := testkit.NewFakeJudge(t, func(r testkit.FakeRequest) testkit.FakeReply {
			sent.Add(1)
			p := make(map[string]float64)
			for _, o := range r.Options {
				p[o.Key] = .1 / float64(len(r.Options)-1)
			}
			if _, asked := p[truth]; !asked {
				t.Errorf("the truth %q is no option of %v", truth, r.Options)
			}
			p[truth] = .9
			return testkit.FakeReply{Probabilities: p}
		})
		j := stack(t, fake, m)
		eachCase(t, "judge.jsonl", func(c judgeCase) {
			all++
			if c.doubtful() {
				doubtful++
			}
			truth = c.truth()
			sent.Store(0)
			r := evaluate(t, evaluator(t, c.evaluator(), evaluators.Settings{EmptyOutput: "fail"}), j, c.item())
			if c.Label == nil && sent.Load() > 0 {
				t.Errorf("%s was sent to the judge", c.ID)
			}
			if c.right(r) {
				right++
			} else {
				t.Errorf("%s by %s: %s %s %s %v, label %v", c.ID, m, r.Status, r.Reason, r.Option, r.Label, c.Label)
			}
		})
		t.Logf("judge: %d of %d by %s, %d of them with a doubtful label (the fake judge knows the labels)", right, all, m, doubtful)
	}
}

// The requests of the API, with the stated
// probabilities: score, label, confidence and verdict as the bank says.
func TestCasesAPIMapping(t *testing.T) {
	right, all := 0, 0
	eachCase(t, "api_examples.jsonl", func(c struct {
		ID      string `json:"id"`
		Request struct {
			Evaluators []string   `json:"evaluators"`
			Input      *string    `json:"input"`
			Output     *string    `json:"output"`
			Expected   references `json:"expected"`
			Criteria   *string    `json:"criteria"`
		} `json:"request"`
		Probabilities map[string]float64 `json:"judge_probabilities"`
		Expected      map[string]any     `json:"expected"`
		Tolerance     float64            `json:"tolerance"`
	}) {
		name := c.Request.Evaluators[0]
		all++
		fake := testkit.NewFakeJudge(t, func(testkit.FakeRequest) testkit.FakeReply {
			return testkit.FakeReply{Probabilities: c.Probabilities}
		})
		r := evaluate(t, evaluator(t, name, evaluators.Settings{EmptyOutput: "fail"}), stack(t, fake, judge.Logprobs), evaluators.Item{
			Input: c.Request.Input, Output: c.Request.Output, Expected: c.Request.Expected, Criteria: c.Request.Criteria, Judgeable: true,
		})
		ok := true
		for key, want := range c.Expected {
			switch key {
			case "evaluator":
				ok = ok && r.Evaluator == want
			case "status":
				ok = ok && string(r.Status) == want
			case "label":
				ok = ok && r.Label == want
			case "score":
				ok = ok && math.Abs(*r.Score-want.(float64)) <= c.Tolerance
			case "confidence":
				ok = ok && math.Abs(*r.Confidence-want.(float64)) <= c.Tolerance
			case "passed":
				ok = ok && *r.Passed == want
			default:
				t.Errorf("%s: no rule for %s", c.ID, key)
			}
		}
		if ok {
			right++
		} else {
			t.Errorf("%s: %+v, want %v", c.ID, r, c.Expected)
		}
	})
	t.Logf("api_examples: %d of %d", right, all)
}

// The mapping rows of the bank of metrics, without a judge.
func TestCasesMapping(t *testing.T) {
	right, all := 0, 0
	eachCase(t, "metrics.jsonl", func(c struct {
		Metric string `json:"metric"`
		Args   struct {
			Choice string  `json:"choice"`
			Yes    float64 `json:"p_yes"`
		} `json:"args"`
		Expected  any     `json:"expected"`
		Tolerance float64 `json:"tolerance"`
	}) {
		var got any
		switch c.Metric {
		case "factuality_score":
			score, err := evaluator(t, "factuality", evaluators.Settings{}).Definition().ScoreOf(c.Args.Choice)
			if got = score; err != nil {
				got = map[string]any{"error": true}
			}
		case "closed_qa_score":
			key := map[string]string{"Y": "yes", "N": "no"}[c.Args.Choice]
			score, err := evaluator(t, "closed_qa", evaluators.Settings{}).Definition().ScoreOf(key)
			if got = score; err != nil {
				got = map[string]any{"error": true}
			}
		case "closed_qa_confidence", "closed_qa_passed":
			r := evaluate(t, evaluator(t, "closed_qa", evaluators.Settings{}), says(map[string]float64{"yes": c.Args.Yes, "no": 1 - c.Args.Yes}), complete())
			if got = *r.Confidence; c.Metric == "closed_qa_passed" {
				got = *r.Passed
			}
		default:
			return
		}
		all++
		want, wantNumber := c.Expected.(float64)
		number, isNumber := got.(float64)
		_, wantError := c.Expected.(map[string]any)
		_, isError := got.(map[string]any)
		switch {
		case wantNumber && isNumber && math.Abs(number-want) <= c.Tolerance, wantError && isError, !wantNumber && !wantError && got == c.Expected:
			right++
		default:
			t.Errorf("%s %+v: %v, want %v", c.Metric, c.Args, got, c.Expected)
		}
	})
	t.Logf("metrics: %d of %d (mapping of factuality and closed_qa)", right, all)
}

// Reports from the field of how others' judges failed. Each is told again with our
// evaluators; the set and its behaviour are the bank's.
func TestCasesFieldReports(t *testing.T) {
	told := map[string]func(*testing.T) bool{"ext-27": proseIsNoZero, "ext-28": nothingIsNoNumber, "ext-30": fencesAreTakenOff}
	right, all := 0, 0
	eachCase(t, "field_reports.jsonl", func(c struct {
		ID      string `json:"id"`
		Area    string `json:"area"`
		Symptom string `json:"symptom"`
	}) {
		if c.Area != "judge" {
			return
		}
		all++
		f, ok := told[c.ID]
		if !ok {
			t.Errorf("%s is not told: %s", c.ID, c.Symptom)
		} else if f(t) {
			right++
		} else {
			t.Errorf("%s: %s", c.ID, c.Symptom)
		}
	})
	t.Logf("field_reports: %d of %d", right, all)
}

// ext-27: every tenth answer of the judge is prose. It was stored as score 0.
func proseIsNoZero(t *testing.T) bool {
	fake := testkit.NewFakeJudge(t, func(r testkit.FakeRequest) testkit.FakeReply {
		if strings.HasSuffix(r.Field("output"), "0") {
			return testkit.FakeReply{Fault: testkit.Prose}
		}
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": .9, "no": .1}}
	})
	j := stack(t, fake, judge.Logprobs)
	e := evaluator(t, "closed_qa", evaluators.Settings{})
	var results []evaluators.Result
	for i := range 100 {
		it := complete()
		it.Output = text("answer " + string(rune('0'+i/10)) + string(rune('0'+i%10)))
		results = append(results, evaluate(t, e, j, it))
	}
	s, err := aggregate.Summarise(results, .95)
	if err != nil {
		t.Fatal(err)
	}
	prose := 0
	for _, r := range results {
		if r.Reason == "prose" && r.Score == nil && r.Attempts == 2 {
			prose++
		}
	}
	return prose == 10 && s.Reasons["prose"] == 10 && s.Statuses[evaluators.OK] == 90 && math.Abs(*s.MeanScore-.9) < 1e-9 &&
		s.PassRate.Value == 1 && math.Abs(s.Missing-.1) < 1e-12
}

// ext-28: nothing to judge gave NaN, and NaN spread. Here an answer without words,
// and one the judge finds nothing to say about.
func nothingIsNoNumber(t *testing.T) bool {
	fake := testkit.NewFakeJudge(t, func(r testkit.FakeRequest) testkit.FakeReply {
		if r.Field("output") == "OK." {
			return testkit.FakeReply{Probabilities: map[string]float64{testkit.FakeAbstain: .9, "C": .1}}
		}
		return testkit.FakeReply{Probabilities: map[string]float64{"C": 1}}
	})
	j := stack(t, fake, judge.Logprobs)
	e := evaluator(t, "factuality", evaluators.Settings{})
	var results []evaluators.Result
	for _, output := range []string{"OK.", " ", "Canberra"} {
		it := complete()
		it.Output = text(output)
		results = append(results, evaluate(t, e, j, it))
	}
	claims := evaluate(t, evaluator(t, "faithfulness", evaluators.Settings{}), finds(nil), bridge())
	if claims.Status != evaluators.NotApplicable || claims.Reason != "no_statements" || claims.Score != nil {
		return false
	}
	s, err := aggregate.Summarise(results, .95)
	return err == nil && results[0].Reason == "judge_abstained" && results[1].Status == evaluators.NotApplicable && results[1].Reason == "empty_output" &&
		*s.MeanScore == 1 && s.PassRate.Value == 1 && s.PassRate.N == 1
}

// ext-30: a good verdict inside a code fence was lost, or a fence inside it was cut.
func fencesAreTakenOff(t *testing.T) bool {
	fake := testkit.NewFakeJudge(t, func(r testkit.FakeRequest) testkit.FakeReply {
		reply := testkit.FakeReply{Probabilities: map[string]float64{"yes": .6, "no": .4}}
		if r.Field("output") == "fenced" {
			reply.Fault = testkit.FencedJSON
		}
		return reply
	})
	j := stack(t, fake, judge.Structured)
	e := evaluator(t, "closed_qa", evaluators.Settings{})
	for _, output := range []string{"fenced", "bare"} {
		it := complete()
		it.Output = text(output)
		r := evaluate(t, e, j, it)
		if r.Status != evaluators.OK || math.Abs(*r.Score-.6) > 1e-9 || r.Detail["judge_reason"] == nil {
			return false
		}
		if output == "fenced" && r.Detail["judge_reason"] != "use ``` in code, or ```json" {
			return false
		}
	}
	return true
}
