package evaluators_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/evaluators/judge/openai"
	"assay/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// judgeFunc is a judge in a test's own words.
type judgeFunc func(ctx context.Context, q judge.Question) (judge.Answer, error)

func (f judgeFunc) Ask(ctx context.Context, q judge.Question) (judge.Answer, error) { return f(ctx, q) }

// says answers with that distribution, by option key.
func says(p map[string]float64) judgeFunc {
	return func(_ context.Context, q judge.Question) (judge.Answer, error) {
		a := judge.Answer{
			Probabilities: make([]float64, len(q.Options)), Method: judge.Simulated, Model: "test/1", Attempts: 1,
			Usage: judge.Usage{InputTokens: 300, OutputTokens: 1, USD: .0001},
		}
		for i, o := range q.Options {
			a.Probabilities[i] = p[o.Key]
		}
		return a, nil
	}
}

// fails answers with that error.
func fails(err error) judgeFunc {
	return func(context.Context, judge.Question) (judge.Answer, error) { return judge.Answer{}, err }
}

// nobody must not be asked.
func nobody(t *testing.T) judgeFunc {
	return func(context.Context, judge.Question) (judge.Answer, error) {
		t.Error("the judge was asked")
		return judge.Answer{}, nil
	}
}

func text(s string) *string { return &s }

// complete is an item that has everything.
func complete() evaluators.Item {
	return evaluators.Item{
		Input: text("What is the capital of Australia?"), Output: text("Canberra."), Expected: []string{"Canberra"},
		Criteria: text("Names one city."), Context: []string{"Canberra is the capital of Australia."},
		Claim: text("Canberra is a capital."), Evidence: []string{"Canberra is the capital of Australia."}, Judgeable: true,
	}
}

func evaluator(t *testing.T, name string, s evaluators.Settings) evaluators.Evaluator {
	t.Helper()
	e, err := evaluators.New(name, s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// onlyQuestion is the question of an evaluator that asks one.
func onlyQuestion(e evaluators.Evaluator, it evaluators.Item) (judge.Question, error) {
	list, err := e.Questions(it)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("%s has %d questions", e.Name(), len(list))
	}
	if err != nil {
		return judge.Question{}, err
	}
	return list[0], nil
}

func evaluate(t *testing.T, e evaluators.Evaluator, j judge.Judge, it evaluators.Item) evaluators.Result {
	t.Helper()
	r, err := e.Evaluate(t.Context(), j, it)
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, r)
	return r
}

// checkInvariants holds for every result there is.
func checkInvariants(t *testing.T, r evaluators.Result) {
	t.Helper()
	ok := r.Status == evaluators.OK
	// an evaluator of many claims has no one option
	one := ok && r.OptionNames != nil
	// a cosine is no distribution and has no confidence
	sure := ok && r.Detail["cosine"] == nil && r.Detail["noncommittal"] == nil && r.Label != "0.00"
	if (r.Score != nil) != ok || (r.Passed != nil) != ok || r.Confidence != nil && !ok || r.Confidence == nil && sure || (r.Label != "") != ok ||
		(r.Option != "") != one || (r.Probabilities != nil) != one || (r.Reason == "") != ok {
		t.Errorf("status %s with score %v, passed %v, option %q, reason %q", r.Status, r.Score, r.Passed, r.Option, r.Reason)
	}
	if ok && !(*r.Score >= 0 && *r.Score <= 1) || r.Confidence != nil && !(*r.Confidence >= 0 && *r.Confidence <= 1) {
		t.Errorf("score %v, confidence %v", *r.Score, r.Confidence)
	}
	if r.Evaluator == "" || r.Version == "" {
		t.Errorf("result without evaluator or version: %+v", r)
	}
}

// stack is a judge at the fake server with the wrappers that change outcomes.
func stack(t *testing.T, fake *testkit.FakeJudge, m judge.Method) judge.Judge {
	t.Helper()
	client := openai.NewClient(16)
	t.Cleanup(client.CloseIdleConnections)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	backend, err := openai.New(openai.Config{BaseURL: fake.URL, Model: "test-model", Method: m, Timeout: 2 * time.Second},
		openai.Deps{HTTP: client, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	retry := judge.NewRetry(backend, judge.RetryPolicy{Attempts: 3, Base: time.Millisecond, Max: time.Millisecond})
	if m != judge.Votes {
		return retry
	}
	votes, err := judge.NewVoting(retry, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	return votes
}

// caseFile opens a bank of cases; a missing one is a failure.
func caseFile(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("ASSAY_CASES")
	if dir == "" {
		root, err := testkit.RepositoryRoot()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(root, "..", "shared", "cases")
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
