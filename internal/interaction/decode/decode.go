package decode

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

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
	cdcDelete      = "cdc_delete"
	cdcUpdate      = "cdc_update"
	cdcSnapshot    = "cdc_snapshot"
	controlMessage = "control_message"
	notText        = "not_a_text_generation"
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
	schemaMismatch  = "schema_mismatch"
	badAvro         = "bad_avro"
	badProtobuf     = "bad_protobuf"
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
	Scores       []Score                   // about interactions in other records
	Skips        []string                  // a reason per element with nothing to judge
	Bad          []Bad                     // elements, or the record as a whole, that could not be used
	Format       string                    // what it was read as: a format's name, mixed, or unknown
	Envelope     string                    // what it was wrapped in, outermost first: gzip+array; none
	Outcome      Outcome

	// Of a Joiner; see there what its caller owes.
	Held     int     // halves of this record that wait for their rest
	Released []int64 // earlier offsets that wait for nothing any more
	Kept     bool    // something of the record is kept for what comes after it
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
	cfg       Config
	envelopes []envelope
	families  []family
	jobs      map[string]map[string]job // of spans, by attribute and value
	sources   map[string]*source
	fallback  *source   // for topics without a source: auto, no overrides
	objects   sync.Pool // of *object, empty: they are large, and one lives as long as its reading

	fingerprint string
}

// New checks the settings and the sources.
func New(cfg Config, sources []Source) (*Decoder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d := &Decoder{cfg: cfg, envelopes: envelopes(), families: families(), jobs: jobs(), sources: make(map[string]*source, len(sources)), fallback: &source{}}
	for _, s := range sources {
		compiled, err := compile(s, d.families, cfg.SchemaWait)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", s.Topic, err)
		}
		d.sources[s.Topic] = compiled
	}
	d.objects.New = func() any { return new(object) }
	var err error
	if d.fingerprint, err = fingerprint(cfg, sources); err != nil {
		return nil, err
	}
	return d, nil
}

// unmatchedAfter is how many records an override may miss before it is reported: some
// fields are rare, a path that is wrong never matches.
const unmatchedAfter = 1000

// Unmatched lists a topic's overrides that found nothing in all of at least 1,000
// records: their paths are most likely wrong.
func (d *Decoder) Unmatched(topic string) []string { return d.missed(topic, unmatchedAfter) }

// Missed is Unmatched for however few interactions were read, for a look at a sample.
func (d *Decoder) Missed(topic string) []string { return d.missed(topic, 1) }

func (d *Decoder) missed(topic string, after uint64) []string {
	src := d.sources[topic]
	if src == nil || src.asked.Load() < after {
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

	wraps    []string // envelopes peeled, outermost first
	inflated int64    // bytes that decompression gave so far
	index    int      // the next element's
	full     bool     // there are more elements than may be

	around // what stands around the object that is being read

	join  *Joiner // nil: halves are joined within the record
	parts []part
	notes []part

	res Result
}

// around is what the envelopes say about the object inside. Every element is read with
// its own: a flag of one must not mark its neighbour.
type around struct {
	flags     []string // every interaction inside gets them
	depth     int      // JSON strings unwrapped
	layers    int      // envelopes of JSON unwrapped
	nonfinite bool     // the document has a bare NaN or Infinity somewhere
	event     event    // id and time of a CloudEvent
}

// inside runs f and forgets what it said about its surroundings.
func (r *record) inside(f func()) {
	before := r.around
	f()
	r.around = before
	r.flags = r.flags[:len(r.flags):len(r.flags)] // f's appends are not ours
}

// Decode reads one record. The same record and source give the same result. Halves
// that find no rest in the record are incomplete interactions: see Joiner.
func (d *Decoder) Decode(rec interaction.Record) Result {
	return d.decode(rec, d.source(rec.Topic), nil)
}

func (d *Decoder) source(topic string) *source {
	if src := d.sources[topic]; src != nil {
		return src
	}
	return d.fallback
}

func (d *Decoder) decode(rec interaction.Record, src *source, join *Joiner) Result {
	r := &record{d: d, src: src, rec: rec, join: join}
	r.read()
	if join == nil && len(r.parts) > 0 {
		r.join = d.newJoiner(src)
	}
	if r.join != nil {
		r.join.settle(r)
	}
	if join == nil && r.join != nil {
		r.join.giveUpAll(r)
	}
	return r.finish()
}

// read reads the record's bytes.
func (r *record) read() {
	defer func() {
		if p := recover(); p != nil {
			// A defect of ours must cost one record, not the partition: it is kept as
			// a dead letter with its coordinates and found there.
			r.res = Result{Bad: []Bad{{Reason: decoderPanic, Error: fmt.Sprint(p)}}}
			r.parts, r.notes = nil, nil
		}
	}()
	r.bytes(r.rec.Value)
	if r.full {
		// The whole record is one dead letter: which of its elements came before the
		// bound is nobody's business.
		r.res = Result{Bad: []Bad{{Reason: tooManyElements, Error: fmt.Sprintf("more than %d elements", r.d.cfg.MaxElements)}}}
		r.parts, r.notes = nil, nil
	}
}

func (r *record) finish() Result {
	res := r.res
	if res.Format == "" {
		res.Format = unknown
	}
	res.Envelope = bare
	if len(r.wraps) > 0 {
		// It is a label value: three layers tell all sane logs apart, and wrapping a
		// record again and again must not make new series.
		res.Envelope = strings.Join(r.wraps[:min(len(r.wraps), 3)], "+")
	}
	switch {
	case len(res.Bad) > 0 && len(res.Interactions)+len(res.Skips)+len(res.Scores)+res.Held > 0:
		res.Outcome = Partial
	case len(res.Bad) > 0:
		res.Outcome = DeadLetter
	case res.Held > 0:
		res.Outcome = Partial
	case len(res.Interactions) > 0:
		res.Outcome = Records
	case len(res.Scores) > 0:
		res.Outcome = Scored
	default:
		res.Outcome = Skip
	}
	return res
}

// skip counts an element that has nothing to judge.
func (r *record) skip(reason string) {
	r.take()
	r.res.Skips = append(r.res.Skips, reason)
}

// take gives an element its index. Elements of batches inside a record count on, so
// that the index is unique in the record.
func (r *record) take() int {
	i := r.index
	r.index++
	r.full = r.full || i >= r.d.cfg.MaxElements
	return i
}

func (r *record) bad(element int, reason, format string, args ...any) {
	r.res.Bad = append(r.res.Bad, Bad{Element: element, Reason: reason, Error: fmt.Sprintf(format, args...)})
}

// documents reads one JSON document or several one after another: one per line, or
// with nothing between them.
func (r *record) documents(b []byte) {
	pos := skipSpace(b, 0)
	end, nonfinite, err := scan(b, pos, r.d.cfg.MaxDepth)
	if err == nil && skipSpace(b, end) == len(b) {
		r.nonfinite = nonfinite
		r.document(value(b[pos:end:end]))
		return
	}
	if err == errTooDeep {
		r.bad(r.take(), tooDeep, "deeper than %d levels at byte %d", r.d.cfg.MaxDepth, end)
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
	start, objects, line, counted, wasted := r.index, 0, 1, 0, 0
	var firstErr error
	for pos := skipSpace(b, 0); pos < len(b) && !r.full; pos = skipSpace(b, pos) {
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
			r.bad(r.take(), reason, "line %d: %v", line, err)
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
			r.inside(func() {
				r.nonfinite = nonfinite
				r.object(value(b[pos:end:end]))
			})
			pos = end
		default:
			r.bad(r.take(), notAnObject, "a document that is no object")
			pos = end
		}
	}
	if objects == 0 && start == 0 {
		if firstErr == nil {
			firstErr = fmt.Errorf("%d values, none of them an object", r.index)
		}
		r.wraps = r.wraps[:before]
		r.res = Result{Bad: []Bad{{Reason: notJSON, Error: firstErr.Error()}}}
	}
}

// document reads the only document of a record.
func (r *record) document(v value) {
	switch {
	case v.isObject():
		r.object(v)
	case v.isArray():
		r.array(v)
	case v.isString():
		r.unwrap(v)
	case v[0] == 'n':
		r.skip(jsonNull)
	default:
		r.bad(r.take(), notJSON, "a single %s", kindOf(v))
	}
}

func (r *record) array(v value) {
	r.many = true
	r.wrap("array")
	empty := true
	for w := walk(v); w.next() && !r.full; empty = false {
		if !w.val.isObject() {
			n := r.take()
			r.bad(n, notAnObject, "element %d is a %s", n, kindOf(w.val))
			continue
		}
		r.inside(func() { r.object(w.val) })
	}
	if empty {
		r.skip(emptyBatch)
	}
}

// unwrap reads a record that is JSON written as a JSON string.
func (r *record) unwrap(v value) {
	if r.depth == r.d.cfg.MaxNested {
		r.bad(r.take(), notJSON, "JSON inside more than %d strings", r.depth)
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
		r.wrap("string")
	}
	r.json(inner)
}

// object reads one object: it takes off an envelope and starts again, or gives it to
// the family whose it is.
func (r *record) object(v value) {
	o := r.d.objects.Get().(*object)
	defer func() {
		*o = object{} // it must not keep the record's bytes
		r.d.objects.Put(o)
	}()
	o.fill(v)
	if o.isJudgeTraffic() {
		r.skip(judgeTraffic)
		return
	}
	if env := r.d.envelope(o); env != nil {
		if r.layers++; r.layers > maxLayers {
			r.bad(r.take(), unknownShape, "an envelope inside more than %d others", maxLayers)
			return
		}
		r.wrap(env.name)
		env.open(r, o)
		return
	}
	f := r.family(o)
	if f == nil {
		r.bad(r.take(), unknownShape, "no known format has these fields, and none of them is an input or output")
		return
	}
	r.named(f.name)
	f.read(r, o)
}

// element starts the next interaction of the record, of what o holds.
func (r *record) element(o *object) *element {
	e := newElement(r, r.take())
	if o.duplicate {
		e.flag("duplicate_keys")
	}
	if r.nonfinite {
		// The document was scanned as a whole; ask this object again, since its
		// neighbours' numbers are not its own.
		if _, own, _ := scan(o.raw, 0, depthCap); own {
			e.flag("nonfinite_number")
		}
	}
	return e
}

// add finishes an interaction. Paths of overrides start at o.
func (r *record) add(e *element, o *object) {
	e.override(o)
	if e.skipReason != "" {
		r.res.Skips = append(r.res.Skips, e.skipReason) // its index is taken
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

// wrap notes an envelope, once: many rows of a batch may have the same.
func (r *record) wrap(envelope string) {
	if !slices.Contains(r.wraps, envelope) {
		r.wraps = append(r.wraps, envelope)
	}
}

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
