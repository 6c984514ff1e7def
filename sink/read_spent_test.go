package sink

import (
	"reflect"
	"testing"
	"time"
)

func TestWhatAJudgeWasPaidCountsEveryAttemptThatArrived(t *testing.T) {
	db := migratedDB(t)
	twice, other := evaluation(1), evaluation(2)
	twice.Attempts = 3
	other.Judge = "second"
	insertAll(t, db, evaluationsTable(), []Evaluation{twice, other})
	insertAll(t, db, evaluationsTable(), []Evaluation{twice}) // judged again after a crash
	got, err := db.Spent(t.Context(), time.Time{})
	want := map[string]Spent{"main": {USD: 90e-6, Calls: 6, Tokens: 602}, "second": {USD: 45e-6, Calls: 1, Tokens: 301}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("spent %+v (%v), want %+v", got, err, want)
	}
	now, err := db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := db.Spent(t.Context(), now.Add(time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("spent later %+v (%v), want nothing", got, err)
	}
}
