// Command assay reads logged interactions of AI assistants from Kafka, judges a
// statistical sample of them and keeps pass rates with honest intervals.
//
// One file a command; system.go builds the parts and says in which order they end.
// Nothing here knows how anything works.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build.
var version = "dev"

// Exit codes (docs/reference.md).
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitGate   = 3
	exitTooFew = 4
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main with an exit code. The first signal asks everything to end in its
// order; a second one ends the process at once.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on, a signal has its default effect: exit.
	defer context.AfterFunc(ctx, stop)()
	cmd := newRoot(os.Environ())
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var gate errGate
	var usage errUsage
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &gate):
		fmt.Fprintln(os.Stderr, "assay:", err)
		return gate.code
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "assay:", err)
		return exitUsage
	default:
		fmt.Fprintln(os.Stderr, "assay:", err)
		return exitFailed
	}
}

// errGate is a stated condition that was not met, or too little data to say.
type errGate struct {
	error
	code int
}

func (e errGate) Unwrap() error { return e.error }
