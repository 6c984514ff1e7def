package chdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/internal/testkit"
)

func with(ctx context.Context, settings clickhouse.Settings) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(settings))
}

func wantCode(t *testing.T, err error, code int32, status int) {
	t.Helper()
	var exception *clickhouse.Exception
	if !errors.As(err, &exception) || exception.Code != code {
		t.Errorf("error %v, want code %d", err, code)
		return
	}
	var answer *clickhouse.HTTPError
	if !errors.As(err, &answer) || answer.StatusCode != status {
		t.Errorf("code %d came with %v, want HTTP status %d", code, err, status)
	}
}

func TestSettingsHoldForOneStatement(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	nasty := "it's \\ a `comment` \n with \"everything\" /* */ -- ; "
	for range 6 { // every connection of the lane gets its turn
		ctx := with(t.Context(), clickhouse.Settings{"log_comment": nasty, "max_threads": 3, "readonly": 2})
		if got := one[string](t, conn, ctx, "SELECT getSetting('log_comment')"); got != nasty {
			t.Errorf("log_comment %q, want %q", got, nasty)
		}
		if got := one[uint64](t, conn, ctx, "SELECT toUInt64(getSetting('max_threads'))"); got != 3 {
			t.Errorf("max_threads %d, want 3", got)
		}
		if got := one[string](t, conn, t.Context(), "SELECT getSetting('log_comment') || toString(getSetting('readonly'))"); got != "0" {
			t.Errorf("after it log_comment and readonly are %q, want the defaults", got)
		}
	}
	// A clause of the text itself counts beside the request's.
	ctx := with(t.Context(), clickhouse.Settings{"log_comment": "c"})
	if got := one[string](t, conn, ctx, "SELECT toString(getSetting('max_threads')) || getSetting('log_comment') SETTINGS max_threads = 5"); got != "5c" {
		t.Errorf("settings of text and request give %q, want 5c", got)
	}
	if err := conn.Exec(ctx, "CREATE TABLE s (n UInt8) ENGINE = MergeTree ORDER BY n SETTINGS index_granularity = 1000"); err != nil {
		t.Error(err)
	}
	if err := conn.Exec(ctx, "INSERT INTO s VALUES (1), (2)"); err != nil {
		t.Error(err)
	}
	if err := conn.Exec(ctx, "INSERT INTO s SETTINGS max_threads = 2 SELECT number FROM numbers(3)"); err != nil {
		t.Error(err)
	}
	if got := one[uint64](t, conn, ctx, "SELECT count() FROM s"); got != 5 {
		t.Errorf("%d rows, want 5", got)
	}
	wantCode(t, conn.QueryRow(with(t.Context(), clickhouse.Settings{"no_such_setting": 1}), "SELECT 1").Err(), 115, http.StatusNotFound)
	wantCode(t, conn.Exec(with(t.Context(), clickhouse.Settings{"readonly": 2}), "DROP TABLE s"), 164, http.StatusInternalServerError)
}

func TestAnInsertTokenCountsOnce(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	e.Exec(t, "CREATE TABLE dedup (n UInt64, v String) ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100")
	send := func(token string, n uint64) {
		t.Helper()
		ctx := with(t.Context(), clickhouse.Settings{"async_insert": 0, "deduplicate_insert": "enable", "insert_deduplication_token": token})
		batch, err := conn.PrepareBatch(ctx, "INSERT INTO dedup (n, v)")
		must(t, err)
		must(t, batch.Append(n, "x"))
		must(t, batch.Send())
	}
	count := func() uint64 { return one[uint64](t, conn, t.Context(), "SELECT count() FROM dedup") }
	send("p:1", 1)
	send("p:1", 1)
	if got := count(); got != 1 {
		t.Errorf("%d rows after the same batch twice, want 1", got)
	}
	send("p:2", 1)
	if got := count(); got != 2 {
		t.Errorf("%d rows after a new token, want 2", got)
	}
}

func TestParametersArriveAsTheyAre(t *testing.T) {
	conn := testkit.ClickHouse(t).Conn(t)
	ctx := t.Context()
	moment := at("2026-03-01T12:34:56.789Z")
	got := one[time.Time](t, conn, ctx, "SELECT {from:DateTime64(3,'UTC')}", clickhouse.Named("from", moment))
	if !got.Equal(moment) {
		t.Errorf("time %v, want %v", got, moment)
	}
	for _, text := range []string{"", "plain", "it's", `back\slash`, "tab\tline\nend", "'); DROP TABLE x; --", "日本", "{x:String}"} {
		if got := one[string](t, conn, ctx, "SELECT {x:String}", clickhouse.Named("x", text)); got != text {
			t.Errorf("text %q, want %q", got, text)
		}
	}
	sum := one[uint64](t, conn, ctx, "SELECT {a:UInt64} + arraySum({b:Array(UInt64)}) + {a:UInt64}",
		clickhouse.Named("a", uint64(5)), clickhouse.Named("b", []uint64{1, 2}))
	if sum != 13 {
		t.Errorf("sum %d, want 13", sum)
	}
	null := one[*string](t, conn, ctx, "SELECT {n:Nullable(String)}", clickhouse.Named("n", nil))
	if null != nil {
		t.Errorf("NULL came as %q", *null)
	}
	var given uint64
	must(t, conn.QueryRow(clickhouse.Context(ctx, clickhouse.WithParameters(clickhouse.Parameters{"n": "42"})), "SELECT {n:UInt64}").Scan(&given))
	if given != 42 {
		t.Errorf("parameter by context %d, want 42", given)
	}
	// A parameter ends with its statement.
	wantCode(t, conn.QueryRow(ctx, "SELECT {n:UInt64}").Err(), 456, http.StatusBadRequest)
}

func TestErrorsCarryTheirCode(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	ctx := t.Context()
	e.Exec(t, "CREATE TABLE checked (n UInt8, CONSTRAINT small CHECK n < 10) ENGINE = MergeTree ORDER BY n")
	f := func(sql string, code int32, status int, settings clickhouse.Settings) {
		t.Helper()
		wantCode(t, conn.Exec(with(ctx, settings), sql), code, status)
	}
	f("SELECT * FROM nothing_here", 60, 404, nil)
	f("SELECT nothing_here", 47, 404, nil)
	f("SELEC 1", 62, 400, nil)
	f("SELECT 1; SELECT 2", 62, 400, nil)
	f("SELECT 'unclosed", 62, 400, nil)
	f("SELECT sleep(2)", 159, 408, clickhouse.Settings{"max_execution_time": 0.1})
	f("SELECT groupArray(number) FROM numbers(10000000)", 241, 500, clickhouse.Settings{"max_memory_usage": 10_000_000})
	f("SELECT toString(number) FROM numbers(1000000)", 396, 500, clickhouse.Settings{"max_result_bytes": 1_000_000})
	f("USE system", 48, 501, nil)
	f("SET max_threads = 1", 48, 501, nil)
	f("INSERT INTO checked VALUES (11)", 469, 500, nil)
	f("CREATE TABLE checked (n UInt8) ENGINE = MergeTree ORDER BY n", 57, 500, nil)

	batch, err := conn.PrepareBatch(ctx, "INSERT INTO checked")
	must(t, err)
	must(t, batch.Append(uint8(1)))
	must(t, batch.Append(uint8(200)))
	wantCode(t, batch.Send(), 469, 500)
	if got := one[uint64](t, conn, ctx, "SELECT count() FROM checked"); got != 0 {
		t.Errorf("%d rows of a refused batch are stored", got)
	}

	for _, change := range []struct {
		change func(*clickhouse.Options)
		code   int32
		status int
	}{
		{func(o *clickhouse.Options) { o.Auth.Password = "wrong" }, 516, 403},
		{func(o *clickhouse.Options) { o.Auth.Database = "no_such_database" }, 81, 404},
		{func(o *clickhouse.Options) {
			o.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
		}, 36, 400},
	} {
		options := e.Options()
		change.change(options)
		other, err := clickhouse.Open(options)
		must(t, err)
		wantCode(t, other.Ping(ctx), change.code, change.status)
		_ = other.Close()
	}
}

// TestEveryStatementTakesSettings runs each statement form as the driver sends
// it: with settings, which the front has to put where that form's grammar wants
// them.
func TestEveryStatementTakesSettings(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	ctx := with(t.Context(), clickhouse.Settings{"log_comment": "assay:forms", "max_execution_time": 30})
	for _, sql := range []string{
		"CREATE TABLE IF NOT EXISTS f (n UInt64, s String) ENGINE = MergeTree ORDER BY n SETTINGS index_granularity = 1000;",
		"CREATE TABLE g AS f",
		"CREATE OR REPLACE TABLE g (n UInt64, s String) ENGINE = MergeTree ORDER BY n",
		"CREATE VIEW v AS SELECT n FROM f WHERE s != 'SETTINGS' -- a comment; with FORMAT",
		"ALTER TABLE f ADD COLUMN IF NOT EXISTS extra UInt8 DEFAULT 1",
		"ALTER TABLE f MODIFY TTL toDateTime(n) + INTERVAL 400 YEAR",
		"INSERT INTO f (n, s) VALUES (1, 'a'), (2, 'FORMAT Native; SETTINGS')",
		"INSERT INTO f (n, s) SELECT number + 10, 'b' FROM numbers(10)",
		"INSERT INTO f (n, s) WITH 5 AS x SELECT number + x, 'c' FROM numbers(1);",
		"INSERT INTO f (n, s) SETTINGS max_threads = 1 SELECT n, s FROM f LIMIT 1",
		"SELECT n FROM f ORDER BY n LIMIT 1 BY n LIMIT 3",
		"(SELECT 1) UNION ALL (SELECT 2)",
		"WITH t AS (SELECT 1 AS format) SELECT format FROM t",
		"SELECT 1 AS format",
		"SELECT n FROM f SETTINGS max_threads = 1",
		"SELECT count() FROM f FORMAT Native",
		"SELECT count() FROM f FORMAT Native SETTINGS max_threads = 1",
		"SHOW TABLES", "SHOW CREATE TABLE f", "DESCRIBE TABLE f", "EXISTS TABLE f", "EXPLAIN indexes = 1 SELECT * FROM f WHERE n = 1",
		"CHECK TABLE f", "OPTIMIZE TABLE f FINAL", "EXCHANGE TABLES f AND g", "RENAME TABLE g TO h", "TRUNCATE TABLE h",
		"DELETE FROM f WHERE n = 1", "DELETE FROM f WHERE n = 2 SETTINGS lightweight_deletes_sync = 2", "ALTER TABLE h DELETE WHERE n = 1", "KILL QUERY WHERE query_id = 'nobody' ASYNC",
		"SYSTEM FLUSH LOGS", "SYSTEM STOP MERGES h", "SYSTEM START MERGES h",
		"CREATE FUNCTION IF NOT EXISTS plus_one AS (x) -> x + 1", "DROP FUNCTION plus_one",
		"DETACH TABLE h", "ATTACH TABLE h", "DROP VIEW v", "DROP TABLE IF EXISTS h SYNC",
		"CREATE DATABASE IF NOT EXISTS " + e.Database + "_2", "DROP DATABASE " + e.Database + "_2",
	} {
		if err := conn.Exec(ctx, sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestAFailedStatementLeavesNothingInTheNextAnswer: the engine puts out rows
// while a statement still runs. When it fails after some, they stay in the
// connection's output, and the next answer began with them.
func TestAFailedStatementLeavesNothingInTheNextAnswer(t *testing.T) {
	conn := testkit.ClickHouse(t).Conn(t)
	ctx := with(t.Context(), clickhouse.Settings{"max_block_size": 1000, "max_threads": 1})
	for range 6 { // both connections of the lane, more than once
		err := conn.Exec(ctx, "SELECT throwIf(number = 50000, 'far in'), number FROM numbers(100000)")
		wantCode(t, err, 395, http.StatusInternalServerError)
		if got := one[string](t, conn, t.Context(), "SELECT 'clean'"); got != "clean" {
			t.Errorf("the next answer is %q", got)
		}
	}
}

// send is a request without the driver.
func send(ctx context.Context, e *testkit.Engine, query string, body io.Reader) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.Addr+"/", body)
	if err != nil {
		return 0, "", err
	}
	values := req.URL.Query()
	values.Set("query", query)
	values.Set("database", e.Database)
	req.URL.RawQuery = values.Encode()
	req.Header.Set("X-ClickHouse-Key", e.Token)
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, string(answer), err
}

func TestTextFormatsAndDataInTheStatementWork(t *testing.T) {
	e := testkit.ClickHouse(t)
	e.Exec(t, "CREATE TABLE lines (n UInt64, s String) ENGINE = MergeTree ORDER BY n")
	e.Exec(t, "INSERT INTO lines FORMAT JSONEachRow\n{\"n\":1,\"s\":\"a;b\"}\n{\"n\":2,\"s\":\"SELECT\"}\n")
	status, text, err := send(t.Context(), e, "INSERT INTO lines FORMAT TabSeparated", strings.NewReader("3\tc\n4\td\n"))
	if err != nil || status != http.StatusOK {
		t.Fatalf("insert: %d %s %v", status, text, err)
	}
	status, text, err = send(t.Context(), e, "SELECT n, s FROM lines ORDER BY n FORMAT CSV", nil)
	if want := "1,\"a;b\"\n2,\"SELECT\"\n3,\"c\"\n4,\"d\"\n"; err != nil || status != http.StatusOK || text != want {
		t.Errorf("answer %d %q %v, want %q", status, text, err, want)
	}
}

// TestAnInsertThatIsCutOffStoresNothing sends complete rows and then breaks off:
// before the end nobody can know that these were all.
func TestAnInsertThatIsCutOffStoresNothing(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	e.Exec(t, "CREATE TABLE cut (n UInt64) ENGINE = MergeTree ORDER BY n")
	broken := errors.New("the client died")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, rows := range []int{1, 1000} {
		body := io.MultiReader(strings.NewReader(strings.Repeat("1\n", rows)), failing{broken})
		if _, _, err := send(ctx, e, "INSERT INTO cut FORMAT TabSeparated", body); !errors.Is(err, broken) {
			t.Fatalf("error %v, want the client's own", err)
		}
	}
	// The lane is free and in order: the next insert stands behind the broken ones.
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO cut")
	must(t, err)
	must(t, batch.Append(uint64(7)))
	must(t, batch.Send())
	if got := one[uint64](t, conn, ctx, "SELECT count() FROM cut"); got != 1 {
		t.Errorf("%d rows, want the 1 whole insert", got)
	}
}

// TestALongInsertStreams sends more than the front takes in beforehand, once to
// its end and once cut off.
func TestALongInsertStreams(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	e.Exec(t, "CREATE TABLE long (text String) ENGINE = MergeTree ORDER BY tuple()")
	row := append([]byte{0x80, 0x80, 0x40}, bytes.Repeat([]byte("x"), 1<<20)...) // RowBinary: length, text
	rows := func(n int) []io.Reader {
		var all []io.Reader
		for range n {
			all = append(all, bytes.NewReader(row))
		}
		return all
	}
	const insert = "INSERT INTO long FORMAT RowBinary"
	status, text, err := send(t.Context(), e, insert, io.MultiReader(rows(80)...))
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, text, err)
	}
	if got := one[uint64](t, conn, t.Context(), "SELECT sum(length(text)) FROM long"); got != 80<<20 {
		t.Errorf("%d bytes stored, want %d", got, 80<<20)
	}
	broken := errors.New("the client died")
	if _, _, err := send(t.Context(), e, insert, io.MultiReader(append(rows(70), failing{broken})...)); !errors.Is(err, broken) {
		t.Fatalf("error %v, want the client's own", err)
	}
	status, text, err = send(t.Context(), e, insert, io.MultiReader(rows(1)...))
	if err != nil || status != http.StatusOK {
		t.Errorf("the insert after the one cut off: %d %s %v", status, text, err)
	}
	if got := one[uint64](t, conn, t.Context(), "SELECT count() FROM long"); got != 81 {
		t.Errorf("%d rows, want the 81 of whole inserts", got)
	}
	// An error in the middle of a long insert stops it with its code.
	status, text, err = send(t.Context(), e, "INSERT INTO long FORMAT JSONEachRow", io.MultiReader(append([]io.Reader{strings.NewReader("{not json")}, rows(80)...)...))
	if err == nil && status == http.StatusOK {
		t.Errorf("80 MB of nonsense were taken: %s", text)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// slow runs for minutes unless it is killed; max_block_size lets the engine look
// for that after each row.
const slow = "SELECT sum(sleepEachRow(0.05)) FROM numbers(2400)"

// running counts the slow statements with a comment. The driver sends its first
// questions on a connection with the same comment; they are not meant.
func running(t *testing.T, conn clickhouse.Conn, comment string) uint64 {
	t.Helper()
	return one[uint64](t, conn, with(t.Context(), clickhouse.Settings{"log_comment": "assay:monitor"}),
		"SELECT count() FROM system.processes WHERE Settings['log_comment'] = {c:String} AND query LIKE '%sleepEachRow%'", clickhouse.Named("c", comment))
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen within 30s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAQueryEndsWithItsClient(t *testing.T) {
	conn := testkit.ClickHouse(t).Conn(t)
	ctx, cancel := context.WithCancel(with(t.Context(), clickhouse.Settings{"log_comment": "left alone", "max_block_size": 1}))
	left := make(chan error, 1)
	go func() { left <- conn.Exec(ctx, slow) }()
	await(t, "the start of the query", func() bool { return running(t, conn, "left alone") == 1 })
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want a cancelled one", err)
	}
	await(t, "the end of the query", func() bool { return running(t, conn, "left alone") == 0 })
}

func TestALongScanDelaysOnlyItsOwnLane(t *testing.T) {
	e := testkit.ClickHouse(t)
	conn := e.Conn(t)
	e.Exec(t, "CREATE TABLE beside (n UInt64) ENGINE = MergeTree ORDER BY n")
	ctx, cancel := context.WithCancel(with(t.Context(), clickhouse.Settings{"log_comment": "assay:scan", "max_block_size": 1}))
	var scans sync.WaitGroup
	for range 2 { // both connections for reads
		scans.Go(func() { _ = conn.Exec(ctx, slow) })
	}
	await(t, "the start of both scans", func() bool { return running(t, conn, "assay:scan") == 2 })
	// Inserts and the monitor go past them: were they queued behind, this would
	// take the scans' two minutes.
	inTime, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	must(t, conn.Exec(inTime, "INSERT INTO beside SELECT number FROM numbers(10)"))
	if got := one[uint64](t, conn, with(inTime, clickhouse.Settings{"log_comment": "assay:monitor.rollup"}), "SELECT count() FROM beside"); got != 10 {
		t.Errorf("%d rows, want 10", got)
	}
	if got := running(t, conn, "assay:scan"); got != 2 {
		t.Errorf("%d scans still run, want 2: this test proves nothing", got)
	}
	cancel()
	scans.Wait()
	await(t, "the end of both scans", func() bool { return running(t, conn, "assay:scan") == 0 })
}

func TestAHundredClientsAtOnceAreAllAnswered(t *testing.T) {
	e := testkit.ClickHouse(t)
	e.Exec(t, "CREATE TABLE crowd (n UInt64) ENGINE = MergeTree ORDER BY n")
	options := e.Options()
	options.MaxOpenConns, options.DialTimeout = 100, time.Minute
	conn, err := clickhouse.Open(options)
	must(t, err)
	defer func() { _ = conn.Close() }()
	var clients sync.WaitGroup
	for n := range 100 {
		clients.Go(func() {
			batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO crowd")
			if err == nil {
				err = errors.Join(batch.Append(uint64(n)), batch.Send())
			}
			if err != nil {
				t.Errorf("insert %d: %v", n, err)
			}
			var got string
			if err := conn.QueryRow(t.Context(), "SELECT {s:String}", clickhouse.Named("s", fmt.Sprint("client ", n))).Scan(&got); err != nil || got != fmt.Sprint("client ", n) {
				t.Errorf("client %d got %q, %v", n, got, err)
			}
		})
	}
	clients.Wait()
	if got := one[uint64](t, conn, t.Context(), "SELECT uniqExact(n) FROM crowd"); got != 100 {
		t.Errorf("%d different rows, want 100", got)
	}
}
