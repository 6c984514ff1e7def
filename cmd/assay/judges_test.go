package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/testkit"
)

// stackAt builds the judge m of a checks file whose keys those are, at a fake server.
func stackAt(t *testing.T, url, keys string) stack {
	t.Helper()
	file, err := checks.Parse("a.yaml", []byte(`version: 1
sources: [{ topic: t }]
judges:
  m: { kind: openai, base_url: "`+url+`", model: x, `+keys+` }
checks:
  - { name: c, evaluator: noncommittal, judge: m, sample: { rate: 1 } }
`))
	if err != nil {
		t.Fatal(err)
	}
	s := &stacker{
		cfg: judge.Config{
			Timeout: 20 * time.Second, Attempts: 2, PauseBase: time.Millisecond, PauseMax: time.Millisecond, CacheEntries: 100, BreakerPause: time.Second,
		},
		environ: func(string) (string, bool) { return "", false }, metrics: judge.NewMetrics(prometheus.NewRegistry()),
		log: slog.New(slog.NewTextHandler(io.Discard, nil)), now: time.Now, onBreaker: func() {},
	}
	st, err := s.stack(file.Judges[0])
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// A judge by votes asks as often as it says, pays for each, keeps the pooled answer, and
// begins no question that its budget cannot pay for.
func TestAJudgeByVotesIsStackedWhole(t *testing.T) {
	fake := testkit.NewFakeJudge(t, func(r testkit.FakeRequest) testkit.FakeReply {
		if r.N == 2 {
			return testkit.FakeReply{Probabilities: map[string]float64{"no": 1}}
		}
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": 1}}
	})
	st := stackAt(t, fake.URL, "method: votes:3, budget: { calls_per_day: 5 }")
	e, err := evaluators.New("noncommittal", evaluators.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	evaluate := func(output string) evaluators.Result {
		t.Helper()
		r, err := e.Evaluate(t.Context(), st.Judge, evaluators.Item{Output: &output, Judgeable: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := evaluate("Who knows?")
	if r.Status != evaluators.OK || *r.Score < .66 || *r.Score > .67 || r.Method != judge.Votes || r.Attempts != 3 || r.Detail["votes"] != 3 || fake.Calls() != 3 {
		t.Errorf("%+v after %d calls", r, fake.Calls())
	}
	if r = evaluate("Who knows?"); r.Status != evaluators.OK || r.Detail["cached"] != true || fake.Calls() != 3 {
		t.Errorf("again: %+v after %d calls", r, fake.Calls())
	}
	if r = evaluate("Perhaps."); r.Status != evaluators.Shed || r.Reason != "budget" || fake.Calls() != 3 {
		t.Errorf("over the budget: %+v after %d calls", r, fake.Calls())
	}
	seeds := make(map[string]bool)
	for _, req := range fake.Requests() {
		_, rest, _ := strings.Cut(string(req.Body), `"seed":`)
		seeds[rest[:1]] = true
	}
	if len(seeds) != 3 {
		t.Errorf("seeds %v", seeds)
	}
}

// What a dry run shows is what the model will read.
func TestAStacksPromptIsWhatIsSent(t *testing.T) {
	fake := testkit.NewFakeJudge(t, func(testkit.FakeRequest) testkit.FakeReply {
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": 1}}
	})
	st := stackAt(t, fake.URL, "method: logprobs, budget: { calls_per_day: 5 }")
	e, err := evaluators.New("noncommittal", evaluators.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	output := "Who knows?"
	it := evaluators.Item{Output: &output, Judgeable: true}
	dry, err := evaluators.Dry(t.Context(), e, it)
	if err != nil || len(dry.Questions) != 1 {
		t.Fatalf("%+v, %v", dry, err)
	}
	messages := st.prompt(dry.Questions[0])
	if _, err := e.Evaluate(t.Context(), st.Judge, it); err != nil {
		t.Fatal(err)
	}
	sent := fake.Requests()[0]
	if len(messages) != 2 || messages[0].Text != sent.System || messages[1].Text != sent.Prompt {
		t.Errorf("shown %+v, sent %s %s", messages, sent.System, sent.Prompt)
	}
	if u := st.estimate(dry.Questions[0]); u.InputTokens < int64(len(sent.System)+len(sent.Prompt))/3 || u.OutputTokens == 0 {
		t.Errorf("%+v", u)
	}
}

// A judge without an embedding model says so, and costs nothing.
func TestVectorsAreAskedForByNameOnly(t *testing.T) {
	fake := testkit.NewFakeJudge(t, func(testkit.FakeRequest) testkit.FakeReply { return testkit.FakeReply{} })
	st := stackAt(t, fake.URL, "method: logprobs, budget: { calls_per_day: 5 }")
	_, err := st.Judge.Ask(t.Context(), judge.VectorQuestion("x"))
	var refused *judge.RefusedError
	if !errors.As(err, &refused) || refused.Reason != judge.NeedsEmbeddingModel || fake.Calls() != 0 {
		t.Errorf("%v after %d calls", err, fake.Calls())
	}
}

// Relevancy by embeddings goes the whole way: questions are written, texts embedded, all of
// it counted against the budget, and nothing asked twice.
func TestRelevancyByEmbeddingsIsPaidForLikeAnyQuestion(t *testing.T) {
	var drafts, vectors atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Seed  int
			Input string
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/v1/embeddings" && vectors.Add(1) == 1:
			w.WriteHeader(http.StatusServiceUnavailable) // asked again, as every question is
		case r.URL.Path == "/v1/embeddings":
			v := "[1,0]"
			if body.Input == "When does it open?" {
				v = "[3,4]"
			}
			fmt.Fprintf(w, `{"model":"e","data":[{"embedding":%s}],"usage":{"prompt_tokens":5}}`, v)
		default:
			drafts.Add(1)
			question := "Where is it?"
			if body.Seed == 2 {
				question = "When does it open?"
			}
			content, _ := json.Marshal(question + "\nnoncommittal: no")
			fmt.Fprintf(w, `{"model":"m","choices":[{"message":{"content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20}}`, content)
		}
	}))
	defer server.Close()
	st := stackAt(t, server.URL+"/v1", "method: logprobs, embedding_model: e, price: { input_per_million: 1, output_per_million: 1 }, budget: { usd_per_day: 1, calls_per_day: 10 }")
	e, err := evaluators.New("answer_relevancy", evaluators.Settings{Dialect: "ragas"})
	if err != nil {
		t.Fatal(err)
	}
	it := evaluators.Item{Input: new("Where is it"), Output: new("By the lake, from nine on."), Judgeable: true}
	for i, want := range []struct {
		attempts int
		tokens   int64
	}{{7, 3*100 + 3*5}, {0, 0}} {
		r, err := e.Evaluate(t.Context(), st.Judge, it)
		if err != nil || r.Status != evaluators.OK {
			t.Fatalf("%+v, %v", r, err)
		}
		// two questions lie with the input, one at .6
		if *r.Score < .8666 || *r.Score > .8667 || r.Model != "m + e" || r.Attempts != want.attempts || r.Usage.InputTokens != want.tokens {
			t.Errorf("round %d: %+v, want %+v", i, r, want)
		}
	}
	// the input, the question that two drafts share, the other one, and the failure
	if drafts.Load() != 3 || vectors.Load() != 4 {
		t.Errorf("%d drafts, %d vectors", drafts.Load(), vectors.Load())
	}
	it.Output = new("By the sea.")
	if r, err := e.Evaluate(t.Context(), st.Judge, it); err != nil || r.Status != evaluators.OK {
		t.Errorf("ten calls are three more: %+v, %v", r, err)
	}
	it.Output = new("By the river.")
	if r, err := e.Evaluate(t.Context(), st.Judge, it); err != nil || r.Status != evaluators.Shed {
		t.Errorf("an eleventh call: %+v, %v", r, err)
	}
}
