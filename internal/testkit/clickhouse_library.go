//go:build ignore

// A ClickHouse server out of libchdb: the library holds the whole of clickhouse-local,
// and that one listens when it is told to, with the server's own code for the native
// protocol and for HTTP. Usage: the library's path, then clickhouse-local's arguments.
// It ends when the statements among them do.
//
// A program of its own, built by name: the library may be loaded once per process, and
// no package but the embedded engine's may depend on the loader.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

func main() {
	if err := run(os.Args[1], append([]string{"clickhouse"}, os.Args[2:]...)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string, args []string) error {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return err
	}
	var (
		handleSignals func(enabled int32)
		commandLine   func(argc int32, argv unsafe.Pointer) unsafe.Pointer
		resultError   func(result unsafe.Pointer) string
	)
	purego.RegisterLibFunc(&handleSignals, handle, "chdb_set_signal_handlers_enabled")
	purego.RegisterLibFunc(&commandLine, handle, "chdb_query_cmdline")
	purego.RegisterLibFunc(&resultError, handle, "chdb_result_error")
	handleSignals(0) // they are Go's in this process
	signal.Ignore(syscall.SIGPIPE)

	var pins runtime.Pinner
	defer pins.Unpin()
	argv := make([]unsafe.Pointer, len(args)+1)
	for i, arg := range args {
		b := append([]byte(arg), 0)
		pins.Pin(&b[0])
		argv[i] = unsafe.Pointer(&b[0])
	}
	pins.Pin(&argv[0])
	if text := resultError(commandLine(int32(len(args)), unsafe.Pointer(&argv[0]))); text != "" {
		return fmt.Errorf("clickhouse-local: %s", text)
	}
	return nil
}
