package decode

import (
	"strings"

	"assay/internal/interaction"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// toolSpan is the skip reason of a batch that holds runs of tools only.
const toolSpan = "tool_span"

// A job is what a span tells about a call of a model.
type job uint8

const (
	noJob     job = iota
	callJob       // the call itself
	parentJob     // an agent, a chain, a workflow around calls: repeats their text and tokens
	retrievalJob
	toolJob
	otherJob // known, and no call: an embedding, a ranking, a guard
)

// jobs of spans by the value of the attribute that says it, in small letters. Every
// instrumentation has its own attribute; a value that is not listed says nothing.
func jobs() map[string]map[string]job {
	kinds := map[string]job{"llm": callJob, "chat_model": callJob, "generation": callJob,
		"chain": parentJob, "agent": parentJob, "span": parentJob, "record_root": parentJob,
		"retriever": retrievalJob, "retrieval": retrievalJob, "tool": toolJob,
		"embedding": otherJob, "reranker": otherJob, "guardrail": otherJob, "evaluator": otherJob, "prompt": otherJob, "event": otherJob}
	return map[string]map[string]job{
		"gen_ai.operation.name": {"chat": callJob, "generate_content": callJob, "text_completion": callJob, "invoke_agent": parentJob,
			"invoke_workflow": parentJob, "retrieval": retrievalJob, "execute_tool": toolJob,
			"embeddings": otherJob, "create_agent": otherJob, "rerank": otherJob},
		"llm.request.type":           {"chat": callJob, "completion": callJob, "embedding": otherJob, "rerank": otherJob},
		"traceloop.span.kind":        {"workflow": parentJob, "agent": parentJob, "task": parentJob, "tool": toolJob},
		"genkit:metadata:subtype":    {"model": callJob, "flow": parentJob, "agent": parentJob, "retriever": retrievalJob, "tool": toolJob, "embedder": otherJob},
		"openinference.span.kind":    kinds,
		"mlflow.spanType":            kinds,
		"langfuse.observation.type":  kinds,
		"langsmith.span.kind":        kinds,
		"ai.observability.span_type": kinds,
	}
}

// jobOf finds a span's job in one pass over its attributes, since most spans of a
// batch have none.
func (r *record) jobOf(attrs pcommon.Map, events ptrace.SpanEventSlice) job {
	var said job
	var model, system, text bool
	for key, v := range attrs.All() {
		switch {
		case key == "ai.operationId":
			return vercelJob(v.AsString())
		case key == "gen_ai.request.model", key == "gen_ai.response.model":
			model = true
		case key == "gen_ai.system", key == "gen_ai.provider.name":
			system = true
		case strings.HasPrefix(key, "gen_ai.prompt"), strings.HasPrefix(key, "gen_ai.completion"), key == "gen_ai.input.messages",
			key == "gen_ai.output.messages", key == "gcp.vertex.agent.llm_request":
			text = true
		}
		if kinds := r.d.jobs[key]; kinds != nil && v.Type() == pcommon.ValueTypeStr {
			// One span may say it twice; the more telling word counts.
			j := kinds[strings.ToLower(strings.Trim(v.Str(), `"`))]
			if said == noJob || j != noJob && j < said {
				said = j
			}
		}
	}
	if said != noJob {
		return said
	}
	if text || model && system {
		return callJob
	}
	for _, ev := range events.All() {
		if isTextEvent(ev.Name()) {
			return callJob
		}
	}
	return noJob
}

func vercelJob(operation string) job {
	switch {
	case strings.HasSuffix(operation, ".doGenerate"), strings.HasSuffix(operation, ".doStream"):
		return callJob
	case operation == "ai.toolCall":
		return toolJob
	case strings.HasPrefix(operation, "ai.generate"), strings.HasPrefix(operation, "ai.stream"):
		return parentJob
	}
	return otherJob
}

// traces reads a batch of spans.
func (r *record) traces(td ptrace.Traces) {
	r.many = true
	var spans []*span
	byID := map[string]*span{}
	for _, rs := range td.ResourceSpans().All() {
		var resource attributes
		for _, ss := range rs.ScopeSpans().All() {
			for _, sp := range ss.Spans().All() {
				s := &span{trace: traceID(sp.TraceID()), id: spanID(sp.SpanID()), parent: spanID(sp.ParentSpanID()),
					name: sp.Name(), start: sp.StartTimestamp(), end: sp.EndTimestamp(), job: r.jobOf(sp.Attributes(), sp.Events()),
					failed: sp.Status().Code() == ptrace.StatusCodeError, message: sp.Status().Message()}
				counts := s.job != noJob && s.job != otherJob
				if counts {
					if resource == nil {
						resource = attributesOf(rs.Resource().Attributes())
					}
					s.a, s.resource = attributesOf(sp.Attributes()), resource
					s.speaks = s.hasText(sp.Events())
				}
				for _, ev := range sp.Events().All() {
					if counts || ev.Name() == evaluationEvent {
						s.events = append(s.events, spanEvent{name: ev.Name(), a: attributesOf(ev.Attributes()), time: ev.Timestamp()})
					}
				}
				spans = append(spans, s)
				if s.id != "" {
					byID[s.trace+"/"+s.id] = s
				}
			}
		}
	}
	for _, s := range spans {
		if up := byID[s.trace+"/"+s.parent]; s.parent != "" && up != s {
			s.up = up
		}
	}
	if len(spans) == 0 {
		r.skip(emptyBatch)
		return
	}
	scores := 0
	for _, s := range spans {
		scores += r.spanScores(s)
	}
	r.emit(spans, scores)
}

// emit makes interactions of the spans that count.
func (r *record) emit(spans []*span, scores int) {
	chosen := r.chosen(spans)
	retrievals := map[string][]retrieval{}
	tools := false
	for _, s := range spans {
		tools = tools || s.job == toolJob
		if s.job == retrievalJob {
			retrievals[s.trace] = append(retrievals[s.trace], r.retrieval(s))
		}
	}
	if len(chosen) == 0 && scores == 0 {
		if tools {
			r.skip(toolSpan)
		} else {
			r.skip(notText)
		}
		return
	}
	for _, s := range chosen {
		s.element = newElement(r, r.take())
		s.element.span(s)
		for _, found := range retrievals[s.trace] {
			// Documents that were fetched after the answer began are of a later call.
			if (found.start <= s.start || s.job == parentJob) && len(s.element.it.Context) < r.d.cfg.MaxDocuments {
				s.element.it.Context = append(s.element.it.Context, found.documents...)
				s.element.untexted += found.untexted
			}
		}
	}
	for _, s := range r.withoutDuplicates(chosen) {
		r.add(s.element, s.object(r))
	}
}

// chosen are the spans that become interactions: calls, and where a trace has none in
// this record, the topmost of what stands around calls; with unit root always that.
func (r *record) chosen(spans []*span) []*span {
	calls := map[string]bool{}
	for _, s := range spans {
		if s.job == callJob && !r.src.unitRoot {
			calls[s.trace] = true
		}
	}
	candidate := func(s *span) bool {
		return s.job == callJob || s.job == parentJob && !calls[s.trace] && s.speaks
	}
	var chosen []*span
	for _, s := range spans {
		if !candidate(s) {
			continue
		}
		if s.job == callJob && !r.src.unitRoot || !s.below(candidate) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// maxAncestors ends a walk up: ids that point in a circle are the producer's fault and
// must not become ours.
const maxAncestors = 64

// below reports whether an ancestor in this record is one of those.
func (s *span) below(one func(*span) bool) bool {
	for up, n := s.up, 0; up != nil && n < maxAncestors; up, n = up.up, n+1 {
		if up != s && one(up) {
			return true
		}
	}
	return false
}

// withoutDuplicates leaves one of the spans that two instrumentations wrote about the
// same answer of a provider: the one with more text.
func (r *record) withoutDuplicates(chosen []*span) []*span {
	size := func(s *span) int {
		n := 0
		for _, text := range []*string{s.element.it.Input, s.element.it.Output} {
			if text != nil {
				n += 1 + len(*text)
			}
		}
		return n
	}
	best := map[string]*span{}
	for _, s := range chosen {
		if id := s.element.responseID; id != "" {
			key := s.trace + "\x00" + id
			old := best[key]
			if old == nil {
				best[key] = s
				continue
			}
			if size(s) > size(old) {
				best[key] = s
			}
			best[key].element.flag("duplicate")
		}
	}
	kept := chosen[:0:0]
	for _, s := range chosen {
		if id := s.element.responseID; id == "" || best[s.trace+"\x00"+id] == s {
			kept = append(kept, s)
		}
	}
	return kept
}

// A retrieval is what a search for documents found.
type retrieval struct {
	start     pcommon.Timestamp
	documents []string
	untexted  int
}

// retrieval reads a span's documents, once for all calls of its trace.
func (r *record) retrieval(s *span) retrieval {
	e := element{r: r}
	found := retrieval{start: s.start}
	for _, doc := range s.a.list("retrieval.documents.") {
		text := e.str(doc.value("document.content"))
		if interaction.Blank(text) {
			found.untexted++
			continue
		}
		found.documents = append(found.documents, text)
	}
	for _, key := range []string{"gen_ai.retrieval.documents", "ai.observability.retrieval.retrieved_contexts", "mlflow.spanOutputs"} {
		if len(found.documents) == 0 && s.a.has(key) {
			found.documents = e.texts(s.a.content(key).value)
		}
	}
	found.untexted += e.untexted
	return found
}

// object is a span as the paths of overrides see it; without overrides there is none.
func (s *span) object(r *record) *object {
	if len(r.src.overrides) == 0 {
		return &object{}
	}
	raw := value(`{"span":`)
	raw = append(s.a.object(raw), `,"resource":`...)
	raw = append(s.resource.object(raw), `,"event":`...)
	all := attributes{}
	for _, ev := range s.events {
		for key, v := range ev.a {
			all[key] = v
		}
	}
	return &object{raw: append(all.object(raw), '}')}
}

func (a attributes) object(out value) value {
	out = append(out, '{')
	first := true
	for key, v := range a {
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(appendQuoted(out, key), ':')
		out = appendJSON(out, v)
	}
	return append(out, '}')
}
