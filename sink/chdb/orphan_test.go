package chdb_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/sink/chdb"
)

// orphanEnv makes the test binary a parent that can be killed: it names the data
// directory, the program and the library.
const orphanEnv = "CHDB_TEST_PARENT"

type parentSays struct {
	PID int
	At  chdb.Endpoint
}

// beParent runs a child, says where it is, and waits to be killed.
func beParent(spec string) int {
	part := strings.Split(spec, "|")
	child, err := chdb.New(chdb.Config{
		DataDir: part[0], Binary: part[1], Library: part[2], Queue: 8, MaxMemory: 1 << 30, MaxTime: time.Minute,
		StartWait: time.Minute, StopWait: 30 * time.Second,
	}, chdb.Deps{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		at, err := child.Ready(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = json.NewEncoder(os.Stdout).Encode(parentSays{child.PID(), at})
	}()
	_ = child.Run(context.Background())
	return 0
}

// TestNoChildOutlivesItsParent kills the parent without warning while the child
// is busy with a statement of minutes.
func TestNoChildOutlivesItsParent(t *testing.T) {
	cfg := config(t, dataDir(t))
	self, err := os.Executable()
	must(t, err)
	parent := exec.CommandContext(t.Context(), self)
	parent.Env = append(os.Environ(), orphanEnv+"="+strings.Join([]string{cfg.DataDir, cfg.Binary, cfg.Library}, "|"))
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	must(t, err)
	must(t, parent.Start())
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the parent said nothing: %v", err)
	}
	var says parentSays
	must(t, json.Unmarshal(line, &says))

	conn := open(t, says.At, "default")
	busy := make(chan error, 1)
	go func() {
		busy <- conn.Exec(with(t.Context(), clickhouse.Settings{"log_comment": "busy", "max_block_size": 1}), slow)
	}()
	await(t, "the start of the statement", func() bool { return running(t, conn, "busy") == 1 })

	must(t, parent.Process.Kill())
	killed := time.Now()
	_, _ = io.Copy(io.Discard, stdout)
	_ = parent.Wait()
	await(t, "the end of the child", func() bool { return gone(says.PID) })
	if took := time.Since(killed); took > 2*time.Second {
		t.Errorf("the child ended %s after its parent, want within 2s", took)
	}
	if err := <-busy; err == nil {
		t.Error("the statement came to an end: the child was not busy")
	}
}

// gone tells whether a process has ended. An orphan that nobody has buried yet
// (state Z) has.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Fatal("no child runs")
	}
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}
