package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	evaluateRoute   = "POST /api/v1/evaluate"
	evaluatorsRoute = "GET /api/v1/evaluators"
	evaluatorRoute  = "GET /api/v1/evaluators/{name}"
	aggregateRoute  = "POST /api/v1/aggregate"
	aggregatesRoute = "GET /api/v1/aggregates"
	labelsRoute     = "POST /api/v1/labels"
	qualityRoute    = "GET /api/v1/quality"
	seriesRoute     = "GET /api/v1/quality/series"
	alarmsRoute     = "GET /api/v1/alarms"
	whyRoute        = "GET /api/v1/why/{id}"
	pipelineRoute   = "GET /api/v1/pipeline"
	openAPIRoute    = "GET /openapi.json"
	metricsRoute    = "GET /metrics"
	healthyRoute    = "GET /-/healthy"
	readyRoute      = "GET /-/ready"
	pageRoute       = "GET /{file...}"
)

// routes builds the handler: what every request passes, outermost first, then the mux.
func (s *Server) routes() (http.Handler, error) {
	mux := http.NewServeMux()
	posts, err := s.api(mux)
	if err != nil {
		return nil, err
	}
	s.addMetrics(mux)
	mux.HandleFunc(healthyRoute, func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "healthy") })
	mux.HandleFunc(readyRoute, s.ready)
	page, err := newPage()
	if err != nil {
		return nil, err
	}
	mux.Handle(pageRoute, page)

	m, err := newMetrics(s.deps.Reg, []string{
		evaluateRoute, evaluatorsRoute, evaluatorRoute, aggregateRoute, aggregatesRoute, labelsRoute, qualityRoute, seriesRoute, alarmsRoute, whyRoute, pipelineRoute,
		openAPIRoute, metricsRoute, healthyRoute, readyRoute, pageRoute,
	})
	if err != nil {
		return nil, err
	}
	return bodyDeadline(s.cfg.ReadTimeout, m.count(s.safe(s.recovering(sameOrigin(only(posts, mux)))))), nil
}

// only answers other methods on paths that take POST alone: GET would find the page's
// route there, which takes every path.
func only(posts map[string]bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if posts[r.URL.Path] && r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			writeProblem(w, http.StatusMethodNotAllowed, r.URL.Path+" takes POST")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// api registers what the OpenAPI document describes. It returns the paths that take POST
// alone.
func (s *Server) api(mux *http.ServeMux) (posts map[string]bool, err error) {
	cfg := huma.DefaultConfig("Assay", s.deps.Version)
	cfg.Info.Description = "Judges answers of AI assistants and reports what it measures of a stream of them. " +
		"Refused requests get problem details (RFC 9457)."
	// No page that loads its script from elsewhere, no links to schemas in answers:
	// the document is at one address and complete.
	cfg.DocsPath, cfg.SchemasPath, cfg.OpenAPIPath, cfg.CreateHooks = "", "", "", nil
	api := humago.New(mux, cfg)

	s.addEvaluate(api)
	s.addEvaluators(api)
	s.addEvaluator(api)
	s.addAggregate(api)
	s.addLabels(api)
	s.addQuality(api)
	s.addAlarms(api)
	s.addWhy(api)
	s.addPipeline(api)

	allowNulls(api.OpenAPI().Components.Schemas)
	posts = make(map[string]bool)
	for path, item := range api.OpenAPI().Paths {
		posts[path] = item.Post != nil && item.Get == nil
	}
	document, err := api.OpenAPI().MarshalJSON()
	if err != nil {
		return nil, err
	}
	mux.HandleFunc(openAPIRoute, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.oai.openapi+json;version=3.1")
		_, _ = w.Write(document) // a client that has gone needs no answer
	})
	return posts, nil
}

// get describes a GET operation. Parameters that it does not know are refused: a filter
// that is silently ignored gives a wrong answer with a good face.
func get(api huma.API, id, path, summary, description string) huma.Operation {
	op := huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Description: description}
	op.SkipValidateParams = true // the handlers say what would be right, with 400
	op.Middlewares = huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) {
		u := ctx.URL()
		var known []string
		for _, p := range ctx.Operation().Parameters {
			if p.In != "query" {
				continue
			}
			known = append(known, p.Name)
			if p.Schema.Format == "date-time" && u.Query().Has(p.Name) && u.Query().Get(p.Name) == "" {
				_ = huma.WriteErr(api, ctx, http.StatusBadRequest, p.Name+" is empty: want a time as in 2026-08-01T12:00:00Z, or leave it out")
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(u.Query())) {
			if !slices.Contains(known, name) {
				// The answer to a client that has gone may fail; nobody is there to hear.
				_ = huma.WriteErr(api, ctx, http.StatusBadRequest, "unknown parameter "+quoted(name)+didYouMean(name, known))
				return
			}
		}
		next(ctx)
	}}
	return op
}

// unavailable is what an answer becomes when the store gives none. It is logged here
// and nowhere else.
func (s *Server) unavailable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return huma.Error503ServiceUnavailable("the request ended before its answer")
	}
	s.deps.Log.Error("store did not answer", "for", what, "err", err)
	return huma.Error503ServiceUnavailable("ClickHouse did not answer: " + err.Error())
}

// safe sets the headers that keep a browser from running or framing anything that is
// not ours, whatever text of interactions a page shows.
func (s *Server) safe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// recovering answers for a handler that panicked and keeps its trace: net/http would end
// the connection without a word to the client.
func (s *Server) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler: // meant so
				panic(p)
			default:
				s.deps.Log.Error("a handler panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				if sw, ok := w.(*statusWriter); ok && sw.written {
					panic(http.ErrAbortHandler) // half an answer must not look whole
				}
				writeProblem(w, http.StatusInternalServerError, "the server failed at this request; its log says how")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses what another site's page sends through a visitor's browser: it
// could spend the judges' budget from there.
func sameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusForbidden, "a page of another origin may not send this request")
	}))
	return p.Handler(next)
}

// bodyDeadline bounds how long a body may take, and nothing else. http.Server's own
// ReadTimeout stays in force while the handler works and then cancels the request: a
// judge slower than it would never be waited for (golang/go#16100).
//
// The body is exchanged on a copy of the request: the server looks at its own one to
// see whether a body was left unread, and would otherwise take the rest of it for the
// connection's next request.
func bodyDeadline(limit time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			c := http.NewResponseController(w)
			if c.SetReadDeadline(time.Now().Add(limit)) == nil {
				own := *r
				own.Body = &timedBody{ReadCloser: r.Body, whole: func() { _ = c.SetReadDeadline(time.Time{}) }}
				r = &own
			}
		}
		next.ServeHTTP(w, r)
	})
}

// A timedBody calls whole when all of it has come.
type timedBody struct {
	io.ReadCloser
	whole func()
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { // after any other error Close still reads, and must not wait for ever
		b.whole()
	}
	return n, err
}

// addMetrics lets Prometheus in. A scrape reads memory; the bounds are for scrapers
// that come faster than they leave.
func (s *Server) addMetrics(mux *http.ServeMux) {
	mux.Handle(metricsRoute, promhttp.HandlerFor(s.deps.Gatherer, promhttp.HandlerOpts{
		ErrorLog:            scrapeLog{s.deps.Log},
		ErrorHandling:       promhttp.ContinueOnError,
		EnableOpenMetrics:   true,
		CoalesceGather:      true,
		MaxRequestsInFlight: 8,
		Timeout:             10 * time.Second,
	}))
}

// scrapeLog logs what goes wrong in a scrape, but for a scraper that hung up: that is
// one line for each family still to come, and nobody's fault here.
type scrapeLog struct{ log *slog.Logger }

func (l scrapeLog) Println(v ...any) {
	for _, part := range v {
		if err, ok := part.(error); ok && (errors.Is(err, context.Canceled) || errors.Is(err, syscall.EPIPE)) {
			return
		}
	}
	l.log.Error("a scrape failed", "err", strings.TrimSpace(fmt.Sprintln(v...)))
}

// ready says whether to count on this process, and why not.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if err := s.deps.Ready(ctx); err != nil {
		plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return
	}
	plain(w, http.StatusOK, "ready")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a client that has gone needs no answer
}
