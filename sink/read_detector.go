package sink

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// A JudgedRow is one scored interaction as a drift detector sees it.
type JudgedRow struct {
	Time, Minute  time.Time
	InteractionID string
	Pi            float64
	Epoch         uint32
	Passed        bool
	Slice         map[string]string
	JudgeModel    string
}

// oneAnswer picks one row per interaction and minute: an answer before a failure, then
// the later one, then the lower position in the log. The rollup does the same, so
// windows and detectors count the same rows. Where it stands, the status may be asked
// only outside: inside, a failure would not be outvoted.
const oneAnswer = `
	ORDER BY check, check_version, toStartOfMinute(ts), interaction_id, repeat, evaluated_at DESC, kafka_topic, kafka_partition, kafka_offset, element, inserted_at DESC
	LIMIT 1 BY check, check_version, toStartOfMinute(ts), interaction_id, repeat`

// JudgedRows returns the scored rows of minutes in [from, to), each interaction of a
// minute once, ordered by minute and interaction.
func (db *DB) JudgedRows(ctx context.Context, check, version string, from, to time.Time) ([]JudgedRow, error) {
	return read(ctx, db, query{"monitor_judged_rows", watch, `
		SELECT ts, toStartOfMinute(ts) AS minute, interaction_id, pi, epoch, ifNull(passed, 0) = 1, slice, judge_model
		FROM (
			SELECT check, check_version, ts, interaction_id, repeat, pi, epoch, status, passed, slice, judge_model
			FROM {{db}}.evaluations
			WHERE check = {check:String} AND check_version = {version:String}
			  AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')}` + oneAnswer + `
		)
		WHERE status = 'ok' AND repeat = 0
		ORDER BY minute, interaction_id`},
		func(scan func(...any) error) (r JudgedRow, err error) {
			var passed uint8
			err = scan(&r.Time, &r.Minute, &r.InteractionID, &r.Pi, &r.Epoch, &passed, &r.Slice, &r.JudgeModel)
			r.Passed = passed == 1
			return r, err
		},
		clickhouse.Named("check", check), clickhouse.Named("version", version),
		atSecond("from", from), atSecond("to", to))
}

// SelectedWeights returns, over every row of a selected interaction in [from, to), the
// sum of weights, the variance that the sum should have, and the number of rows. Each
// position of the log counts, as it does in the ledger. FINAL merges in key order and
// so needs little memory over a whole day.
func (db *DB) SelectedWeights(ctx context.Context, check string, from, to time.Time) (sw, varSum float64, n uint64, err error) {
	type sums struct {
		sw, varSum float64
		n          uint64
	}
	s, err := readOne(ctx, db, query{"monitor_selected_weights", watch, `
		SELECT sum(1 / pi), sum((1 - pi) / (pi * pi)), count()
		FROM {{db}}.evaluations FINAL
		WHERE check = {check:String} AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')} AND repeat = 0`},
		func(scan func(...any) error) (s sums, err error) { return s, scan(&s.sw, &s.varSum, &s.n) },
		clickhouse.Named("check", check), atSecond("from", from), atSecond("to", to))
	return s.sw, s.varSum, s.n, err
}

// DetectorStates returns the newest state of each detector of a check version, one per
// slice and detector.
func (db *DB) DetectorStates(ctx context.Context, check, version string) ([]DetectorState, error) {
	return read(ctx, db, query{"monitor_detector_states", watch, `
		SELECT check, check_version, slice_id, slice, detector, minute, samples, null_rate, tolerance, threshold, w_max, r, e_value, latched,
		       baseline, toString(inputs_digest), computed_at
		FROM {{db}}.detector_state
		WHERE check = {check:String} AND check_version = {version:String}
		ORDER BY slice_id, detector, minute DESC, computed_at DESC
		LIMIT 1 BY slice_id, detector`},
		func(scan func(...any) error) (d DetectorState, err error) {
			var latched uint8
			var digest string
			err = scan(&d.Check, &d.CheckVersion, &d.SliceID, &d.Slice, &d.Detector, &d.Minute, &d.Samples, &d.NullRate, &d.Tolerance, &d.Threshold,
				&d.WMax, &d.R, &d.EValue, &latched, &d.Baseline, &digest, &d.ComputedAt)
			d.Latched = latched == 1
			copy(d.InputsDigest[:], digest)
			return d, err
		},
		clickhouse.Named("check", check), clickhouse.Named("version", version))
}
