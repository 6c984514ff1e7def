package sink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column/orderedmap"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A table says everything the writer must know of one: columns in order, what makes a
// row impossible, which partition it falls into, how large it is and how to name it.
type table[R any] struct {
	name     string
	columns  []column[R]
	validate func(*R) error
	part     func(*R) int64 // the partition: rows of too many of them need several blocks
	size     func(*R) int   // bytes, roughly
	label    func(*R) string
}

// A column is one column of an insert. The type is the table's own: over HTTP the
// driver would otherwise ask DESCRIBE TABLE before every block. A test compares the
// types with the migrated tables.
type column[R any] struct {
	name, typ string
	write     func(to driver.BatchColumn, rows []R) error
}

// plain is a column whose driver type takes a whole slice at once.
func plain[R, T any](name, typ string, of func(*R) T) column[R] {
	return column[R]{name, typ, func(to driver.BatchColumn, rows []R) error {
		values := make([]T, len(rows))
		for i := range rows {
			values[i] = of(&rows[i])
		}
		return to.Append(values)
	}}
}

// each is a column that is faster row by row: for dictionaries, arrays and maps the
// driver takes a slice apart by reflection.
func each[R, T any](name, typ string, of func(*R) T) column[R] {
	return column[R]{name, typ, func(to driver.BatchColumn, rows []R) error {
		for i := range rows {
			if err := to.AppendRow(of(&rows[i])); err != nil {
				return err
			}
		}
		return nil
	}}
}

func dictionary[R any](name string, of func(*R) string) column[R] {
	return each(name, "LowCardinality(String)", of)
}

// dictionaryMap writes keys in order, so that one row has one form.
func dictionaryMap[R any](name, typ string, of func(*R) map[string]string) column[R] {
	return each(name, typ, func(r *R) *orderedmap.Map[string, string] { return orderedmap.FromMap(of(r)) })
}

// moment is a DateTime64(3) column; a zero time is stored as 1970-01-01, because the
// driver has no form for year 1.
func moment[R any](name string, of func(*R) time.Time) column[R] {
	return plain(name, "DateTime64(3, 'UTC')", func(r *R) time.Time { return notBeforeEpoch(of(r)) })
}

func second[R any](name string, of func(*R) time.Time) column[R] {
	return plain(name, "DateTime('UTC')", func(r *R) time.Time { return notBeforeEpoch(of(r)) })
}

func notBeforeEpoch(t time.Time) time.Time {
	if t.Before(time.Unix(0, 0)) {
		return time.Unix(0, 0).UTC()
	}
	return t
}

// bit turns a verdict into what a Nullable(UInt8) takes.
func bit(b *bool) *uint8 {
	if b == nil {
		return nil
	}
	v := flag(*b)
	return &v
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// day and month are partitions as numbers.
func day(t time.Time) int64 { return t.Unix() / 86400 }

func month(t time.Time) int64 { t = t.UTC(); return int64(t.Year())*12 + int64(t.Month()) }

// insertTimeout bounds one attempt; after it nobody knows whether the rows are stored.
const insertTimeout = readTimeout

// insertSettings are on every insert, whatever the server's defaults are today:
// async inserts and deduplication have changed theirs several times.
func (db *DB) insertSettings(table, token string) clickhouse.Settings {
	settings := clickhouse.Settings{
		"async_insert":               0,
		"insert_deduplication_token": token,
		"log_comment":                "assay:insert_" + table,
	}
	maps.Copy(settings, db.dedup)
	return settings
}

// statement is the INSERT with its column list.
func (t table[R]) statement(database string) string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return "INSERT INTO " + database + "." + t.name + " (" + strings.Join(names, ", ") + ")"
}

// send puts rows into the table as one block under one token. Prepare, fill and send
// stand together: a prepared batch holds a pooled connection.
func (t table[R]) send(ctx context.Context, db *DB, token string, rows []R) error {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	types := make([]clickhouse.ColumnNameAndType, len(t.columns))
	for i, c := range t.columns {
		types[i] = clickhouse.ColumnNameAndType{Name: c.name, Type: c.typ}
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(db.insertSettings(t.name, token)), clickhouse.WithColumnNamesAndTypes(types))
	batch, err := db.conn.PrepareBatch(ctx, t.statement(db.database))
	if err != nil {
		return err
	}
	defer batch.Abort()
	for i, c := range t.columns {
		if err := c.write(batch.Column(i), rows); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	// The driver's HTTP batch sends an empty body, and reports success, when it
	// cannot encode the block; uneven columns are the one way to get there.
	for i, c := range batch.Columns() {
		if c.Rows() != len(rows) {
			return fmt.Errorf("column %s holds %d values for %d rows", t.columns[i].name, c.Rows(), len(rows))
		}
	}
	return batch.Send()
}

// put validates and inserts rows of a small table once, without retry: its callers run
// again by themselves.
func put[R any](ctx context.Context, db *DB, t table[R], rows []R) error {
	if len(rows) == 0 {
		return nil
	}
	var errs []error
	for i := range rows {
		if err := t.validate(&rows[i]); err != nil {
			errs = append(errs, &PoisonError{Table: t.name, Row: t.label(&rows[i]), Err: err})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	token := db.tokens.next()
	if err := t.send(ctx, db, token, rows); err != nil {
		return &InsertError{Table: t.name, Token: token, Rows: len(rows), Class: classify(err), Err: err}
	}
	return nil
}

// textSize sums what a map and lists of strings weigh.
func textSize(m map[string]string, lists ...[]string) int {
	n := 0
	for k, v := range m {
		n += len(k) + len(v)
	}
	for _, list := range lists {
		for _, s := range list {
			n += len(s)
		}
	}
	return n
}

// oneOf lists the values of an enum for a message.
func oneOf(what, value string, known map[string]bool) error {
	if known[value] {
		return nil
	}
	return fmt.Errorf("%s %q: want one of %s", what, value, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}

func set(values ...string) map[string]bool {
	m := make(map[string]bool, len(values))
	for _, v := range values {
		m[v] = true
	}
	return m
}

// storable reports a time that every column of time can hold; minutes are DateTime,
// which ends in 2106.
func storable(what string, t time.Time) error {
	if t.Unix() < 0 || t.Unix() > 4_291_747_199 {
		return fmt.Errorf("%s %s is outside 1970 to 2105", what, t.UTC().Format(time.RFC3339))
	}
	return nil
}
