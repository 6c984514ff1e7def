package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	"assay/evaluators"
	"assay/evaluators/aggregate"
	"assay/evaluators/judge"
)

// confidence is the level of the intervals of aggregates.
const confidence = 0.95

type evaluateInput struct {
	RawBody []byte
	lines   bool // the client wants NDJSON
}

// Resolve sees what form of answer the client accepts.
func (in *evaluateInput) Resolve(ctx huma.Context) []error {
	in.lines = wantsLines(ctx.Header("Accept"))
	return nil
}

// evaluateBody holds results for one item, or items and aggregates for a batch. In a dry
// run questions stand in place of results.
type evaluateBody struct {
	Judge      string          `json:"judge" doc:"The judge that was asked, by its name in the checks file"`
	Results    []resultBody    `json:"results,omitempty" doc:"One per evaluator, in the order of the request; absent for a batch"`
	DryRun     []dryRunBody    `json:"dry_run,omitempty" doc:"In place of results where the request says dry_run"`
	Items      []itemBody      `json:"items,omitempty" doc:"One per item of a batch, in the order of the request"`
	Aggregates []aggregateBody `json:"aggregates,omitempty" doc:"One per evaluator, over the items of a batch"`
}

type itemBody struct {
	ID      string       `json:"id,omitempty" doc:"As the request gave it"`
	Results []resultBody `json:"results,omitempty"`
	DryRun  []dryRunBody `json:"dry_run,omitempty"`
}

type resultBody struct {
	Evaluator     string             `json:"evaluator"`
	Version       string             `json:"version" doc:"Hash of everything in the evaluator that can change a verdict"`
	Status        string             `json:"status" enum:"ok,unscored,not_applicable,shed,error"`
	Score         *float64           `json:"score" doc:"null unless status is ok"`
	Option        *string            `json:"option" doc:"The chosen option; null unless status is ok"`
	Label         *string            `json:"label" doc:"The option for people"`
	Confidence    *float64           `json:"confidence"`
	Passed        *bool              `json:"passed" doc:"null unless status is ok"`
	Probabilities map[string]float64 `json:"probabilities" nullable:"true"`
	Outside       *float64           `json:"outside" doc:"Mass that fell on no option"`
	Method        *string            `json:"method" doc:"How the distribution was obtained"`
	Model         *string            `json:"model" doc:"As the provider returned it"`
	Reason        *string            `json:"reason" doc:"A code; null exactly when status is ok"`
	Detail        map[string]any     `json:"detail" nullable:"false"`
	Usage         usageBody          `json:"usage"`
	LatencyMS     int64              `json:"latency_ms"`
}

type usageBody struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
}

type aggregateBody struct {
	Evaluator    string         `json:"evaluator"`
	Items        int            `json:"items"`
	PassRate     *rateBody      `json:"pass_rate,omitempty" doc:"Of the items with an answer; absent when none has one"`
	MeanScore    *float64       `json:"mean_score" doc:"Of the same; null when none has one"`
	MeanInterval *rateBody      `json:"mean_score_interval,omitempty" doc:"At least as wide as its level says"`
	MissingShare float64        `json:"missing_share" doc:"Of the items that should have an answer"`
	Options      map[string]int `json:"options" nullable:"false"`
	Statuses     map[string]int `json:"statuses" nullable:"false"`
	Reasons      map[string]int `json:"reasons" nullable:"false"`
	Usage        usageBody      `json:"usage"`
	Cached       int            `json:"cached" doc:"Answers that cost nothing"`
}

type rateBody struct {
	Value float64 `json:"value"`
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
	Level float64 `json:"level"`
	N     int     `json:"n"`
}

func (s *Server) addEvaluate(api huma.API) {
	op := huma.Operation{
		OperationID: "evaluate", Method: http.MethodPost, Path: "/api/v1/evaluate",
		Summary: "Judge an item, or up to 1,000",
		Description: "200 whenever the request was understood, whatever the statuses of its results: a failed judgement has a status " +
			"and a reason, never a score. 429 when the judge's budget leaves nothing to do, 503 when the judge is left alone after failures. " +
			"With Accept: application/x-ndjson each item comes as a line as soon as it is done, with its index in the request, and the " +
			"last line holds the aggregates: without that line the answer is not whole.",
		MaxBodyBytes:     int64(s.cfg.MaxBody),
		SkipValidateBody: true, // parse names fields and what would be right; a schema cannot
		Responses:        evaluateResponses(api.OpenAPI().Components.Schemas),
	}
	huma.Register(api, op, s.evaluate)
	api.OpenAPI().Paths[op.Path].Post.RequestBody = s.requestSchema()
}

func (s *Server) evaluate(ctx context.Context, in *evaluateInput) (*huma.StreamResponse, error) {
	req, err := s.parse(in.RawBody)
	if err != nil {
		return nil, err
	}
	if in.lines {
		return s.evaluateLines(ctx, req)
	}
	w := s.begin(ctx, req)
	for range w.done { // nobody waits for single items
	}
	if err := w.problem(ctx); err != nil {
		return nil, err
	}
	body := evaluateBody{Judge: req.judgeName}
	if !req.batch {
		only := w.item(0)
		body.Results, body.DryRun = only.Results, only.DryRun
		return whole(body), nil
	}
	for i := range req.items {
		body.Items = append(body.Items, w.item(i))
	}
	if body.Aggregates, err = s.aggregates(w); err != nil {
		return nil, err
	}
	return whole(body), nil
}

// whole is an answer in one piece.
func whole(body any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		ctx.SetStatus(http.StatusOK)
		enc := json.NewEncoder(ctx.BodyWriter())
		enc.SetEscapeHTML(false)
		_ = enc.Encode(body) // a client that has gone needs no answer
	}}
}

// A work is a request that is being judged.
type work struct {
	req     evaluation
	results [][]evaluators.Result // by item, then by evaluator
	dry     [][]dryRunBody        // in place of them in a dry run
	done    chan int              // items by index, as they are done; closed at the end
	err     error                 // of a cancelled context; to be read once done is closed
}

// begin judges in the background. Whoever calls reads done to its end.
func (s *Server) begin(ctx context.Context, req evaluation) *work {
	w := &work{req: req, done: make(chan int, len(req.items))}
	go func() {
		defer close(w.done)
		if req.dryRun {
			w.dry = make([][]dryRunBody, len(req.items))
			for i, item := range req.items {
				if w.dry[i], w.err = s.dryRun(ctx, req, item.Item); w.err != nil {
					return
				}
				w.done <- i
			}
			return
		}
		w.err = s.judgeAll(ctx, w)
	}()
	return w
}

// problem is why there is no answer, nil if there is one; done must have been read to
// its end.
func (w *work) problem(ctx context.Context) error {
	if w.err != nil && ctx.Err() == nil {
		return huma.Error500InternalServerError(w.err.Error())
	}
	if w.err != nil {
		// Only the end of the request ends a judgement without a result: the client
		// went away, or the process stops.
		return huma.Error503ServiceUnavailable("the request ended before its judgements: " + context.Cause(ctx).Error())
	}
	if w.req.dryRun {
		return nil
	}
	return nothingDone(w.results)
}

// item is what there is to say about an item that is done.
func (w *work) item(i int) itemBody {
	body := itemBody{ID: w.req.items[i].id}
	if w.req.dryRun {
		body.DryRun = w.dry[i]
	} else {
		body.Results = resultBodies(w.results[i])
	}
	return body
}

// aggregates sums up by evaluator.
func (s *Server) aggregates(w *work) ([]aggregateBody, error) {
	if w.req.dryRun {
		return nil, nil
	}
	var all []aggregateBody
	for e := range w.req.evaluators {
		column := make([]evaluators.Result, len(w.results))
		for i := range w.results {
			column[i] = w.results[i][e]
		}
		sum, err := aggregate.Summarise(column, confidence)
		if err != nil {
			s.deps.Log.Error("results could not be summed", "err", err)
			return nil, huma.Error500InternalServerError(err.Error())
		}
		all = append(all, aggregateOf(sum))
	}
	return all, nil
}

// judgeAll fills in the results. The error is not nil only when ctx was cancelled.
func (s *Server) judgeAll(ctx context.Context, w *work) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.EvaluateTime)
	defer cancel()
	w.results = make([][]evaluators.Result, len(w.req.items))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.cfg.PerRequest)
	for i, item := range w.req.items {
		results := make([]evaluators.Result, len(w.req.evaluators))
		w.results[i] = results
		var left atomic.Int64
		left.Store(int64(len(results)))
		for e, ev := range w.req.evaluators {
			g.Go(func() (err error) {
				if results[e], err = s.judgeOne(ctx, ev, w.req.judge, item.Item); err != nil {
					return err
				}
				if left.Add(-1) == 0 {
					w.done <- i
				}
				return nil
			})
		}
	}
	return g.Wait()
}

// reasonPanic is that of a judgement that a fault of ours ended, here as in the stream.
const reasonPanic = "panic"

// judgeOne waits for a slot, which no request can fill up alone, and judges. When the
// time is up before there is a slot, Evaluate finds an expired context and says so as
// it says every time-out.
func (s *Server) judgeOne(ctx context.Context, ev evaluators.Evaluator, j judge.Judge, item evaluators.Item) (r evaluators.Result, err error) {
	// A goroutine's panic would end the process, and with it everybody's requests.
	defer func() {
		if p := recover(); p != nil {
			s.deps.Log.Error("an evaluator panicked", "evaluator", ev.Name(), "panic", p, "stack", string(debug.Stack()))
			r = evaluators.Result{
				Evaluator: ev.Name(), Version: ev.Definition().Hash(), Status: evaluators.Error, Reason: reasonPanic,
				Detail: map[string]any{"error": fmt.Sprint(p)},
			}
			err = nil
		}
	}()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(ctx, s.deps.Deadline)
	defer cancel()
	return ev.Evaluate(ctx, j, item)
}

// nothingDone is the problem of a request none of whose judgements was even tried.
func nothingDone(results [][]evaluators.Result) error {
	reason, after := "", time.Duration(0)
	for _, of := range results {
		for _, r := range of {
			if r.Status != evaluators.Shed || reason != "" && r.Reason != reason {
				return nil
			}
			reason = r.Reason
			if ms, ok := r.Detail["retry_after_ms"].(int64); ok {
				after = max(after, time.Duration(ms)*time.Millisecond)
			}
		}
	}
	switch reason {
	case judge.ShedBudget:
		return later(huma.Error429TooManyRequests("the judge's budget for today is spent; nothing was judged"), after)
	case judge.ShedBreaker:
		return later(huma.Error503ServiceUnavailable("the judge is left alone after failures; nothing was judged"), after)
	}
	return nil
}

func resultBodies(results []evaluators.Result) []resultBody {
	bodies := make([]resultBody, len(results))
	for i, r := range results {
		b := resultBody{
			Evaluator: r.Evaluator, Version: r.Version, Status: string(r.Status),
			Score: r.Score, Confidence: r.Confidence, Passed: r.Passed,
			Option: orNull(r.Option), Label: orNull(r.Label), Reason: orNull(r.Reason),
			Method: orNull(string(r.Method)), Model: orNull(r.Model),
			Detail: r.Detail, Usage: usageOf(r.Usage), LatencyMS: r.Latency.Milliseconds(),
		}
		if b.Detail == nil {
			b.Detail = map[string]any{}
		}
		if len(r.Probabilities) > 0 {
			outside := r.Outside
			b.Outside, b.Probabilities = &outside, make(map[string]float64, len(r.Probabilities))
			for k, p := range r.Probabilities {
				b.Probabilities[r.OptionNames[k]] = p
			}
		}
		bodies[i] = b
	}
	return bodies
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func usageOf(u judge.Usage) usageBody { return usageBody{u.InputTokens, u.OutputTokens, u.USD} }

func aggregateOf(sum aggregate.Summary) aggregateBody {
	b := aggregateBody{
		Evaluator: sum.Evaluator, Items: sum.Items, MeanScore: sum.MeanScore, MissingShare: sum.Missing,
		Options: sum.Options, Statuses: make(map[string]int, len(sum.Statuses)), Reasons: sum.Reasons,
		Usage: usageBody{sum.Usage.InputTokens, sum.Usage.OutputTokens, sum.Usage.USD}, Cached: sum.Cached,
	}
	if r := sum.PassRate; r != nil {
		b.PassRate = &rateBody{r.Value, r.Lower, r.Upper, confidence, r.N}
	}
	if r := sum.MeanRate; r != nil {
		b.MeanInterval = &rateBody{r.Value, r.Lower, r.Upper, confidence, r.N}
	}
	for status, n := range sum.Statuses {
		b.Statuses[string(status)] = n
	}
	return b
}
