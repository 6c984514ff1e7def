package sink

import (
	"reflect"
	"testing"
	"time"
)

func TestTheRecoveryScanReturnsExactlyWhatWasAnswered(t *testing.T) {
	db := migratedDB(t)
	want := map[AnswerKey]struct{}{}
	var rows []Evaluation
	for i := range 4000 {
		e := evaluation(i)
		e.Topic = []string{"chat", "other"}[i%5/4]
		e.Element = uint16(i % 3)
		switch i % 7 {
		case 2:
			e = failure(e, "error", "timeout")
		case 3:
			e = failure(e, "shed", "budget")
		case 4:
			e = failure(e, "unscored", "unparsable")
		}
		rows = append(rows, e)
		if e.Topic == "chat" && e.Partition == 1 && e.Offset >= 1000 && e.Answered() {
			want[AnswerKey{e.Offset, e.Element, e.Check, e.CheckVersion, e.Repeat}] = struct{}{}
		}
	}
	// answered twice, and answered after a failure
	late := evaluation(1017)
	late.Element = uint16(1017 % 3)
	want[AnswerKey{1017, 1017 % 3, "refunds", "v1", 0}] = struct{}{}
	insertAll(t, db, evaluationsTable(), rows)
	insertAll(t, db, evaluationsTable(), rows[:2000])
	insertAll(t, db, evaluationsTable(), []Evaluation{late})

	now, err := db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.Answered(t.Context(), "chat", 1, 1000, now.Add(-time.Hour))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%d answered (%v), want %d", len(got), err, len(want))
	}
	got, err = db.Answered(t.Context(), "chat", 1, 1000, now.Add(time.Hour))
	if err != nil || len(got) != 0 {
		t.Errorf("%d answered since a later time (%v), want none", len(got), err)
	}
}

// Names of topics, checks and dimensions are foreign text.
func TestParametersAreDataWhateverTheyHold(t *testing.T) {
	db := migratedDB(t)
	e := evaluation(1)
	e.Check, e.Topic = `o'neil\{x:String}`, "a'b\\n\n\tc"
	e.Slice = map[string]string{`d'{y}`: `v'\`}
	insertAll(t, db, evaluationsTable(), []Evaluation{e})
	rollAll(t, db, noon.Add(time.Hour))
	q, err := db.Quality(t.Context(), e.Check, e.Slice, noon, noon.Add(time.Hour))
	if err != nil || len(q) != 1 || q[0].N != 1 {
		t.Errorf("quality %+v (%v)", q, err)
	}
	answered, err := db.Answered(t.Context(), e.Topic, 1, 0, time.Time{})
	if err != nil || len(answered) != 1 {
		t.Errorf("answered %v (%v)", answered, err)
	}
}
