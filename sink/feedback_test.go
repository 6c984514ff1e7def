package sink

import (
	"testing"
	"time"
)

// fromLog is a label as a log says it, at a place of the log.
func fromLog(id string, passed bool, revision uint64) LabelChange {
	return LabelChange{Check: "refunds", InteractionID: id, Rater: "feedback:thumbs", Passed: ptr(passed), Pi2: 1, Origin: "volunteered",
		At: noon, Revision: revision}
}

// A log is read again after a crash, and by a worker that does not know that it was
// replaced: what it said earlier must not win over what it said later.
func TestALabelOfALogIsReplacedByLaterOnesOnly(t *testing.T) {
	db := migratedDB(t)
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	say := func(revision uint64, passed bool) LabelChange { return fromLog("int-000001", passed, revision) }
	write(t, db, []LabelChange{say(10, true)}, "stored")
	write(t, db, []LabelChange{say(10, true)}, "unchanged")
	write(t, db, []LabelChange{say(20, false)}, "corrected")
	write(t, db, []LabelChange{say(10, true), say(20, false)}, "unchanged", "unchanged")
	// two in one place: the second wins, now and when they are read again
	write(t, db, []LabelChange{say(30, true), say(30, false)}, "corrected", "corrected")
	write(t, db, []LabelChange{say(30, true), say(30, false)}, "unchanged", "unchanged")
	labels, err := db.labelsOf(t.Context(), []string{"int-000001"})
	if err != nil || len(labels) != 1 || *labels[0].Passed || !labels[0].LabelledAt.Equal(noon) || labels[0].waits() {
		t.Errorf("labels %+v (%v)", labels, err)
	}
	// whoever volunteers picks what to label: no average stands on that
	expectLabelled(t, db, map[string]float64{})
}

func TestForeignScoresAreKeptAndWaitForNothing(t *testing.T) {
	db := migratedDB(t)
	foreign := LabelChange{Question: "tone", InteractionID: "int-000001", Rater: "feedback:tone", Value: ptr(float32(3)), Option: "warm",
		Pi2: 1, Origin: "volunteered", At: noon, Revision: 5}
	if _, err := db.WriteLabels(t.Context(), []LabelChange{foreign}, time.Now()); err != nil {
		t.Fatal(err)
	}
	write(t, db, []LabelChange{foreign}, "unchanged waits")
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	labels, err := db.labelsOf(t.Context(), []string{"int-000001"})
	if err != nil || len(labels) != 1 || labels[0].Check != "" || labels[0].Question != "tone" || *labels[0].Value != 3 || labels[0].Option != "warm" || labels[0].Passed != nil {
		t.Fatalf("labels %+v (%v)", labels, err)
	}
	if counts, err := db.LabelCounts(t.Context(), noon); err != nil || len(counts) != 0 {
		t.Errorf("counted with the checks' labels: %+v (%v)", counts, err)
	}
	if queues, err := db.LabelQueues(t.Context(), noon); err != nil || len(queues) != 0 {
		t.Errorf("waits: %+v (%v)", queues, err)
	}
	if n, err := db.PlaceLabels(t.Context(), noon.Add(-time.Hour), noon.Add(-time.Hour)); err != nil || n != 0 {
		t.Errorf("%d moved (%v)", n, err)
	}
	// nameless, and no check's either
	foreign.Question = ""
	if _, err := db.WriteLabels(t.Context(), []LabelChange{foreign}, time.Now()); err == nil {
		t.Error("a label of nothing was stored")
	}
}

// Whoever looks at an interaction sees each label once, at its newest, and none that was
// taken back.
func TestLabelsOfAnInteractionAreTheNewestAndThoseThatStand(t *testing.T) {
	db := migratedDB(t)
	id := "int-000001"
	foreign := LabelChange{Question: "tone", InteractionID: id, Rater: "feedback:tone", Option: "warm", Pi2: 1, Origin: "volunteered", At: noon, Revision: 5}
	write(t, db, []LabelChange{passLabel(id, "ann", true), passLabel(id, "bob", true), fromLog(id, true, 10), passLabel("int-000002", "ann", true), foreign},
		"stored waits", "stored waits", "stored waits", "stored waits", "stored waits")
	write(t, db, []LabelChange{fromLog(id, false, 20), {Check: "refunds", InteractionID: id, Rater: "bob", Removed: true}}, "corrected waits", "removed")
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(1)})
	expect := func() {
		t.Helper()
		labels, err := db.LabelsOf(t.Context(), id)
		if err != nil || len(labels) != 3 {
			t.Fatalf("labels %+v (%v), want 3", labels, err)
		}
		if labels[0].Question != "tone" || labels[1].Rater != "ann" || !*labels[1].Passed || labels[2].Rater != "feedback:thumbs" || *labels[2].Passed {
			t.Errorf("labels %+v", labels)
		}
	}
	expect()
	if n, err := db.PlaceLabels(t.Context(), noon.Add(-time.Hour), noon.Add(-time.Hour)); err != nil || n != 2 {
		t.Fatalf("%d moved (%v), want 2", n, err)
	}
	expect()
}

// A restart has to know whether it must look for halves, and where.
func TestSegmentsSayWhetherTheyCountRecordsThatWereKept(t *testing.T) {
	db := migratedDB(t)
	row := func(block, from uint64, check, decision, reason string) Population {
		return Population{Topic: "chat", Partition: 1, Block: block, SegmentFrom: from, Minute: noon, Check: check, Decision: decision, Reason: reason,
			N: 1, UptoOffset: from + 9, LogTime: noon, ChecksHash: "h"}
	}
	insertAll(t, db, populationTable(), []Population{
		row(1, 32768, "", "interaction", ""),
		row(1, 32768, "refunds", "not_applicable", ReasonKept), // no record
		row(1, 40000, "", "no_interaction", ReasonKept),
		row(1, 40000, "", "interaction", ""),
		row(2, 65536, "", "interaction", ReasonKept),
	})
	segments, err := db.Segments(t.Context(), "chat", 1, 0)
	if err != nil || len(segments) != 3 || segments[0].Kept || !segments[1].Kept || !segments[2].Kept {
		t.Errorf("segments %+v (%v), want the second and third to have kept some", segments, err)
	}
}
