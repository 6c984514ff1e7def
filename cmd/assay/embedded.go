package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"assay/sink"
	"assay/sink/chdb"
)

// withEmbedded runs the embedded ClickHouse around use. The engine ends after use has:
// whatever use still writes at its end needs it.
func withEmbedded(ctx context.Context, env *environment, log *slog.Logger, use func(context.Context, store) error) error {
	cfg := env.Chdb
	cfg.DataDir = env.DataDir
	child, err := chdb.New(cfg, chdb.Deps{Log: log.With("part", "clickhouse")})
	if errors.Is(err, chdb.ErrNoLibrary) || errors.Is(err, chdb.ErrPlatform) {
		return errUsage{err}
	}
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	later, used := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error { return child.Run(later) })
	g.Go(func() error {
		defer used()
		at, err := child.Ready(gctx)
		if err != nil {
			return err
		}
		conn := env.ClickHouse
		conn.Addr, conn.Protocol, conn.Token = at.Addr, "http", at.Token
		db, err := sink.Open(gctx, conn, log)
		if err != nil {
			return err
		}
		defer db.Close()
		return use(gctx, store{
			db: db, embedded: true,
			chosen: fmt.Sprintf("embedded engine %s (no ASSAY_CLICKHOUSE_ADDR), in %s", chdb.LibraryVersion, env.DataDir),
		})
	})
	return g.Wait()
}
