package monitor

import (
	"context"
	"time"

	"assay/sink"
)

// Store is what the monitor needs of ClickHouse; *sink.DB is one.
type Store interface {
	Now(ctx context.Context) (time.Time, error)
	LogTimes(ctx context.Context) ([]sink.LogTime, error)

	LastRollup(ctx context.Context) (time.Time, error)
	DirtyQuality(ctx context.Context, since time.Time) ([]sink.DirtyMinutes, error)
	DirtyPopulation(ctx context.Context, since time.Time) ([]sink.DirtyMinutes, error)
	RollupQuality(ctx context.Context, check string, minutes []time.Time, computedAt time.Time) error
	RollupPopulation(ctx context.Context, check string, minutes []time.Time, computedAt time.Time) error

	Quality(ctx context.Context, check string, slice map[string]string, from, to time.Time) ([]sink.QualitySums, error)
	PopulationSums(ctx context.Context, check string, from, to time.Time) ([]sink.PopulationSums, error)
	SelectedWeights(ctx context.Context, check string, from, to, settled time.Time) (sink.SelectedSums, error)

	LabelCounts(ctx context.Context, since time.Time) ([]sink.LabelCount, error)
	PlaceLabels(ctx context.Context, labelled, judged time.Time) (int, error)
	LabelQueues(ctx context.Context, since time.Time) ([]sink.LabelQueue, error)
	LabelledRows(ctx context.Context, check string, from, to time.Time) ([]sink.LabelledRow, error)

	JudgedRows(ctx context.Context, check, version string, from, to time.Time) ([]sink.JudgedRow, error)
	WorstItems(ctx context.Context, check, version string, slice map[string]string, from, to time.Time, limit int) ([]sink.WorstItem, error)
	DetectorStates(ctx context.Context, check, version string) ([]sink.DetectorState, error)
	PutDetectorStates(ctx context.Context, states []sink.DetectorState) error
	Alarms(ctx context.Context, since time.Time) ([]sink.Alarm, error)
	PutAlarms(ctx context.Context, alarms []sink.Alarm) error
}

var _ Store = (*sink.DB)(nil)
