package testkit

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(Engines(m)) }

func TestEachTestHasADatabaseOfItsOwnOnOneEngine(t *testing.T) {
	a, b := ClickHouse(t), ClickHouse(t)
	if a.Addr != b.Addr {
		t.Errorf("two engines, %s and %s, in one test process", a.Addr, b.Addr)
	}
	a.Exec(t, "CREATE TABLE numbers (n UInt64) ENGINE = MergeTree ORDER BY n")
	b.Exec(t, "CREATE TABLE numbers (n UInt64) ENGINE = MergeTree ORDER BY n")
	batch, err := a.Conn(t).PrepareBatch(t.Context(), "INSERT INTO numbers")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(3) {
		if err := batch.Append(n); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		e    *Engine
		want uint64
	}{{a, 3}, {b, 0}} {
		var got uint64
		if err := c.e.Conn(t).QueryRow(t.Context(), "SELECT count() FROM numbers").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("%s holds %d rows, want %d", c.e.Database, got, c.want)
		}
	}
}
