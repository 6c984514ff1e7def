package chdb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/sink/chdb"
)

// TestAcknowledgedRowsSurviveAKill kills the engine somewhere inside a stream of
// inserts. Acknowledged batches are there in full; the one in flight is there in
// full or not at all.
func TestAcknowledgedRowsSurviveAKill(t *testing.T) {
	dir := dataDir(t)
	for seed := range uint64(4) {
		child, at, stop := start(t, config(t, dir))
		conn := open(t, at, "default")
		ctx := t.Context()
		must(t, conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS kills (seed UInt64, batch UInt64, n UInt64, text String) ENGINE = MergeTree ORDER BY (seed, batch, n)"))
		const size = 500
		first := make(chan struct{})
		acknowledged := uint64(0)
		var writing sync.WaitGroup
		writing.Go(func() {
			for ; insertBatch(ctx, conn, seed, acknowledged, size) == nil; acknowledged++ {
				if acknowledged == 0 {
					close(first)
				}
			}
		})
		<-first
		pid := child.PID()
		time.Sleep(time.Duration(rand.New(rand.NewPCG(seed, 1)).IntN(150)) * time.Millisecond)
		kill(t, pid)
		writing.Wait()

		await(t, "another child", func() bool { now := child.PID(); return now != 0 && now != pid })
		again, err := child.Ready(ctx)
		must(t, err)
		if again != at {
			t.Errorf("seed %d: the engine came back at %v, was at %v", seed, again, at)
		}
		whole := one[uint64](t, conn, ctx, "SELECT count() FROM (SELECT batch FROM kills WHERE seed = {s:UInt64} GROUP BY batch HAVING count() = {n:UInt64} AND uniqExact(n) = {n:UInt64})",
			clickhouse.Named("s", seed), clickhouse.Named("n", uint64(size)))
		rows := one[uint64](t, conn, ctx, "SELECT count() FROM kills WHERE seed = {s:UInt64}", clickhouse.Named("s", seed))
		if rows != whole*size || whole < acknowledged || whole > acknowledged+1 {
			t.Errorf("seed %d: %d rows in %d whole batches of %d, %d were acknowledged", seed, rows, whole, size, acknowledged)
		}
		if err := stop(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func insertBatch(ctx context.Context, conn clickhouse.Conn, seed, batch uint64, size int) error {
	b, err := conn.PrepareBatch(ctx, "INSERT INTO kills")
	if err != nil {
		return err
	}
	for n := range size {
		if err := b.Append(seed, batch, uint64(n), "some text of a row"); err != nil {
			return err
		}
	}
	return b.Send()
}

func TestADirectoryHasOneEngine(t *testing.T) {
	cfg := config(t, dataDir(t))
	child, _, stop := start(t, cfg)
	second, err := chdb.New(cfg, deps())
	must(t, err)
	err = second.Run(t.Context())
	want := fmt.Sprintf("another assay uses this data directory (pid %d)", child.PID())
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("second engine on the directory: %v, want %q", err, want)
	}
	if _, err := second.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("its Ready: %v, want the same", err)
	}
	must(t, stop())
	// Free again, with what was written.
	_, at, _ := start(t, cfg)
	must(t, open(t, at, "default").Ping(t.Context()))
}

func TestARunningStatementIsFinishedAtTheEnd(t *testing.T) {
	cfg := config(t, dataDir(t))
	_, at, stop := start(t, cfg)
	conn := open(t, at, "default")
	answered := make(chan error, 1)
	go func() {
		sum := uint64(1)
		err := conn.QueryRow(with(t.Context(), clickhouse.Settings{"log_comment": "last", "max_block_size": 1}),
			"SELECT sum(sleepEachRow(0.05)) FROM numbers(30)").Scan(&sum)
		if err == nil && sum != 0 {
			err = fmt.Errorf("sum %d, want 0", sum)
		}
		answered <- err
	}()
	await(t, "the start of the statement", func() bool { return running(t, conn, "last") == 1 })
	must(t, stop())
	if err := <-answered; err != nil {
		t.Errorf("the statement that ran at the end: %v", err)
	}
}

func TestAFullQueueRefusesAtOnce(t *testing.T) {
	cfg := config(t, dataDir(t))
	cfg.Queue = 2
	_, at, _ := start(t, cfg)
	conn := open(t, at, "default")
	must(t, conn.Ping(t.Context()))
	ctx, cancel := context.WithCancel(with(t.Context(), clickhouse.Settings{"log_comment": "full", "max_block_size": 1}))
	var scans sync.WaitGroup
	for range 2 {
		scans.Go(func() { _ = conn.Exec(ctx, slow) })
	}
	await(t, "the start of both scans", func() bool { return running(t, conn, "full") == 2 })
	// Two of five find a place in the queue.
	results := make(chan error, 5)
	for range cap(results) {
		go func() { results <- post(t.Context(), at, "SELECT 1") }()
	}
	for range 3 {
		err := <-results
		var refused *refusal
		if !errors.As(err, &refused) || refused.status != http.StatusServiceUnavailable || refused.code != "202" || refused.retryAfter == "" {
			t.Errorf("answer %v, want 503 with code 202 and Retry-After", err)
		}
	}
	cancel()
	scans.Wait()
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("a waiting query: %v", err)
		}
	}
}

type refusal struct {
	status           int
	code, retryAfter string
}

func (r *refusal) Error() string { return fmt.Sprint(*r) }

func post(ctx context.Context, at chdb.Endpoint, sql string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at.Addr+"/", strings.NewReader(sql))
	if err != nil {
		return err
	}
	req.SetBasicAuth("anybody", at.Token)
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return &refusal{res.StatusCode, res.Header.Get("X-ClickHouse-Exception-Code"), res.Header.Get("Retry-After")}
	}
	return nil
}

func TestTheChildKnowsNoSecretsAndNoTerminal(t *testing.T) {
	t.Setenv("ASSAY_TEST_SECRET", "hush")
	child, at, _ := start(t, config(t, dataDir(t)))
	pid := child.PID()
	for file, secrets := range map[string][]string{"environ": {"hush", at.Token}, "cmdline": {at.Token}} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		must(t, err)
		if len(text) == 0 {
			t.Errorf("%s is empty: this test proves nothing", file)
		}
		for _, secret := range secrets {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s of the child holds a secret", file)
			}
		}
	}
	group, err := syscall.Getpgid(pid)
	must(t, err)
	if group != pid {
		t.Errorf("the child is in process group %d: Ctrl-C would end it before the sink has written", group)
	}
	info, err := os.Stat(filepath.Join(filepath.Dir(pathOf(t, pid)), "."))
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("data directory has mode %v, want 0700", info.Mode().Perm())
	}
}

// pathOf is the engine's directory, out of the child's arguments.
func pathOf(t *testing.T, pid int) string {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	must(t, err)
	args := strings.Split(string(line), "\x00")
	for i, arg := range args {
		if arg == "-path" {
			return args[i+1]
		}
	}
	t.Fatalf("no -path in %q", args)
	return ""
}
