package engine

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// param is one value for a {name:Type} placeholder, in the engine's escaped text
// form, which is also what the driver sends.
type param struct{ name, value string }

// conn is one connection to the engine. The engine runs one statement at a time
// per connection, so whoever holds a conn is alone with it (lanes.go).
type conn struct {
	lib      *library
	handle   unsafe.Pointer // chdb_connection *: a pointer to the handle
	database string         // the last successful USE
	args     *cArgs         // argv must outlive the connection
	broken   func(error)    // told when the connection can no longer be trusted
}

// connect opens a connection on dir. The engine reports why it refused on
// stderr only, so the caller looks for the usual causes first.
func connect(lib *library, dir string, broken func(error), options ...string) (*conn, error) {
	args := &cArgs{}
	for _, arg := range append([]string{"clickhouse", "--path=" + dir}, options...) {
		args.names = append(args.names, args.pin(arg))
	}
	argv := unsafe.Pointer(&args.names[0])
	args.pinner.Pin(argv)
	handle := lib.connect(int32(len(args.names)), argv)
	if handle == nil {
		args.release()
		return nil, fmt.Errorf("the engine refused the directory %s", dir)
	}
	return &conn{lib: lib, handle: handle, database: "default", args: args, broken: broken}, nil
}

// raw is the chdb_connection that statements take.
func (c *conn) raw() unsafe.Pointer { return *(*unsafe.Pointer)(c.handle) }

func (c *conn) close() {
	c.lib.closeConn(c.handle)
	c.handle = nil
	c.args.release()
}

// use makes database the one that unqualified names mean. A connection keeps it,
// so it is asked for only when it changes.
func (c *conn) use(database string) error {
	if database == "" {
		database = "default"
	}
	if database == c.database {
		return nil
	}
	res, err := c.query("USE "+quoteIdentifier(database), "Native", nil)
	if err != nil {
		return err
	}
	res.close()
	c.database = database
	return nil
}

// A result is an answer in the engine's memory; bytes are valid until close.
type result struct {
	lib         *library
	handle      unsafe.Pointer
	bytes       []byte
	rowsRead    uint64
	rowsWritten uint64
}

func (r *result) close() {
	if r.handle != nil {
		r.lib.destroyResult(r.handle)
		r.handle, r.bytes = nil, nil
	}
}

// take turns the library's result into ours and frees it if it carries an error.
func (c *conn) take(handle unsafe.Pointer) (*result, error) {
	if handle == nil {
		return nil, errors.New("the engine gave no result")
	}
	if msg := c.lib.resultError(handle); msg != "" {
		c.lib.destroyResult(handle)
		return nil, newException(msg)
	}
	res := &result{
		lib: c.lib, handle: handle,
		rowsRead: c.lib.resultRowsRead(handle), rowsWritten: c.lib.resultRowsWritten(handle),
	}
	if n := c.lib.resultLength(handle); n > 0 {
		res.bytes = unsafe.Slice((*byte)(c.lib.resultBuffer(handle)), n)
	}
	return res, nil
}

// query runs one statement to its end.
func (c *conn) query(sql, format string, params []param) (*result, error) {
	res, err := c.execute(sql, format, params)
	if err != nil {
		c.settle()
	}
	return res, err
}

// settle clears what a failed statement leaves behind. The engine keeps the rows
// that it had put out before the failure and would send them in front of the
// next answer (measured on 26.7.3); it also keeps the statement's locks. Both go
// with the next statement, so that one is ours and its answer is thrown away.
func (c *conn) settle() {
	res, err := c.execute("SELECT 1", "Native", nil)
	if err != nil {
		c.broken(fmt.Errorf("connection after a failed statement: %w", err))
		return
	}
	res.close()
}

func (c *conn) execute(sql, format string, params []param) (*result, error) {
	args := newCArgs(params)
	defer args.release()
	handle := c.lib.queryWithParams(c.raw(), str(sql), uintptr(len(sql)), str(format), uintptr(len(format)),
		args.namesP, args.nameLensP, args.valuesP, args.valueLensP, uintptr(len(params)))
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	return c.take(handle)
}

// str is the address of a string's bytes; never nil, because the library builds
// a std::string from it.
func str(s string) unsafe.Pointer {
	if s == "" {
		s = "\x00"
	}
	return unsafe.Pointer(unsafe.StringData(s))
}

// An insertStream is an INSERT that takes its data in pieces. Exactly one of
// done and cancel must be called.
type insertStream struct {
	c      *conn
	handle unsafe.Pointer
}

// insert opens a stream; sql carries neither FORMAT nor data.
func (c *conn) insert(sql, format string, params []param) (*insertStream, error) {
	args := newCArgs(params)
	defer args.release()
	handle := c.lib.streamInsert(c.raw(), str(sql), uintptr(len(sql)), str(format), uintptr(len(format)),
		args.namesP, args.nameLensP, args.valuesP, args.valueLensP, uintptr(len(params)))
	runtime.KeepAlive(sql)
	runtime.KeepAlive(format)
	if msg := c.lib.streamInsertError(handle); msg != "" {
		c.lib.streamDestroy(handle)
		c.settle()
		return nil, newException(msg)
	}
	return &insertStream{c: c, handle: handle}, nil
}

// append hands over one piece; the engine copies it and may block for a while.
// It is false when the insert has failed already: done then says why.
func (s *insertStream) append(data []byte) bool {
	if len(data) == 0 {
		return true
	}
	ok := s.c.lib.streamAppend(s.handle, unsafe.Pointer(unsafe.SliceData(data)), uintptr(len(data))) == 0
	runtime.KeepAlive(data)
	return ok
}

func (s *insertStream) done() (rows uint64, err error) {
	res, err := s.c.take(s.c.lib.streamDone(s.handle))
	s.c.lib.streamDestroy(s.handle)
	if err != nil {
		s.c.settle()
		return 0, err
	}
	defer res.close()
	return res.rowsWritten, nil
}

func (s *insertStream) cancel() {
	s.c.lib.streamCancel(s.handle)
	s.c.lib.streamDestroy(s.handle)
	s.c.settle()
}

// quoteIdentifier writes a name so that the engine reads exactly that name.
func quoteIdentifier(name string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(name) + "`"
}
