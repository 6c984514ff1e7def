package decode

import (
	"slices"
	"strings"
	"time"

	"assay/internal/interaction"
)

// labelled is the first of the names that says something, of the record or else of its
// metadata.
func (p *Prober) labelled(keys ...key) string {
	if s := p.label(p.top.first(&p.tape, keys...)); s != "" {
		return s
	}
	return p.label(p.meta.first(&p.tape, keys...))
}

// common is element.common, as far as the plan asks.
func (p *Prober) common() {
	e, t := &p.e, &p.tape
	it := &e.it
	top := func(keys ...key) value { return t.value(p.top.first(t, keys...)) }
	e.setID(top(kID), top(kUnderscoreID), top(kInteractionID), top(kRequestID))
	if p.wanted[lApp] {
		it.App = p.labelled(kApp, kApplication, kService, kAgent)
	}
	if p.wanted[lRoute] {
		it.Route = p.labelled(kRoute, kRouteName)
	}
	if p.wanted[lModel] {
		it.Model = p.labelled(kModel)
	}
	if p.wanted[lPromptVersion] {
		it.PromptVersion = p.labelled(kPromptVersion)
		if name := p.labelled(kPromptName); name != "" && it.PromptVersion != "" {
			it.PromptVersion = name + "@" + it.PromptVersion
		}
	}
	if p.wanted[lTenant] {
		it.Tenant = p.labelled(kTenant, kTenantID)
	}
	if p.wanted[lEnvironment] {
		it.Environment = p.labelled(kEnvironment, kEnv)
	}
	if p.wanted[lSessionID] {
		it.SessionID = p.labelled(kSessionID, kConversationID, kThreadID, kSessionIDCamel, kSession)
	}
	if p.wanted[lUserID] {
		it.UserID = p.labelled(kUserID, kUser, kInputUser, kUserIDCamel)
	}
	if p.wanted[lTraceID] {
		it.TraceID = p.labelled(kTraceID, kTraceIDCamel)
	}
	if p.plan.Numbers {
		it.InputTokens = e.count(top(kInputTokens, kPromptTokens), "input_tokens")
		it.OutputTokens = e.count(top(kOutputTokens, kCompletionTokens), "output_tokens")
		e.usage(top(kUsage))
		it.Feedback = e.feedback(top(kFeedback))
	} else if p.top.first(t, kFeedback) != none {
		p.unsure = true // whether or not it is judged, it may become a label
	}
	it.Expected = p.several(p.top.first(t, kExpected, kExpectedOutput, kReference, kGroundTruth, kIdeal, kTarget), &p.texts.expected)
	if n := p.top.first(t, kCriteria, kRubric); n != none {
		it.Criteria = p.joinedText(n)
	}
	it.Context = append(it.Context, p.several(p.top.first(t, kRetrievalContext, kContexts, kRetrievedContexts, kContext, kDocuments), &p.texts.context)...)
	e.setError(top(kError))
	p.httpStatus(p.top.first(t, kStatusCode))
	p.httpStatus(p.top.first(t, kStatus))
	if len(p.attributes) > 0 {
		p.keepAttributes()
	}
}

func (p *Prober) httpStatus(n ref) {
	if n != none {
		p.e.setHTTPWord(p.label(n))
	}
}

// joinedText is what criteria become: a list's texts joined, there even when blank.
func (p *Prober) joinedText(n ref) *string {
	if len(p.several(n, &p.texts.criteria)) == 0 {
		return &p.empty
	}
	return &p.some
}

// several stands for element.texts: one text where that gives any.
func (p *Prober) several(n ref, size *int) []string {
	t := &p.tape
	found := 0
	switch {
	case n == none:
	case t.isArray(n):
		for c, end := t.inside(n); c < end; c = t.next(c) {
			if t.absent(c) {
				continue
			}
			if n := p.document(c); n > 0 {
				found += n + 1 // criteria are joined
			}
		}
	default:
		found = p.document(n)
	}
	*size += found
	if found == 0 {
		return nil
	}
	return p.one
}

// document is the size of a document's text, 0 for a blank one.
func (p *Prober) document(n ref) int {
	v := p.tape.value(n)
	if !v.isString() {
		s := p.e.document(v)
		if interaction.Blank(s) {
			return 0
		}
		return len(s)
	}
	raw := v[1 : len(v)-1]
	if blank(raw) {
		return 0
	}
	return len(raw)
}

// timing is element.timing; the latency is read only where the plan asks for numbers.
func (p *Prober) timing() {
	t := &p.tape
	start := t.value(p.top.first(t, kTime, kTimestamp, kTS, kCreatedAt, kStartTime, kTimestampMS))
	if !p.plan.Numbers {
		p.e.setTime(start, p.e.responseTime)
		return
	}
	end, took := t.value(p.top.first(t, kEndTime)), t.value(p.top.first(t, kLatencyMS, kDurationMS, kLatency))
	p.e.timed(start, end, took)
	if p.e.it.LatencyMS == nil {
		p.e.it.LatencyMS = p.e.latency(t.value(p.top.first(t, kCompletionTime)), time.Second)
	}
}

// keepAttributes is element.attributes for the names that the plan asks for. The rules
// of what there is room for look at all of them, so a record that comes near to a bound
// is Decode's.
func (p *Prober) keepAttributes() {
	t := &p.tape
	count, size := 0, 0
	for _, n := range [...]ref{p.top.first(t, kMetadata), p.top.first(t, kAttributes), document} {
		if !t.isObject(n) {
			continue
		}
		for c, end := t.inside(n); c < end; c = t.next(c) {
			name := t.name(c)
			bytes := int(t.nodes[c].end - t.nodes[c].at)
			if n == document {
				if k := keyOf(name); k != noKey && k < kRunID || bytes > 256 {
					continue
				}
			}
			if k := t.kind(c); k == '{' || k == '[' || k == 'n' {
				continue
			}
			count++
			// What stands for a byte that is no UTF-8 is longer than the byte; there are
			// none here, and a text never grows by reading its escapes.
			size += len(name) + bytes
			if _, ok := p.attributes[string(name)]; ok {
				p.keepAttribute(c)
			}
		}
	}
	if count > p.d.cfg.MaxAttributes || size >= int(p.d.cfg.AttributeBytes) {
		p.unsure = true
	}
}

func (p *Prober) keepAttribute(n ref) {
	name := p.tape.name(n)
	if len(name) == 0 || len(name) > 128 || isSecret(name) {
		return
	}
	p.e.it.Attributes[string(name)] = p.label(n)
}

// override is element.override over the tape.
func (p *Prober) override() {
	if len(p.src.overrides) == 0 {
		return
	}
	p.src.asked.Add(1)
	e := &p.e
	it := &e.it
	for i := range p.src.overrides {
		ov := &p.src.overrides[i]
		if ov.path.key || ov.path.header != "" {
			if v := ov.path.find(e, nil); !v.absent() {
				ov.hits.Add(1)
				p.overrideBytes(ov.field, v)
			}
			continue
		}
		n := p.find(ov.path)
		if n == none {
			continue
		}
		ov.hits.Add(1)
		switch ov.field {
		case "input":
			it.Input = p.text(n, &p.texts.input)
		case "output":
			it.Output = p.output(n)
		case "expected":
			it.Expected = p.several(n, &p.texts.expected)
		case "criteria":
			it.Criteria = p.joinedText(n)
		case "context":
			it.Context = append(it.Context[:0], p.several(n, &p.texts.context)...)
		case "id", "time", "input_tokens", "output_tokens", "latency_ms":
			p.overrideBytes(ov.field, p.tape.value(n))
		default:
			p.overrideLabel(ov.field, p.label(n))
		}
	}
}

// overrideBytes is for fields of which nothing is left out, and for headers and keys,
// which are no part of the document.
func (p *Prober) overrideBytes(field string, v value) {
	e := &p.e
	switch field {
	case "id":
		e.setID(v)
	case "time":
		e.it.Flags = slices.DeleteFunc(e.it.Flags, func(f string) bool { return strings.HasPrefix(f, "time_") })
		e.setTime(v, e.responseTime)
	case "input_tokens":
		e.it.InputTokens = e.count(v, field)
	case "output_tokens":
		e.it.OutputTokens = e.count(v, field)
	case "latency_ms":
		e.it.LatencyMS = e.latency(v, 1e6)
	case "input", "output", "expected", "criteria", "context":
		p.unsure = true
	default:
		p.overrideLabel(field, e.label(v))
	}
}

func (p *Prober) overrideLabel(field, text string) {
	if name, ok := strings.CutPrefix(field, "attributes."); ok {
		if _, ok := p.attributes[name]; !ok {
			return
		}
	}
	p.e.overrideLabel(field, text)
}

// find is path.find over the tape.
func (p *Prober) find(at path) ref {
	t := &p.tape
	n, skip := document, 0
	for i := range at.steps {
		if skip > 0 {
			skip--
			continue
		}
		if t.isString(n) {
			// JSON in a string is Decode's; any other string ends the way.
			p.unsure = p.unsure || p.mayHoldJSON(n)
			return none
		}
		if at.index[i] < 0 {
			var used int
			if n, used = p.named(at, n, i); used > 1 {
				skip = used - 1
			}
			continue
		}
		list, place := n, 0
		n = none
		if !t.isArray(list) {
			continue
		}
		for c, end := t.inside(list); c < end; c = t.next(c) {
			if place == at.index[i] {
				n = c
				break
			}
			place++
		}
	}
	if t.absent(n) {
		return none
	}
	return n
}

// named is path.named over the tape.
func (p *Prober) named(at path, n ref, i int) (ref, int) {
	if found := p.tape.member(n, at.steps[i]); found != none {
		return found, 1
	}
	for used := 2; i+used <= len(at.steps) && at.index[i+used-1] < 0; used++ {
		if found := p.tape.member(n, strings.Join(at.steps[i:i+used], ".")); found != none {
			return found, used
		}
	}
	return none, 1
}
