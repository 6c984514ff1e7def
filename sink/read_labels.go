package sink

import (
	"cmp"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// labelKey is whose answer to which question a label is. The interaction's minute
// belongs to the table's key too and follows from the rest.
type labelKey struct{ check, interaction, question, rater string }

func (l Label) key() labelKey { return labelKey{l.Check, l.InteractionID, l.Question, l.Rater} }

// waits says that a label's interaction was not judged yet when it was written.
func (l Label) waits() bool { return l.Time.Unix() < 86400 }

// labelColumns are the columns of a label in the order of scanLabel.
const labelColumns = `check, ts, interaction_id, question, rater, revision, deleted, option, value, passed, pi2, toString(origin), slice_id, slice, comment, labelled_at`

func scanLabel(scan func(...any) error, more ...any) (l Label, err error) {
	var deleted uint8
	var passed *uint8
	err = scan(append([]any{&l.Check, &l.Time, &l.InteractionID, &l.Question, &l.Rater, &l.Revision, &deleted, &l.Option, &l.Value, &passed,
		&l.Pi2, &l.Origin, &l.SliceID, &l.Slice, &l.Comment, &l.LabelledAt}, more...)...)
	l.Deleted = deleted == 1
	if passed != nil {
		l.Passed = new(*passed == 1)
	}
	return l, err
}

// lastRevision keeps the newest revision of each label.
const lastRevision = `
	ORDER BY check, toStartOfMinute(ts), interaction_id, question, rater, revision DESC, inserted_at DESC
	LIMIT 1 BY check, toStartOfMinute(ts), interaction_id, question, rater`

// ofIDs is a condition on interaction_id that its bloom filter can answer. Ids go out
// as hex: the server undoes escapes twice in a list of strings, so no other form of an
// id with a tab or a backslash arrives as it left.
const ofIDs = `interaction_id IN (SELECT unhex(arrayJoin({ids:Array(String)})))`

func idsParam(ids []string) any {
	coded := make([]string, len(ids))
	for i, id := range ids {
		coded[i] = hex.EncodeToString([]byte(id))
	}
	return clickhouse.Named("ids", coded)
}

// labelsOf returns the newest revision of every label of these interactions, of all
// checks, removed ones too.
func (db *DB) labelsOf(ctx context.Context, ids []string) ([]Label, error) {
	return read(ctx, db, query{"page_labels_of", page, `
		SELECT ` + labelColumns + ` FROM {{db}}.labels WHERE ` + ofIDs + lastRevision},
		func(scan func(...any) error) (Label, error) { return scanLabel(scan) }, idsParam(ids))
}

// LabelsOf returns what people and logs say about an interaction, for whoever looks:
// labels by check and rater, and foreign scores before them.
func (db *DB) LabelsOf(ctx context.Context, interactionID string) ([]Label, error) {
	have, err := db.labelsOf(ctx, []string{interactionID})
	if err != nil {
		return nil, err
	}
	_, newest := newestLabels(have)
	found := slices.DeleteFunc(slices.Collect(maps.Values(newest)), func(l Label) bool { return l.Deleted })
	slices.SortFunc(found, func(a, b Label) int {
		return cmp.Or(cmp.Compare(a.Check, b.Check), cmp.Compare(a.Question, b.Question), cmp.Compare(a.Rater, b.Rater))
	})
	return found, nil
}

// a place is where the labels of an interaction belong: the time and slice of its
// judgement.
type place struct {
	check, interaction string
	ts                 time.Time
	sliceID            uint64
	slice              map[string]string
}

// firstRow picks one row of an interaction that is in the log more than once.
const firstRow = `(ts, kafka_topic, kafka_partition, kafka_offset, element)`

// places returns where labels of these interactions belong, for each check that has a
// row of them, whatever its status.
func (db *DB) places(ctx context.Context, ids []string) ([]place, error) {
	return read(ctx, db, query{"page_label_places", page, `
		SELECT check, interaction_id, min(ts), argMin(slice_id, ` + firstRow + `), argMin(slice, ` + firstRow + `)
		FROM {{db}}.evaluations WHERE ` + ofIDs + ` GROUP BY check, interaction_id`},
		func(scan func(...any) error) (p place, err error) {
			return p, scan(&p.check, &p.interaction, &p.ts, &p.sliceID, &p.slice)
		}, idsParam(ids))
}

// waitingLabels are the labels whose interaction was unknown, as a subquery. Foreign
// scores wait for nothing.
const waitingLabels = `SELECT *, toString(origin) AS origin_name FROM {{db}}.labels WHERE check != '' AND ts < toDateTime64(86400, 3, 'UTC')` + lastRevision

// foundLabels returns labels that wait since labelled at the earliest and whose
// interaction has got a row since then, with the place that they belong to.
func (db *DB) foundLabels(ctx context.Context, labelled, judged time.Time, limit int) ([]Label, []place, error) {
	type pair struct {
		label Label
		place place
	}
	pairs, err := read(ctx, db, query{"monitor_found_labels", watch, `
		SELECT l.check, l.ts, l.interaction_id, l.question, l.rater, l.revision, l.deleted, l.option, l.value, l.passed, l.pi2, l.origin_name, l.slice_id, l.slice, l.comment, l.labelled_at,
		       e.place_ts, e.place_id, e.place_slice
		FROM (` + waitingLabels + `) AS l
		INNER JOIN (
			SELECT check, interaction_id, min(ts) AS place_ts, argMin(slice_id, ` + firstRow + `) AS place_id, argMin(slice, ` + firstRow + `) AS place_slice
			FROM {{db}}.evaluations
			WHERE inserted_at >= {judged:DateTime('UTC')} AND interaction_id IN (SELECT interaction_id FROM {{db}}.labels WHERE check != '' AND ts < toDateTime64(86400, 3, 'UTC') AND inserted_at >= {labelled:DateTime('UTC')})
			GROUP BY check, interaction_id
		) AS e ON l.check = e.check AND l.interaction_id = e.interaction_id
		WHERE l.deleted = 0 AND l.inserted_at >= {labelled:DateTime('UTC')}
		ORDER BY l.check, l.interaction_id, l.question, l.rater LIMIT {limit:UInt32}`},
		func(scan func(...any) error) (p pair, err error) {
			p.label, err = scanLabel(scan, &p.place.ts, &p.place.sliceID, &p.place.slice)
			return p, err
		},
		atSecond("labelled", labelled), atSecond("judged", judged), clickhouse.Named("limit", uint32(limit)))
	labels, places := make([]Label, len(pairs)), make([]place, len(pairs))
	for i, p := range pairs {
		labels[i], places[i] = p.label, p.place
	}
	return labels, places, err
}

// A LabelCount is how many rows of labels a check has: revisions and removals count too,
// so it only says whether there is anything to look for.
type LabelCount struct {
	Check   string
	Waiting uint64 // written before any judgement of their interaction
	Placed  uint64 // of interactions since a time
}

// LabelCounts counts rows of labels that wait, and of interactions since then. It is
// cheap, and the other questions about labels are not.
func (db *DB) LabelCounts(ctx context.Context, since time.Time) ([]LabelCount, error) {
	return read(ctx, db, query{"monitor_label_counts", watch, `
		SELECT check, countIf(ts < toDateTime64(86400, 3, 'UTC')), countIf(ts >= toDateTime64(86400, 3, 'UTC'))
		FROM {{db}}.labels WHERE check != '' AND (ts >= {since:DateTime('UTC')} OR ts < toDateTime64(86400, 3, 'UTC'))
		GROUP BY check ORDER BY check`},
		func(scan func(...any) error) (c LabelCount, err error) {
			return c, scan(&c.Check, &c.Waiting, &c.Placed)
		},
		atSecond("since", since))
}

// A LabelQueue counts the labels of a check that belong to no judged interaction.
type LabelQueue struct {
	Check     string
	Waiting   uint64 // looked for again
	Unmatched uint64 // given up
}

// LabelQueues counts labels without a judged interaction; those written before since
// are given up.
func (db *DB) LabelQueues(ctx context.Context, since time.Time) ([]LabelQueue, error) {
	return read(ctx, db, query{"monitor_label_queues", watch, `
		SELECT check, countIf(inserted_at >= {since:DateTime('UTC')}), countIf(inserted_at < {since:DateTime('UTC')})
		FROM (` + waitingLabels + `) WHERE deleted = 0 GROUP BY check ORDER BY check`},
		func(scan func(...any) error) (q LabelQueue, err error) {
			return q, scan(&q.Check, &q.Waiting, &q.Unmatched)
		}, atSecond("since", since))
}

// A LabelledRow is a judged interaction that people have labelled.
type LabelledRow struct {
	CheckVersion  string
	Time          time.Time
	InteractionID string
	Slice         map[string]string
	Pi            float64 // of being judged
	Pi2           float64 // of being labelled, once judged
	Origin        string  // sampled or imported
	Says          float64 // the judge's probability that it passes, or what stands for it
	Passed        bool    // the judge's verdict
	People        float64 // share of the raters who passed it
}

// LabelledRows returns the judged rows of [from, to) that carry labels, one per check
// version, interaction and origin, in a fixed order. Volunteered labels are left out:
// whoever volunteers picks what to label, and no average stands on that.
//
// What the judge says of passing is, where options pass, their probability: the score of
// a choice is that of the chosen option alone. Elsewhere it is the score.
func (db *DB) LabelledRows(ctx context.Context, check string, from, to time.Time) ([]LabelledRow, error) {
	return read(ctx, db, query{"monitor_labelled_rows", watch, `
		WITH (
			SELECT CAST((groupArray(toString(check_version)), groupArray(pass_options)), 'Map(String, Array(String))')
			FROM {{db}}.check_versions FINAL WHERE check = {check:String}
		) AS passing
		SELECT e.check_version, e.ts, e.interaction_id, e.slice, e.pi, l.pi2, l.origin_name, 
		       if(notEmpty(passing[toString(e.check_version)]),
		          least(1, arraySum((name, p) -> if(has(passing[toString(e.check_version)], toString(name)), toFloat64(p), 0), e.option_names, e.option_probs)),
		          toFloat64(assumeNotNull(e.score))), assumeNotNull(e.passed), l.people
		FROM (
			SELECT check, check_version, ts, interaction_id, repeat, pi, status, score, passed, option_names, option_probs, slice
			FROM {{db}}.evaluations
			WHERE check = {check:String} AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')}
			  AND (toStartOfMinute(ts), interaction_id) IN (
				SELECT toStartOfMinute(ts), interaction_id FROM {{db}}.labels
				WHERE check = {check:String} AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')} AND question = '')` + oneAnswer + `
		) AS e
		INNER JOIN (
			SELECT toStartOfMinute(ts) AS minute, interaction_id, origin_name, avg(assumeNotNull(passed)) AS people, min(pi2) AS pi2
			FROM (
				SELECT *, toString(origin) AS origin_name FROM {{db}}.labels
				WHERE check = {check:String} AND ts >= {from:DateTime('UTC')} AND ts < {to:DateTime('UTC')} AND question = ''` + lastRevision + `
			)
			WHERE deleted = 0 AND isNotNull(passed) AND origin_name IN ('sampled', 'imported')
			GROUP BY minute, interaction_id, origin_name
		) AS l ON toStartOfMinute(e.ts) = l.minute AND e.interaction_id = l.interaction_id
		WHERE e.status = 'ok' AND e.repeat = 0 AND isNotNull(e.score) AND isNotNull(e.passed)
		ORDER BY e.check_version, e.ts, e.interaction_id, l.origin_name`},
		func(scan func(...any) error) (r LabelledRow, err error) {
			var passed uint8
			err = scan(&r.CheckVersion, &r.Time, &r.InteractionID, &r.Slice, &r.Pi, &r.Pi2, &r.Origin, &r.Says, &passed, &r.People)
			r.Passed = passed == 1
			return r, err
		},
		clickhouse.Named("check", check), atSecond("from", from), atSecond("to", to))
}
