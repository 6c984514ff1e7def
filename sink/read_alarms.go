package sink

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Alarms returns the last revision of each alarm that was opened since then or is not
// closed yet, oldest first.
func (db *DB) Alarms(ctx context.Context, since time.Time) ([]Alarm, error) {
	return read(ctx, db, query{"page_alarms", page, `
		SELECT alarm_id, check, check_version, slice_id, slice, detector, opened_at, revision, toString(state), updated_at, closed_at, by, note, summary, evidence
		FROM {{db}}.alarms FINAL
		WHERE opened_at >= {since:DateTime64(3, 'UTC')} OR state != 'closed'
		ORDER BY opened_at, alarm_id`},
		func(scan func(...any) error) (a Alarm, err error) {
			return a, scan(&a.ID, &a.Check, &a.CheckVersion, &a.SliceID, &a.Slice, &a.Detector, &a.OpenedAt, &a.Revision, &a.State,
				&a.UpdatedAt, &a.ClosedAt, &a.By, &a.Note, &a.Summary, &a.Evidence)
		}, atMilli("since", since))
}

// A WorstItem is a judged interaction that an alarm or a page shows as evidence.
type WorstItem struct {
	InteractionID string
	Time          time.Time
	Score         float64
	Passed        bool
	Option        string
	Excerpt       string // of the input, as far as privacy allows
	AnswerExcerpt string
	Slice         map[string]string
	Judge         string
	JudgeModel    string
}

// WorstItems returns the scored interactions of [from, to) with the lowest scores.
func (db *DB) WorstItems(ctx context.Context, check, version string, slice map[string]string, from, to time.Time, limit int) ([]WorstItem, error) {
	where, params := sliceFilter(slice)
	params = append(params, clickhouse.Named("check", check), clickhouse.Named("version", version),
		clickhouse.Named("limit", uint32(max(limit, 0))), atSecond("from", from), atSecond("to", to))
	return read(ctx, db, query{"page_worst_items", page, `
		SELECT interaction_id, ts, toFloat64(ifNull(score, 0)), ifNull(passed, 0) = 1, option, excerpt, answer_excerpt, slice, judge, judge_model
		FROM (
			SELECT check, check_version, ts, interaction_id, repeat, status, score, passed, option, excerpt, answer_excerpt, slice, judge, judge_model
			FROM {{db}}.evaluations
			WHERE check = {check:String} AND check_version = {version:String}
			  AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')}` + oneAnswer + `
		)
		WHERE status = 'ok' AND repeat = 0 AND ` + where + `
		ORDER BY score, interaction_id LIMIT {limit:UInt32}`},
		func(scan func(...any) error) (i WorstItem, err error) {
			var passed uint8
			err = scan(&i.InteractionID, &i.Time, &i.Score, &passed, &i.Option, &i.Excerpt, &i.AnswerExcerpt, &i.Slice, &i.Judge, &i.JudgeModel)
			i.Passed = passed == 1
			return i, err
		}, params...)
}

// CheckVersions returns every version ever stored, each as it was last described.
func (db *DB) CheckVersions(ctx context.Context) ([]CheckVersion, error) {
	return read(ctx, db, query{"page_check_versions", page, `
		SELECT check, check_version, evaluator, toString(question_kind), option_names, option_scores, pass_line, pass_options, judge, judge_fingerprint, definition, first_seen
		FROM {{db}}.check_versions FINAL ORDER BY check, first_seen, check_version`},
		func(scan func(...any) error) (c CheckVersion, err error) {
			return c, scan(&c.Check, &c.Version, &c.Evaluator, &c.QuestionKind, &c.OptionNames, &c.OptionScores, &c.PassLine, &c.PassOptions,
				&c.Judge, &c.JudgeFingerprint, &c.Definition, &c.FirstSeen)
		})
}
