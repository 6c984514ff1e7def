package chdb_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/goleak"

	"assay/internal/testkit"
	"assay/sink/chdb"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(orphanEnv); dir != "" {
		os.Exit(beParent(dir))
	}
	goleak.VerifyTestMain(testkit.Engines(m))
}

// config is a child of the test's own, on dir.
func config(tb testing.TB, dir string) chdb.Config {
	tb.Helper()
	program, library := testkit.ClickHouseProgram(tb)
	return chdb.Config{
		DataDir: dir, Library: library, Binary: program, Queue: 64, MaxMemory: 4 << 30, MaxTime: time.Minute,
		StartWait: time.Minute, StopWait: 10 * time.Second, MaxRestarts: 5,
	}
}

// start runs a child on cfg until the test ends or stop is called.
func start(tb testing.TB, cfg chdb.Config) (child *chdb.Child, at chdb.Endpoint, stop func() error) {
	tb.Helper()
	child, err := chdb.New(cfg, chdb.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var runErr error
	go func() {
		defer close(ended)
		runErr = child.Run(ctx)
	}()
	stop = func() error {
		cancel()
		<-ended
		return runErr
	}
	tb.Cleanup(func() { _ = stop() })
	at, err = child.Ready(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return child, at, stop
}

// open is the driver on an endpoint.
func open(tb testing.TB, at chdb.Endpoint, database string) clickhouse.Conn {
	tb.Helper()
	conn, err := clickhouse.Open(&clickhouse.Options{
		Protocol: clickhouse.HTTP, Addr: []string{at.Addr}, MaxOpenConns: 256,
		Auth: clickhouse.Auth{Database: database, Username: "default", Password: at.Token},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func one[T any](tb testing.TB, conn clickhouse.Conn, ctx context.Context, sql string, args ...any) T {
	tb.Helper()
	var v T
	if err := conn.QueryRow(ctx, sql, args...).Scan(&v); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return v
}

func dataDir(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(tb.TempDir(), "data")
}
