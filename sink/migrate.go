package sink

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// variant names the files that fit one server without replication.
const variant = "single"

// A migration is one file of migrations/. Its checksum is of the text as shipped,
// before the database's name is put in.
type migration struct {
	version  uint32
	name     string
	checksum string
	text     string
}

var migrationName = regexp.MustCompile(`^(\d{4})_([a-z0-9_]+)\.([a-z]+)\.sql$`)

// readMigrations returns the files of a variant in order.
func readMigrations(files fs.FS, variant string) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var found []migration
	for _, path := range names {
		m := migrationName.FindStringSubmatch(strings.TrimPrefix(path, "migrations/"))
		if m == nil {
			return nil, fmt.Errorf("%s: want migrations/NNNN_name.variant.sql", path)
		}
		if m[3] != variant {
			continue
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		version, _ := strconv.ParseUint(m[1], 10, 32)
		sum := sha256.Sum256(text)
		found = append(found, migration{uint32(version), m[2], hex.EncodeToString(sum[:]), string(text)})
	}
	slices.SortFunc(found, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	return found, nil
}

// Migrate brings the database to this binary's tables and returns how many migrations
// it ran. It only goes forward; running it again, or twice at once, is harmless.
func Migrate(ctx context.Context, db *DB, log *slog.Logger) (applied int, err error) {
	return migrate(ctx, db, log, migrationFiles)
}

func migrate(ctx context.Context, db *DB, log *slog.Logger, files fs.FS) (applied int, err error) {
	missing, err := pending(ctx, db, files)
	if err != nil {
		return 0, err
	}
	for _, m := range missing {
		start := time.Now()
		for n, statement := range statements(m.text) {
			if err := db.conn.Exec(ctx, db.sql(statement)); err != nil {
				return applied, fmt.Errorf("migration %04d_%s, statement %d, database %s: %w", m.version, m.name, n+1, db.database, err)
			}
		}
		if err := db.record(ctx, m); err != nil {
			return applied, fmt.Errorf("migration %04d_%s ran but could not be recorded: %w", m.version, m.name, err)
		}
		applied++
		log.Info("migration applied", "migration", fmt.Sprintf("%04d_%s", m.version, m.name), "database", db.database, "took", time.Since(start))
	}
	return applied, nil
}

// record notes an applied migration.
func (db *DB) record(ctx context.Context, m migration) error {
	host, _ := os.Hostname() // only told to people; empty is fine
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(db.insertSettings("migrations", db.tokens.next())))
	return db.conn.Exec(ctx, db.sql("INSERT INTO {{db}}.migrations (version, name, variant, checksum, applied_by) "+
		"SELECT {version:UInt32}, {name:String}, {variant:String}, {checksum:String}, {host:String}"),
		clickhouse.Named("version", m.version), clickhouse.Named("name", m.name), clickhouse.Named("variant", variant),
		clickhouse.Named("checksum", m.checksum), clickhouse.Named("host", host))
}

// PendingMigrations names the migrations that this binary wants and the database lacks.
func PendingMigrations(ctx context.Context, db *DB) ([]string, error) {
	missing, err := pending(ctx, db, migrationFiles)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(missing))
	for i, m := range missing {
		names[i] = fmt.Sprintf("%04d_%s", m.version, m.name)
	}
	return names, nil
}

// Verify returns nil when the database has this binary's tables.
func Verify(ctx context.Context, db *DB) error {
	missing, err := PendingMigrations(ctx, db)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("database %s at %s lacks %s: run `assay migrate` (or set ASSAY_CLICKHOUSE_MIGRATE=true)",
			db.database, db.addr, strings.Join(missing, ", "))
	}
	return nil
}

// pending compares the files with what is recorded. A file that was changed after it
// was applied, or a database ahead of this binary, is refused: nobody can say then
// what the tables look like.
func pending(ctx context.Context, db *DB, files fs.FS) ([]migration, error) {
	wanted, err := readMigrations(files, variant)
	if err != nil {
		return nil, err
	}
	recorded, err := db.recorded(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrations of database %s at %s: %w", db.database, db.addr, err)
	}
	var missing []migration
	var errs []error
	for _, m := range wanted {
		has, ok := recorded[m.version]
		delete(recorded, m.version)
		switch {
		case !ok:
			missing = append(missing, m)
		case has.variant != variant:
			errs = append(errs, fmt.Errorf("migration %04d_%s was applied to database %s in variant %s, want %s", m.version, m.name, db.database, has.variant, variant))
		case has.checksum != m.checksum:
			errs = append(errs, fmt.Errorf("migration %04d_%s was applied to database %s with checksum %.12s..., this binary has %.12s...: an applied migration never changes; use the binary that applied it, or a new database",
				m.version, m.name, db.database, has.checksum, m.checksum))
		}
	}
	for version, has := range recorded {
		errs = append(errs, fmt.Errorf("database %s has migration %04d_%s, which this binary does not know: it was migrated by a newer assay", db.database, version, has.name))
	}
	return missing, errors.Join(errs...)
}

type recordedMigration struct{ name, variant, checksum string }

// recorded reads the migrations table; without one nothing is recorded yet.
func (db *DB) recorded(ctx context.Context) (map[uint32]recordedMigration, error) {
	type row struct {
		version uint32
		recordedMigration
	}
	rows, err := read(ctx, db, query{"migrations", page, "SELECT version, name, variant, toString(checksum) FROM {{db}}.migrations FINAL ORDER BY version"},
		func(scan func(...any) error) (r row, err error) {
			return r, scan(&r.version, &r.name, &r.variant, &r.checksum)
		})
	if code := serverCode(err); code == codeUnknownTable || code == codeUnknownDatabase {
		return map[uint32]recordedMigration{}, nil
	}
	if err != nil {
		return nil, err
	}
	found := make(map[uint32]recordedMigration, len(rows))
	for _, r := range rows {
		found[r.version] = r.recordedMigration
	}
	return found, nil
}

// statements splits a file at the semicolons that end statements; those inside quotes
// and comments do not.
func statements(text string) []string {
	var found []string
	var b strings.Builder
	add := func() {
		if s := strings.TrimSpace(b.String()); s != "" {
			found = append(found, s)
		}
		b.Reset()
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '-' && strings.HasPrefix(text[i:], "--"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				end = len(text) - i
			}
			i += end - 1
		case c == '\'':
			end := i + 1
			for end < len(text) && text[end] != '\'' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			b.WriteString(text[i:min(end+1, len(text))])
			i = end
		case c == ';':
			add()
		default:
			b.WriteByte(c)
		}
	}
	add()
	return found
}
