package sink

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// caps bound what one statement may take from the server, whose own defaults may be
// unlimited.
type caps struct {
	memory  uint64
	time    time.Duration
	threads int
}

// page, watch and scan are the three sizes of questions: a person waits for the
// answer, the monitor's round, and walks over many rows.
var (
	page  = caps{memory: 1 << 30, time: 10 * time.Second, threads: 2}
	watch = caps{memory: 4 << 30, time: 60 * time.Second, threads: 2}
	scan  = caps{memory: 2 << 30, time: 60 * time.Second, threads: 2}
)

func (c caps) settings(name string) clickhouse.Settings {
	return clickhouse.Settings{
		"max_memory_usage":   c.memory,
		"max_execution_time": int(c.time.Seconds()),
		"max_threads":        c.threads,
		"log_comment":        "assay:" + name,
	}
}

// A query is a named statement; the name is its log_comment, for system.query_log and
// for the embedded engine, which picks a connection by it.
type query struct {
	name string
	caps caps
	sql  string // with {{db}} for the database, {name:Type} for parameters
}

// read runs a query and collects its rows.
func read[T any](ctx context.Context, db *DB, q query, row func(scan func(...any) error) (T, error), params ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, q.caps.time)
	defer cancel()
	settings := q.caps.settings(q.name)
	settings["readonly"] = 2 // 1 would refuse the caps themselves
	rows, err := db.conn.Query(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), db.sql(q.sql), params...)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", q.name, err)
	}
	defer rows.Close()
	var found []T
	for rows.Next() {
		r, err := row(func(to ...any) error { return inUTC(to, rows.Scan(to...)) })
		if err != nil {
			return nil, fmt.Errorf("query %s, row %d: %w", q.name, len(found)+1, err)
		}
		found = append(found, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("query %s after %d rows: %w", q.name, len(found), err)
	}
	return found, nil
}

// inUTC puts scanned times into UTC: the driver gives some columns the server's zone,
// whatever zone their type names. The moment is right, but it prints and compares as
// another value.
func inUTC(scanned []any, err error) error {
	for _, to := range scanned {
		switch t := to.(type) {
		case *time.Time:
			*t = t.UTC()
		case **time.Time:
			if *t != nil {
				**t = (*t).UTC()
			}
		case *[]time.Time:
			for i := range *t {
				(*t)[i] = (*t)[i].UTC()
			}
		}
	}
	return err
}

// readOne is read for statements that answer with exactly one row.
func readOne[T any](ctx context.Context, db *DB, q query, row func(scan func(...any) error) (T, error), params ...any) (T, error) {
	found, err := read(ctx, db, q, row, params...)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("query %s: %d rows, want 1", q.name, len(found))
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}

// insertSelect runs an INSERT SELECT under its caps, with a token of its own: it is
// never repeated, and the same token would drop a later, different result.
func (db *DB) insertSelect(ctx context.Context, q query, table string, params ...any) error {
	ctx, cancel := context.WithTimeout(ctx, q.caps.time)
	defer cancel()
	settings := q.caps.settings(q.name)
	for k, v := range db.insertSettings(table, db.tokens.next()) {
		if k != "log_comment" {
			settings[k] = v
		}
	}
	settings["join_use_nulls"] = 0
	if err := db.conn.Exec(clickhouse.Context(ctx, clickhouse.WithSettings(settings)), db.sql(q.sql), params...); err != nil {
		return fmt.Errorf("query %s: %w", q.name, err)
	}
	return nil
}

// A time goes out as seconds since 1970, which mean the same in every server's zone. A
// time nobody has set means from the beginning; that is the second day of 1970, since
// the server takes a number of fewer than five digits for a year.

func atSecond(name string, t time.Time) driver.NamedDateValue {
	return clickhouse.DateNamed(name, fromTheBeginning(t), clickhouse.Seconds)
}

func atMilli(name string, t time.Time) driver.NamedDateValue {
	return clickhouse.DateNamed(name, fromTheBeginning(t), clickhouse.MilliSeconds)
}

func fromTheBeginning(t time.Time) time.Time {
	if first := time.Unix(86400, 0); t.Before(first) {
		return first
	}
	return t
}

// sliceFilter is the condition that a row's full slice lies in the given one, and its
// parameters. The empty slice holds everything.
func sliceFilter(slice map[string]string) (condition string, params []any) {
	condition = "1"
	for n, dim := range sortedKeys(slice) {
		condition += fmt.Sprintf(" AND slice[{dim%d:String}] = {value%d:String}", n, n)
		params = append(params, clickhouse.Named(fmt.Sprintf("dim%d", n), dim), clickhouse.Named(fmt.Sprintf("value%d", n), slice[dim]))
	}
	return condition, params
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
