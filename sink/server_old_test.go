package sink

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"assay/internal/testkit"
)

// A server whose protocol is many revisions older than the driver's reads our blocks as
// they were meant, with TLS and compression, in every type that it knows. It lacks
// DateTime64 and Map, and so whole tables; the columns of these types are left out.
func TestAnOldServerReadsTheBlocksOfEveryTable(t *testing.T) {
	s := testkit.StartOldClickHouse(t, testkit.ClickHouseServerOptions{})
	opts, err := serverConfig(t, s, "native", true).options()
	if err != nil {
		t.Fatal(err)
	}
	c, err := clickhouse.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	types := map[string]bool{}
	roundTrip(t, c, evaluationsTable(), types, evaluation(1), evaluation(2), failure(evaluation(3), "error", "timeout"))
	roundTrip(t, c, interactionsTable(), types,
		Text{Time: noon, InteractionID: "it's \\ odd\tid\x00", Expected: []string{"a", "", "ß"}, Flags: []string{"cut", "cut"}, Feedback: ptr(float32(.5)), Store: "excerpt", Redactions: 4},
		Text{Time: noon, InteractionID: "t2", Output: strings.Repeat("long ", 40_000), Store: "none"})
	roundTrip(t, c, populationTable(), types,
		Population{Topic: "chat", Partition: 1<<32 - 1, Block: 1<<64 - 1, Minute: noon, Decision: "selected", Pi: .25, N: 3, LogTime: noon.Add(time.Second)})
	roundTrip(t, c, deadLettersTable(), types,
		DeadLetter{Topic: "chat", LogTime: noon, FirstFailure: noon, Body: []byte("{\xfe\x00"), BodySHA256: [32]byte{0, 1, 0xff, 31: 7}, Attempts: 65535, Stub: true})
	roundTrip(t, c, checkVersionsTable(), types,
		CheckVersion{Check: "c", Version: "v", QuestionKind: "choice", OptionNames: []string{"A", "B"}, OptionScores: []*float32{ptr(float32(1)), nil}, PassLine: ptr(.5)},
		CheckVersion{Check: "c", Version: "w", QuestionKind: "none"})
	roundTrip(t, c, detectorStatesTable(), types,
		DetectorState{Check: "c", CheckVersion: "v", Detector: "esr", Minute: noon, R: []float64{1, 2.5e300}, InputsDigest: [16]byte{0, 1, 15: 0xfe}, Latched: true})
	roundTrip(t, c, alarmsTable(), types, Alarm{ID: "a", State: "open", OpenedAt: noon, UpdatedAt: noon, Summary: "fell"})
	roundTrip(t, c, labelsTable(), types, Label{Check: "c", Time: noon, InteractionID: "i", Rater: "ann", Passed: ptr(true), Pi2: .5, Origin: "sampled"})

	for _, typ := range []string{"String", "FixedString(32)", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "LowCardinality(String)",
		"Nullable(UInt8)", "Nullable(Float32)", "Nullable(Float64)", "Array(String)", "Array(Float32)", "Array(Nullable(Float32))", "Array(LowCardinality(String))",
		"DateTime('UTC')", "Enum8('full' = 1, 'excerpt' = 2, 'none' = 3)"} {
		if !types[typ] {
			t.Errorf("no column of type %s went over the wire", typ)
		}
	}
}

// roundTrip writes the columns that the server has types for as one block and holds what
// comes back against what was put in. It notes their types.
func roundTrip[R any](t *testing.T, c clickhouse.Conn, tab table[R], types map[string]bool, rows ...R) {
	t.Helper()
	ctx := t.Context()
	var columns []column[R]
	var definitions, names []string
	for _, col := range tab.columns {
		if strings.Contains(col.typ, "DateTime64") || strings.Contains(col.typ, "Map(") {
			continue
		}
		columns, types[col.typ] = append(columns, col), true
		definitions, names = append(definitions, "`"+col.name+"` "+col.typ), append(names, "`"+col.name+"`")
	}
	if err := c.Exec(ctx, fmt.Sprintf("CREATE TABLE default.%s (%s) ENGINE = MergeTree ORDER BY tuple()", tab.name, strings.Join(definitions, ", "))); err != nil {
		t.Fatal(err)
	}
	batch, err := c.PrepareBatch(ctx, fmt.Sprintf("INSERT INTO default.%s (%s)", tab.name, strings.Join(names, ", ")))
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Abort()
	want := make([][]string, len(rows))
	for i, col := range columns {
		put := &recorder{}
		if err := col.write(batch.Column(i), rows); err != nil {
			t.Fatalf("%s.%s: %v", tab.name, col.name, err)
		}
		if err := col.write(put, rows); err != nil || len(put.values) != len(rows) {
			t.Fatalf("%s.%s: %d values (%v)", tab.name, col.name, len(put.values), err)
		}
		for n, v := range put.values {
			want[n] = append(want[n], col.name+"="+shown(v))
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatalf("%s: %v", tab.name, err)
	}
	found, err := c.Query(ctx, fmt.Sprintf("SELECT %s FROM default.%s", strings.Join(names, ", "), tab.name))
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	got := [][]string{}
	for found.Next() {
		values := make([]any, len(columns))
		for i, typ := range found.ColumnTypes() {
			values[i] = reflect.New(typ.ScanType()).Interface()
		}
		if err := found.Scan(values...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for i, v := range values {
			row = append(row, columns[i].name+"="+shown(v))
		}
		got = append(got, row)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%s: read\n%.2000q\nwritten\n%.2000q", tab.name, got, want)
	}
}

// A recorder is a column that keeps what is appended to it.
type recorder struct {
	driver.BatchColumn
	values []any
}

func (r *recorder) Append(list any) error {
	v := reflect.ValueOf(list)
	for i := range v.Len() {
		r.values = append(r.values, v.Index(i).Interface())
	}
	return nil
}

func (r *recorder) AppendRow(v any) error {
	r.values = append(r.values, v)
	return nil
}

// shown is a value's own text, without the pointers around it; a missing one is nil.
func shown(v any) string {
	at := reflect.ValueOf(v)
	for at.Kind() == reflect.Pointer {
		if at.IsNil() {
			return "nil"
		}
		at = at.Elem()
	}
	switch {
	case at.Kind() == reflect.Slice:
		parts := make([]string, at.Len())
		for i := range parts {
			parts[i] = shown(at.Index(i).Interface())
		}
		return fmt.Sprintf("%q", parts)
	case at.Type() == reflect.TypeFor[time.Time]():
		return at.Interface().(time.Time).UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(at.Interface())
}
