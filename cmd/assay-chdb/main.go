// Command assay-chdb is the embedded ClickHouse's process: the engine and its
// HTTP front. assay starts, watches and ends it; it is a binary of its own
// because loading a shared library makes one depend on the machine's C library.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"assay/sink/chdb/engine"
)

// orphanWait is how long running statements get when the parent has died: it is
// gone without a word, so nobody waits for their answers.
const orphanWait = time.Second

func main() {
	if err := run(); err != nil {
		engine.Fail(os.Stdout, err)
		fmt.Fprintln(os.Stderr, "assay-chdb:", err)
		os.Exit(1)
	}
}

func run() error {
	cfg := engine.Default()
	flag.StringVar(&cfg.Path, "path", "", "the engine's data directory")
	flag.StringVar(&cfg.Library, "lib", "", "libchdb.so")
	flag.IntVar(&cfg.Queue, "queue", cfg.Queue, "requests that may wait per lane")
	flag.DurationVar(&cfg.MaxTime, "max-time", cfg.MaxTime, "limit of reads that state none")
	flag.Int64Var(&cfg.MaxMemory, "max-memory", cfg.MaxMemory, "bytes per statement that states no limit")
	flag.DurationVar(&cfg.StopWait, "stop-wait", cfg.StopWait, "time for running statements at the end")
	listen := flag.String("listen", "127.0.0.1:0", "loopback address")
	inherited := flag.Bool("inherit", false, "serve the listening socket that is file descriptor 3 instead")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}

	// The token is never an argument: those are readable by every user.
	stdin := bufio.NewReader(os.Stdin)
	cfg.Token = os.Getenv("ASSAY_CHDB_TOKEN")
	if cfg.Token == "" {
		line, err := stdin.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the token from stdin: %w", err)
		}
		cfg.Token = strings.TrimSpace(line)
	}
	ln, err := openListener(*listen, *inherited)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	e, err := engine.New(cfg, engine.Deps{Listener: ln, Ready: os.Stdout, Log: log})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go watchParent(stdin, stop, os.Getppid(), cfg.StopWait)
	return e.Run(ctx)
}

func openListener(addr string, inherited bool) (net.Listener, error) {
	if !inherited {
		return net.Listen("tcp", addr)
	}
	file := os.NewFile(3, "listener")
	defer func() { _ = file.Close() }()
	return net.FileListener(file)
}

// watchParent ends the process with its parent: stdin is a pipe that nobody
// writes to, so its end means that the parent has closed it or died. It runs as
// long as the process does. Should the engine not come to its end in time, the
// process ends without it; what was acknowledged is on disk.
func watchParent(stdin io.Reader, stop func(), parent int, wait time.Duration) {
	_, _ = io.Copy(io.Discard, stdin)
	stop()
	if os.Getppid() != parent {
		wait = orphanWait
	}
	time.Sleep(wait + time.Second/2)
	fmt.Fprintln(os.Stderr, "assay-chdb: did not come to an end in time")
	os.Exit(1)
}
