package sink

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"assay/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.Engines(m)) }

// noon is the event time that tests start from: yesterday's, because the server drops
// rows that are older than their table keeps them.
var noon = time.Now().UTC().Truncate(24 * time.Hour).Add(-12 * time.Hour)

func connConfig(e *testkit.Engine) ConnConfig {
	return ConnConfig{Addr: e.Addr, Protocol: "http", Database: e.Database, Token: e.Token}
}

// testServer names the variable that holds a server to run this package's tests against,
// native://user:password@host:port or http://...; empty is the embedded engine.
const testServer = "SINK_TEST_SERVER"

// openDB opens a fresh database without tables: of the embedded engine, or of the server
// that the tests are run against.
func openDB(t testing.TB) *DB {
	t.Helper()
	if server := os.Getenv(testServer); server != "" {
		return openOnServer(t, server)
	}
	return openAt(t, connConfig(testkit.ClickHouse(t)))
}

// openOnServer opens a fresh database of a server and drops it with the test.
func openOnServer(t testing.TB, server string) *DB {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s: %v", testServer, err)
	}
	password, _ := at.User.Password()
	db := openAt(t, ConnConfig{
		Addr: at.Host, Protocol: at.Scheme, Username: at.User.Username(), Password: password, Database: "test_" + randomID(),
	})
	if err := db.conn.Exec(t.Context(), db.sql("CREATE DATABASE {{db}}")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.conn.Exec(context.WithoutCancel(t.Context()), db.sql("DROP DATABASE {{db}} SYNC")); err != nil {
			t.Error(err)
		}
	})
	return db
}

func openAt(t testing.TB, cfg ConnConfig) *DB {
	t.Helper()
	db, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// migratedDB opens a fresh database with all tables.
func migratedDB(t testing.TB) *DB {
	t.Helper()
	db := openDB(t)
	if _, err := Migrate(t.Context(), db, db.log); err != nil {
		t.Fatal(err)
	}
	return db
}

// insertAll sends rows as one block under a token of its own.
func insertAll[R any](t testing.TB, db *DB, tab table[R], rows []R) {
	t.Helper()
	if err := put(t.Context(), db, tab, rows); err != nil {
		t.Fatal(err)
	}
}

// number runs a statement that answers with one number.
func number(t testing.TB, db *DB, sql string) float64 {
	t.Helper()
	n, err := readOne(context.WithoutCancel(t.Context()), db, query{"test", scan, "SELECT toFloat64(x) FROM (" + sql + ")"},
		func(scan func(...any) error) (n float64, err error) { return n, scan(&n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// exec runs a statement for its effect.
func exec(t testing.TB, db *DB, sql string) {
	t.Helper()
	if err := db.conn.Exec(t.Context(), db.sql(sql)); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// defaults are the settings of a writer as shipped.
func defaults() WriterConfig {
	return WriterConfig{BatchRows: 100_000, BatchBytes: 32 << 20, BatchAge: time.Second,
		BufferRows: 400_000, BufferBytes: 128 << 20, Grace: 30 * time.Second}
}

// runWriter starts a writer over db that ends, flushed, with the test.
func runWriter(t testing.TB, db *DB, cfg WriterConfig) *Writer {
	t.Helper()
	w, err := NewWriter(cfg, WriterDeps{DB: db, Log: slog.New(slog.DiscardHandler), Reg: prometheus.NewRegistry(), ProcessID: randomID()})
	if err != nil {
		t.Fatal(err)
	}
	runFor(t, w)
	return w
}

func runFor(t testing.TB, w *Writer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the writer ended with %v", err)
		}
	})
}

func ptr[T any](v T) *T { return &v }

// evaluation is a scored row; n makes it one of its own.
func evaluation(n int) Evaluation {
	return Evaluation{
		Check: "refunds", CheckVersion: "v1", Time: noon.Add(time.Duration(n) * time.Second), InteractionID: fmt.Sprintf("int-%06d", n),
		Topic: "chat", Partition: uint32(n % 4), Offset: uint64(n), App: "support", Model: "m1", Route: "billing", PromptVersion: "p1",
		SliceID: uint64(1 + n%3), Slice: map[string]string{"app": "support", "model": fmt.Sprintf("m%d", n%3)},
		Pi: 0.25, Epoch: 7, Status: "ok", Score: ptr(float32(0.75)), Passed: ptr(true), Confidence: ptr(float32(0.9)),
		Option: "yes", OptionNames: []string{"yes", "no"}, OptionProbs: []float32{0.75, 0.25}, Method: "logprobs",
		Judge: "main", JudgeModel: "judge-1", Attempts: 1, LatencyMS: 120, InputTokens: 300, OutputTokens: 1, CostNanoUSD: 45_000,
		Excerpt: "When do I get my money back?", AnswerExcerpt: "Within five days.", Detail: `{"reason":"states the time"}`,
		EvaluatedAt: noon.Add(time.Hour), Worker: "w1",
	}
}

// failure turns a row into one without an answer.
func failure(e Evaluation, status, reason string) Evaluation {
	e.Status, e.Reason = status, reason
	e.Score, e.Passed, e.Confidence, e.Option = nil, nil, nil, ""
	e.OptionNames, e.OptionProbs, e.Method = nil, nil, "none"
	return e
}
