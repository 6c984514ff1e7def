package sink

import (
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// Servers of before 26.2 know the setting by another name, which later ones still take: a
// token counts once under either, and so it does when a server is renewed under us.
func TestATokenCountsOnceUnderTheNameOfEachVersion(t *testing.T) {
	db := migratedDB(t)
	exec(t, db, "SYSTEM STOP MERGES {{db}}.evaluations") // they would put together what is stored twice
	rows := uint64(0)
	send := func(token string, want uint64) {
		t.Helper()
		for range 2 {
			if err := evaluationsTable().send(t.Context(), db, token, []Evaluation{evaluation(1), evaluation(2)}); err != nil {
				t.Fatal(err)
			}
		}
		rows += want
		stored, err := readOne(t.Context(), db, query{"test", scan, "SELECT count() FROM {{db}}.evaluations"},
			func(scan func(...any) error) (n uint64, err error) { return n, scan(&n) })
		if err != nil || stored != rows {
			t.Errorf("with %v: %d rows are stored (%v), want %d", db.dedup, stored, err, rows)
		}
	}
	f := func(v proto.Version, setting string) {
		t.Helper()
		db.dedup = dedupSettings(v)
		if _, ok := db.dedup[setting]; !ok || len(db.dedup) != 1 {
			t.Fatalf("for %s: %v, want %s alone", v, db.dedup, setting)
		}
		send(db.tokens.next(), 2)
	}
	f(proto.Version{Major: 24, Minor: 8}, "insert_deduplicate")
	f(proto.Version{Major: 26, Minor: 1, Patch: 9}, "insert_deduplicate")
	f(proto.Version{Major: 26, Minor: 2}, "deduplicate_insert")
	f(proto.Version{Major: 27}, "deduplicate_insert")
	db.dedup = clickhouse.Settings{"deduplicate_insert": "disable"} // it is the setting that does it
	send(db.tokens.next(), 4)
}
