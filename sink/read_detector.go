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

// SelectedSums are sums over the rows of selected interactions, and how they differ from
// the ledger, minute by minute.
type SelectedSums struct {
	SW      float64 // of the weights
	VarSum  float64 // the variance that SW should have
	N       uint64  // rows
	Missing uint64  // selected by the ledger and without a row
	Surplus uint64  // settled rows above what the ledger selected
}

// SelectedWeights returns the sums over every row of a selected interaction in [from,
// to). Each position of the log counts, as it does in the ledger. Rows inserted after
// settled, by the server's clock, are no surplus: the ledger may count them later. They
// would also hide what is wrong elsewhere, so each minute is compared by itself. FINAL
// merges in key order and so needs little memory over a whole day; a row that was
// written again has the later time.
func (db *DB) SelectedWeights(ctx context.Context, check string, from, to, settled time.Time) (SelectedSums, error) {
	return readOne(ctx, db, query{"monitor_selected_weights", watch, `
		SELECT sum(m_sw), sum(m_var), sum(m_rows),
		       toUInt64(sum(greatest(m_selected, m_rows) - m_rows)), toUInt64(sum(greatest(m_settled, m_selected) - m_selected))
		FROM (
			SELECT minute, sum(sw) AS m_sw, sum(var) AS m_var, sum(rows) AS m_rows, sum(old) AS m_settled, sum(selected) AS m_selected
			FROM (
				SELECT toStartOfMinute(ts) AS minute, sum(1 / pi) AS sw, sum((1 - pi) / (pi * pi)) AS var,
				       count() AS rows, countIf(inserted_at <= {settled:DateTime('UTC')}) AS old, toUInt64(0) AS selected
				FROM {{db}}.evaluations FINAL
				WHERE check = {check:String} AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')} AND repeat = 0
				GROUP BY minute
				UNION ALL
				SELECT minute, toFloat64(0), toFloat64(0), toUInt64(0), toUInt64(0), n_selected
				FROM {{db}}.population_1m FINAL
				WHERE check = {check:String} AND minute >= {from:DateTime('UTC')} AND minute < {to:DateTime('UTC')}
			)
			GROUP BY minute
		)`},
		func(scan func(...any) error) (s SelectedSums, err error) {
			return s, scan(&s.SW, &s.VarSum, &s.N, &s.Missing, &s.Surplus)
		},
		clickhouse.Named("check", check), atSecond("from", from), atSecond("to", to), atSecond("settled", settled))
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
