package main

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/internal/testkit"
)

// panelRange is what a person has chosen in Grafana's time picker, and the width of a
// point that Grafana has worked out.
type panelRange struct {
	from, to time.Time
	interval time.Duration
}

// expand does what the ClickHouse plugin does to a query's macros before it sends it.
// One that it does not know stays and fails in the engine.
func (r panelRange) expand(sql string) string {
	second := func(t time.Time) string { return fmt.Sprintf("toDateTime(%d)", t.Unix()) }
	milli := func(t time.Time) string { return fmt.Sprintf("fromUnixTimestamp64Milli(%d)", t.UnixMilli()) }
	between := func(show func(time.Time) string) string {
		return "${1} >= " + show(r.from) + " AND ${1} <= " + show(r.to)
	}
	seconds := max(1, int(r.interval.Seconds()))
	for _, m := range []struct{ macro, becomes string }{
		{`\$__timeFilter_ms\((\w+)\)`, between(milli)},
		{`\$__timeFilter\((\w+)\)`, between(second)},
		{`\$__timeInterval\((\w+)\)`, fmt.Sprintf("toStartOfInterval(toDateTime(${1}), INTERVAL %d second)", seconds)},
		{`\$__interval_s\b`, fmt.Sprint(seconds)},
		{`\$__fromTime\b`, second(r.from)},
		{`\$__toTime\b`, second(r.to)},
	} {
		sql = regexp.MustCompile(m.macro).ReplaceAllString(sql, m.becomes)
	}
	return sql
}

// panelSQL asks a dashboard's query of the engine as Grafana's user does: it may read,
// and state its own limits.
func panelSQL(t *testing.T, engine *testkit.Engine, sql string, values map[string]string, r panelRange) (columns []string, rows []map[string]any) {
	t.Helper()
	conn := engine.Conn(t)
	text := r.expand(fillVariables(sql, values))
	ctx := clickhouse.Context(context.WithoutCancel(t.Context()), clickhouse.WithSettings(clickhouse.Settings{"readonly": 2}))
	found, err := conn.Query(ctx, text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	defer func() { _ = found.Close() }()
	columns = found.Columns()
	for found.Next() {
		into := make([]any, len(columns))
		for i, c := range found.ColumnTypes() {
			into[i] = reflect.New(c.ScanType()).Interface()
		}
		if err := found.Scan(into...); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		row := map[string]any{}
		for i, name := range columns {
			row[name] = plainValue(into[i])
		}
		rows = append(rows, row)
	}
	if err := found.Err(); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return columns, rows
}

// plainValue is what a scanned pointer leads to; every number is a float64, NULL is nil.
func plainValue(scanned any) any {
	v := reflect.ValueOf(scanned)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if v.CanConvert(reflect.TypeFor[float64]()) {
		return v.Convert(reflect.TypeFor[float64]()).Float()
	}
	return v.Interface()
}

// nearTo asserts that two numbers agree to 1e-9.
func nearTo(t *testing.T, what string, got any, want float64) {
	t.Helper()
	g, ok := got.(float64)
	if !ok || math.IsNaN(g) || math.Abs(g-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// queryOf is the SQL of the panel whose title begins so.
func (b grafanaBoard) queryOf(t *testing.T, title string) string {
	t.Helper()
	for _, p := range b.Panels {
		if strings.HasPrefix(p.Title, title) && len(p.Targets) == 1 && p.Targets[0].RawSQL != "" {
			return p.Targets[0].RawSQL
		}
	}
	t.Fatalf("no panel with SQL is called %s", title)
	return ""
}

// Hours without judged rows are gaps: their steps are there and hold nothing.
func TestAnHourWithoutRowsIsAGapInThePanel(t *testing.T) {
	engine := testkit.ClickHouse(t)
	engine.Exec(t, `CREATE TABLE quality_1m (check String, check_version String, minute DateTime('UTC'), slice_id UInt64, slice Map(String, String),
		n UInt64, sw Float64, sw2 Float64, swv Float64, sw2v Float64, computed_at DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY minute`)
	// at 10 eight of ten rows of weight 2 passed, at 12 all of four; an older computation
	// of the first minute is not counted
	engine.Exec(t, `INSERT INTO quality_1m VALUES
		('answers_policy', 'v', '2026-03-01 10:05:00', 1, {'app': 'support'}, 10, 20, 40, 16, 32, 2),
		('answers_policy', 'v', '2026-03-01 10:05:00', 1, {'app': 'support'}, 9, 18, 36, 4, 8, 1),
		('answers_policy', 'v', '2026-03-01 12:59:00', 1, {'app': 'support'}, 4, 8, 16, 8, 16, 1),
		('answers_policy', 'v', '2026-03-01 12:59:00', 2, {'app': 'support, old'}, 4, 8, 16, 0, 0, 1),
		('answers_policy', 'w', '2026-03-01 11:00:00', 1, {'app': 'support'}, 4, 8, 16, 0, 0, 1)`)
	all, _ := boards(t)
	at := func(hour int) time.Time { return time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC) }
	_, rows := panelSQL(t, engine, all["assay-overview.json"].queryOf(t, "Pass rate by the hour"), overviewValues("app=support"), panelRange{at(0), at(23), time.Hour})
	if len(rows) != 3 {
		t.Fatalf("%d steps, want 3: %v", len(rows), rows)
	}
	for i, row := range rows {
		if got := row["time"].(time.Time); !got.Equal(at(10 + i)) {
			t.Errorf("step %d is %s", i, got)
		}
	}
	nearTo(t, "rate at 10", rows[0]["pass rate"], .8)
	nearTo(t, "effective n at 10", rows[0]["effective n"], 9) // 10 less the one that the variance costs
	nearTo(t, "rate at 12", rows[2]["pass rate"], 1)
	nearTo(t, "upper end at 12", rows[2]["upper 95%"], 1)
	for name, v := range rows[1] {
		if name != "time" && v != nil {
			t.Errorf("the gap shows %v as %s", v, name)
		}
	}
}

// The statements that make Grafana's user are ones of ClickHouse. The embedded engine
// has no users to give them to.
func TestTheStatementsForGrafanasUserParse(t *testing.T) {
	engine := testkit.ClickHouse(t)
	n := 0
	for statement := range strings.SplitSeq(regexp.MustCompile(`(?m)^--.*$`).ReplaceAllString(deployed(t, "clickhouse/grafana-user.sql"), ""), ";") {
		if strings.TrimSpace(statement) != "" {
			engine.Exec(t, "EXPLAIN AST "+statement)
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d statements, want 2", n)
	}
}
