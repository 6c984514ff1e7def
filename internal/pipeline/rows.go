package pipeline

import (
	"encoding/json"
	"math"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/interaction"
	"assay/sink"
)

// epoch1970 is the row version of judgements that failed: any answer wins over it.
var epoch1970 = time.Unix(0, 0).UTC()

// identity is what a row says whatever was judged. It comes from the log and the checks
// file alone, so a replay writes the same row again.
func (p *Pipeline) identity(c *check, j job) sink.Evaluation {
	it := j.it
	slice := it.Slice(p.deps.Checks.Dimensions)
	return sink.Evaluation{
		Check: c.Name, CheckVersion: c.Version,
		Time: it.Time, InteractionID: it.ID,
		Topic: it.Topic, Partition: uint32(it.Partition), Offset: uint64(it.Offset), Element: uint16(it.Element),
		Tenant: it.Tenant, App: it.App, Model: it.Model, Route: it.Route,
		PromptVersion: it.PromptVersion, Environment: it.Environment,
		SliceID: slice.ID(), Slice: slice,
		Stratum: j.decision.Stratum, Pi: j.decision.Pi, Epoch: j.decision.Epoch,
		Judge: c.Check.Judge, Worker: p.cfg.Worker,
	}
}

// failed is the row of a judgement that went wrong in our own code. It holds nothing
// that was being worked on.
func (p *Pipeline) failed(c *check, j job, reason string) sink.Evaluation {
	row := p.identity(c, j)
	row.Status, row.Reason = string(evaluators.Error), reason
	row.Method, row.EvaluatedAt = string(judge.None), epoch1970
	return row
}

// rejected is what is stored in place of a row that ClickHouse refused: who was judged,
// how it was sampled and what it cost, and no word of the judgement.
func rejected(row sink.Evaluation) sink.Evaluation {
	return sink.Evaluation{
		Check: row.Check, CheckVersion: row.CheckVersion,
		Time: row.Time, InteractionID: row.InteractionID,
		Repeat: row.Repeat, Topic: row.Topic, Partition: row.Partition, Offset: row.Offset, Element: row.Element,
		Tenant: row.Tenant, App: row.App, Model: row.Model, Route: row.Route,
		PromptVersion: row.PromptVersion, Environment: row.Environment,
		SliceID: row.SliceID, Slice: row.Slice,
		Stratum: row.Stratum, Pi: row.Pi, Epoch: row.Epoch,
		Judge: row.Judge, Worker: row.Worker,
		Status: string(evaluators.Error), Reason: reasonRowRejected, Method: string(judge.None),
		Attempts: row.Attempts, InputTokens: row.InputTokens, OutputTokens: row.OutputTokens, CostNanoUSD: row.CostNanoUSD,
		EvaluatedAt: epoch1970,
	}
}

// row is a result as it is stored.
func (p *Pipeline) row(c *check, j job, res evaluators.Result) sink.Evaluation {
	row := p.identity(c, j)
	row.Attributes = p.privacy.attributes(j.it.Attributes)
	row.Status, row.Reason = string(res.Status), res.Reason
	row.Passed, row.Option, row.OptionNames = res.Passed, res.Option, res.OptionNames
	row.Outside, row.Method, row.JudgeModel = float32(res.Outside), string(res.Method), res.Model
	row.Attempts = uint8(min(max(res.Attempts, 0), math.MaxUint8))
	row.LatencyMS = clamp32(res.Latency.Milliseconds())
	row.InputTokens, row.OutputTokens = clamp32(res.Usage.InputTokens), clamp32(res.Usage.OutputTokens)
	row.CostNanoUSD = uint64(math.Round(max(res.Usage.USD, 0) * 1e9))
	row.Excerpt, row.AnswerExcerpt = p.privacy.excerpt(j.it.Input), p.privacy.excerpt(j.it.Output)
	row.Detail = p.privacy.detail(res.Detail)
	row.EvaluatedAt = p.deps.Now().UTC()
	if row.Method == "" {
		row.Method = string(judge.None)
	}
	if res.Score != nil {
		row.Score = new(float32(*res.Score))
	}
	if res.Confidence != nil {
		row.Confidence = new(float32(*res.Confidence))
	}
	for _, prob := range res.Probabilities {
		row.OptionProbs = append(row.OptionProbs, float32(prob))
	}
	if !row.Answered() {
		row.EvaluatedAt = epoch1970
	}
	return row
}

// text is the interaction as far as privacy lets it be stored.
func (p *Pipeline) text(it *interaction.Interaction) sink.Text {
	t := sink.Text{
		Time: it.Time, InteractionID: it.ID,
		Topic: it.Topic, Partition: uint32(it.Partition), Offset: uint64(it.Offset), Element: uint16(it.Element),
		Tenant: it.Tenant, App: it.App, Model: it.Model, Route: it.Route,
		PromptVersion: it.PromptVersion, Environment: it.Environment,
		SessionID: it.SessionID, UserID: it.UserID, TraceID: it.TraceID,
		InputTokens: count32(it.InputTokens), OutputTokens: count32(it.OutputTokens), LatencyMS: count32(it.WholeLatency()),
		Status: string(it.Status), Flags: it.Flags, Attributes: p.privacy.attributes(it.Attributes),
		Store: p.privacy.store,
	}
	if it.Feedback != nil {
		t.Feedback = new(float32(it.Feedback.Value))
	}
	if p.privacy.store == storeNone {
		return t
	}
	keep := func(s string) string {
		text, n := p.privacy.keep(s)
		t.Redactions += uint16(min(n, math.MaxUint16-int(t.Redactions)))
		return text
	}
	if it.Input != nil {
		t.Input = keep(*it.Input)
	}
	if it.Output != nil {
		t.Output = keep(*it.Output)
	}
	if it.Criteria != nil {
		t.Criteria = keep(*it.Criteria)
	}
	for _, s := range it.Expected {
		t.Expected = append(t.Expected, keep(s))
	}
	for _, s := range it.Context {
		t.Context = append(t.Context, keep(s))
	}
	if p.privacy.store == storeFull && len(it.Messages) > 0 {
		kept := make([]interaction.Message, len(it.Messages))
		for i, m := range it.Messages {
			kept[i] = interaction.Message{Role: m.Role, Text: keep(m.Text)}
		}
		if raw, err := json.Marshal(kept); err == nil { // two strings each: cannot fail
			t.Messages = string(raw)
		}
	}
	return t
}

func count32(n *int64) uint32 {
	if n == nil {
		return 0
	}
	return clamp32(*n)
}

// clamp32 bounds a number that came from outside.
func clamp32(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
