package decode

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"assay/internal/interaction"
)

// Reasons of skips.
const (
	tombstone      = "tombstone"
	emptyValue     = "empty_value"
	emptyBatch     = "empty_batch"
	jsonNull       = "json_null"
	streamFragment = "stream_fragment"
	judgeTraffic   = "judge_traffic"
)

// Reasons of dead letters and bad elements.
const (
	notJSON         = "not_json"
	tooDeep         = "nesting_too_deep"
	inflatedTooBig  = "decompressed_size_over_limit"
	recordTooBig    = "record_over_limit"
	badGzip         = "bad_gzip"
	badUTF16        = "bad_utf16"
	unknownSchemaID = "unknown_schema_id"
	unknownShape    = "unknown_shape"
	notAnObject     = "not_an_object"
	tooManyElements = "too_many_elements"
	decoderPanic    = "decoder_panic"
)

// JudgeMark is the metadata purpose that marks a request as a judge's own. Records
// that carry it are skipped, so that a judge behind a logged gateway is not judged.
const JudgeMark = "llm_judge"

// Result is what one record became.
type Result struct {
	Interactions []interaction.Interaction // in order of appearance
	Skips        []string                  // a reason per element with nothing to judge
	Bad          []Bad                     // elements, or the record as a whole, that could not be used
	Format       string                    // what it was read as: a format's name, mixed, or unknown
	Envelope     string                    // what it was wrapped in, outermost first: gzip+array; none
	Outcome      Outcome
}

// Bad is an element that could not be used.
type Bad struct {
	Element int    // index in the record; 0 for a record as a whole
	Reason  string // of the closed list, for counting
	Error   string // for a person
}

// A Decoder turns records into interactions. Its answers never change; all it keeps
// is how often the sources' overrides found something, for Unmatched.
type Decoder struct {
	cfg      Config
	families []family
	sources  map[string]*source
	fallback *source // for topics without a source: auto, no overrides
}

// New checks the settings and the sources.
func New(cfg Config, sources []Source) (*Decoder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &Decoder{cfg: cfg, families: families(), sources: make(map[string]*source, len(sources)), fallback: &source{}}
	for _, s := range sources {
		compiled, err := compile(s, d.families)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", s.Topic, err)
		}
		d.sources[s.Topic] = compiled
	}
	return d, nil
}

// unmatchedAfter is how many records an override may miss before it is reported: some
// fields are rare, a path that is wrong never matches.
const unmatchedAfter = 1000

// Unmatched lists a topic's overrides that found nothing in all of at least 1,000
// records: their paths are most likely wrong.
func (d *Decoder) Unmatched(topic string) []string {
	src := d.sources[topic]
	if src == nil || src.asked.Load() < unmatchedAfter {
		return nil
	}
	var fields []string
	for i := range src.overrides {
		if src.overrides[i].hits.Load() == 0 {
			fields = append(fields, src.overrides[i].field)
		}
	}
	return fields
}

// record is the state of decoding one record.
type record struct {
	d    *Decoder
	src  *source
	rec  interaction.Record
	many bool // the record holds several elements, so their ids carry an index

	wraps []string // envelopes peeled, outermost first
	flags []string // of the framing: every interaction of the record gets them
	depth int      // JSON strings unwrapped

	res Result
}

// Decode reads one record. The same record and source give the same result.
func (d *Decoder) Decode(rec interaction.Record) (res Result) {
	src := d.sources[rec.Topic]
	if src == nil {
		src = d.fallback
	}
	r := &record{d: d, src: src, rec: rec}
	defer func() {
		if p := recover(); p != nil {
			// A defect of ours must cost one record, not the partition: it is kept as
			// a dead letter with its coordinates and found there.
			res = Result{Bad: []Bad{{Reason: decoderPanic, Error: fmt.Sprint(p)}}}
			r.res = res
		}
		res = r.finish()
	}()
	r.bytes(rec.Value)
	return r.res
}

func (r *record) finish() Result {
	res := r.res
	if res.Format == "" {
		res.Format = unknown
	}
	res.Envelope = bare
	if wraps := slices.Compact(r.wraps); len(wraps) > 0 {
		// It is a label value: three layers tell all sane logs apart, and wrapping a
		// record again and again must not make new series.
		res.Envelope = strings.Join(wraps[:min(len(wraps), 3)], "+")
	}
	switch {
	case len(res.Bad) > 0 && len(res.Interactions)+len(res.Skips) > 0:
		res.Outcome = Partial
	case len(res.Bad) > 0:
		res.Outcome = DeadLetter
	case len(res.Interactions) > 0:
		res.Outcome = Records
	default:
		res.Outcome = Skip
	}
	return res
}

func (r *record) skip(reason string) { r.res.Skips = append(r.res.Skips, reason) }

func (r *record) bad(element int, reason, format string, args ...any) {
	r.res.Bad = append(r.res.Bad, Bad{Element: element, Reason: reason, Error: fmt.Sprintf(format, args...)})
}

// documents reads one JSON document or several one after another: one per line, or
// with nothing between them.
func (r *record) documents(b []byte) {
	pos := skipSpace(b, 0)
	end, nonfinite, err := scan(b, pos, r.d.cfg.MaxDepth)
	if err == nil && skipSpace(b, end) == len(b) {
		r.document(value(b[pos:end:end]), nonfinite)
		return
	}
	if err == errTooDeep {
		r.bad(0, tooDeep, "deeper than %d levels at byte %d", r.d.cfg.MaxDepth, end)
		return
	}
	r.sequence(b)
}

// sequence reads documents that follow one another. A broken one spoils its line
// only; when nothing in the record is an object, the record is no JSON at all.
func (r *record) sequence(b []byte) {
	r.many = true
	before := len(r.wraps)
	r.wraps = append(r.wraps, "lines")
	element, objects, line, counted, wasted := 0, 0, 1, 0, 0
	var firstErr error
	for pos := skipSpace(b, 0); pos < len(b); pos = skipSpace(b, pos) {
		if element == r.d.cfg.MaxElements {
			r.res = Result{Bad: []Bad{{Reason: tooManyElements, Error: fmt.Sprintf("more than %d documents", element)}}}
			return
		}
		end, nonfinite, err := scan(b, pos, r.d.cfg.MaxDepth)
		switch {
		case err != nil:
			line += bytes.Count(b[counted:pos], []byte{'\n'})
			counted = pos
			if firstErr == nil {
				firstErr = fmt.Errorf("byte %d: %w", end, err)
			}
			reason := notJSON
			if err == errTooDeep {
				reason = tooDeep
			}
			r.bad(element, reason, "line %d: %v", line, err)
			// Lines that each open a list and never close it would be scanned to the
			// end of the record again and again: after a few times the rest is bad.
			if wasted += end - pos; wasted > 4*len(b) {
				pos = len(b)
			} else if next := bytes.IndexByte(b[pos:], '\n'); next >= 0 {
				pos += next
			} else {
				pos = len(b)
			}
		case b[pos] == '{':
			objects++
			r.element(value(b[pos:end:end]), element, nonfinite)
			pos = end
		default:
			r.bad(element, notAnObject, "document %d is no object", element)
			pos = end
		}
		element++
	}
	if objects == 0 {
		if firstErr == nil {
			firstErr = fmt.Errorf("%d values, none of them an object", element)
		}
		r.wraps = r.wraps[:before]
		r.res = Result{Bad: []Bad{{Reason: notJSON, Error: firstErr.Error()}}}
	}
}

// document reads the only document of a record.
func (r *record) document(v value, nonfinite bool) {
	switch {
	case v.isObject():
		r.element(v, 0, nonfinite)
	case v.isArray():
		r.array(v, nonfinite)
	case v.isString():
		r.unwrap(v)
	case v[0] == 'n':
		r.skip(jsonNull)
	default:
		r.bad(0, notJSON, "a single %s", kindOf(v))
	}
}

func (r *record) array(v value, nonfinite bool) {
	r.many = true
	r.wraps = append(r.wraps, "array")
	n := 0
	for w := walk(v); w.next(); n++ {
		if n == r.d.cfg.MaxElements {
			r.res = Result{Bad: []Bad{{Reason: tooManyElements, Error: fmt.Sprintf("more than %d elements", n)}}}
			return
		}
		if !w.val.isObject() {
			r.bad(n, notAnObject, "element %d is a %s", n, kindOf(w.val))
			continue
		}
		r.element(w.val, n, nonfinite)
	}
	if n == 0 {
		r.skip(emptyBatch)
	}
}

// unwrap reads a record that is JSON written as a JSON string.
func (r *record) unwrap(v value) {
	if r.depth == r.d.cfg.MaxNested {
		r.bad(0, notJSON, "JSON inside more than %d strings", r.depth)
		return
	}
	s, _ := v.text()
	inner := []byte(strings.TrimSpace(s))
	if len(inner) == 0 {
		r.skip(emptyValue)
		return
	}
	r.depth++
	if r.depth == 1 {
		r.wraps = append(r.wraps, "string")
	}
	r.json(inner)
}

// element reads one object of the record.
func (r *record) element(v value, index int, nonfinite bool) {
	o := newObject(v)
	if o.isJudgeTraffic() {
		r.skip(judgeTraffic)
		return
	}
	f := r.family(o)
	if f == nil {
		r.bad(index, unknownShape, "no known format has these fields, and none of them is an input or output")
		return
	}
	if f.read == nil {
		r.bad(index, unknownShape, "a record of the format %s, which comes with a later version of Assay", f.name)
		return
	}
	r.named(f.name)
	e := newElement(r, index)
	if o.duplicate {
		e.flag("duplicate_keys")
	}
	if nonfinite {
		// The document was scanned as a whole; ask this element again, since its
		// neighbours' numbers are not its own.
		if _, own, _ := scan(v, 0, depthCap); own {
			e.flag("nonfinite_number")
		}
	}
	f.read(e, o)
	e.override(o)
	if e.skipReason != "" {
		r.skip(e.skipReason)
		return
	}
	r.res.Interactions = append(r.res.Interactions, e.finish())
}

// family finds whose object it is: the source's named one, else the first that claims it.
func (r *record) family(o *object) *family {
	if r.src.family != nil {
		return r.src.family
	}
	for i := range r.d.families {
		f := &r.d.families[i]
		if f.claims(o) {
			return f
		}
	}
	if r.src.readsText {
		return r.d.flatFamily()
	}
	return nil
}

// flatFamily is the last of the table: it reads whatever the overrides point at.
func (d *Decoder) flatFamily() *family { return &d.families[len(d.families)-1] }

func (r *record) named(format string) {
	switch r.res.Format {
	case "", format:
		r.res.Format = format
	default:
		r.res.Format = mixed
	}
}

func kindOf(v value) string {
	switch {
	case v.isObject():
		return "object"
	case v.isArray():
		return "list"
	case v.isString():
		return "string"
	case v.isNumber():
		return "number"
	case v[0] == 'n':
		return "null"
	}
	return "word"
}
