package sink

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// rollAll recomputes whatever is dirty since ever.
func rollAll(t testing.TB, db *DB, at time.Time) {
	t.Helper()
	ctx := t.Context()
	quality, err := db.DirtyQuality(ctx, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range quality {
		if err := db.RollupQuality(ctx, d.Check, d.Minutes, at); err != nil {
			t.Fatal(err)
		}
	}
	population, err := db.DirtyPopulation(ctx, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range population {
		if err := db.RollupPopulation(ctx, d.Check, d.Minutes, at); err != nil {
			t.Fatal(err)
		}
	}
}

// label is one rater's answer as the labels table holds it.
type label struct {
	id       string
	ts       time.Time
	rater    string
	revision uint64
	deleted  bool
	passed   bool
	pi2      float64
}

func insertLabels(t testing.TB, db *DB, labels ...label) {
	t.Helper()
	type L = label
	tab := table[L]{
		name: "labels",
		columns: []column[L]{
			dictionary("check", func(*L) string { return "refunds" }),
			moment("ts", func(r *L) time.Time { return r.ts }),
			plain("interaction_id", "String", func(r *L) string { return r.id }),
			dictionary("rater", func(r *L) string { return r.rater }),
			plain("revision", "UInt64", func(r *L) uint64 { return r.revision }),
			plain("deleted", "UInt8", func(r *L) uint8 { return flag(r.deleted) }),
			plain("passed", "Nullable(UInt8)", func(r *L) *uint8 { return bit(&r.passed) }),
			plain("pi2", "Float64", func(r *L) float64 { return r.pi2 }),
			plain("origin", "Enum8('sampled' = 1, 'volunteered' = 2, 'imported' = 3)", func(*L) string { return "sampled" }),
		},
		validate: func(*L) error { return nil },
		label:    func(r *L) string { return r.id },
	}
	insertAll(t, db, tab, labels)
}

func TestLateRowsMakeTheirMinuteDirtyAndNoOther(t *testing.T) {
	db := migratedDB(t)
	ctx := t.Context()
	exec(t, db, "INSERT INTO {{db}}.evaluations (check, check_version, ts, interaction_id, pi, status, score, evaluated_at, inserted_at) "+
		"SELECT 'old', 'v', now64(3, 'UTC') - INTERVAL 1 DAY, 'x', 1, 'ok', 1, now64(3, 'UTC') - INTERVAL 1 DAY, now('UTC') - INTERVAL 1 DAY")
	before, err := db.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(0), evaluation(61), evaluation(62)})
	insertLabels(t, db,
		label{id: "int-000000", ts: noon.Add(5 * time.Minute), rater: "r", pi2: 1},
		label{id: "unknown", ts: time.Unix(0, 0), rater: "r", pi2: 1})
	dirty, err := db.DirtyQuality(ctx, before.Truncate(time.Second))
	want := []DirtyMinutes{{"refunds", []time.Time{noon, noon.Add(time.Minute), noon.Add(5 * time.Minute)}}}
	if err != nil || !reflect.DeepEqual(dirty, want) {
		t.Errorf("dirty %v (%v), want %v", dirty, err, want)
	}
	dirty, err = db.DirtyQuality(ctx, time.Time{})
	if err != nil || len(dirty) != 2 || dirty[0].Check != "old" {
		t.Errorf("dirty since ever %v (%v), want the old check too", dirty, err)
	}
}

// However rows, labels and rounds interleave, the sums end as if everything had been
// computed once from what is there at the end.
func TestRollupsInAnyOrderEqualARecomputation(t *testing.T) {
	db, fresh := migratedDB(t), migratedDB(t)
	random := rand.New(rand.NewPCG(3, 4))
	at := noon.Add(3 * time.Hour)
	both := func(do func(*DB)) { do(db); do(fresh) }
	for round := range 6 {
		rows := make([]Evaluation, 200)
		for i := range rows {
			e := evaluation(random.IntN(600)) // repeats, and other outcomes of the same row
			e.Score = ptr(float32(random.IntN(5)) / 4)
			e.Passed = ptr(*e.Score > 0.5)
			e.Option = []string{"yes", "no"}[random.IntN(2)]
			e.EvaluatedAt = noon.Add(time.Duration(round*1000+i) * time.Second)
			e.Pi = []float64{0.25, 0.5, 1}[int(e.Offset)%3]
			switch random.IntN(5) {
			case 0:
				e = failure(e, "error", "timeout")
			case 1:
				e = failure(e, "unscored", "unparsable")
			}
			rows[i] = e
		}
		labels := make([]label, 30)
		for i := range labels {
			e := evaluation(random.IntN(600))
			labels[i] = label{id: e.InteractionID, ts: e.Time, rater: []string{"ann", "bob"}[random.IntN(2)], revision: uint64(round*100 + i), deleted: random.IntN(6) == 0, passed: random.IntN(3) > 0, pi2: 0.5}
		}
		both(func(db *DB) {
			insertAll(t, db, evaluationsTable(), rows)
			insertLabels(t, db, labels...)
		})
		at = at.Add(10 * time.Second)
		rollAll(t, db, at)
	}
	rollAll(t, fresh, at)
	// the log loss is the one sum whose terms are not exact, so their order shows in its last bits
	const sums = "SELECT * EXCEPT (latency, computed_at, slice_id, slice) REPLACE (round(logloss_w, 9) AS logloss_w) FROM {{db}}.quality_1m FINAL ORDER BY check, check_version, minute, slice_id"
	got, want := dump(t, db, sums), dump(t, fresh, sums)
	if got != want {
		t.Errorf("sums after six rounds differ from one computation:\n%s\n%s", got, want)
	}
	if labelled := number(t, db, "SELECT sum(n_label) AS x FROM {{db}}.quality_1m FINAL"); labelled == 0 {
		t.Error("no label was counted, so the labels' sums were not compared")
	}
	if n := number(t, db, "SELECT count() AS x FROM {{db}}.quality_1m FINAL WHERE length(hist_n) != 100 OR arraySum(hist_n) != n OR length(option_names) != 2 AND n > 0"); n != 0 {
		t.Errorf("%v minutes with a wrong histogram or no option names", n)
	}
}

// dump gives a digest and the row count of a statement.
func dump(t testing.TB, db *DB, sql string) string {
	t.Helper()
	s, err := readOne(t.Context(), db, query{"test", watch, "SELECT toString(count()) || ' rows, ' || toString(groupBitXor(cityHash64(*))) FROM (" + sql + ")"},
		func(scan func(...any) error) (s string, err error) { return s, scan(&s) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestACorrectionAndARemovalOfALabelMoveItsMinute(t *testing.T) {
	db := migratedDB(t)
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	f := func(l label, what string, want float64) {
		t.Helper()
		l.id, l.ts, l.rater, l.pi2 = "int-000001", evaluation(1).Time, "ann", 0.5
		insertLabels(t, db, l)
		rollAll(t, db, noon.Add(time.Duration(l.revision)*time.Hour))
		if got := number(t, db, "SELECT "+what+" AS x FROM {{db}}.quality_1m FINAL"); got != want {
			t.Errorf("revision %d: %s = %v, want %v", l.revision, what, got, want)
		}
	}
	f(label{revision: 1, passed: true}, "by", 8) // 1 / (0.25 * 0.5)
	f(label{revision: 2, passed: false}, "by", 0)
	f(label{revision: 1, passed: true}, "fp", 1) // an old revision that comes late
	f(label{revision: 3, deleted: true}, "n_label", 0)
}

// Sums outlive the rows they came from.
func TestAMinuteWhoseRowsHaveExpiredKeepsItsSums(t *testing.T) {
	db := migratedDB(t)
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	rollAll(t, db, noon.Add(time.Hour))
	exec(t, db, "ALTER TABLE {{db}}.evaluations DROP PARTITION '"+noon.Format(time.DateOnly)+"'")
	insertLabels(t, db, label{id: "int-000001", ts: noon, rater: "ann", revision: 1, passed: true, pi2: 1})
	rollAll(t, db, noon.Add(2*time.Hour))
	sums, err := db.Quality(t.Context(), "refunds", nil, noon, noon.Add(time.Hour))
	if err != nil || len(sums) != 1 || sums[0].N != 1 {
		t.Errorf("sums %+v (%v), want the one judgement", sums, err)
	}
}

func TestALedgerCountedAgainIsCountedOnce(t *testing.T) {
	db := migratedDB(t)
	ctx := t.Context()
	cell := func(segment, upto, n uint64, decision, hash string) Population {
		p := Population{Topic: "chat", Partition: 1, Block: 0, SegmentFrom: segment, Minute: noon, Check: "refunds", CheckVersion: "v1", Decision: decision,
			Pi: 0.25, Epoch: 1, N: n, UptoOffset: upto, LogTime: noon.Add(time.Duration(upto) * time.Second), ChecksHash: hash}
		if decision == "interaction" {
			p.Check, p.CheckVersion, p.Pi, p.Epoch = "", "", 0, 0
		}
		return p
	}
	if _, found, err := db.LastSegment(ctx, "chat", 1); found || err != nil {
		t.Fatalf("an empty ledger has a segment (%v)", err)
	}
	// counted to 99, again to 49 by a zombie that is behind, to 149, then the rules change
	insertAll(t, db, populationTable(), []Population{cell(0, 99, 30, "selected", "h1"), cell(0, 99, 100, "interaction", "h1")})
	insertAll(t, db, populationTable(), []Population{cell(0, 49, 14, "selected", "h1"), cell(0, 49, 50, "interaction", "h1")})
	insertAll(t, db, populationTable(), []Population{cell(0, 149, 41, "selected", "h1"), cell(0, 149, 150, "interaction", "h1")})
	insertAll(t, db, populationTable(), []Population{cell(150, 199, 5, "selected", "h2"), cell(150, 199, 50, "interaction", "h2")})
	rollAll(t, db, noon.Add(time.Hour))
	rollAll(t, db, noon.Add(time.Hour+time.Second))
	got, err := db.PopulationSums(ctx, "refunds", noon, noon.Add(time.Minute))
	if want := []PopulationSums{{CheckVersion: "v1", Selected: 46}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("check's sums %+v (%v), want %+v", got, err, want)
	}
	got, err = db.PopulationSums(ctx, "", noon, noon.Add(time.Minute))
	if want := []PopulationSums{{Interactions: 200}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("interactions %+v (%v), want %+v", got, err, want)
	}
	segments, err := db.Segments(ctx, "chat", 1, 0)
	if err != nil || len(segments) != 2 || segments[0].UptoOffset != 149 || segments[0].ChecksHash != "h1" || segments[1].SegmentFrom != 150 || segments[1].ChecksHash != "h2" {
		t.Errorf("segments %+v (%v)", segments, err)
	}
	last, found, err := db.LastSegment(ctx, "chat", 1)
	if err != nil || !found || last != segments[1] {
		t.Errorf("last segment %+v, found %t (%v)", last, found, err)
	}
	times, err := db.LogTimes(ctx)
	if err != nil || len(times) != 1 || !times[0].LogTime.Equal(noon.Add(199*time.Second)) || times[0].InsertedAt.IsZero() {
		t.Errorf("log times %+v (%v)", times, err)
	}
	at, err := db.LastRollup(ctx)
	if err != nil || !at.Equal(noon.Add(time.Hour+time.Second)) {
		t.Errorf("last rollup %v (%v)", at, err)
	}
}

func TestNothingRolledUpIsTheZeroTime(t *testing.T) {
	db := migratedDB(t)
	if at, err := db.LastRollup(t.Context()); err != nil || !at.IsZero() {
		t.Errorf("%v (%v), want the zero time", at, err)
	}
	if times, err := db.LogTimes(t.Context()); err != nil || len(times) != 0 {
		t.Errorf("log times %v (%v) of an empty ledger", times, err)
	}
}

func TestMinutesAreCutIntoStatementsOfNearDays(t *testing.T) {
	f := func(minutes []time.Time, want ...int) {
		t.Helper()
		var got []int
		for part := range byDays(minutes) {
			got = append(got, len(part))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("parts of %v, want %v", got, want)
		}
	}
	f(nil)
	f([]time.Time{noon, noon.Add(time.Second), noon.Add(-time.Hour)}, 2)
	f([]time.Time{noon, noon.AddDate(0, -1, 0)}, 1, 1)
	long := make([]time.Time, 3000)
	for i := range long {
		long[i] = noon.Add(time.Duration(i) * time.Minute)
	}
	f(long, 1440, 1440, 120)
}
