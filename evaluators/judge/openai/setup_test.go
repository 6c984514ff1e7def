package openai

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"go.uber.org/goleak"

	"assay/evaluators/judge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// boolean is a yes-or-no question about an output.
func boolean(output string) judge.Question {
	return judge.Question{
		Name: "test/1", Kind: judge.Boolean, Text: "Is the block \"output\" polite?",
		Fields:  []judge.Field{{Name: "output", Value: output}},
		Options: []judge.Option{{Key: "yes", Text: "Yes, it is polite."}, {Key: "no", Text: "No, it is not."}},
	}
}

// five is a choice whose keys are letters themselves, like factuality's.
func five(output string) judge.Question {
	q := judge.Question{Name: "five/1", Kind: judge.Choice, Text: "Which?", Fields: []judge.Field{{Name: "output", Value: output}}}
	for _, key := range []string{"A", "B", "C", "D", "E"} {
		q.Options = append(q.Options, judge.Option{Key: key, Text: "The text of option " + key + " itself."})
	}
	return q
}

// inOrder shows the options as declared: letter A is the first.
func inOrder(q judge.Question) sheet {
	order := make([]int, len(q.Options))
	for i := range order {
		order[i] = i
	}
	return sheetInOrder(q, order)
}

func newJudge(t *testing.T, url string, change func(*Config)) *Judge {
	t.Helper()
	cfg := Config{BaseURL: url, APIKey: "secret-key-1234", Model: "test-model", Method: judge.Logprobs}
	if change != nil {
		change(&cfg)
	}
	client := NewClient(16)
	t.Cleanup(client.CloseIdleConnections)
	j, err := New(cfg, Deps{HTTP: client, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func structured(c *Config) { c.Method = judge.Structured }

// serve answers every request with that.
func serve(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// outcome names an error by what may be done about it.
func outcome(err error) string {
	var (
		transient *judge.TransientError
		unusable  *judge.UnusableError
		refused   *judge.RefusedError
		tooLong   *judge.TooLongError
		rejected  *judge.RejectedError
		fatal     *judge.FatalError
	)
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &transient):
		return "transient " + transient.Reason
	case errors.As(err, &unusable) && unusable.Reask:
		return "reask " + unusable.Reason
	case errors.As(err, &unusable):
		return "unusable " + unusable.Reason
	case errors.As(err, &refused):
		return "refused " + refused.Reason
	case errors.As(err, &tooLong):
		return "too long"
	case errors.As(err, &rejected):
		return "rejected"
	case errors.As(err, &fatal):
		return "fatal"
	}
	return err.Error()
}
