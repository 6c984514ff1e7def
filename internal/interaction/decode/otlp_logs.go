package decode

import (
	"cmp"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const evaluationEvent = "gen_ai.evaluation.result"

// logs reads a batch of log records. Those that are events of the conventions count;
// an application's own logging is nothing to judge.
func (r *record) logs(ld plog.Logs, format string) {
	r.many = true
	if ld.LogRecordCount() == 0 {
		r.skip(emptyBatch)
		return
	}
	joint := eventsJoint(format)
	scores, parts := 0, 0
	var spans []*span
	for i, rl := range ld.ResourceLogs().All() {
		var resource attributes
		for k, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				name := lr.EventName()
				if name == "" {
					if v, ok := lr.Attributes().Get("event.name"); ok {
						name = v.AsString()
					}
				}
				if !isMessageEvent(name) && name != detailsEvent && name != evaluationEvent {
					continue
				}
				if resource == nil {
					resource = attributesOf(rl.Resource().Attributes())
				}
				s := &span{trace: traceID(lr.TraceID()), id: spanID(lr.SpanID()), name: name, job: callJob,
					a: attributesOf(lr.Attributes()), resource: resource, start: cmp.Or(lr.Timestamp(), lr.ObservedTimestamp())}
				switch ev := (spanEvent{name: name, a: s.a, time: s.start, body: bodyOf(lr.Body())}); name {
				case evaluationEvent:
					r.evaluation(s, ev)
					scores++
				case detailsEvent:
					if j := r.jobOf(lr.Attributes(), ptrace.NewSpanEventSlice()); j != noJob {
						s.job = j
					}
					s.withBody(lr.Body())
					s.speaks = s.hasText(ptrace.NewSpanEventSlice())
					spans = append(spans, s)
				default:
					// Events without ids can only belong to their neighbours.
					key := fmt.Sprintf("%d/%d/%d", r.rec.Offset, i, k)
					if s.trace != "" && s.id != "" {
						key = s.trace + "/" + s.id
					}
					r.part(joint, key, eventPart(s, ev))
					parts++
				}
			}
		}
	}
	if parts == 0 || len(spans) > 0 {
		r.emit(spans, scores)
	}
}

func bodyOf(v pcommon.Value) value {
	if v.Type() == pcommon.ValueTypeStr {
		return contentOf(v.Str()).value
	}
	if v.Type() == pcommon.ValueTypeEmpty {
		return nil
	}
	return appendJSON(nil, v)
}

// withBody adds what early writers of the event put into its body.
func (s *span) withBody(body pcommon.Value) {
	if body.Type() != pcommon.ValueTypeMap {
		return
	}
	for k, v := range body.Map().All() {
		if !s.a.has(k) {
			s.a[k] = v
		}
	}
}

// spanScores reads the evaluations that stand on a span, of this or another call.
func (r *record) spanScores(s *span) int {
	n := 0
	for _, ev := range s.events {
		if ev.name == evaluationEvent {
			r.evaluation(s, ev)
			n++
		}
	}
	return n
}

// evaluation adds an evaluation of the answer that a span stands for.
func (r *record) evaluation(s *span, ev spanEvent) {
	e := element{r: r}
	score := Score{TraceID: s.trace, SpanID: s.id,
		ResponseID: e.label(ev.a.first("gen_ai.response.id")),
		Name:       e.label(ev.a.first("gen_ai.evaluation.name")),
		Label:      e.label(ev.a.first("gen_ai.evaluation.score.label")),
		Comment:    e.label(ev.a.first("gen_ai.evaluation.explanation")),
	}
	if s.trace != "" && s.id != "" {
		score.InteractionID = s.trace + "/" + s.id
	}
	if score.ResponseID == "" {
		score.ResponseID = e.label(s.a.first("gen_ai.response.id"))
	}
	if v, ok := e.number(ev.a.first("gen_ai.evaluation.score.value"), "score"); ok {
		score.Value = &v
	}
	e.setTime(nanos(cmp.Or(ev.time, s.start)), nil)
	score.Time = e.it.Time
	r.score(score)
}
