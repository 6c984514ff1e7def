package decode

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"assay/internal/interaction"
)

// A Plan names what a decision reads of an interaction beside its id, its time, its
// status, and which texts it has.
type Plan struct {
	Labels     []string // app, model, session_id and the like
	Numbers    bool     // tokens, latency, feedback
	Attributes []string // by name
	Refusals   bool     // whether the answer reads like a refusal
	TextBytes  int      // with more text than this, some check may find it too long
}

// A Prober reads what a Plan asks for straight from a record's bytes. It belongs to one
// goroutine, and what it returns lives until its next call.
//
// It reads only what it fully understands: one JSON object of a family it knows, without
// anything that would make two readings possible. Whatever else it declines, and Decode
// is asked. What it does read is what Decode reads: a record that no check selects is
// counted by its probe alone.
//
// Its rules for single fields are Decode's own functions. What is written again here is
// how one gets to the fields, over a tape of the document in place of its bytes.
type Prober struct {
	d    *Decoder
	src  *source
	plan Plan

	wanted     [numLabels]bool
	attributes map[string]struct{}

	tape   tape
	top    slots // of the record
	meta   slots // of its metadata
	known  map[string]string
	unsure bool // something was met that only Decode may read
	misses int  // declined records since one was read
	pause  int  // records that are not even tried

	r       record
	e       element
	texts   textSizes
	kept    map[string]string
	results [1]interaction.Interaction

	// What stands for texts whose words nobody asks for. They are never changed.
	some, empty, filtered string
	one                   []string
}

// textSizes are upper bounds of an interaction's texts, in bytes.
type textSizes struct{ input, output, expected, criteria, context int }

func (s textSizes) sum() int { return s.input + s.output + s.expected + s.criteria + s.context }

// filteredText is an answer that a provider put in place of the one it withheld.
const filteredText = "FILTERED"

// maxFastBytes bounds the tape; a record above it is worth a full decode anyway.
const maxFastBytes = 1 << 20

// Prober returns a reader of a topic's records by a plan, nil when none of them can be
// read by one: the source names a format that is not among the fast ones, or another
// input than a conversation's last question; or the settings say so.
func (d *Decoder) Prober(topic string, plan Plan) *Prober {
	src := d.source(topic)
	if d.cfg.Full || src.turn != "" || src.family != nil && !slices.Contains(fastFormats(), src.family.name) {
		return nil
	}
	p := &Prober{
		d: d, src: src, plan: plan, attributes: make(map[string]struct{}, len(plan.Attributes)),
		known: make(map[string]string), kept: make(map[string]string),
		some: "x", filtered: filteredText, one: []string{"x"},
	}
	for _, name := range plan.Labels {
		if l, ok := labelOf(name); ok {
			p.wanted[l] = true
		}
	}
	// A route that is not logged is the app.
	p.wanted[lApp] = p.wanted[lApp] || p.wanted[lRoute]
	for _, name := range plan.Attributes {
		p.attributes[name] = struct{}{}
	}
	return p
}

// fastFormats are the families that it knows.
func fastFormats() []string { return []string{flat, openAIChat, anthropic, litellm} }

// A topic of another format shall cost next to nothing, and one that changes shall soon
// be noticed: after some misses in a row ever more records are passed over, up to a bound.
const (
	maxMisses = 8
	maxPause  = 1024
)

// Probe reads a record. It is false when only Decode can: never wrong, just slower.
func (p *Prober) Probe(rec interaction.Record) (res Result, ok bool) {
	if p.pause > 0 {
		p.pause--
		return Result{}, false
	}
	if !p.plain(&rec) || !p.read(rec) {
		if p.misses++; p.misses > maxMisses {
			p.pause = min(1<<(p.misses-maxMisses), maxPause)
			p.misses = min(p.misses, 2*maxMisses+2)
		}
		return Result{}, false
	}
	p.misses = 0
	return Result{Interactions: p.results[:], Format: p.r.res.Format, Envelope: bare, Outcome: Records}, true
}

// plain reports whether the record is a bare JSON object as far as its outside shows.
func (p *Prober) plain(rec *interaction.Record) bool {
	b := rec.Value
	if len(b) < 2 || b[0] != '{' || len(b) > maxFastBytes || int64(len(b)) > int64(p.d.cfg.MaxRecord) {
		return false
	}
	for i := range rec.Headers {
		name := rec.Headers[i].Key
		if strings.HasPrefix(name, "ce_") || strings.HasPrefix(name, "__") || strings.HasPrefix(name, "apicurio.") {
			return false
		}
	}
	return true
}

func (p *Prober) read(rec interaction.Record) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // a defect here costs time: Decode reads the record, or says what it is
		}
	}()
	if !p.tape.read(rec.Value, min(p.d.cfg.MaxDepth, fastDepth)) || !p.fill() {
		return false
	}
	p.r = record{d: p.d, src: p.src, rec: rec}
	flags, documents, tools := p.e.it.Flags[:0], p.e.it.Context[:0], p.e.tools[:0]
	p.e = element{r: &p.r, tools: tools}
	p.e.it.Position = interaction.Position{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset}
	p.e.it.Flags, p.e.it.Context = flags, documents
	if len(p.attributes) > 0 {
		clear(p.kept)
		p.e.it.Attributes = p.kept
	}
	p.texts, p.unsure = textSizes{}, false

	req, resp, format := p.family()
	if format == "" || p.src.family != nil && p.src.family.name != format {
		return false
	}
	switch format {
	case litellm:
		p.litellm()
	case flat:
		p.common()
		p.flat()
		p.timing()
	default:
		p.common()
		p.exchange(req, resp, format)
		p.timing()
	}
	p.override()
	if p.unsure || p.tape.twice || p.e.skipReason != "" || !p.fits() {
		return false
	}
	p.r.res.Format = format
	p.results[0] = p.e.finish()
	return true
}

// fits reports whether every bound on texts is kept for certain.
func (p *Prober) fits() bool {
	limit := p.d.cfg.MaxTextRunes
	if p.texts.input > limit || p.texts.output > limit {
		return false
	}
	all := p.texts.sum()
	for _, text := range p.e.it.Attributes {
		all += len(text)
	}
	return all <= p.plan.TextBytes
}

// Unbounded is the TextBytes of a plan whose checks bound no text.
const Unbounded = math.MaxInt

// text is element.text for a string; anything else has to be written out, by Decode.
func (p *Prober) text(n ref, size *int) *string {
	v := p.tape.value(n)
	if v.absent() {
		return nil
	}
	if !v.isString() {
		p.unsure = true
		return nil
	}
	raw := v[1 : len(v)-1]
	*size = len(raw)
	if p.mark(n) == redactedMark {
		p.e.redacted = true
		return nil
	}
	return p.placeholder(raw)
}

// output is text for an answer.
func (p *Prober) output(n ref) *string {
	text := p.text(n, &p.texts.output)
	if text == nil {
		return nil
	}
	v := p.tape.value(n)
	raw := v[1 : len(v)-1]
	if p.mark(n) == filteredMark {
		return &p.filtered
	}
	if r, _ := leading(raw, trimmed); r == '{' && mayTellOfError(raw) {
		p.unsure = true
	}
	if p.plan.Refusals {
		return p.e.text(v, "output")
	}
	return text
}

// Marks are short texts that stand in place of another.
const (
	noMark = iota
	redactedMark
	filteredMark
)

func (p *Prober) mark(n ref) int {
	v := p.tape.value(n)
	text := v[1 : len(v)-1]
	if len(text) > 160 { // no mark is longer, not even with every byte escaped
		return noMark
	}
	if p.tape.escaped(n) {
		s, _ := v.text()
		text = value(s)
	}
	switch {
	case isRedacted(string(text)):
		return redactedMark
	case string(text) == filteredText:
		return filteredMark
	}
	return noMark
}

func (p *Prober) placeholder(raw []byte) *string {
	if blank(raw) {
		return &p.empty
	}
	return &p.some
}

// mayTellOfError reports whether a text that begins like an object may be an error that
// was logged as the answer: for that the word must stand in it, or hide in escapes.
func mayTellOfError(raw []byte) bool {
	return bytes.Contains(raw, []byte("error")) || bytes.Contains(raw, []byte(`\u`))
}

// blank is interaction.Blank of a JSON string's inside.
func blank(raw []byte) bool {
	_, ok := leading(raw, func(r rune) bool { return interaction.Blank(string(r)) })
	return !ok
}

// trimmed is what strings.TrimSpace takes off.
func trimmed(r rune) bool { return strings.TrimSpace(string(r)) == "" }

// leading is the first rune of a JSON string's inside that is not skipped; false when
// all are.
func leading(raw []byte, skip func(rune) bool) (rune, bool) {
	for i := 0; i < len(raw); {
		r, n := rune(raw[i]), 1
		switch {
		case r > ' ' && r < utf8.RuneSelf && r != '\\':
			return r, true
		case r == '\\':
			r, n = escapedRune(raw[i:])
		default:
			r, n = utf8.DecodeRune(raw[i:])
		}
		if !skip(r) {
			return r, true
		}
		i += n
	}
	return 0, false
}

// escapedRune reads one escape. Half of a surrogate pair is taken for a rune of its own:
// neither the pair nor what a lone half becomes is white space.
func escapedRune(raw []byte) (rune, int) {
	switch c := raw[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return hex4(raw[2:]), 6
	default:
		return rune(c), 2
	}
}

// label is element.label with memory: the values of a label are few, and the ledger may
// keep them longer than the record's bytes live.
func (p *Prober) label(n ref) string {
	v := p.tape.value(n)
	if !v.isString() || p.tape.escaped(n) || len(v) > maxKnownBytes {
		return p.e.label(v)
	}
	raw := v[1 : len(v)-1]
	if s, ok := p.known[string(raw)]; ok {
		return s
	}
	if len(p.known) == maxKnown {
		clear(p.known)
	}
	s := string(raw)
	p.known[s] = s
	return s
}

const (
	maxKnown      = 1024
	maxKnownBytes = 128
)

// The labels of an interaction.
const (
	lApp = iota
	lModel
	lRoute
	lPromptVersion
	lTenant
	lEnvironment
	lSessionID
	lUserID
	lTraceID

	numLabels
)

func labelOf(name string) (int, bool) {
	l := slices.Index([]string{"app", "model", "route", "prompt_version", "tenant", "environment", "session_id", "user_id", "trace_id"}, name)
	return l, l >= 0
}
