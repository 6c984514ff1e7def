package monitor

import (
	"context"
	"fmt"
	"time"

	"assay/internal/interaction"
	"assay/sink"
)

type qualityReader interface {
	Quality(ctx context.Context, check string, slice map[string]string, from, to time.Time) ([]sink.QualitySums, error)
}

// Between is the estimate of a slice over the minutes in [from, to), by the same
// formulas as the snapshot's windows: for spans that no window has, such as the hours
// of an incident.
func Between(ctx context.Context, store qualityReader, check, version string, slice interaction.Slice, from, to time.Time) (Window, error) {
	from, to = from.UTC().Truncate(time.Minute), to.UTC().Truncate(time.Minute)
	all, err := store.Quality(ctx, check, slice, from, to)
	if err != nil {
		return Window{}, fmt.Errorf("quality of %s on %s from %s to %s: %w", check, slice, from, to, err)
	}
	w, err := estimateWindow(to.Sub(from).String(), from, to, ofVersion(all, version), nil)
	if err != nil {
		return w, fmt.Errorf("check %s version %s on %s: %w", check, version, slice, err)
	}
	return w, nil
}
