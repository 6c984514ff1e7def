package sink

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

func passLabel(id, rater string, passed bool) LabelChange {
	c := LabelChange{Check: "refunds", InteractionID: id, Rater: rater, Option: "no", Value: ptr(float32(0)), Passed: ptr(passed), Pi2: 1, Origin: "imported"}
	if passed {
		c.Option, c.Value = "yes", ptr(float32(1))
	}
	return c
}

// write stores changes and compares what became of them, as "stored waits".
func write(t *testing.T, db *DB, changes []LabelChange, want ...string) {
	t.Helper()
	outcomes, err := db.WriteLabels(t.Context(), changes, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(outcomes))
	for i, o := range outcomes {
		if got[i] = o.Outcome; o.Waits {
			got[i] += " waits"
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("outcomes %q, want %q", got, want)
	}
}

// labelled is what people said of each judged interaction, as estimates see it.
func labelled(t *testing.T, db *DB) map[string]float64 {
	t.Helper()
	rows, err := db.LabelledRows(t.Context(), "refunds", noon.Add(-time.Hour), noon.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	people := map[string]float64{}
	for _, r := range rows {
		people[r.InteractionID+" "+r.Origin] = r.People
	}
	return people
}

func expectLabelled(t *testing.T, db *DB, want map[string]float64) {
	t.Helper()
	if got := labelled(t, db); !reflect.DeepEqual(got, want) {
		t.Errorf("labelled %v, want %v", got, want)
	}
}

func TestALabelTakesTimeAndSliceOfItsInteraction(t *testing.T) {
	db := migratedDB(t)
	rows := []Evaluation{evaluation(1), evaluation(2), failure(evaluation(3), "error", "timeout")}
	insertAll(t, db, evaluationsTable(), rows)
	write(t, db, []LabelChange{passLabel("int-000001", "ann", true), passLabel("int-000003", "ann", true)}, "stored", "stored")
	labels, err := db.labelsOf(t.Context(), []string{"int-000001"})
	if err != nil || len(labels) != 1 {
		t.Fatalf("labels %+v (%v)", labels, err)
	}
	l := labels[0]
	if !l.Time.Equal(rows[0].Time) || l.SliceID != rows[0].SliceID || !reflect.DeepEqual(l.Slice, rows[0].Slice) || l.Option != "yes" || *l.Value != 1 || !*l.Passed || l.Origin != "imported" {
		t.Errorf("label %+v of row %+v", l, rows[0])
	}
	got, err := db.LabelledRows(t.Context(), "refunds", noon, noon.Add(time.Hour))
	want := []LabelledRow{{CheckVersion: "v1", Time: rows[0].Time, InteractionID: "int-000001", Slice: rows[0].Slice, Pi: .25, Pi2: 1, Origin: "imported", Says: .75, Passed: true, People: 1}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("rows %+v (%v), want %+v: a failed judgement has no score to compare", got, err, want)
	}
}

// The options B and C pass: what the judge says of passing is what it gave to both.
func TestOfAChoiceTheJudgeSaysTheProbabilityOfThePassingOptions(t *testing.T) {
	db := migratedDB(t)
	choice := evaluation(1)
	choice.Option, choice.OptionNames, choice.OptionProbs, choice.Score = "C", []string{"A", "B", "C"}, []float32{.25, .25, .5}, ptr(float32(1))
	line := evaluation(2)
	line.CheckVersion = "v2"
	insertAll(t, db, evaluationsTable(), []Evaluation{choice, line})
	insertAll(t, db, checkVersionsTable(), []CheckVersion{
		{Check: "refunds", Version: "v1", QuestionKind: "choice", OptionNames: choice.OptionNames, PassOptions: []string{"B", "C"}},
		{Check: "refunds", Version: "v2", QuestionKind: "boolean"},
	})
	write(t, db, []LabelChange{passLabel("int-000001", "ann", true), passLabel("int-000002", "ann", true)}, "stored", "stored")
	rows, err := db.LabelledRows(t.Context(), "refunds", noon, noon.Add(time.Hour))
	if err != nil || len(rows) != 2 || rows[0].Says != .75 || rows[1].Says != .75 || rows[1].CheckVersion != "v2" {
		t.Errorf("rows %+v (%v), want .25 + .5 and the score .75", rows, err)
	}
}

func TestTheSameLabelTwiceIsOneAndACorrectionAndARemovalCount(t *testing.T) {
	db := migratedDB(t)
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	id := "int-000001"
	yes, no, gone := passLabel(id, "ann", true), passLabel(id, "ann", false), LabelChange{Check: "refunds", InteractionID: id, Rater: "ann", Removed: true}
	write(t, db, []LabelChange{gone}, "unchanged")
	write(t, db, []LabelChange{yes, yes, no, yes}, "stored", "unchanged", "corrected", "corrected")
	n := number(t, db, "SELECT count() AS x FROM {{db}}.labels")
	write(t, db, []LabelChange{yes}, "unchanged")
	if again := number(t, db, "SELECT count() AS x FROM {{db}}.labels"); again != n {
		t.Errorf("%v rows after the same label again, want %v: its minute would be computed again", again, n)
	}
	expectLabelled(t, db, map[string]float64{id + " imported": 1})
	write(t, db, []LabelChange{no, passLabel(id, "bob", true)}, "corrected", "stored")
	expectLabelled(t, db, map[string]float64{id + " imported": .5})
	write(t, db, []LabelChange{gone}, "removed")
	expectLabelled(t, db, map[string]float64{id + " imported": 1})
	write(t, db, []LabelChange{gone, no}, "unchanged", "stored")
	expectLabelled(t, db, map[string]float64{id + " imported": .5})
}

func TestALabelBeforeItsInteractionWaitsForIt(t *testing.T) {
	db := migratedDB(t)
	ctx := t.Context()
	yes, no := passLabel("int-000001", "ann", true), passLabel("int-000001", "ann", false)
	never := passLabel("int-999999", "ann", true)
	write(t, db, []LabelChange{yes, never}, "stored waits", "stored waits")
	write(t, db, []LabelChange{yes}, "unchanged waits")
	if n, err := db.PlaceLabels(ctx, time.Time{}, time.Time{}); n != 0 || err != nil {
		t.Errorf("%d labels placed (%v) without a judgement", n, err)
	}
	expectQueue := func(want ...LabelQueue) {
		t.Helper()
		if got, err := db.LabelQueues(ctx, time.Now().Add(-time.Hour)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("queues %+v (%v), want %+v", got, err, want)
		}
	}
	expectQueue(LabelQueue{"refunds", 2, 0})
	if got, err := db.LabelCounts(ctx, noon); err != nil || !reflect.DeepEqual(got, []LabelCount{{"refunds", 2, 0}}) {
		t.Errorf("counts %+v (%v)", got, err)
	}
	if got, err := db.LabelQueues(ctx, time.Now().Add(time.Hour)); err != nil || !reflect.DeepEqual(got, []LabelQueue{{"refunds", 0, 2}}) {
		t.Errorf("queues of old labels %+v (%v)", got, err)
	}
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	for want := range []int{1, 0} {
		if n, err := db.PlaceLabels(ctx, time.Time{}, time.Time{}); n != 1-want || err != nil {
			t.Errorf("%d labels placed (%v), want %d", n, err, 1-want)
		}
	}
	expectQueue(LabelQueue{"refunds", 1, 0})
	if got, err := db.LabelCounts(ctx, noon); err != nil || len(got) != 1 || got[0].Placed != 1 {
		t.Errorf("counts %+v (%v)", got, err)
	}
	if got, err := db.LabelCounts(ctx, noon.Add(24*time.Hour)); err != nil || len(got) != 1 || got[0].Placed != 0 || got[0].Waiting == 0 {
		t.Errorf("counts of later interactions %+v (%v)", got, err)
	}
	expectLabelled(t, db, map[string]float64{"int-000001 imported": 1})
	write(t, db, []LabelChange{yes}, "unchanged")
	write(t, db, []LabelChange{no}, "corrected")
	expectLabelled(t, db, map[string]float64{"int-000001 imported": 0})
}

// The label waits, the judgement comes, and somebody corrects or removes the label
// before the monitor has moved it.
func TestACorrectionOvertakesAWaitingLabel(t *testing.T) {
	db := migratedDB(t)
	write(t, db, []LabelChange{passLabel("int-000001", "ann", true), passLabel("int-000002", "ann", true), passLabel("int-000003", "ann", true)},
		"stored waits", "stored waits", "stored waits")
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1), evaluation(2), evaluation(3)})
	write(t, db, []LabelChange{passLabel("int-000001", "ann", false), {Check: "refunds", InteractionID: "int-000002", Rater: "ann", Removed: true}, passLabel("int-000003", "ann", true)},
		"corrected", "removed", "unchanged")
	if n, err := db.PlaceLabels(t.Context(), time.Time{}, time.Time{}); n != 3 || err != nil {
		t.Errorf("%d labels placed (%v), want 3", n, err)
	}
	expectLabelled(t, db, map[string]float64{"int-000001 imported": 0, "int-000003 imported": 1})
}

func TestALabelStaysInItsMinuteWhenAnEarlierRowOfItsInteractionComes(t *testing.T) {
	db := migratedDB(t)
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	write(t, db, []LabelChange{passLabel("int-000001", "ann", true)}, "stored")
	earlier := evaluation(1)
	earlier.Time, earlier.Offset = earlier.Time.Add(-10*time.Minute), 7
	insertAll(t, db, evaluationsTable(), []Evaluation{earlier})
	write(t, db, []LabelChange{passLabel("int-000001", "ann", false)}, "corrected")
	rows, err := db.LabelledRows(t.Context(), "refunds", noon.Add(-time.Hour), noon.Add(time.Hour))
	if err != nil || len(rows) != 1 || rows[0].People != 0 || !rows[0].Time.Equal(evaluation(1).Time) {
		t.Errorf("rows %+v (%v), want the one label, corrected", rows, err)
	}
}

func TestVolunteeredLabelsAreStoredAndNotAveraged(t *testing.T) {
	db := migratedDB(t)
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	volunteered, sampled := passLabel("int-000001", "user", false), passLabel("int-000001", "bob", true)
	volunteered.Origin, sampled.Origin, sampled.Pi2 = "volunteered", "sampled", .5
	write(t, db, []LabelChange{volunteered, sampled, passLabel("int-000001", "file", false)}, "stored", "stored", "stored")
	expectLabelled(t, db, map[string]float64{"int-000001 sampled": 1, "int-000001 imported": 0})
	rollAll(t, db, noon.Add(time.Hour))
	if got := number(t, db, "SELECT sum(by) AS x FROM {{db}}.quality_1m FINAL"); got != 8 {
		t.Errorf("weight of passing labels in the sums %v, want the sampled one's 8", got)
	}
}

func TestIDsOfAnyBytesFindTheirInteractions(t *testing.T) {
	db := migratedDB(t)
	var rows []Evaluation
	var changes []LabelChange
	var want []string
	for i, id := range []string{"a'b", `back\slash`, "tab\tand\nline", `\N`, "üñí☃", "", "comma,]", `\x41`} {
		if id == "" {
			continue
		}
		e := evaluation(i)
		e.InteractionID = id
		rows = append(rows, e)
		changes = append(changes, passLabel(id, "o'neil\t\\", true))
		want = append(want, "stored")
	}
	insertAll(t, db, evaluationsTable(), rows)
	write(t, db, changes, want...)
	if got := labelled(t, db); len(got) != len(rows) {
		t.Errorf("%d of %d labels joined their interactions: %v", len(got), len(rows), got)
	}
}

func TestManyLabelsGoInSeveralLookups(t *testing.T) {
	db := migratedDB(t)
	const n = 2*labelChunk + 7
	rows, changes := make([]Evaluation, n), make([]LabelChange, n)
	for i := range n {
		rows[i] = evaluation(i)
		changes[i] = passLabel(fmt.Sprintf("int-%06d", i), "ann", i%2 == 0)
	}
	insertAll(t, db, evaluationsTable(), rows)
	outcomes, err := db.WriteLabels(t.Context(), changes, time.Now())
	if err != nil || len(outcomes) != n {
		t.Fatalf("%d outcomes (%v)", len(outcomes), err)
	}
	if got := labelled(t, db); len(got) != n {
		t.Errorf("%d interactions labelled, want %d", len(got), n)
	}
}

func TestTheLongestIDsFitALookup(t *testing.T) {
	db := migratedDB(t)
	const n = labelChunkBytes/MaxLabelID + 3
	rows, changes := make([]Evaluation, n), make([]LabelChange, n)
	for i := range n {
		rows[i] = evaluation(i)
		rows[i].InteractionID = fmt.Sprintf("%0*d", MaxLabelID, i)
		changes[i] = passLabel(rows[i].InteractionID, "ann", true)
	}
	insertAll(t, db, evaluationsTable(), rows)
	if _, err := db.WriteLabels(t.Context(), changes, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := labelled(t, db); len(got) != n {
		t.Errorf("%d interactions labelled, want %d", len(got), n)
	}
}

func TestImpossibleLabelsAreRefusedWhole(t *testing.T) {
	db := migratedDB(t)
	f := func(change func(*LabelChange)) {
		t.Helper()
		c := passLabel("int-000001", "ann", true)
		change(&c)
		if _, err := db.WriteLabels(t.Context(), []LabelChange{passLabel("int-000002", "ann", true), c}, time.Now()); err == nil {
			t.Errorf("stored %+v", c)
		}
	}
	f(func(c *LabelChange) { c.Rater = "" })
	f(func(c *LabelChange) { c.Passed = nil })
	f(func(c *LabelChange) { c.Pi2 = 0 })
	f(func(c *LabelChange) { c.Origin = "guessed" })
	if n := number(t, db, "SELECT count() AS x FROM {{db}}.labels"); n != 0 {
		t.Errorf("%v labels stored beside an impossible one", n)
	}
}
