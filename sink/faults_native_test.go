package sink

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"assay/internal/testkit"
)

// A cable carries the native protocol between driver and server, and is cut in the n-th
// insert as cuts[n] says; past the end it stays whole.
type cable struct {
	addr   string
	server string
	stored func() (uint64, error) // rows in the table, asked past the cable

	mu      sync.Mutex // guards the fields below
	cuts    []cut
	inserts int
}

type cut int

const (
	whole     cut = iota
	inHeader      // the connection ends before the server has told the columns
	beforeRow     // it ends when the rows are about to go out
	afterRows     // the rows are stored, the answer never arrives
)

func newCable(t testing.TB, server string, stored func() (uint64, error), cuts ...cut) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{addr: l.Addr().String(), server: server, stored: stored, cuts: cuts}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { c.carry(t, client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		open.Wait() // the driver's pool is closed by then, and so is every connection
	})
	return c
}

// next says what is done to the insert that begins now.
func (c *cable) next() cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inserts++
	if c.inserts > len(c.cuts) {
		return whole
	}
	return c.cuts[c.inserts-1]
}

func (c *cable) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inserts
}

// carry serves one connection. A statement goes out in one piece and the driver waits
// for its columns, so an insert's pieces after the first are its rows.
func (c *cable) carry(t testing.TB, client net.Conn) {
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		t.Error(err)
		_ = client.Close()
		return
	}
	end := func() {
		_ = client.Close()
		_ = server.Close()
	}
	silent := &gate{to: client}
	var others sync.WaitGroup
	others.Go(func() {
		defer end()
		_, _ = io.Copy(silent, server)
	})
	defer others.Wait()
	defer end()
	todo, before := whole, uint64(0)
	piece := make([]byte, 1<<20)
	for {
		n, err := client.Read(piece)
		if err != nil {
			return
		}
		begins := bytes.Contains(piece[:n], []byte("INSERT INTO"))
		if begins {
			if todo = c.next(); todo == afterRows {
				if before, err = c.stored(); err != nil {
					t.Error(err)
				}
			}
		}
		switch {
		case todo == inHeader, todo == beforeRow && !begins:
			return
		case todo == afterRows && !begins && silent.shut():
			others.Go(func() {
				defer end()
				c.awaitMore(t, before)
			})
		}
		if _, err := server.Write(piece[:n]); err != nil {
			return
		}
	}
}

// awaitMore returns when the server has the rows whose answer is lost.
func (c *cable) awaitMore(t testing.TB, than uint64) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		switch n, err := c.stored(); {
		case err != nil:
			t.Error(err)
			return
		case n > than:
			return
		case time.Now().After(end):
			t.Error("the rows whose answer is to be lost do not arrive")
			return
		}
	}
}

// A gate lets bytes through until it is shut, and swallows them from then on.
type gate struct {
	mu     sync.Mutex // guards the field below
	closed bool
	to     io.Writer
}

// shut is true for who shuts it.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.closed
	g.closed = true
	return !was
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return len(p), nil
	}
	return g.to.Write(p)
}

// The story: the native protocol's connections end at the worst moments. What was stored
// without an answer is sent again under its token, and the server has it already.
func TestRowsAreStoredOnceWhateverCutsTheirConnection(t *testing.T) {
	s := testkit.StartClickHouse(t, testkit.ClickHouseServerOptions{})
	direct := openAt(t, serverConfig(t, s, "native", false))
	if _, err := Migrate(t.Context(), direct, direct.log); err != nil {
		t.Fatal(err)
	}
	exec(t, direct, "SYSTEM STOP MERGES {{db}}.evaluations") // they would put together what is stored twice
	raw := func() (uint64, error) {
		return readOne(context.WithoutCancel(t.Context()), direct, query{"test", scan, "SELECT count() FROM {{db}}.evaluations"},
			func(scan func(...any) error) (n uint64, err error) { return n, scan(&n) })
	}
	c := newCable(t, s.Native, raw, afterRows, whole, inHeader, beforeRow, afterRows, whole, afterRows)
	through := serverConfig(t, s, "native", false)
	through.Addr = c.addr
	db, err := Open(t.Context(), through, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	cfg := defaults()
	cfg.BatchAge, cfg.BatchRows = 20*time.Millisecond, 500
	w := runWriter(t, db, cfg)
	o := &outcomes{}
	const n = 3000
	o.add(t, w, numbers(n)...)
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, told := range o.told {
		if len(told) != 1 || told[0] != nil {
			t.Errorf("%s was told %v, want once that it is durable", id, told)
		}
	}
	if rows, err := raw(); err != nil || rows != n || len(o.told) != n {
		t.Errorf("%d rows in the table before deduplication (%v), %d told, want %d", rows, err, len(o.told), n)
	}
	if c.count() < len(c.cuts) {
		t.Errorf("only %d inserts, so not every cut came up", c.count())
	}
}
