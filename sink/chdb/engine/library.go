package engine

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library holds the entry points of libchdb.so that the front calls. Lengths are
// always explicit: binary data holds zero bytes.
type library struct {
	version func() string

	setSignalHandlersEnabled func(enabled int32)
	connect                  func(argc int32, argv unsafe.Pointer) unsafe.Pointer
	closeConn                func(conn unsafe.Pointer)

	queryWithParams func(conn unsafe.Pointer, query unsafe.Pointer, queryLen uintptr, format unsafe.Pointer, formatLen uintptr,
		names, nameLens, values, valueLens unsafe.Pointer, count uintptr) unsafe.Pointer
	resultBuffer      func(result unsafe.Pointer) unsafe.Pointer
	resultLength      func(result unsafe.Pointer) uintptr
	resultError       func(result unsafe.Pointer) string
	resultRowsRead    func(result unsafe.Pointer) uint64
	resultRowsWritten func(result unsafe.Pointer) uint64
	destroyResult     func(result unsafe.Pointer)

	streamInsert func(conn unsafe.Pointer, query unsafe.Pointer, queryLen uintptr, format unsafe.Pointer, formatLen uintptr,
		names, nameLens, values, valueLens unsafe.Pointer, count uintptr) unsafe.Pointer
	streamAppend      func(stream unsafe.Pointer, data unsafe.Pointer, size uintptr) int32
	streamDone        func(stream unsafe.Pointer) unsafe.Pointer
	streamCancel      func(stream unsafe.Pointer)
	streamInsertError func(stream unsafe.Pointer) string
	streamDestroy     func(stream unsafe.Pointer)
}

// openLibrary loads path and binds every entry point. RTLD_LOCAL keeps the
// library's half a gigabyte of C++ symbols out of everybody else's lookups.
func openLibrary(path string) (*library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	lib := &library{}
	for _, entry := range []struct {
		fn   any
		name string
	}{
		{&lib.version, "chdb_version"},
		{&lib.setSignalHandlersEnabled, "chdb_set_signal_handlers_enabled"},
		{&lib.connect, "chdb_connect"},
		{&lib.closeConn, "chdb_close_conn"},
		{&lib.queryWithParams, "chdb_query_with_params_n"},
		{&lib.resultBuffer, "chdb_result_buffer"},
		{&lib.resultLength, "chdb_result_length"},
		{&lib.resultError, "chdb_result_error"},
		{&lib.resultRowsRead, "chdb_result_rows_read"},
		{&lib.resultRowsWritten, "chdb_result_rows_written"},
		{&lib.destroyResult, "chdb_destroy_query_result"},
		{&lib.streamInsert, "chdb_stream_insert_with_params_n"},
		{&lib.streamAppend, "chdb_stream_append"},
		{&lib.streamDone, "chdb_stream_done"},
		{&lib.streamCancel, "chdb_stream_cancel_insert"},
		{&lib.streamInsertError, "chdb_stream_insert_error"},
		{&lib.streamDestroy, "chdb_destroy_insert_stream"},
	} {
		sym, err := purego.Dlsym(handle, entry.name)
		if err != nil {
			return nil, fmt.Errorf("%s has no %s: another version of libchdb is needed: %w", path, entry.name, err)
		}
		purego.RegisterFunc(entry.fn, sym)
	}
	return lib, nil
}

// cArgs is what the library's *_params_n functions take for named parameters:
// four parallel arrays. The memory is Go's and stays pinned until release.
type cArgs struct {
	names, values         []unsafe.Pointer
	nameLens, valueLens   []uintptr
	pinner                runtime.Pinner
	namesP, valuesP       unsafe.Pointer
	nameLensP, valueLensP unsafe.Pointer
}

func newCArgs(params []param) *cArgs {
	a := &cArgs{}
	if len(params) == 0 {
		return a
	}
	for _, p := range params {
		a.names, a.nameLens = append(a.names, a.pin(p.name)), append(a.nameLens, uintptr(len(p.name)))
		a.values, a.valueLens = append(a.values, a.pin(p.value)), append(a.valueLens, uintptr(len(p.value)))
	}
	a.namesP, a.valuesP = unsafe.Pointer(&a.names[0]), unsafe.Pointer(&a.values[0])
	a.nameLensP, a.valueLensP = unsafe.Pointer(&a.nameLens[0]), unsafe.Pointer(&a.valueLens[0])
	for _, p := range []unsafe.Pointer{a.namesP, a.valuesP, a.nameLensP, a.valueLensP} {
		a.pinner.Pin(p)
	}
	return a
}

// pin returns the address of a zero-terminated copy of s.
func (a *cArgs) pin(s string) unsafe.Pointer {
	b := append([]byte(s), 0)
	p := unsafe.Pointer(&b[0])
	a.pinner.Pin(p)
	return p
}

func (a *cArgs) release() { a.pinner.Unpin() }
