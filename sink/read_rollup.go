package sink

import (
	"context"
	_ "embed"
	"iter"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

//go:embed queries/rollup_quality.sql
var rollupQuality string

//go:embed queries/rollup_population.sql
var rollupPopulation string

// rollupMinutes bounds one statement: a day of 2M rows took 3 to 9 s, and its minutes
// fit a URL.
const rollupMinutes = 1440

// Now is the server's clock, the one that inserted_at is written by.
func (db *DB) Now(ctx context.Context) (time.Time, error) {
	return readOne(ctx, db, query{"monitor_now", page, "SELECT now64(3, 'UTC')"},
		func(scan func(...any) error) (t time.Time, err error) { return t, scan(&t) })
}

// A LogTime says how far the ledger of a partition has come.
type LogTime struct {
	Topic      string
	Partition  uint32
	LogTime    time.Time // newest Kafka timestamp counted
	InsertedAt time.Time // when the ledger last heard of the partition
}

// LogTimes returns the newest times per partition of the ledger. Partitions that have
// been silent for a day are left out while others are not.
func (db *DB) LogTimes(ctx context.Context) ([]LogTime, error) {
	now, err := db.Now(ctx)
	if err != nil {
		return nil, err
	}
	var found []LogTime
	for _, since := range []time.Time{now.Add(-24 * time.Hour), {}} {
		found, err = read(ctx, db, query{"monitor_log_times", watch, `
			SELECT kafka_topic, kafka_partition, max(log_time), max(inserted_at)
			FROM {{db}}.population WHERE inserted_at >= {since:DateTime('UTC')}
			GROUP BY kafka_topic, kafka_partition ORDER BY kafka_topic, kafka_partition`},
			func(scan func(...any) error) (l LogTime, err error) {
				return l, scan(&l.Topic, &l.Partition, &l.LogTime, &l.InsertedAt)
			}, atSecond("since", since))
		if err != nil || len(found) > 0 {
			break
		}
	}
	return found, err
}

// DirtyMinutes are minutes of a check that hold rows newer than their sums.
type DirtyMinutes struct {
	Check   string
	Minutes []time.Time // ascending
}

func scanDirty(scan func(...any) error) (d DirtyMinutes, err error) {
	return d, scan(&d.Check, &d.Minutes)
}

// DirtyQuality returns the minutes whose judgements or labels arrived since then. A
// label of an unknown interaction waits under 1970 and makes nothing dirty.
func (db *DB) DirtyQuality(ctx context.Context, since time.Time) ([]DirtyMinutes, error) {
	return read(ctx, db, query{"monitor_dirty_quality", watch, `
		SELECT check, arraySort(groupUniqArray(minute)) FROM (
			SELECT DISTINCT check, toStartOfMinute(ts) AS minute FROM {{db}}.evaluations WHERE inserted_at >= {since:DateTime('UTC')}
			UNION ALL
			SELECT DISTINCT check, toStartOfMinute(ts) AS minute FROM {{db}}.labels WHERE inserted_at >= {since:DateTime('UTC')} AND ts >= toDateTime64(86400, 3, 'UTC')
		) GROUP BY check ORDER BY check`}, scanDirty, atSecond("since", since))
}

// DirtyPopulation returns the minutes whose ledger changed since then. The empty check,
// which counts interactions, comes last: see LastRollup.
func (db *DB) DirtyPopulation(ctx context.Context, since time.Time) ([]DirtyMinutes, error) {
	return read(ctx, db, query{"monitor_dirty_population", watch, `
		SELECT check, arraySort(groupUniqArray(minute)) FROM (
			SELECT DISTINCT check, minute FROM {{db}}.population WHERE inserted_at >= {since:DateTime('UTC')}
		) GROUP BY check ORDER BY check = '', check`}, scanDirty, atSecond("since", since))
}

// LastRollup returns the start of the last round that was finished, or the zero time.
// A round ends with the ledger's empty check, which is dirty whenever anything was
// read, so its sums are the mark: a round that died half way leaves the mark where it
// was, and what it did is done again. RollupPopulation takes up to a day of minutes as
// one statement, which is there as a whole or not at all.
func (db *DB) LastRollup(ctx context.Context) (time.Time, error) {
	at, err := readOne(ctx, db, query{"monitor_last_rollup", watch, "SELECT max(computed_at) FROM {{db}}.population_1m WHERE check = ''"},
		func(scan func(...any) error) (t time.Time, err error) { return t, scan(&t) })
	if err != nil || at.Unix() <= 0 {
		return time.Time{}, err
	}
	return at, nil
}

// RollupQuality recomputes the sums of minutes of a check from deduplicated rows.
// A minute without raw rows (its partition has expired) keeps the sums it has.
func (db *DB) RollupQuality(ctx context.Context, check string, minutes []time.Time, computedAt time.Time) error {
	for part := range byDays(minutes) {
		err := db.insertSelect(ctx, query{"monitor_rollup_quality", watch, rollupQuality}, "quality_1m",
			clickhouse.Named("check", check), clickhouse.Named("minutes", part), atMilli("computed_at", computedAt),
			atSecond("from", part[0].Truncate(24*time.Hour)), atSecond("to", part[len(part)-1].Truncate(24*time.Hour).Add(24*time.Hour)))
		if err != nil {
			return err
		}
	}
	return nil
}

// RollupPopulation recomputes the sums of minutes of a check's ledger; the empty check
// counts interactions, and goes last in a round.
func (db *DB) RollupPopulation(ctx context.Context, check string, minutes []time.Time, computedAt time.Time) error {
	for part := range slices.Chunk(wholeMinutes(minutes), rollupMinutes) {
		err := db.insertSelect(ctx, query{"monitor_rollup_population", watch, rollupPopulation}, "population_1m",
			clickhouse.Named("check", check), clickhouse.Named("minutes", part), atMilli("computed_at", computedAt))
		if err != nil {
			return err
		}
	}
	return nil
}

// wholeMinutes returns minutes ascending, each once.
func wholeMinutes(minutes []time.Time) []time.Time {
	sorted := make([]time.Time, len(minutes))
	for i, m := range minutes {
		sorted[i] = m.UTC().Truncate(time.Minute)
	}
	slices.SortFunc(sorted, time.Time.Compare)
	return slices.CompactFunc(sorted, time.Time.Equal)
}

// byDays yields minutes in parts that one statement can take and that lie within a day
// of each other, so that from and to leave the partitions of other days out.
func byDays(minutes []time.Time) iter.Seq[[]time.Time] {
	return func(yield func([]time.Time) bool) {
		sorted := wholeMinutes(minutes)
		for len(sorted) > 0 {
			n := 1
			for n < len(sorted) && n < rollupMinutes && sorted[n].Sub(sorted[n-1]) <= 24*time.Hour {
				n++
			}
			if !yield(sorted[:n]) {
				return
			}
			sorted = sorted[n:]
		}
	}
}
