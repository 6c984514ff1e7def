package server

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// lineTimeout is how long a client may take to take a line.
const lineTimeout = 30 * time.Second

// ndjson is one JSON object a line.
const ndjson = "application/x-ndjson"

// wantsLines reports whether an Accept header asks for lines by name: */* does not.
func wantsLines(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || kind != ndjson {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		return params["q"] == "" || err == nil && q > 0
	}
	return false
}

// lineBody is an item of a batch, by its place in the request.
type lineBody struct {
	Index   int          `json:"index" doc:"Place in the request, from 0"`
	ID      string       `json:"id,omitempty" doc:"As the request gave it"`
	Results []resultBody `json:"results,omitempty"`
	DryRun  []dryRunBody `json:"dry_run,omitempty"`
}

func (w *work) line(i int) lineBody {
	item := w.item(i)
	return lineBody{i, item.ID, item.Results, item.DryRun}
}

// lastLine ends an answer that is whole.
type lastLine struct {
	Judge      string          `json:"judge" doc:"The judge that was asked, by its name in the checks file"`
	Items      int             `json:"items" doc:"How many there were"`
	Aggregates []aggregateBody `json:"aggregates,omitempty" doc:"One per evaluator, over all items"`
}

// problemLine ends an answer that could not be made whole: its status had been sent.
type problemLine struct {
	Problem *huma.ErrorModel `json:"problem"`
}

// evaluateLines answers line by line. Nothing is sent before a judgement was tried, so
// that a request of which nothing comes still gets its own status.
func (s *Server) evaluateLines(ctx context.Context, req evaluation) (*huma.StreamResponse, error) {
	w := s.begin(ctx, req)
	var held []int
	for i := range w.done {
		held = append(held, i)
		if req.dryRun || nothingDone(w.results[i:i+1]) == nil {
			return &huma.StreamResponse{Body: func(hc huma.Context) { s.writeLines(ctx, hc, w, held) }}, nil
		}
	}
	if err := w.problem(ctx); err != nil {
		return nil, err
	}
	// Each was shed, but not all for one reason.
	return &huma.StreamResponse{Body: func(hc huma.Context) { s.writeLines(ctx, hc, w, held) }}, nil
}

// writeLines writes the items that were held back, the others as they are done, and
// what all of them say together.
func (s *Server) writeLines(ctx context.Context, hc huma.Context, w *work, held []int) {
	hc.SetHeader("Content-Type", ndjson)
	hc.SetHeader("X-Accel-Buffering", "no") // proxies that know it pass lines on at once
	hc.SetStatus(http.StatusOK)
	out := hc.BodyWriter()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	gone := false
	write := func(v any) {
		if gone {
			return
		}
		rw, ok := out.(http.ResponseWriter)
		if ok {
			_ = http.NewResponseController(rw).SetWriteDeadline(time.Now().Add(lineTimeout))
		}
		gone = enc.Encode(v) != nil // the end of the request ends its judgements
		if ok && !gone {
			gone = http.NewResponseController(rw).Flush() != nil
		}
	}
	for _, i := range held {
		write(w.line(i))
	}
	for i := range w.done {
		write(w.line(i))
	}
	err := w.err
	if err != nil {
		err = w.problem(ctx)
	}
	last := lastLine{Judge: w.req.judgeName, Items: len(w.req.items)}
	if err == nil {
		last.Aggregates, err = s.aggregates(w)
	}
	var problem *huma.ErrorModel
	if errors.As(err, &problem) {
		write(problemLine{problem})
		return
	}
	write(last)
}

// evaluateResponses describes both forms of the answer: huma sees only that there is one.
func evaluateResponses(schemas huma.Registry) map[string]*huma.Response {
	of := func(t reflect.Type) *huma.Schema { return schemas.Schema(t, true, "") }
	line := &huma.Schema{
		Description: "Each line is one of these: items as they are done, then one last line",
		OneOf:       []*huma.Schema{of(reflect.TypeFor[lineBody]()), of(reflect.TypeFor[lastLine]()), of(reflect.TypeFor[problemLine]())},
	}
	return map[string]*huma.Response{"200": {
		Description: "OK",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: of(reflect.TypeFor[evaluateBody]())},
			ndjson:             {Schema: line},
		},
	}}
}
