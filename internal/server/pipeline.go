package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
	dto "github.com/prometheus/client_model/go"
)

type pipelineOutput struct {
	Body pipelineBody
}

// pipelineBody is read from this process's metrics. What it does not run is null.
type pipelineBody struct {
	Ready         bool     `json:"ready"`
	NotReady      string   `json:"not_ready,omitempty" doc:"Why, unless ready"`
	LagRecords    *float64 `json:"lag_records" doc:"Records not read yet, of the partitions this process owns"`
	LagSeconds    *float64 `json:"lag_seconds" doc:"The largest of its partitions"`
	InFlight      *float64 `json:"in_flight_records"`
	BufferRatio   *float64 `json:"sink_buffer_ratio" doc:"How full the rows' buffer is"`
	SinkOpen      *bool    `json:"sink_open" doc:"false while ClickHouse takes no rows"`
	JudgesOpen    *float64 `json:"judges_held" doc:"Judges left alone after failures"`
	CostUSD       *float64 `json:"cost_usd" doc:"Spent on judges since this process started"`
	BudgetRatio   *float64 `json:"budget_spent_ratio" doc:"The largest share of a judge's daily budget that is spent"`
	DeadLetters   *float64 `json:"dead_letters" doc:"Since this process started"`
	RecordsRead   *float64 `json:"records_read" doc:"Since this process started"`
	JudgedRows    *float64 `json:"judgements" doc:"Since this process started, of every status"`
	PausedBecause []string `json:"paused" nullable:"false" doc:"Reasons for which partitions are not read now"`
}

func (s *Server) addPipeline(api huma.API) {
	op := get(api, "get-pipeline", "/api/v1/pipeline", "How the stream of this process is doing",
		"A few of this process's metrics added up, for people; machines scrape /metrics.")
	huma.Register(api, op, s.pipeline)
}

func (s *Server) pipeline(ctx context.Context, _ *struct{}) (*pipelineOutput, error) {
	// A collector that fails leaves the others' families in the answer.
	families, err := s.deps.Gatherer.Gather()
	if len(families) == 0 && err != nil {
		return nil, huma.Error500InternalServerError("metrics: " + err.Error())
	}
	g := gathered{}
	for _, family := range families {
		g[family.GetName()] = family.GetMetric()
	}
	b := pipelineBody{
		Ready:       true,
		LagRecords:  g.sum("assay_consumer_lag_records"),
		LagSeconds:  g.max("assay_consumer_lag_seconds"),
		InFlight:    g.sum("assay_consumer_in_flight_records"),
		BufferRatio: g.max("assay_sink_buffer_ratio"),
		CostUSD:     g.sum("assay_judge_cost_usd_total"),
		BudgetRatio: g.max("assay_judge_budget_spent_ratio"),
		DeadLetters: g.sum("assay_dead_letters_total"),
		RecordsRead: g.sum("assay_consumer_records_total"),
		JudgedRows:  g.sum("assay_evaluations_total"),
	}
	if state := g.max("assay_sink_breaker_state"); state != nil {
		open := *state == 0
		b.SinkOpen = &open
	}
	if states := g["assay_judge_breaker_state"]; states != nil {
		held := 0.0
		for _, m := range states {
			if value(m) != 0 {
				held++
			}
		}
		b.JudgesOpen = &held
	}
	b.PausedBecause = g.reasons("assay_consumer_paused")
	if err := s.deps.Ready(ctx); err != nil {
		b.Ready, b.NotReady = false, err.Error()
	}
	return &pipelineOutput{Body: b}, nil
}

// gathered holds the series of a family by its name.
type gathered map[string][]*dto.Metric

func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return 0
}

// sum is nil without series: not running is not zero.
func (g gathered) sum(name string) *float64 {
	if len(g[name]) == 0 {
		return nil
	}
	total := 0.0
	for _, m := range g[name] {
		total += value(m)
	}
	return &total
}

func (g gathered) max(name string) *float64 {
	if len(g[name]) == 0 {
		return nil
	}
	most := value(g[name][0])
	for _, m := range g[name] {
		most = max(most, value(m))
	}
	return &most
}

func (g gathered) reasons(name string) []string {
	reasons, seen := []string{}, map[string]bool{}
	for _, m := range g[name] {
		for _, l := range m.GetLabel() {
			if l.GetName() == "reason" && value(m) != 0 && !seen[l.GetValue()] {
				seen[l.GetValue()] = true
				reasons = append(reasons, l.GetValue())
			}
		}
	}
	return reasons
}
