package judge

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// judgeFunc is a judge in a test's own words.
type judgeFunc func(ctx context.Context, q Question) (Answer, error)

func (f judgeFunc) Ask(ctx context.Context, q Question) (Answer, error) { return f(ctx, q) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func question(output string) Question {
	return Question{
		Name: "test/1", Kind: Boolean, Text: "Is it so?",
		Fields:  []Field{{Name: "output", Value: output}},
		Options: []Option{{Key: "yes", Text: "Yes."}, {Key: "no", Text: "No."}},
	}
}

func yes() Answer {
	return Answer{
		Probabilities: []float64{.9, .1}, Method: Logprobs, Model: "m", Attempts: 1,
		Usage: Usage{InputTokens: 100, OutputTokens: 1},
	}
}

func throttled(after time.Duration) error {
	return &TransientError{Reason: ReasonThrottled, RetryAfter: after, Err: errors.New("slow down"), Spent: Spent{Attempts: 1}}
}
