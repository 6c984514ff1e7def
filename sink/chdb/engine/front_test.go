package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlyKnownSettingsGetIntoTheStatement(t *testing.T) {
	known := map[string]bool{"max_threads": true, "log_comment": true, "max_memory_usage": true}
	r, bad := readURL(url.Values{
		"query": {"SELECT 1"}, "database": {"d"}, "default_format": {"Native"}, "client_protocol_version": {"54460"},
		"max_threads": {"2"}, "log_comment": {"assay:x"}, "param_a": {"1"}, "param_query": {"q"}, "compress": {"0"}, "wait_end_of_query": {"1"},
	}, known)
	if bad != nil {
		t.Fatal(bad)
	}
	if r.query != "SELECT 1" || r.database != "d" || r.format != "Native" || r.revision != 54460 || r.comment != "assay:x" ||
		len(r.settings) != 2 || len(r.params) != 2 || r.params[1] != (param{"query", "q"}) {
		t.Errorf("read as %+v", r)
	}
	f := func(values url.Values, code int) {
		t.Helper()
		if _, bad := readURL(values, known); bad == nil || bad.Code != code {
			t.Errorf("%v: %v, want code %d", values, bad, code)
		}
	}
	f(url.Values{"max_threads, readonly": {"1"}}, codeUnknownSetting)
	f(url.Values{"nope": {"1"}}, codeUnknownSetting)
	f(url.Values{"compress": {"1"}}, codeBadRequestParam)
	f(url.Values{"client_protocol_version": {"new"}}, codeBadRequestParam)
	f(url.Values{"session_id": {"s"}}, codeNotImplemented)
}

func TestLimitsAreAddedWhereTheRequestStatesNone(t *testing.T) {
	cfg := Default()
	f := func(verb string, stated []param, want ...string) {
		t.Helper()
		var names []string
		for _, p := range (request{settings: stated}).bounded(statement{verb: verb}, cfg) {
			names = append(names, p.name)
		}
		if strings.Join(names, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, want %v", verb, names, want)
		}
	}
	f("SELECT", nil, "max_memory_usage", "max_execution_time", "max_result_bytes")
	f("SELECT", []param{{"max_execution_time", "1"}}, "max_execution_time", "max_memory_usage", "max_result_bytes")
	// a change may take its time
	f("ALTER", nil, "max_memory_usage")
	f("INSERT", []param{{"max_memory_usage", "1"}}, "max_memory_usage")
}

func TestALaneIsChosenByCommentThenByKind(t *testing.T) {
	l := &lanes{inserts: newLane("inserts", 1), monitor: newLane("monitor", 1), reads: newLane("reads", 1)}
	f := func(k kind, comment string, want *lane) {
		t.Helper()
		if got := l.pick(k, comment); got != want {
			t.Errorf("kind %d with %q goes to %s, want %s", k, comment, got.name, want.name)
		}
	}
	f(kindInsert, "assay:sink", l.inserts)
	f(kindInsertSQL, "", l.inserts)
	f(kindInsertSQL, "assay:monitor.rollup", l.monitor)
	f(kindQuery, "assay:monitor", l.monitor)
	f(kindQuery, "assay:why", l.reads)
	f(kindChange, "", l.reads)
}

func TestALaneServesOneAtATimeAndRefusesPastItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLane("reads", 1, &conn{})
		held, err := l.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() {
			c, err := l.take(t.Context())
			if err == nil {
				l.give(c)
			}
			got <- err
		}()
		synctest.Wait() // that one waits now, and the queue is full
		var refused *Exception
		if _, err := l.take(t.Context()); !errors.As(err, &refused) || refused.Code != codeTooManyQueries {
			t.Errorf("past the queue: %v, want code %d", err, codeTooManyQueries)
		}
		l.give(held)
		if err := <-got; err != nil {
			t.Errorf("the one that waited: %v", err)
		}
		held, _ = l.take(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait without end: %v", err)
		}
		l.give(held)
		if n := l.waiting.Load(); n != 0 {
			t.Errorf("%d wait, want none", n)
		}
	})
}

// TestARequestThatIsNotOursNeverReachesTheEngine uses a front without lanes: a
// request that came through would be a nil dereference.
func TestARequestThatIsNotOursNeverReachesTheEngine(t *testing.T) {
	cfg := Default()
	cfg.Token = "0123456789abcdef"
	h := (&front{cfg: cfg, log: slog.New(slog.DiscardHandler)}).handler()
	f := func(status int, method, target, body string, header ...string) {
		t.Helper()
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%s %s %v: %d %s, want %d", method, target, header, w.Code, w.Body, status)
		}
	}
	const key = "X-ClickHouse-Key"
	f(200, "GET", "/ping", "")
	f(403, "POST", "/", "SELECT 1")
	f(403, "POST", "/", "SELECT 1", key, "0123456789abcdeX")
	f(403, "POST", "/", "SELECT 1", key, "")
	f(404, "POST", "/play", "SELECT 1", key, cfg.Token)
	f(405, "DELETE", "/", "", key, cfg.Token)
	f(400, "POST", "/", "SELECT 1", key, cfg.Token, "Content-Encoding", "gzip")
	f(501, "POST", "/", "", key, cfg.Token, "Content-Type", "multipart/form-data; boundary=x")
	f(400, "POST", "/", "", key, cfg.Token)
	f(413, "POST", "/", strings.Repeat(" ", maxQuery+1), key, cfg.Token)
	f(404, "POST", "/?no_setting=1", "SELECT 1", key, cfg.Token)
	f(501, "POST", "/", "USE x", key, cfg.Token)
}

func TestAnErrorTextGivesItsCode(t *testing.T) {
	f := func(text string, code int, message string) {
		t.Helper()
		if e := newException(text); e.Code != code || e.Message != message {
			t.Errorf("%q: code %d, %q, want %d, %q", text, e.Code, e.Message, code, message)
		}
	}
	f("Code: 60. DB::Exception: no table (UNKNOWN_TABLE)\n", 60, "Code: 60. DB::Exception: no table (UNKNOWN_TABLE)")
	f("Error: Code: 241. DB::Exception: memory", 241, "Code: 241. DB::Exception: memory")
	f("Streaming insert failed", codeNoEngine, "Code: 1001. DB::Exception: Streaming insert failed")
	f("Code: 0. nonsense", codeNoEngine, "Code: 1001. DB::Exception: Code: 0. nonsense")
}

func TestAnUnreadableAnswerIsAnErrorNotAShortAnswer(t *testing.T) {
	// one UInt8 column "n" with two rows
	block := []byte("\x01\x02\x01n\x05UInt8\x07\x08")
	out, err := rewriteNative(append(bytes.Clone(block), block...), 54460)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := out.writeTo(&got); err != nil {
		t.Fatal(err)
	}
	one := string(blockInfo) + "\x01\x02\x01n\x05UInt8\x00\x07\x08"
	if got.String() != one+one || out.size != got.Len() {
		t.Errorf("became %q (size %d), want %q", got.String(), out.size, one+one)
	}
	for cut := 1; cut < len(block); cut++ {
		if _, err := rewriteNative(block[:cut], 54460); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v, want an unexpected end", cut, err)
		}
	}
	if _, err := rewriteNative([]byte("\x01\x02\x01n\x04What\x07\x08"), 54460); err == nil || !strings.Contains(err.Error(), "column n What") {
		t.Errorf("unknown type: %v", err)
	}
	if out, err := rewriteNative(block, 0); err != nil || out.size != len(block) {
		t.Errorf("revision 0 is not passed on as it is: %v", err)
	}
}

// TestOffsetsAreExactAcrossBuffers: the second block starts where the first one
// ends, also when a column is larger than every buffer between.
func TestOffsetsAreExactAcrossBuffers(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var data []byte
	for range 3 {
		data = append(data, "\x01\x01\x01s\x06String"...)
		data = append(data, 0x80, 0x80, 0x40) // 1 << 20
		data = append(data, long...)
	}
	out, err := rewriteNative(data, 54460)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(data) + 3*(len(blockInfo)+1); out.size != want {
		t.Errorf("%d bytes, want %d", out.size, want)
	}
}

func TestADirectoryIsLockedForOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "clickhouse")
	first, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockDir(dir)
	if err == nil || !strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("second lock: %v, want the first one's pid", err)
	}
	first.unlock()
	again, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.unlock()
}

func TestAnEngineIsForLoopbackOnly(t *testing.T) {
	cfg := Default()
	if err := cfg.Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("without path, library and token: %v, want all three", err)
	}
	cfg.Path, cfg.Library, cfg.Token = t.TempDir(), "lib.so", "0123456789abcdef"
	f := func(addr string, ok bool) {
		t.Helper()
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ln.Close() }()
		_, err = New(cfg, Deps{Listener: ln, Ready: io.Discard, Log: slog.New(slog.DiscardHandler)})
		if (err == nil) != ok {
			t.Errorf("listen on %s: %v", addr, err)
		}
	}
	f("127.0.0.1:0", true)
	f("0.0.0.0:0", false)
}

func TestCodesHaveAServersStatus(t *testing.T) {
	for code, want := range map[int]int{516: 403, 62: 400, 60: 404, 81: 404, 159: 408, 202: 503, 48: 501, 241: 500, 252: 500, 469: 500} {
		if got := httpStatus(code); got != want {
			t.Errorf("code %d: %d %s, want %d", code, got, http.StatusText(got), want)
		}
	}
}
