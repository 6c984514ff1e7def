package sink

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// A ServerState is what a server says of itself, for whoever asks what is wrong.
type ServerState struct {
	Version string
	User    string
	Skew    time.Duration // its clock less ours; the time of the question is taken out
}

// Inspect asks the server who it is and what time it has.
func Inspect(ctx context.Context, db *DB) (ServerState, error) {
	before := time.Now()
	type row struct {
		ServerState
		now time.Time
	}
	r, err := readOne(ctx, db, query{"doctor", page, "SELECT version(), currentUser(), now64(3, 'UTC')"},
		func(scan func(...any) error) (r row, err error) { return r, scan(&r.Version, &r.User, &r.now) })
	if err != nil {
		return ServerState{}, err
	}
	took := time.Since(before)
	r.Skew = r.now.Sub(before.Add(took / 2))
	if r.Skew.Abs() < took {
		r.Skew = 0 // no more than the answer's own delay
	}
	return r.ServerState, nil
}

// A TableState is what this user may do with a table, and how long it keeps its rows.
type TableState struct {
	Table     string
	SelectErr error
	InsertErr error
	TTL       string // as the table says it; empty: for ever
}

var createsTable = regexp.MustCompile(`CREATE TABLE IF NOT EXISTS \{\{db\}\}\.(\w+)`)

// InspectTables tries the rights on every table by statements that touch no row: a list
// of grants does not tell what roles, quotas and profiles leave of them. Which tables
// there are the migrations say, as the server shows a user only those that it may touch.
func InspectTables(ctx context.Context, db *DB) ([]TableState, error) {
	type row struct{ name, engine string }
	rows, err := read(ctx, db, query{"doctor", page,
		"SELECT name, engine_full FROM system.tables WHERE database = {database:String} AND engine LIKE '%MergeTree'"},
		func(scan func(...any) error) (r row, err error) { return r, scan(&r.name, &r.engine) },
		clickhouse.Named("database", db.database))
	if err != nil {
		return nil, err
	}
	engines := make(map[string]string, len(rows))
	for _, r := range rows {
		engines[r.name] = r.engine
	}
	migrations, err := readMigrations(migrationFiles, variant)
	if err != nil {
		return nil, err
	}
	for _, m := range migrations {
		for _, found := range createsTable.FindAllStringSubmatch(m.text, -1) {
			if _, shown := engines[found[1]]; !shown {
				engines[found[1]] = ""
			}
		}
	}
	out := make([]TableState, 0, len(engines))
	for _, table := range slices.Sorted(maps.Keys(engines)) {
		t := TableState{Table: table, TTL: ttl(engines[table])}
		name := "{{db}}." + quoteName(table)
		// every column is read and none is sent: the driver cannot take in states of aggregates
		t.SelectErr = db.try(ctx, "SELECT ignore(*) FROM "+name+" LIMIT 0")
		if t.SelectErr == nil {
			t.InsertErr = db.try(ctx, "INSERT INTO "+name+" SELECT * FROM "+name+" WHERE 0")
		}
		out = append(out, t)
	}
	return out, nil
}

// JudgeLatencies is how long 99 of 100 judgements of each judge took at most, over the
// last day; judges with fewer than 20 are left out.
func JudgeLatencies(ctx context.Context, db *DB) (map[string]time.Duration, error) {
	type row struct {
		judge string
		ms    float64
	}
	rows, err := read(ctx, db, query{"doctor", page,
		"SELECT judge, quantile(0.99)(latency_ms) FROM {{db}}.evaluations WHERE ts > now() - INTERVAL 1 DAY AND latency_ms > 0 GROUP BY judge HAVING count() >= 20"},
		func(scan func(...any) error) (r row, err error) { return r, scan(&r.judge, &r.ms) })
	if err != nil {
		return nil, err
	}
	out := make(map[string]time.Duration, len(rows))
	for _, r := range rows {
		out[r.judge] = time.Duration(r.ms * float64(time.Millisecond))
	}
	return out, nil
}

// MayMigrate tries whether this user could create a table: the statement names an engine
// that does not exist, so that the server refuses it after it has looked at the rights.
func MayMigrate(ctx context.Context, db *DB) error {
	err := db.try(ctx, "CREATE TABLE {{db}}.doctor_looks (a UInt8) ENGINE = NoSuchEngine")
	switch serverCode(err) {
	case 0, codeReadonly, codeNotEnoughPrivileges:
		return err
	}
	return nil
}

func (db *DB) try(ctx context.Context, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, page.time)
	defer cancel()
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(page.settings("doctor")))
	if strings.HasPrefix(statement, "SELECT") {
		rows, err := db.conn.Query(ctx, db.sql(statement))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			return fmt.Errorf("%s: a row, want none", statement)
		}
		return rows.Err()
	}
	return db.conn.Exec(ctx, db.sql(statement))
}

// ttl cuts the clause out of an engine's description.
func ttl(engine string) string {
	_, after, ok := strings.Cut(engine, " TTL ")
	if !ok {
		return ""
	}
	before, _, _ := strings.Cut(after, " SETTINGS ")
	return before
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "\\`") + "`" }
