package engine

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// maxQuery bounds a statement without insert data.
const maxQuery = 16 << 20

// front is the HTTP interface over the lanes.
type front struct {
	cfg   Config
	lanes *lanes
	known map[string]bool // settings of this engine
	kill  *killer
	log   *slog.Logger
}

func (f *front) handler() http.Handler {
	mux := http.NewServeMux()
	// Without the token: it says only that something listens.
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "Ok.\n")
	})
	mux.HandleFunc("/", f.serve)
	return mux
}

func (f *front) serve(w http.ResponseWriter, r *http.Request) {
	if err := f.answer(w, r); err != nil {
		f.fail(w, r, err)
	}
}

// answer runs one request. It returns an error only while nothing has been sent.
func (f *front) answer(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path != "/" {
		return &httpError{http.StatusNotFound, "there is only / and /ping"}
	}
	if r.Method != http.MethodPost && r.Method != http.MethodGet {
		return &httpError{http.StatusMethodNotAllowed, "want POST"}
	}
	if !f.authorised(r) {
		return exceptionf(codeAuthentication, "Authentication failed: the token is wrong or missing (AUTHENTICATION_FAILED)")
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return &httpError{http.StatusBadRequest, "Content-Encoding " + strconv.Quote(enc) + ": the embedded engine takes plain bodies only"}
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return exceptionf(codeNotImplemented, "external tables are not offered by the embedded engine (NOT_IMPLEMENTED)")
	}
	req, bad := readURL(r.URL.Query(), f.known)
	if bad != nil {
		return bad
	}
	text, inURL := req.query, req.query != ""
	if !inURL {
		body, err := f.readText(r)
		if err != nil {
			return err
		}
		text = body
	}
	s, bad := parse(text)
	if bad != nil {
		return bad
	}
	if req.queryID != "" {
		w.Header().Set("X-ClickHouse-Query-Id", req.queryID)
	}
	switch {
	case s.kind == kindSession:
		return exceptionf(codeNotImplemented, "%s lasts for a session, and the embedded engine has none: give settings and database with each request (NOT_IMPLEMENTED)", s.verb)
	case s.kind == kindInsert && inURL:
		return f.insert(w, r, req, s, r.Body)
	case s.kind == kindInsert:
		return f.insert(w, r, req, s, nil)
	case inURL:
		rest, err := f.readText(r)
		if err != nil {
			return err
		}
		if strings.TrimSpace(rest) != "" {
			if s, bad = parse(text + "\n" + rest); bad != nil {
				return bad
			}
		}
	}
	return f.query(w, r, req, s)
}

func (f *front) readText(r *http.Request) (string, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxQuery+1))
	if err != nil {
		return "", &httpError{http.StatusBadRequest, fmt.Sprintf("read the query: %v", err)}
	}
	if len(body) > maxQuery {
		return "", exceptionf(codeQueryTooLarge, "the statement is larger than %d bytes (TOO_MANY_BYTES)", maxQuery)
	}
	return string(body), nil
}

// authorised accepts the token where ClickHouse's clients put a password.
func (f *front) authorised(r *http.Request) bool {
	given := r.Header.Get("X-ClickHouse-Key")
	if given == "" {
		_, given, _ = r.BasicAuth()
	}
	return subtle.ConstantTimeCompare([]byte(given), []byte(f.cfg.Token)) == 1
}

// query runs an ordinary statement and sends its answer.
func (f *front) query(w http.ResponseWriter, r *http.Request, req request, s statement) error {
	res, err := f.run(r.Context(), req, s)
	if err != nil {
		return err
	}
	defer res.close()

	format := s.format
	if format == "" {
		format = req.format
	}
	revision := uint64(0)
	if strings.EqualFold(format, "Native") {
		revision = req.revision
	}
	out, err := rewriteNative(res.bytes, revision)
	if err != nil {
		return exceptionf(codeCannotRead, "the embedded engine's answer cannot be passed on: %v (CANNOT_READ_ALL_DATA)", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(out.size))
	h.Set("X-ClickHouse-Format", format)
	h.Set("X-ClickHouse-Summary", summary(res.rowsRead, res.rowsWritten))
	if err := out.writeTo(w); err != nil {
		// The client is gone; there is nobody to tell.
		f.log.Debug("answer was not taken", "err", err)
	}
	return nil
}

// run executes s on a connection of its lane; when the client leaves, the
// statement is killed. The answer is its own and no longer the connection's.
func (f *front) run(ctx context.Context, req request, s statement) (*result, error) {
	ln := f.lanes.pick(s.kind, req.comment)
	c, err := ln.take(ctx)
	if err != nil {
		return nil, err
	}
	defer ln.give(c)
	if err := c.use(req.database); err != nil {
		return nil, err
	}
	s.defaultFormat = req.format
	mark, done := f.kill.watch(ctx)
	defer done()
	return c.query(mark+s.with(req.bounded(s, f.cfg)), req.format, req.params)
}

func summary(read, written uint64) string {
	return fmt.Sprintf(`{"read_rows":"%d","written_rows":"%d"}`, read, written)
}

// httpError is a fault of the request that has no code of ClickHouse.
type httpError struct {
	status int
	text   string
}

func (e *httpError) Error() string { return e.text }

// fail sends an error as a ClickHouse server does.
func (f *front) fail(w http.ResponseWriter, r *http.Request, err error) {
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	status := http.StatusInternalServerError
	var exception *Exception
	var plain *httpError
	switch {
	case r.Context().Err() != nil:
		// The client left: whatever is written goes nowhere.
		status = http.StatusServiceUnavailable
	case errors.As(err, &exception):
		status = httpStatus(exception.Code)
		h.Set("X-ClickHouse-Exception-Code", strconv.Itoa(exception.Code))
	case errors.As(err, &plain):
		status = plain.status
	}
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, err.Error()+"\n")
}
