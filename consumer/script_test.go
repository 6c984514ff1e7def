package consumer

import (
	"context"
	"io"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kfake"
)

// segmentAt makes reading start at an offset.
func segmentAt(offset int64) func(context.Context, Assignment) (int64, error) {
	return func(context.Context, Assignment) (int64, error) { return offset, nil }
}

func saslOn() []kfake.Opt {
	return []kfake.Opt{kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "admin", "right"), kfake.SeedTopics(1, topic)}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
