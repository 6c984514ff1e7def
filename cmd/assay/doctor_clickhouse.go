package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"assay/sink"
	"assay/sink/chdb"
)

// skewed is how far two clocks may be apart: rows are judged late or future by the
// server's.
const skewed = 2 * time.Second

func (d *doctor) clickhouse(ctx context.Context) {
	env := d.env
	if env.ClickHouse.Addr == "" {
		library, err := chdb.FindLibrary(env.Chdb.Library, env.DataDir)
		switch {
		case !env.Embedded:
			d.fail("clickhouse", errors.New("ASSAY_CLICKHOUSE_ADDR is not set"), "set it to host:port, or ASSAY_EMBEDDED=true for the embedded engine")
		case err != nil:
			d.fail("clickhouse", err, "assay demo --install-engine")
		default:
			d.ok("clickhouse", "embedded engine "+chdb.LibraryVersion+" at "+library)
		}
		return
	}
	if err := env.ClickHouse.Validate(); err != nil {
		d.fail("clickhouse", err, "correct the variable")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*doctorWait)
	defer cancel()
	db, err := sink.Open(ctx, env.ClickHouse, slog.New(slog.DiscardHandler))
	if err != nil {
		d.fail("clickhouse", err, "check address, protocol (native 9000 or 9440 with TLS, http 8123 or 8443), TLS, user and password")
		return
	}
	defer func() { _ = db.Close() }()
	server, err := sink.Inspect(ctx, db)
	if err != nil {
		d.fail("clickhouse", err, "the server answers, but not to this user: grant SELECT")
		return
	}
	d.ok("clickhouse", fmt.Sprintf("%s answers over %s: version %s, user %s", env.ClickHouse.Addr, env.ClickHouse.Protocol, server.Version, server.User))
	if server.Skew.Abs() > skewed {
		d.warn("clickhouse clock", fmt.Sprintf("%s apart from this machine's", server.Skew.Round(10*time.Millisecond)), "let both follow a time server: minutes are closed by the server's clock")
	} else {
		d.ok("clickhouse clock", "agrees with this machine's")
	}
	d.tables(ctx, db)
}

func (d *doctor) tables(ctx context.Context, db *sink.DB) {
	pending, err := sink.PendingMigrations(ctx, db)
	switch {
	case err != nil:
		d.fail("tables", err, "grant SELECT on the database "+d.env.ClickHouse.Database+"; a database of another version wants the assay that made it")
		return
	case len(pending) > 0:
		if err := sink.MayMigrate(ctx, db); err != nil {
			d.fail("tables", fmt.Errorf("%s are missing, and this user may not create them: %w", strings.Join(pending, ", "), err),
				"run assay migrate as a user with CREATE DATABASE, CREATE TABLE and ALTER TABLE (docs/clickhouse.md has the grants)")
			return
		}
		d.fail("tables", fmt.Errorf("%s are missing", strings.Join(pending, ", ")), "assay migrate (or ASSAY_CLICKHOUSE_MIGRATE=true); this user may")
		return
	}
	d.ok("tables", "all migrations are applied")
	if d.stored, err = sink.JudgeLatencies(ctx, db); err != nil {
		d.warn("tables", err.Error(), "grant SELECT on evaluations")
	}
	states, err := sink.InspectTables(ctx, db)
	if err != nil {
		d.warn("rights", err.Error(), "grant SELECT on system.tables to have every table looked at")
		return
	}
	var unread, unwritten, kept []string
	var readErr, writeErr error
	for _, t := range states {
		if t.SelectErr != nil {
			unread = append(unread, t.Table)
			readErr = t.SelectErr
		}
		if t.InsertErr != nil {
			unwritten = append(unwritten, t.Table)
			writeErr = t.InsertErr
		}
		if t.SelectErr == nil && slices.Contains([]string{"evaluations", "interactions", "population", "dead_letters"}, t.Table) {
			if t.TTL == "" {
				kept = append(kept, t.Table+" for ever")
			} else {
				kept = append(kept, t.Table+" until "+t.TTL)
			}
		}
	}
	switch {
	case len(unread) > 0:
		d.fail("rights", fmt.Errorf("no SELECT on %s: %w", strings.Join(unread, ", "), readErr), fmt.Sprintf("GRANT SELECT, INSERT ON %s.* TO this user", d.env.ClickHouse.Database))
	case len(unwritten) > 0:
		d.fail("rights", fmt.Errorf("no INSERT on %s: %w", strings.Join(unwritten, ", "), writeErr), fmt.Sprintf("GRANT INSERT ON %s.* TO this user (readers such as Grafana need it not)", d.env.ClickHouse.Database))
	default:
		d.ok("rights", fmt.Sprintf("SELECT and INSERT on all %d tables; inserts set async_insert=0 themselves, whatever the profile says", len(states)))
	}
	if len(kept) > 0 {
		d.ok("retention", "rows are kept: "+strings.Join(kept, "; "))
	}
}
