package sink

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"assay/internal/testkit"
)

// changed returns the shipped migrations with one more and one replaced.
func changed(t *testing.T, files map[string]string) fs.FS {
	t.Helper()
	shipped, err := fs.ReadFile(migrationFiles, "migrations/0001_tables.single.sql")
	if err != nil {
		t.Fatal(err)
	}
	all := fstest.MapFS{"migrations/0001_tables.single.sql": {Data: shipped}}
	for name, text := range files {
		all["migrations/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

func TestMigrationsRunOnceAndAgainChangeNothing(t *testing.T) {
	db := openDB(t)
	err := Verify(t.Context(), db)
	if err == nil || !strings.Contains(err.Error(), "assay migrate") || !strings.Contains(err.Error(), "0001_tables") {
		t.Fatalf("an empty database verifies with %v; want the command and what is missing", err)
	}
	for want := 1; want >= 0; want-- {
		applied, err := Migrate(t.Context(), db, db.log)
		if err != nil || applied != want {
			t.Fatalf("%d migrations applied (%v), want %d", applied, err, want)
		}
	}
	if err := Verify(t.Context(), db); err != nil {
		t.Error(err)
	}
	if missing, err := PendingMigrations(t.Context(), db); err != nil || len(missing) != 0 {
		t.Errorf("pending %v (%v), want none", missing, err)
	}
	if n := number(t, db, "SELECT count() AS x FROM system.tables WHERE database = '{{db}}'"); n != 13 {
		t.Errorf("%v tables, want 13", n)
	}
}

// Tables that stand already, as after a crash before the record was written, are no
// obstacle.
func TestAHalfAppliedMigrationIsFinished(t *testing.T) {
	db := migratedDB(t)
	exec(t, db, "TRUNCATE TABLE {{db}}.migrations")
	exec(t, db, "DROP TABLE {{db}}.dead_letters SYNC")
	if applied, err := Migrate(t.Context(), db, db.log); err != nil || applied != 1 {
		t.Fatalf("%d applied (%v), want 1", applied, err)
	}
	if _, err := db.RecentDeadLetters(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

func TestMigrationsOnlyGoForward(t *testing.T) {
	db := migratedDB(t)
	later := changed(t, map[string]string{"0002_note.single.sql": "ALTER TABLE {{db}}.alarms ADD COLUMN IF NOT EXISTS ticket String;"})
	if applied, err := migrate(t.Context(), db, db.log, later); err != nil || applied != 1 {
		t.Fatalf("%d applied (%v), want the new one", applied, err)
	}
	if _, err := Migrate(t.Context(), db, db.log); err == nil || !strings.Contains(err.Error(), "newer assay") {
		t.Errorf("a binary without 0002 got %v; want a refusal that names the newer one", err)
	}
}

func TestAChangedMigrationIsRefused(t *testing.T) {
	db := migratedDB(t)
	edited := changed(t, map[string]string{"0001_tables.single.sql": "CREATE DATABASE IF NOT EXISTS {{db}};"})
	applied, err := migrate(t.Context(), db, db.log, edited)
	if applied != 0 || err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("%d applied (%v), want a refusal over the checksum", applied, err)
	}
}

func TestTwoMigrationsAtOnceAreHarmless(t *testing.T) {
	db := openDB(t)
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := Migrate(context.WithoutCancel(t.Context()), db, db.log)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := Verify(t.Context(), db); err != nil {
		t.Error(err)
	}
}

func TestABrokenMigrationSaysWhichStatement(t *testing.T) {
	db := migratedDB(t)
	broken := changed(t, map[string]string{"0002_broken.single.sql": "SELECT 1;\nALTER TABLE {{db}}.nowhere ADD COLUMN x String;"})
	_, err := migrate(t.Context(), db, db.log, broken)
	if err == nil || !strings.Contains(err.Error(), "0002_broken, statement 2") {
		t.Errorf("got %v; want the file and the statement", err)
	}
}

func TestStatementsEndAtSemicolonsOutsideOfText(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		if got := statements(text); !slices.Equal(got, want) {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
	f("")
	f("-- only a comment; nothing else")
	f("SELECT 1; SELECT 2", "SELECT 1", "SELECT 2")
	f("SELECT ';' ; SELECT '\\';' -- a; b\n, 3;", "SELECT ';'", "SELECT '\\';' \n, 3")
	f("SELECT 1 - 2;", "SELECT 1 - 2")
}

// The columns that the writer names, and the types it encodes them as, are those of
// the migrated tables: over HTTP nobody else compares them.
func TestColumnsOfInsertsAreThoseOfTheTables(t *testing.T) {
	db := migratedDB(t)
	// filled in by the server
	byServer := map[string][]string{
		"evaluations": {"inserted_at"}, "interactions": {"stored_at"}, "population": {"inserted_at"},
		"dead_letters": {"replayed_at", "inserted_at"}, "check_versions": {"updated_at"}, "labels": {"inserted_at"},
	}
	f := func(name string, got [][2]string) {
		t.Helper()
		type column struct{ name, typ, kind string }
		all, err := read(t.Context(), db, query{"test", page, "SELECT name, type, default_kind FROM system.columns WHERE database = '{{db}}' AND table = '" + name + "' ORDER BY position"},
			func(scan func(...any) error) (c column, err error) { return c, scan(&c.name, &c.typ, &c.kind) })
		if err != nil {
			t.Fatal(err)
		}
		var want [][2]string
		for _, c := range all {
			if c.kind != "ALIAS" && c.kind != "MATERIALIZED" && !slices.Contains(byServer[name], c.name) {
				want = append(want, [2]string{c.name, c.typ})
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the writer has\n%v\nthe table has\n%v", name, got, want)
		}
	}
	f("evaluations", described(evaluationsTable()))
	f("interactions", described(interactionsTable()))
	f("population", described(populationTable()))
	f("dead_letters", described(deadLettersTable()))
	f("check_versions", described(checkVersionsTable()))
	f("detector_state", described(detectorStatesTable()))
	f("alarms", described(alarmsTable()))
	f("labels", described(labelsTable()))
}

func described[R any](t table[R]) [][2]string {
	var d [][2]string
	for _, c := range t.columns {
		d = append(d, [2]string{c.name, c.typ})
	}
	return d
}

func TestOpenSaysWhereItTriedAndWhy(t *testing.T) {
	f := func(cfg ConnConfig, want ...string) {
		t.Helper()
		db, err := Open(t.Context(), cfg, nil)
		if err == nil {
			db.Close()
			t.Fatalf("%+v opened", cfg)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v\nlacks %q", err, w)
			}
		}
	}
	// nobody listens there
	f(ConnConfig{Addr: "127.0.0.1:1", Protocol: "http", Database: "assay"}, "127.0.0.1:1", "refused")
	f(ConnConfig{Addr: "127.0.0.1:1", Protocol: "native", Database: "assay"}, "127.0.0.1:1", "refused")
	// all faults at once, by the user's names
	f(ConnConfig{Addr: "nowhere", Protocol: "grpc", Database: "a-b"},
		"ASSAY_CLICKHOUSE_ADDR", "ASSAY_CLICKHOUSE_PROTOCOL", "ASSAY_CLICKHOUSE_DATABASE")
	e := testkit.ClickHouse(t)
	wrong := connConfig(e)
	wrong.Token = "not the token"
	f(wrong, e.Addr, "516")
}
