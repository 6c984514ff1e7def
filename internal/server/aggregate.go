package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"assay/evaluators/aggregate"
)

type aggregateOutput struct {
	Body struct {
		Metric     string         `json:"metric"`
		Dialect    string         `json:"dialect,omitempty" doc:"As the request gave it"`
		Value      any            `json:"value" doc:"A number, a text, a truth or a list; null where there is nothing to say"`
		Interval   *rateBody      `json:"interval" doc:"Of means of parts from 0 to 1, at the number of items; else null"`
		Detail     map[string]any `json:"detail" nullable:"false"`
		Provenance string         `json:"provenance" doc:"How the claims or verdicts came about, as the request says"`
	}
}

type aggregatesOutput struct {
	Body struct {
		Metrics []metricBody `json:"metrics" nullable:"false"`
	}
}

type metricBody struct {
	Name     string   `json:"name"`
	Summary  string   `json:"summary"`
	Args     []string `json:"args" nullable:"false"`
	Dialects []string `json:"dialects,omitempty" doc:"The first is the default"`
}

var aggregateFields = []string{"metric", "dialect", "args", "provenance"}

func (s *Server) addAggregate(api huma.API) {
	op := huma.Operation{
		OperationID: "aggregate", Method: http.MethodPost, Path: "/api/v1/aggregate",
		Summary: "A metric over verdicts, labels or texts that you have",
		Description: "Nothing is judged. Arguments that make no sense are a 400 and never a number; what has no value " +
			"(a ratio of nothing) is null. GET /api/v1/aggregates lists the metrics and their arguments.",
		MaxBodyBytes:     int64(s.cfg.MaxBody),
		SkipValidateBody: true, // as for evaluate
	}
	huma.Register(api, op, s.aggregate)
	api.OpenAPI().Paths[op.Path].Post.RequestBody = aggregateSchema()

	list := get(api, "list-aggregates", "/api/v1/aggregates", "Metrics and their arguments",
		"Which arguments are needed depends on the form of the data; what is missing, the metric says.")
	huma.Register(api, list, func(context.Context, *struct{}) (*aggregatesOutput, error) {
		out := &aggregatesOutput{}
		for _, m := range aggregate.Metrics() {
			out.Body.Metrics = append(out.Body.Metrics, metricBody{m.Name, m.Summary, m.Args, slices.DeleteFunc(m.Dialects, func(d string) bool { return d == "" })})
		}
		return out, nil
	})
}

func metricNames() []string {
	var names []string
	for _, m := range aggregate.Metrics() {
		names = append(names, m.Name)
	}
	return names
}

func (s *Server) aggregate(_ context.Context, in *evaluateInput) (*aggregateOutput, error) {
	var f faults
	all, err := document(in.RawBody)
	if err != nil {
		f.add("", "%v", err)
		return nil, f.problem()
	}
	given := make(map[string]json.RawMessage, len(all))
	for _, m := range all {
		if !slices.Contains(aggregateFields, m.name) {
			f.add(m.name, "unknown field%s", didYouMean(m.name, aggregateFields))
		} else if !isNull(m.value) {
			given[m.name] = m.value
		}
	}
	text := func(name, otherwise string) string {
		if raw, ok := given[name]; ok {
			if t := f.text(name, raw); t != nil {
				return *t
			}
		}
		return otherwise
	}
	name, dialect := text("metric", ""), text("dialect", "")
	provenance := text("provenance", aggregate.UnknownProvenance)
	metric, known := aggregate.Lookup(name)
	switch {
	case given["metric"] == nil:
		f.add("metric", "missing; want one of %s", strings.Join(metricNames(), ", "))
	case !known && kindOf(given["metric"]) == "a string":
		f.add("metric", "unknown metric %s%s", quoted(name), didYouMean(name, metricNames()))
	}
	if kindOf(given["args"]) != "an object" {
		f.add("args", "want an object with the metric's arguments, not %s", kindOf(given["args"]))
	}
	if err := f.problem(); err != nil {
		return nil, err
	}
	v, err := metric.Compute(dialect, given["args"])
	if err != nil {
		f.add("args", "%v", err)
		return nil, f.problem()
	}
	out := &aggregateOutput{}
	b := &out.Body
	b.Metric, b.Dialect, b.Value, b.Detail, b.Provenance = name, dialect, v.V, v.Detail, provenance
	if b.Detail == nil {
		b.Detail = map[string]any{}
	}
	if r := v.Interval; r != nil {
		b.Interval = &rateBody{r.Value, r.Lower, r.Upper, confidence, r.N}
	}
	return out, nil
}

func aggregateSchema() *huma.RequestBody {
	schema := closed(map[string]*huma.Schema{
		"metric":     {Type: huma.TypeString, Enum: enum(metricNames())},
		"dialect":    {Type: huma.TypeString, Description: "Where known implementations disagree: which one's rule"},
		"args":       {Type: huma.TypeObject, AdditionalProperties: true, Description: "The metric's arguments, as GET /api/v1/aggregates lists them"},
		"provenance": {Type: huma.TypeString, Description: "How the claims or verdicts came about: comes back with the value"},
	}, "metric", "args")
	return &huma.RequestBody{
		Required: true,
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: schema,
			Example: map[string]any{
				"metric":     "faithfulness",
				"args":       map[string]any{"claims": [][]any{{true, true, false}, {"supported"}}},
				"provenance": "sentences, judged by two people",
			},
		}},
	}
}
