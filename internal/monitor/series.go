package monitor

import (
	"context"
	"fmt"
	"time"

	"assay/internal/interaction"
	"assay/sink"
)

// maxPoints bounds a chart: more than any screen has columns.
const maxPoints = 2000

// bucketReader is what a chart needs of the store; *sink.DB is one.
type bucketReader interface {
	QualityBuckets(ctx context.Context, check, version string, slice map[string]string, from, to time.Time, step time.Duration) ([]sink.QualitySums, error)
}

// Point is one step of a chart. A step without judged rows has a nil rate: a gap that
// is drawn as a gap.
type Point = Window

// Series is a slice's estimates from from to to, a point for every step, by the same
// formulas as the snapshot's windows. from is moved back to a whole step; step is at
// least a minute.
func Series(ctx context.Context, store bucketReader, check, version string, slice interaction.Slice, from, to time.Time, step time.Duration) ([]Point, error) {
	if step < time.Minute || step%time.Minute != 0 {
		return nil, fmt.Errorf("step %v: want whole minutes", step)
	}
	// buckets begin at multiples of step since 1970; Truncate counts from the year 1
	seconds := int64(step / time.Second)
	from, to = time.Unix(from.Unix()/seconds*seconds, 0).UTC(), to.UTC()
	if n := to.Sub(from) / step; !from.Before(to) || n > maxPoints {
		return nil, fmt.Errorf("%v from %s to %s: want 1 to %d steps", step, from, to, maxPoints)
	}
	buckets, err := store.QualityBuckets(ctx, check, version, slice, from, to, step)
	if err != nil {
		return nil, fmt.Errorf("quality of %s version %s on %s from %s to %s by %v: %w", check, version, slice, from, to, step, err)
	}
	byStart := make(map[int64]sink.QualitySums, len(buckets))
	for _, b := range buckets {
		byStart[b.From.Unix()] = b
	}
	var points []Point
	for start := from; start.Before(to); start = start.Add(step) {
		end := start.Add(step)
		w, err := estimateWindow(step.String(), start, end, byStart[start.Unix()], nil)
		if err != nil {
			return nil, fmt.Errorf("check %s version %s on %s: %w", check, version, slice, err)
		}
		points = append(points, w)
	}
	return points, nil
}
