package chdb_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"assay/internal/testkit"
)

func ptr[T any](v T) *T { return &v }

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

// samples are values of every column type in the tables, and of some that
// queries return. A value goes in as it stands here and has to come back equal.
var samples = map[string][]any{
	"UInt8":                               {uint8(0), uint8(math.MaxUint8)},
	"UInt16":                              {uint16(0), uint16(math.MaxUint16)},
	"UInt32":                              {uint32(0), uint32(math.MaxUint32)},
	"UInt64":                              {uint64(0), uint64(math.MaxUint64)},
	"Int8":                                {int8(math.MinInt8), int8(math.MaxInt8)},
	"Int32":                               {int32(math.MinInt32), int32(math.MaxInt32)},
	"Int64":                               {int64(math.MinInt64), int64(math.MaxInt64)},
	"Float32":                             {float32(0.1), float32(-1e30), float32(math.Inf(1))},
	"Float64":                             {0.1, -1e300, math.SmallestNonzeroFloat64},
	"Bool":                                {true, false},
	"String":                              {"", "plain", "tab\tline\nquote'back\\slash\x00zero", "déjà 日本 🙂", strings.Repeat("long ", 40_000)},
	"FixedString(16)":                     {"0123456789abcdef", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"},
	"FixedString(32)":                     {strings.Repeat("\xff\x00", 16)},
	"FixedString(64)":                     {strings.Repeat("0123456789abcdef", 4)},
	"UUID":                                {uuid.MustParse("0195d7a2-7f3c-7b11-9d55-0123456789ab")},
	"Date":                                {at("2026-03-01T00:00:00Z"), at("1970-01-01T00:00:00Z")},
	"DateTime('UTC')":                     {at("1970-01-01T00:00:00Z"), at("2026-03-01T12:34:56Z"), at("2100-01-01T00:00:00Z")},
	"DateTime64(3)":                       {at("2026-03-01T12:34:56.789Z")},
	"DateTime64(3, 'UTC')":                {at("1970-01-01T00:00:00Z"), at("2026-03-01T12:34:56.789Z"), at("1969-12-31T23:59:59.999Z")},
	"Nullable(UInt8)":                     {ptr(uint8(1)), (*uint8)(nil), ptr(uint8(0))},
	"Nullable(Float32)":                   {(*float32)(nil), ptr(float32(0.25))},
	"Nullable(Float64)":                   {ptr(0.5), (*float64)(nil)},
	"Nullable(DateTime64(3, 'UTC'))":      {ptr(at("2026-03-01T12:34:56.789Z")), (*time.Time)(nil)},
	"LowCardinality(String)":              {"", "a", "b", "a"},
	"LowCardinality(Nullable(String))":    {ptr("a"), (*string)(nil), ptr("")},
	"Array(String)":                       {[]string{}, []string{"a", "", "b'\n"}},
	"Array(LowCardinality(String))":       {[]string{"yes", "no"}, []string{}, []string{"yes"}},
	"Array(Float32)":                      {[]float32{0.25, 0.75}, []float32{}},
	"Array(Float64)":                      {[]float64{}, []float64{1, 2.5, -3}},
	"Array(UInt32)":                       {[]uint32{1, 2, 3}, []uint32{}},
	"Array(Nullable(Float32))":            {[]*float32{ptr(float32(1)), nil}, []*float32{}},
	"Map(String, String)":                 {map[string]string{}, map[string]string{"k": "v", "": "empty"}},
	"Map(LowCardinality(String), String)": {map[string]string{"app": "support", "model": "m1"}, map[string]string{}},
	"Tuple(String, UInt64)":               {[]any{"a", uint64(7)}},
}

// enums are tested by their names; each table has its own.
func enumNames(columnType string) []any {
	var names []any
	for _, part := range strings.Split(columnType[strings.Index(columnType, "(")+1:len(columnType)-1], ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(part), " = ")
		names = append(names, strings.Trim(name, "'"))
	}
	return names
}

func TestEveryColumnTypeComesBackAsItWent(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	types := maps.Clone(samples)
	for _, columnType := range []string{"Enum8('ok' = 1, 'unscored' = 2, 'not_applicable' = 3)", "Enum8('none' = 0, 'logprobs' = -1)"} {
		types[columnType] = enumNames(columnType)
	}
	for i, columnType := range slices.Sorted(maps.Keys(types)) {
		table := fmt.Sprintf("type_%d", i)
		e.Exec(t, fmt.Sprintf("CREATE TABLE %s (n UInt32, v %s) ENGINE = MergeTree ORDER BY n", table, columnType))
		roundTrip(t, conn, table, columnType, types[columnType])
	}
}

func roundTrip(t *testing.T, conn clickhouse.Conn, table, columnType string, values []any) {
	t.Helper()
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO "+table)
	if err != nil {
		t.Fatalf("%s: %v", columnType, err)
	}
	for n, v := range values {
		if err := batch.Append(uint32(n), v); err != nil {
			t.Fatalf("%s: %v", columnType, err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatalf("%s: %v", columnType, err)
	}
	rows, err := conn.Query(t.Context(), "SELECT v FROM "+table+" ORDER BY n")
	if err != nil {
		t.Errorf("%s: %v", columnType, err)
		return
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for ; rows.Next(); n++ {
		got := reflect.New(reflect.TypeOf(values[0]))
		if err := rows.Scan(got.Interface()); err != nil {
			t.Errorf("%s: %v", columnType, err)
			return
		}
		if want := values[n]; !equal(got.Elem().Interface(), want) {
			t.Errorf("%s: row %d is %#v, want %#v", columnType, n, got.Elem().Interface(), want)
		}
	}
	if err := rows.Err(); err != nil || n != len(values) {
		t.Errorf("%s: %d rows and error %v, want %d rows", columnType, n, err, len(values))
	}
}

// equal compares times by the moment and the rest by content.
func equal(a, b any) bool {
	switch x := a.(type) {
	case time.Time:
		return x.Equal(b.(time.Time))
	case *time.Time:
		y := b.(*time.Time)
		return x == nil && y == nil || x != nil && y != nil && x.Equal(*y)
	}
	return reflect.DeepEqual(a, b)
}

// TestNoTypeOfTheTablesIsLeftOut creates the real tables: a column type that a
// migration brings in has to be in the list above.
func TestNoTypeOfTheTablesIsLeftOut(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	for _, sql := range migrations(t, e.Database) {
		e.Exec(t, sql)
	}
	rows, err := conn.Query(t.Context(), "SELECT DISTINCT type FROM system.columns WHERE database = currentDatabase() ORDER BY type")
	must(t, err)
	defer func() { _ = rows.Close() }()
	seen := 0
	for rows.Next() {
		var columnType string
		must(t, rows.Scan(&columnType))
		seen++
		switch {
		case strings.HasPrefix(columnType, "Enum8("):
			table := fmt.Sprintf("enum_%d", seen)
			e.Exec(t, fmt.Sprintf("CREATE TABLE %s (n UInt32, v %s) ENGINE = Memory", table, columnType))
			roundTrip(t, conn, table, columnType, enumNames(columnType))
		case strings.HasPrefix(columnType, "AggregateFunction("):
			// Written by INSERT SELECT, read finalised: the next test.
		case samples[columnType] == nil:
			t.Errorf("column type %s is in the tables and not in this test", columnType)
		}
	}
	must(t, rows.Err())
	if seen < 20 {
		t.Errorf("%d types seen: are these the tables?", seen)
	}
}

func migrations(t *testing.T, database string) []string {
	t.Helper()
	root, err := testkit.RepositoryRoot()
	must(t, err)
	files, err := filepath.Glob(filepath.Join(root, "sink", "migrations", "*.single.sql"))
	must(t, err)
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		var code strings.Builder
		for line := range strings.Lines(strings.ReplaceAll(string(text), "{{db}}", database)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "--") {
				code.WriteString(line)
			}
		}
		for sql := range strings.SplitSeq(code.String(), ";") {
			if strings.TrimSpace(sql) != "" {
				all = append(all, sql)
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("no migrations found")
	}
	return all
}

func TestAStateIsReadFinalisedAndNeverSilentlyEmpty(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	e.Exec(t, "CREATE TABLE latencies (k UInt8, latency AggregateFunction(quantileTDigest(0.5), UInt32)) ENGINE = MergeTree ORDER BY k")
	e.Exec(t, "INSERT INTO latencies SELECT 1, quantileTDigestState(0.5)(toUInt32(number)) FROM numbers(101)")
	if got := one[float32](t, conn, t.Context(), "SELECT finalizeAggregation(latency) FROM latencies"); got != 50 {
		t.Errorf("median %v, want 50", got)
	}
	// The driver cannot read a state. An answer it cannot read has to be an error:
	// an empty result would look like no data.
	rows, err := conn.Query(t.Context(), "SELECT latency FROM latencies")
	if err == nil {
		_ = rows.Close()
		t.Fatal("a state column was answered without an error")
	}
	wantCode(t, err, 33, 500)
}

// TestAnEmptyResultIsNoRowsAndNoError also says that such a result has no column
// names: the format sends none without a row, on a server as here.
func TestAnEmptyResultIsNoRowsAndNoError(t *testing.T) {
	conn := testkit.ClickHouse(t).Conn(t)
	const columns = "SELECT toLowCardinality('x') AS a, map('k', 'v') AS b, [toLowCardinality('y')] AS c, toNullable(1) AS d FROM numbers(3) "
	for want, where := range map[int]string{0: "WHERE number > 5", 3: ""} {
		rows, err := conn.Query(t.Context(), columns+where)
		must(t, err)
		got := 0
		for rows.Next() {
			got++
		}
		must(t, rows.Err())
		must(t, rows.Close())
		if got != want || (got > 0) != slices.Equal(rows.Columns(), []string{"a", "b", "c", "d"}) {
			t.Errorf("%s: %d rows with columns %v, want %d rows", where, got, rows.Columns(), want)
		}
	}
}

func TestManyBlocksArriveWholeAndInOrder(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	e.Exec(t, "CREATE TABLE many (n UInt64, k LowCardinality(String), m Map(LowCardinality(String), String), p Nullable(Float64), a Array(Float64)) ENGINE = MergeTree ORDER BY n")
	const total = 200_000
	for from := 0; from < total; from += 50_000 {
		batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO many")
		must(t, err)
		for n := from; n < from+50_000; n++ {
			var p *float64
			if n%3 != 0 {
				p = ptr(float64(n) / 7)
			}
			must(t, batch.Append(uint64(n), fmt.Sprint("k", n%1000), map[string]string{"n": fmt.Sprint(n)}, p, []float64{float64(n), 1}))
		}
		must(t, batch.Send())
	}
	rows, err := conn.Query(clickhouse.Context(t.Context(), clickhouse.WithSettings(clickhouse.Settings{"max_block_size": 1009})),
		"SELECT n, k, m, p, a FROM many ORDER BY n")
	must(t, err)
	defer func() { _ = rows.Close() }()
	want := uint64(0)
	for ; rows.Next(); want++ {
		var n uint64
		var k string
		var m map[string]string
		var p *float64
		var a []float64
		must(t, rows.Scan(&n, &k, &m, &p, &a))
		if n != want || k != fmt.Sprint("k", n%1000) || m["n"] != fmt.Sprint(n) || a[0] != float64(n) || (p == nil) != (n%3 == 0) || p != nil && *p != float64(n)/7 {
			t.Fatalf("row %d is %d %s %v %v %v", want, n, k, m, p, a)
		}
	}
	must(t, rows.Err())
	if want != total {
		t.Errorf("%d rows, want %d", want, total)
	}
}
