package sink

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// QualitySums are sums of quality_1m over a slice and a span of time: everything an
// estimate needs. W is the weight 1/pi, V the verdict, S the score.
type QualitySums struct {
	CheckVersion string
	Slice        map[string]string // as asked; nil is everything
	From         time.Time         // start of the bucket, or of the span

	N, X                                          uint64 // judged, passed
	SW, SW2, SWV, SW2V, SWS, SW2S, SWS2, SW2S2    float64
	NOK, NUnscored, NNotApplicable, NShed, NError uint64
	SWUnscored, SWShed, SWError                   float64
	PiMin                                         float64
	OptionNames                                   []string
	OptionW, ChosenW                              []float64
	LastMinute                                    time.Time
	InputTokens, OutputTokens, CostNanoUSD        uint64
}

// qualityColumns are the sums, in the order of scanQuality. The names of sums differ
// from those of columns: an alias that hides a column makes a sum of a sum (code 184).
const qualityColumns = `
	sum(n), sum(x), sum(sw), sum(sw2), sum(swv), sum(sw2v), sum(sws), sum(sw2s), sum(sws2), sum(sw2s2),
	sum(n_ok), sum(n_unscored), sum(n_not_applicable), sum(n_shed), sum(n_error),
	sum(sw_unscored), sum(sw_shed), sum(sw_error), min(pi_min),
	anyIf(option_names, notEmpty(option_names)), sumForEach(option_w), sumForEach(chosen_w),
	max(minute), sum(input_tokens), sum(output_tokens), sum(cost_nano_usd)`

func scanQuality(slice map[string]string) func(scan func(...any) error) (QualitySums, error) {
	return func(scan func(...any) error) (q QualitySums, err error) {
		q.Slice = maps.Clone(slice)
		return q, scan(&q.CheckVersion, &q.From,
			&q.N, &q.X, &q.SW, &q.SW2, &q.SWV, &q.SW2V, &q.SWS, &q.SW2S, &q.SWS2, &q.SW2S2,
			&q.NOK, &q.NUnscored, &q.NNotApplicable, &q.NShed, &q.NError,
			&q.SWUnscored, &q.SWShed, &q.SWError, &q.PiMin,
			&q.OptionNames, &q.OptionW, &q.ChosenW,
			&q.LastMinute, &q.InputTokens, &q.OutputTokens, &q.CostNanoUSD)
	}
}

// Quality returns the sums of minutes in [from, to), one value per check version; the
// version with the newest minute comes last.
func (db *DB) Quality(ctx context.Context, check string, slice map[string]string, from, to time.Time) ([]QualitySums, error) {
	where, params := sliceFilter(slice)
	params = append(params, clickhouse.Named("check", check), atSecond("from", from), atSecond("to", to))
	found, err := read(ctx, db, query{"monitor_quality", watch, `
		SELECT check_version, {from:DateTime('UTC')},` + qualityColumns + `
		FROM {{db}}.quality_1m FINAL
		WHERE check = {check:String} AND minute >= {from:DateTime('UTC')} AND minute < {to:DateTime('UTC')} AND ` + where + `
		GROUP BY check_version`}, scanQuality(slice), params...)
	slices.SortFunc(found, func(a, b QualitySums) int {
		return cmp.Or(a.LastMinute.Compare(b.LastMinute), cmp.Compare(a.CheckVersion, b.CheckVersion))
	})
	return found, err
}

// QualityBuckets is Quality of one version, cut into steps of whole minutes that begin
// at multiples of step since 1970. Steps without rows are left out.
func (db *DB) QualityBuckets(ctx context.Context, check, version string, slice map[string]string, from, to time.Time, step time.Duration) ([]QualitySums, error) {
	where, params := sliceFilter(slice)
	params = append(params, clickhouse.Named("check", check), clickhouse.Named("version", version),
		clickhouse.Named("step", uint32(max(step, time.Minute).Truncate(time.Minute).Seconds())), atSecond("from", from), atSecond("to", to))
	return read(ctx, db, query{"page_quality_buckets", page, `
		SELECT check_version, toDateTime(intDiv(toUInt32(minute), {step:UInt32}) * {step:UInt32}, 'UTC') AS bucket,` + qualityColumns + `
		FROM {{db}}.quality_1m FINAL
		WHERE check = {check:String} AND check_version = {version:String} AND minute >= {from:DateTime('UTC')} AND minute < {to:DateTime('UTC')} AND ` + where + `
		GROUP BY check_version, bucket ORDER BY bucket`}, scanQuality(slice), params...)
}

// PopulationSums count what happened to interactions of one stratum.
type PopulationSums struct {
	CheckVersion, Stratum                         string
	Filtered, NotApplicable, SampledOut, Selected uint64
	Interactions, NoInteraction, DeadLettered     uint64
}

// PopulationSums returns the ledger's sums over minutes in [from, to), per check version
// and stratum. The empty check counts interactions, records without one, and dead letters.
func (db *DB) PopulationSums(ctx context.Context, check string, from, to time.Time) ([]PopulationSums, error) {
	return read(ctx, db, query{"monitor_population", watch, `
		SELECT check_version, stratum, sum(n_filtered), sum(n_not_applicable), sum(n_sampled_out), sum(n_selected),
		       sum(n_interactions), sum(n_no_interaction), sum(n_dead_lettered)
		FROM {{db}}.population_1m FINAL
		WHERE check = {check:String} AND minute >= {from:DateTime('UTC')} AND minute < {to:DateTime('UTC')}
		GROUP BY check_version, stratum ORDER BY check_version, stratum`},
		func(scan func(...any) error) (p PopulationSums, err error) {
			return p, scan(&p.CheckVersion, &p.Stratum, &p.Filtered, &p.NotApplicable, &p.SampledOut, &p.Selected,
				&p.Interactions, &p.NoInteraction, &p.DeadLettered)
		},
		clickhouse.Named("check", check), atSecond("from", from), atSecond("to", to))
}
