package server

import (
	"context"
	"net/http"
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
}

type evaluateOutput struct {
	Body evaluateBody
}

// evaluateBody holds results for one item, or items and aggregates for a batch.
type evaluateBody struct {
	Judge      string          `json:"judge" doc:"The judge that was asked, by its name in the checks file"`
	Results    []resultBody    `json:"results,omitempty" doc:"One per evaluator, in the order of the request; absent for a batch"`
	Items      []itemBody      `json:"items,omitempty" doc:"One per item of a batch, in the order of the request"`
	Aggregates []aggregateBody `json:"aggregates,omitempty" doc:"One per evaluator, over the items of a batch"`
}

type itemBody struct {
	ID      string       `json:"id,omitempty" doc:"As the request gave it"`
	Results []resultBody `json:"results" nullable:"false"`
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
			"and a reason, never a score. 429 when the judge's budget leaves nothing to do, 503 when the judge is left alone after failures.",
		MaxBodyBytes:     int64(s.cfg.MaxBody),
		SkipValidateBody: true, // parse names fields and what would be right; a schema cannot
	}
	huma.Register(api, op, s.evaluate)
	api.OpenAPI().Paths[op.Path].Post.RequestBody = s.requestSchema()
}

func (s *Server) evaluate(ctx context.Context, in *evaluateInput) (*evaluateOutput, error) {
	req, err := s.parse(in.RawBody)
	if err != nil {
		return nil, err
	}
	results, err := s.judgeAll(ctx, req)
	if err != nil {
		// Only the end of the request ends a judgement without a result: the client
		// went away, or the process stops.
		return nil, huma.Error503ServiceUnavailable("the request ended before its judgements: " + context.Cause(ctx).Error())
	}
	if err := nothingDone(results); err != nil {
		return nil, err
	}
	out := &evaluateOutput{Body: evaluateBody{Judge: req.judgeName}}
	if !req.batch {
		out.Body.Results = resultBodies(results[0])
		return out, nil
	}
	for i, item := range req.items {
		out.Body.Items = append(out.Body.Items, itemBody{item.id, resultBodies(results[i])})
	}
	for e := range req.evaluators {
		column := make([]evaluators.Result, len(results))
		for i := range results {
			column[i] = results[i][e]
		}
		sum, err := aggregate.Summarise(column, confidence)
		if err != nil {
			s.deps.Log.Error("results could not be summed", "err", err)
			return nil, huma.Error500InternalServerError(err.Error())
		}
		out.Body.Aggregates = append(out.Body.Aggregates, aggregateOf(sum))
	}
	return out, nil
}

// judgeAll returns the results by item, then by evaluator. The error is not nil only
// when ctx was cancelled.
func (s *Server) judgeAll(ctx context.Context, req evaluation) ([][]evaluators.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.EvaluateTime)
	defer cancel()
	results := make([][]evaluators.Result, len(req.items))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.cfg.PerRequest)
	for i, item := range req.items {
		results[i] = make([]evaluators.Result, len(req.evaluators))
		for e, ev := range req.evaluators {
			g.Go(func() (err error) {
				results[i][e], err = s.judgeOne(ctx, ev, req.judge, item.Item)
				return err
			})
		}
	}
	return results, g.Wait()
}

// judgeOne waits for a slot, which no request can fill up alone, and judges. When the
// time is up before there is a slot, Evaluate finds an expired context and says so as
// it says every time-out.
func (s *Server) judgeOne(ctx context.Context, ev evaluators.Evaluator, j judge.Judge, item evaluators.Item) (evaluators.Result, error) {
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
