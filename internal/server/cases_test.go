package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/evaluators/judge"
	"assay/evaluators/judge/embedded"
	"assay/evaluators/judge/openai"
	"assay/internal/testkit"
)

type example struct {
	ID                 string             `json:"id"`
	Request            json.RawMessage    `json:"request"`
	JudgeProbabilities map[string]float64 `json:"judge_probabilities"`
	Expected           map[string]any     `json:"expected"`
	Tolerance          float64            `json:"tolerance"`
}

func readExamples(t *testing.T) (list []example) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testkit.Cases(t), "api_examples.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var e example
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("example %d: %v", len(list)+1, err)
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		t.Fatal("the bank holds no example")
	}
	return list
}

func (e example) evaluators(t *testing.T) (names []string) {
	t.Helper()
	var request struct{ Evaluators []string }
	if err := json.Unmarshal(e.Request, &request); err != nil {
		t.Fatal(err)
	}
	return request.Evaluators
}

// withFakeModel is a server whose judge is the real client of a model that answers with
// the distribution that of gives.
func withFakeModel(t *testing.T, of func() testkit.FakeReply) (setting, *testkit.FakeJudge) {
	t.Helper()
	fake := testkit.NewFakeJudge(t, func(testkit.FakeRequest) testkit.FakeReply { return of() })
	client := openai.NewClient(4)
	t.Cleanup(client.CloseIdleConnections)
	j, err := openai.New(openai.Config{BaseURL: fake.URL, Model: "fake-model", Method: judge.Logprobs, Timeout: 10 * time.Second},
		openai.Deps{HTTP: client, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return withJudge(j), fake
}

func TestCasesAPIExamples(t *testing.T) {
	var answers map[string]float64
	model, fake := withFakeModel(t, func() testkit.FakeReply { return testkit.FakeReply{Probabilities: answers} })
	w := start(t, model)
	held, all := 0, 0
	for _, e := range readExamples(t) {
		answers = e.JudgeProbabilities
		a := w.evaluate(string(e.Request))
		all++
		if diff := compare(t, a, e); diff != "" {
			t.Errorf("%s: %s", e.ID, diff)
			continue
		}
		held++
	}
	fmt.Printf("api_examples: %d of %d\n", held, all)
	if fake.Calls() != all {
		t.Errorf("%d calls of the judge for %d examples", fake.Calls(), all)
	}
}

func compare(t *testing.T, a answer, e example) string {
	t.Helper()
	if a.status != 200 {
		return fmt.Sprintf("%d %s", a.status, a.body)
	}
	result := a.object(t)["results"].([]any)[0].(map[string]any)
	var diffs []string
	for key, want := range e.Expected {
		got, there := result[key]
		number, isNumber := want.(float64)
		gotNumber, _ := got.(float64)
		switch {
		case !there:
			diffs = append(diffs, "no "+key)
		case isNumber && math.Abs(gotNumber-number) > e.Tolerance, !isNumber && got != want:
			diffs = append(diffs, fmt.Sprintf("%s is %v, want %v", key, got, want))
		}
	}
	return strings.Join(diffs, "; ")
}

// The embedded judge knows no criteria. It says so; it does not fail, and no number
// comes of it.
func TestWithTheEmbeddedJudgeClosedQAIsUnscoredWithItsReason(t *testing.T) {
	j, err := embedded.New()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, withJudge(j))
	for _, e := range readExamples(t) {
		if e.evaluators(t)[0] != "closed_qa" {
			continue
		}
		a := w.evaluate(string(e.Request))
		if a.status != 200 {
			t.Fatalf("%s: %d %s", e.ID, a.status, a.body)
		}
		r := a.object(t)["results"].([]any)[0].(map[string]any)
		if r["status"] != "unscored" || r["reason"] == nil || r["score"] != nil || r["passed"] != nil {
			t.Errorf("%s: %v", e.ID, r)
		}
	}
}
