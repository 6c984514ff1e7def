package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/sampler"
	"assay/sink"
)

// reasonRowRejected is the dead letter of a judgement that ClickHouse refused for good.
const reasonRowRejected = "row_rejected"

// epoch1970 is the row version of judgements that failed: any answer wins over it.
var epoch1970 = time.Unix(0, 0).UTC()

// job is one interaction and one check, selected.
type job struct {
	unit     *unit
	it       *interaction.Interaction
	check    int
	decision sampler.Decision
	text     bool // the one of the interaction's jobs that also stores its text
}

// judge runs a job in its slot: it asks, writes the row, and settles the record. A
// judgement that a revoke cut off leaves no row.
func (pt *partition) judge(j job) {
	p := pt.pipeline
	c := &p.checks[j.check]
	ctx, cancel := context.WithTimeout(pt.judging, p.cfg.Deadline)
	res, err := c.evaluator.Evaluate(ctx, c.judge, itemOf(c.Check, j.it))
	cancel()
	if err != nil {
		j.unit.judged()
		j.unit.settle(err)
		return
	}
	row := p.row(c, j, res)
	p.metrics.evaluations.WithLabelValues(c.Name, row.Status).Inc()
	if j.text {
		err = p.deps.Rows.AddTexts(pt.judging, []sink.Text{p.text(j.it)}, func(err error) {
			if err != nil { // the text is a convenience of readers: its loss is counted, not a lost judgement
				p.metrics.textLost.Inc()
			}
			pt.addRow(j, row)
		})
	} else {
		pt.addRow(j, row)
	}
	j.unit.judged()
	if err != nil {
		j.unit.settle(err)
	}
}

// addRow hands a row to the sink. A row that ClickHouse will never take becomes a dead
// letter of its record; that is queued like a judgement, because the sink calls from
// the goroutine that would have to make room for it.
func (pt *partition) addRow(j job, row sink.Evaluation) {
	err := pt.pipeline.deps.Rows.AddEvaluations(pt.judging, []sink.Evaluation{row}, func(err error) {
		var poison *sink.PoisonError
		if !errors.As(err, &poison) {
			j.unit.settle(err)
			return
		}
		rec := j.unit.delivery.Record
		bad := decode.Bad{Element: int(row.Element), Reason: reasonRowRejected, Error: "check " + row.Check + ": " + err.Error()}
		pt.pipeline.metrics.deadLetters.WithLabelValues(pt.topic, bad.Reason).Inc()
		pt.queues[j.check].put(func() { pt.addDeadLetters(j.unit, pt.deadLetters(rec, []decode.Bad{bad})) })
	})
	if err != nil {
		j.unit.settle(err)
	}
}

// addDeadLetters hands a record's dead letters to the sink; the record is not resolved
// before they are durable.
func (pt *partition) addDeadLetters(u *unit, rows []sink.DeadLetter) {
	if err := pt.pipeline.deps.Rows.AddDeadLetters(pt.judging, rows, u.settle); err != nil {
		u.settle(err)
	}
}

// row is a result as it is stored. Its identity comes from the log and the checks
// file alone.
func (p *Pipeline) row(c *check, j job, res evaluators.Result) sink.Evaluation {
	it, f := j.it, p.deps.Checks
	slice := it.Slice(f.Dimensions)
	row := sink.Evaluation{
		Check: c.Name, CheckVersion: c.Version,
		Time: it.Time, InteractionID: it.ID,
		Topic: it.Topic, Partition: uint32(it.Partition), Offset: uint64(it.Offset), Element: uint16(it.Element),
		Tenant: it.Tenant, App: it.App, Model: it.Model, Route: it.Route,
		PromptVersion: it.PromptVersion, Environment: it.Environment,
		SliceID: slice.ID(), Slice: slice, Attributes: p.privacy.attributes(it.Attributes),
		Stratum: j.decision.Stratum, Pi: j.decision.Pi, Epoch: j.decision.Epoch,
		Status: string(res.Status), Reason: res.Reason,
		Passed: res.Passed, Option: res.Option, OptionNames: res.OptionNames,
		Outside: float32(res.Outside), Method: string(res.Method),
		Judge: c.Check.Judge, JudgeModel: res.Model,
		Attempts:    uint8(min(res.Attempts, math.MaxUint8)),
		LatencyMS:   uint32(res.Latency.Milliseconds()),
		InputTokens: uint32(res.Usage.InputTokens), OutputTokens: uint32(res.Usage.OutputTokens),
		CostNanoUSD: uint64(math.Round(res.Usage.USD * 1e9)),
		Excerpt:     p.privacy.excerpt(it.Input), AnswerExcerpt: p.privacy.excerpt(it.Output),
		Detail:      p.privacy.detail(res.Detail),
		EvaluatedAt: p.deps.Now().UTC(), Worker: p.cfg.Worker,
	}
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
		InputTokens: count32(it.InputTokens), OutputTokens: count32(it.OutputTokens), LatencyMS: count32(it.LatencyMS),
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
	if n == nil || *n < 0 {
		return 0
	}
	return uint32(min(*n, math.MaxUint32))
}

// deadLetters are the rows of what was bad in a record.
func (pt *partition) deadLetters(rec interaction.Record, bad []decode.Bad) []sink.DeadLetter {
	if len(bad) == 0 {
		return nil
	}
	p := pt.pipeline
	// One row a record: the table's key is the position, and the record's body holds
	// every bad element.
	reasons := make([]string, 0, len(bad))
	for _, b := range bad {
		reasons = append(reasons, b.Error)
	}
	now := p.deps.Now().UTC()
	row := sink.DeadLetter{
		Topic: pt.topic, Partition: pt.id, Offset: uint64(rec.Offset), LogTime: rec.Time,
		Reason: bad[0].Reason, Error: cut(strings.Join(reasons, "; "), 500),
		Attempts: 1, FirstFailure: now, AssayVersion: p.cfg.Version,
		Headers: p.privacy.headers(rec.Headers),
	}
	p.privacy.body(&row, rec)
	return []sink.DeadLetter{row}
}
