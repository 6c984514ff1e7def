package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge"
)

func TestAnItemGetsOneResultPerEvaluatorInTheOrderOfTheRequest(t *testing.T) {
	w := start(t, withJudge(sure(.8)))
	a := w.evaluate(`{"evaluators":["factuality","closed_qa"],"input":"q","output":"o","expected":["x","y"],"criteria":"c","context":"d","judge":null}`)
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var body evaluateBody
	a.into(t, &body)
	if body.Judge != "main" || len(body.Results) != 2 || body.Results[0].Evaluator != "factuality" || body.Results[1].Evaluator != "closed_qa" {
		t.Fatalf("%s", a.body)
	}
	r := body.Results[1]
	if r.Status != "ok" || *r.Score != .8 || *r.Option != "yes" || *r.Label != "80% yes" || !*r.Passed || r.Reason != nil ||
		r.Probabilities["yes"] != .8 || *r.Method != "logprobs" || *r.Model != "m" || len(r.Version) == 0 {
		t.Errorf("%s", a.body)
	}
	// Fields that say nothing are null, not left out: programs may rely on the keys.
	for _, key := range []string{"reason", "score", "passed", "usage", "latency_ms", "detail", "outside"} {
		if _, ok := a.object(t)["results"].([]any)[0].(map[string]any)[key]; !ok {
			t.Errorf("no %s in %s", key, a.body)
		}
	}
}

func TestABlankOutputGetsTheWorstAnswerWithoutAJudge(t *testing.T) {
	w := start(t, withJudge(judgeFunc(func(context.Context, judge.Question) (judge.Answer, error) {
		t.Error("the judge was asked")
		return judge.Answer{}, errors.New("no")
	})))
	f := func(body, status string, score any, reason any) {
		t.Helper()
		a := w.evaluate(body)
		r := a.object(t)["results"].([]any)[0].(map[string]any)
		if a.status != 200 || r["status"] != status || r["score"] != score || r["reason"] != reason {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	f(`{"evaluators":["factuality"],"output":" \u200b ","expected":"x"}`, "ok", 0.0, nil)
	f(`{"evaluators":["closed_qa"],"input":"q","output":"","criteria":"c"}`, "ok", 0.0, nil)
	f(`{"evaluators":["closed_qa"],"input":"q","output":"","criteria":"c","options":{"closed_qa":{"empty_output":"not_applicable"}}}`,
		"not_applicable", nil, "empty_output")
	f(`{"evaluators":["factuality"],"output":"o"}`, "not_applicable", nil, "missing:expected")
	f(`{"evaluators":["factuality"],"output":null,"expected":["  "]}`, "not_applicable", nil, "missing:output,expected")
}

func TestOptionsReachTheEvaluator(t *testing.T) {
	w := start(t, withJudge(sure(.6)))
	f := func(body string, passed bool, option string) {
		t.Helper()
		var got evaluateBody
		a := w.evaluate(body)
		a.into(t, &got)
		if a.status != 200 || *got.Results[0].Passed != passed || *got.Results[0].Option != option {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	f(`{"evaluators":["closed_qa"],"input":"q","output":"o","criteria":"c","options":{"closed_qa":{"pass":0.7}}}`, false, "yes")
	f(`{"evaluators":["closed_qa"],"input":"q","output":"o","criteria":"c","options":{"closed_qa":{"pass":0.6,"orders":2}}}`, true, "yes")
	f(`{"evaluators":["factuality"],"output":"o","expected":"x","options":{"factuality":{"pass":["A"]}}}`, true, "A")
	f(`{"evaluators":["factuality"],"output":"o","expected":"x","options":{"factuality":{"coarse":true}}}`, true, "agree")
	f(`{"evaluators":["noncommittal"],"output":"o","options":{"noncommittal":{"pass":0.7}}}`, true, "yes")
	f(`{"evaluators":["answer_relevance"],"input":"q","output":"o","options":{"answer_relevance":{"pass":0.1}}}`, true, "0")
	f(`{"evaluators":["claim_evidence_stance"],"claim":"c","evidence":["e"]}`, true, "completely-support")
}

// An evaluator over many claims has a score and no one option.
func TestClaimsComeBackOneByOne(t *testing.T) {
	w := start(t, withJudge(sure(.6)))
	a := w.evaluate(`{"evaluators":["faithfulness"],"output":"It is red. It is old.","context":"c","options":{"faithfulness":{"max_claims":1}}}`)
	var got evaluateBody
	a.into(t, &got)
	r := got.Results[0]
	if a.status != 200 || r.Status != "ok" || *r.Score != 1 || *r.Label != "1 of 1" || r.Option != nil || r.Probabilities != nil || !*r.Passed ||
		len(r.Detail["claims"].([]any)) != 1 || r.Detail["claims_cut"] != 1.0 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Whatever setting an evaluator has, the API can set it.
func TestEverySettingOfTheTableCanBeSet(t *testing.T) {
	for _, spec := range evaluators.Table() {
		for _, setting := range spec.Settings {
			var f faults
			raw, err := json.Marshal(setting.Default)
			if err != nil {
				t.Fatal(err)
			}
			if setting.Default == nil { // any value of its kind
				raw = []byte(map[string]string{"number": "1", "text": `"x"`, "list": `["x"]`, "object": `{"type":"array"}`}[setting.Type])
			}
			f.setting("at", raw, setting, &evaluators.Settings{})
			if err := f.problem(); err != nil {
				t.Errorf("%s.%s = %s: %v", spec.Name, setting.Name, raw, err)
			}
		}
	}
}

func TestABatchComesBackInOrderWithAggregates(t *testing.T) {
	w := start(t, withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		output, _ := q.Field("output")
		if output == "broken" {
			return judge.Answer{}, &judge.UnusableError{Reason: judge.ReasonProse}
		}
		if output == "good" {
			return sure(.9)(ctx, q)
		}
		return sure(.2)(ctx, q)
	})))
	var items []string
	for i := range 40 {
		items = append(items, fmt.Sprintf(`{"id":"i%d","input":"q","criteria":"c","output":%q}`, i, []string{"good", "bad", "good", "broken"}[i%4]))
	}
	items = append(items, `{"input":"q","output":"o"}`)
	a := w.evaluate(`{"evaluators":["closed_qa"],"items":[` + strings.Join(items, ",") + `]}`)
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var body evaluateBody
	a.into(t, &body)
	if len(body.Items) != 41 || body.Results != nil {
		t.Fatalf("%d items, results %v", len(body.Items), body.Results)
	}
	for i, item := range body.Items[:40] {
		if want := []string{"ok", "ok", "ok", "unscored"}[i%4]; item.ID != fmt.Sprintf("i%d", i) || item.Results[0].Status != want {
			t.Errorf("item %d: %q %s, want %s", i, item.ID, item.Results[0].Status, want)
		}
	}
	sum := body.Aggregates[0]
	// 10 of 40 have no answer and one cannot have one: neither is inside the rate.
	if r := sum.PassRate; r.N != 30 || r.Value != 20./30 || !(r.Lower > .47 && r.Lower < r.Value && r.Upper < .82) || r.Level != .95 {
		t.Errorf("pass rate %+v", r)
	}
	if sum.Items != 41 || sum.MissingShare != .25 || sum.Statuses["not_applicable"] != 1 || sum.Reasons["prose"] != 10 || sum.Options["yes"] != 20 {
		t.Errorf("%+v", sum)
	}
}

func TestARefusedRequestNamesTheFieldAndWhatWouldBeRight(t *testing.T) {
	w := start(t, withJudges(map[string]judge.Judge{"main": sure(.5), "small": sure(.5)}))
	f := func(body string, words ...string) {
		t.Helper()
		a := w.evaluate(body)
		if a.status != 400 || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
			t.Errorf("%s: %d %s", body, a.status, a.body)
			return
		}
		var p struct {
			Title, Detail string
			Status        int
			Errors        []struct{ Location, Message string }
		}
		a.into(t, &p)
		if p.Title != "Bad Request" || p.Status != 400 || len(p.Errors) == 0 {
			t.Errorf("%s: %s", body, a.body)
		}
		for _, word := range words {
			if !strings.Contains(string(a.body), strings.ReplaceAll(word, `"`, `\"`)) {
				t.Errorf("%s: no %q in %s", body, word, a.body)
			}
		}
	}
	f(`{`, "not JSON")
	f(`[]`, "want an object, not a list")
	f(`{"evaluators":["closed_qa"]} x`, "not JSON")
	f("{\"input\":\"\xff\"}", "not UTF-8")
	f(`{"evaluators":["closed_qa"],"input":"a","input":"b"}`, `"input" twice`)
	f(`{"evaluators":["closed_qa"],"otput":"o","judge":"main"}`, "otput", "did you mean output?")
	f(`{"evaluators":["closed_qa"],"Output":"o","judge":"main"}`, "did you mean output?") // names are exact
	f(`{"evaluators":["factualty"],"judge":"main"}`, "evaluators[0]", "did you mean factuality?")
	f(`{"evaluators":["answer_similarty"],"judge":"main"}`, "unknown evaluator", "closed_qa, ", "did you mean answer_similarity?")
	f(`{"evaluators":["answer_relevance","answer_relevancy"],"judge":"main"}`, `"answer_relevancy" twice`)
	f(`{"evaluators":["faithfulness"],"judge":"main","options":{"faithfulness":{"max_claims":51}}}`, "options.faithfulness", "max_claims: 51: want 1 to 50")
	f(`{"evaluators":["answer_correctness"],"judge":"main","options":{"answer_correctness":{"similarity":1,"weights":["a"],"dialect":2}}}`,
		"answer_correctness.similarity", "want true or false", "weights[0]", "want a number, not a string", "answer_correctness.dialect")
	f(`{"evaluators":"factuality","judge":"main"}`, "want a list of strings, not a string")
	f(`{"evaluators":[],"judge":"main"}`, "is empty")
	f(`{"evaluators":["factuality","factuality"],"judge":"main"}`, `"factuality" twice`)
	f(`{"judge":"main"}`, "evaluators", "missing")
	f(`{"suite":"correctness","judge":"main","evaluators":["factuality"]}`, "suite", "stands beside evaluators")
	f(`{"suite":"corectness","judge":"main"}`, "did you mean correctness?")
	f(`{"evaluators":["closed_qa"]}`, "judge", "want one of main, small")
	f(`{"evaluators":["closed_qa"],"judge":"mian"}`, "did you mean main?")
	f(`{"evaluators":["closed_qa"],"judge":"main","output":7}`, "output", "want a string, not a number")
	f(`{"evaluators":["closed_qa"],"judge":"main","expected":["a",null]}`, "expected[1]", "not null")
	f(`{"evaluators":["closed_qa"],"judge":"main","context":{}}`, "want a string or a list of strings, not an object")
	f(`{"evaluators":["closed_qa"],"judge":"main","options":{"factuality":{}}}`, "does not ask for this evaluator")
	f(`{"evaluators":["closed_qa"],"judge":"main","options":{"closed_qa":{"pas":1}}}`, "options.closed_qa.pas", "did you mean pass?")
	f(`{"evaluators":["closed_qa"],"judge":"main","options":{"closed_qa":{"pass":["yes"]}}}`, "want a number, not a list")
	f(`{"evaluators":["closed_qa"],"judge":"main","options":{"closed_qa":{"pass":0}}}`, "options.closed_qa", "above 0, up to 1")
	f(`{"evaluators":["closed_qa"],"judge":"main","options":{"closed_qa":{"coarse":true}}}`, "unknown setting")
	f(`{"evaluators":["factuality"],"judge":"main","options":{"factuality":{"pass":["Z"],"refusals":"maybe"}}}`, `unknown option "Z"`, "refusals")
	f(`{"evaluators":["factuality"],"judge":"main","options":{"factuality":{"orders":0}}}`, "orders", "at least 1")
	f(`{"evaluators":["closed_qa"],"judge":"main","items":[]}`, "at least one item")
	f(`{"evaluators":["closed_qa"],"judge":"main","items":{}}`, "want a list of objects")
	f(`{"evaluators":["closed_qa"],"judge":"main","output":"o","items":[{}]}`, "stands beside items")
	f(`{"evaluators":["closed_qa"],"judge":"main","items":[{"output":"o"},{"ouput":"o"}]}`, "items[1].ouput", "did you mean output?")
	f(`{"evaluators":["closed_qa"],"judge":"main","items":[`+strings.Repeat(`{},`, 1000)+`{}]}`, "1001 items; want at most 1000")
	f(`{"evaluators":["closed_qa"],"judge":"main","items":[`+strings.Repeat(`{"x":1},`, 99)+`{}]}`, "(and 98 more)")

	if logs := w.logs.String(); strings.Contains(logs, "level=ERROR") || strings.Contains(logs, "level=WARN") {
		t.Errorf("what clients did wrong was logged:\n%s", logs)
	}
}

func TestABodyOverTheLimitIs413(t *testing.T) {
	w := start(t)
	a := w.evaluate(`{"evaluators":["factuality"],"output":"` + strings.Repeat("x", 2<<20) + `"}`)
	if a.status != 413 || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		t.Errorf("%d %s", a.status, a.body)
	}
	// What was not read must not be taken for the next request of the connection.
	if !a.closed {
		t.Error("the connection stays open with half a body in it")
	}
	if a := w.evaluate(""); a.status != 400 {
		t.Errorf("no body: %d %s", a.status, a.body)
	}
}

func TestWhenNothingWasTriedTheAnswerSaysWhenToComeAgain(t *testing.T) {
	f := func(err error, body string, status int, after string) {
		t.Helper()
		w := start(t, withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
			if output, _ := q.Field("output"); output == "fine" {
				return sure(.9)(ctx, q)
			}
			return judge.Answer{}, err
		})))
		a := w.evaluate(body)
		if a.status != status || a.header.Get("Retry-After") != after {
			t.Errorf("%v: %d, Retry-After %q, %s", err, a.status, a.header.Get("Retry-After"), a.body)
		}
	}
	budget := &judge.ShedError{Reason: judge.ShedBudget, RetryAfter: 89500 * time.Millisecond}
	held := &judge.ShedError{Reason: judge.ShedBreaker, RetryAfter: 2 * time.Second}
	one := `{"evaluators":["factuality"],"output":"o","expected":"x"}`
	f(budget, one, 429, "90")
	f(held, one, 503, "2")
	f(&judge.ShedError{Reason: judge.ShedBreaker}, one, 503, "") // until a person acts, no time helps
	// One answer among them, and the request was worth it.
	f(budget, `{"evaluators":["factuality"],"items":[{"output":"o","expected":"x"},{"output":"fine","expected":"x"}]}`, 200, "")
	f(budget, `{"evaluators":["factuality"],"items":[{"output":"o","expected":"x"},{"output":"","expected":"x"}]}`, 200, "")
	// A judge that fails is a result and not a problem.
	f(&judge.FatalError{Err: errors.New("wrong key")}, one, 200, "")
}

func TestARequestThatGoesAwayStopsItsJudgeCalls(t *testing.T) {
	asked, stopped := make(chan struct{}, 8), make(chan struct{}, 8)
	w := start(t, withJudge(judgeFunc(func(ctx context.Context, _ judge.Question) (judge.Answer, error) {
		asked <- struct{}{}
		<-ctx.Done()
		stopped <- struct{}{}
		return judge.Answer{}, ctx.Err()
	})))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.post(ctx, `{"evaluators":["factuality"],"output":"o","expected":"x"}`) }()
	<-asked
	cancel()
	<-stopped
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the client saw %v", err)
	}
	if logs := w.logs.String(); strings.Contains(logs, "level=ERROR") {
		t.Errorf("a client that went away was logged as an error:\n%s", logs)
	}
}

// http.Server.ReadTimeout would cancel the context of a handler that works for longer
// than it, and with it every slow judge's answer.
func TestAJudgeMayTakeLongerThanABodyMay(t *testing.T) {
	w := start(t, func(c *Config, _ *Deps) { c.ReadTimeout = time.Second }, withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		select {
		case <-time.After(1500 * time.Millisecond):
			return sure(.9)(ctx, q)
		case <-ctx.Done():
			return judge.Answer{}, ctx.Err()
		}
	})))
	a := w.evaluate(`{"evaluators":["factuality"],"output":"o","expected":"x"}`)
	if a.status != 200 || !strings.Contains(string(a.body), `"status":"ok"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestWhatIsNotJudgedInTimeEndsAsATimeOut(t *testing.T) {
	w := start(t, func(c *Config, d *Deps) { c.EvaluateTime, c.PerRequest, c.InFlight = time.Second, 1, 1 },
		withJudge(judgeFunc(func(ctx context.Context, _ judge.Question) (judge.Answer, error) {
			<-ctx.Done()
			return judge.Answer{}, ctx.Err()
		})))
	a := w.evaluate(`{"evaluators":["factuality"],"items":[{"output":"a","expected":"x"},{"output":"b","expected":"x"}]}`)
	var body evaluateBody
	a.into(t, &body)
	if a.status != 200 || len(body.Items) != 2 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, item := range body.Items {
		if r := item.Results[0]; r.Status != "error" || *r.Reason != "timeout" || r.Score != nil {
			t.Errorf("%s", a.body)
		}
	}
}

func TestJudgementsInFlightAreBounded(t *testing.T) {
	var now, most atomic.Int64
	w := start(t, withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		n := now.Add(1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		defer now.Add(-1)
		time.Sleep(time.Millisecond) // long enough for all that may to be there at once
		return sure(.9)(ctx, q)
	})))
	items := `{"evaluators":["factuality"],"items":[` + strings.Repeat(`{"output":"a","expected":"x"},`, 199) + `{"output":"b","expected":"x"}]}`
	ended := make(chan error, 4)
	for range 4 {
		go func() { ended <- w.post(t.Context(), items) }()
	}
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 16 || most.Load() < 2 {
		t.Errorf("%d at a time, want 2 to 16", most.Load())
	}
}

func TestAStopGivesRunningRequestsTheGraceAndThenEndsThem(t *testing.T) {
	asked := make(chan struct{})
	w := start(t, func(c *Config, _ *Deps) { c.Grace = 50 * time.Millisecond },
		withJudge(judgeFunc(func(ctx context.Context, _ judge.Question) (judge.Answer, error) {
			close(asked)
			<-ctx.Done()
			return judge.Answer{}, ctx.Err()
		})))
	got := make(chan answer, 1)
	go func() { got <- w.evaluate(`{"evaluators":["factuality"],"output":"o","expected":"x"}`) }()
	<-asked
	if err := w.stop(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if a := <-got; a.status != 503 || !strings.Contains(string(a.body), "the server is stopping") {
		t.Errorf("%d %s", a.status, a.body)
	}
}
