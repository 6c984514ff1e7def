package decode

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Source says how a topic's records are read.
type Source struct {
	Topic  string
	Format string            // one of Formats; empty is auto
	Fields map[string]string // field of the interaction -> path in the record

	Unit        string        // of a trace, one of Units; empty is leaf
	ToolResults string        // what tools answered, one of ToolResults; empty is context
	Turn        string        // of a conversation, one of Turns; empty is last_user
	Snapshots   string        // rows of a snapshot, one of Snapshots; empty is judge
	Rejudge     bool          // a changed row is judged again, though it was whole before
	JoinWait    time.Duration // how long a half waits for its rest; 0 is 10 minutes

	SchemaRegistry SchemaRegistry // of Avro and Protobuf records
}

// Units lists what of a trace may be the interaction: each call of a model, or what
// stands around all of them.
func Units() []string { return []string{"leaf", "root"} }

// ToolResults lists what may be done with what tools answered in the current turn.
func ToolResults() []string { return []string{"context", "ignore"} }

// nestedDepth bounds the nesting of JSON that stands in a string.
const nestedDepth = 256

type source struct {
	family    *family // nil: auto
	proto     bool    // values are OTLP in Protobuf, so an empty one is an empty batch
	unitRoot  bool    // of a trace, what stands around the calls is the interaction
	noTools   bool    // what tools answered is no context
	turn      string  // of a conversation; empty: the last of the user
	noSnaps   bool    // rows of a snapshot are left out
	rejudge   bool    // changed rows are judged again
	readsText bool    // an override points at a text, so any object can be read
	overrides []override
	joinWait  time.Duration
	schemas   *schemas      // nil: none are known
	asked     atomic.Uint64 // interactions the overrides were applied to
}

type override struct {
	field string
	path  path
	hits  atomic.Uint64
}

// Fields lists what an override may set; attributes.NAME sets an attribute.
func Fields() []string {
	return []string{"id", "time", "input", "output", "expected", "criteria", "context", "app", "model", "route",
		"prompt_version", "tenant", "environment", "session_id", "user_id", "trace_id", "input_tokens",
		"output_tokens", "latency_ms"}
}

// CheckFormat explains why a format cannot be named, nil if it can.
func CheckFormat(name string) error {
	if name == "" || slices.Contains(Formats(), name) {
		return nil
	}
	return fmt.Errorf("no format %q; want one of %s", name, strings.Join(Formats(), ", "))
}

// CheckField explains why a field cannot be overridden by a path, nil if it can.
func CheckField(field, at string) error {
	if name, ok := strings.CutPrefix(field, "attributes."); !slices.Contains(Fields(), field) && (!ok || name == "") {
		return fmt.Errorf("no field %q; want attributes.NAME or one of %s", field, strings.Join(Fields(), ", "))
	}
	_, err := parsePath(at)
	return err
}

func compile(s Source, table []family, schemaWait time.Duration) (*source, error) {
	errs := []error{CheckFormat(s.Format)}
	if s.JoinWait < 0 {
		errs = append(errs, fmt.Errorf("join_wait: %s; want a duration above 0", s.JoinWait))
	}
	if s.Unit != "" && !slices.Contains(Units(), s.Unit) {
		errs = append(errs, fmt.Errorf("unit %q; want one of %s", s.Unit, strings.Join(Units(), ", ")))
	}
	if s.ToolResults != "" && !slices.Contains(ToolResults(), s.ToolResults) {
		errs = append(errs, fmt.Errorf("tool_results %q; want one of %s", s.ToolResults, strings.Join(ToolResults(), ", ")))
	}
	if s.Turn != "" && !slices.Contains(Turns(), s.Turn) {
		errs = append(errs, fmt.Errorf("turn %q; want one of %s", s.Turn, strings.Join(Turns(), ", ")))
	}
	if s.Snapshots != "" && !slices.Contains(Snapshots(), s.Snapshots) {
		errs = append(errs, fmt.Errorf("snapshots %q; want one of %s", s.Snapshots, strings.Join(Snapshots(), ", ")))
	}
	out := &source{joinWait: s.JoinWait, proto: s.Format == otlpProto, unitRoot: s.Unit == "root", noTools: s.ToolResults == "ignore"}
	out.noSnaps, out.rejudge = s.Snapshots == "skip", s.Rejudge
	if s.Turn != lastUser {
		out.turn = s.Turn
	}
	for i := range table {
		if table[i].name == s.Format {
			out.family = &table[i]
		}
	}
	var err error
	if out.schemas, err = newSchemas(s.SchemaRegistry, schemaWait); err != nil {
		errs = append(errs, err)
	}
	names := make([]string, 0, len(s.Fields))
	for field := range s.Fields {
		names = append(names, field)
	}
	slices.Sort(names) // the order of application must not be a map's
	out.overrides = make([]override, len(names))
	for i, field := range names {
		if err := CheckField(field, s.Fields[field]); err != nil {
			errs = append(errs, fmt.Errorf("fields.%s: %w", field, err))
			continue
		}
		p, _ := parsePath(s.Fields[field])
		out.overrides[i].field, out.overrides[i].path = field, p
		out.readsText = out.readsText || field == "input" || field == "output"
	}
	return out, errors.Join(errs...)
}

// A path leads to a value of a record: names and indexes from its object down, or a
// header, or the record's key.
type path struct {
	header string
	key    bool
	steps  []string // "[3]" is an index
	index  []int    // per step; -1 for a name
}

// parsePath reads a.b, a\.b, a["b.c"], a[0].b, header:NAME and key.
func parsePath(s string) (path, error) {
	if name, ok := strings.CutPrefix(s, "header:"); ok {
		if name == "" {
			return path{}, errors.New(`path "header:" names no header`)
		}
		return path{header: name}, nil
	}
	if s == "key" {
		return path{key: true}, nil
	}
	var p path
	add := func(name string, index int) { p.steps, p.index = append(p.steps, name), append(p.index, index) }
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], `["`):
			end := strings.Index(s[i:], `"]`)
			if end < 2 {
				return path{}, fmt.Errorf(`path %q: no "] after ["`, s)
			}
			add(s[i+2:i+end], -1)
			i += end + 2
		case s[i] == '[':
			end := strings.IndexByte(s[i:], ']')
			if end < 0 {
				return path{}, fmt.Errorf("path %q: no ] after [", s)
			}
			n, err := strconv.Atoi(s[i+1 : i+end])
			if err != nil || n < 0 {
				return path{}, fmt.Errorf("path %q: want a number or a quoted name in []", s)
			}
			add("", n)
			i += end + 1
		default:
			var name strings.Builder
			for i < len(s) && s[i] != '.' && s[i] != '[' {
				if s[i] == '\\' && i+1 < len(s) {
					i++
				}
				name.WriteByte(s[i])
				i++
			}
			if name.Len() == 0 {
				return path{}, fmt.Errorf("path %q: empty name", s)
			}
			add(name.String(), -1)
		}
		if i < len(s) && s[i] == '.' {
			if i++; i == len(s) {
				return path{}, fmt.Errorf("path %q ends with a dot", s)
			}
		}
	}
	if len(p.steps) == 0 {
		return path{}, errors.New("empty path")
	}
	return p, nil
}

// find follows the path; JSON in strings on the way is opened. nil: nothing is there.
func (p path) find(e *element, o *object) value {
	switch {
	case p.key:
		return quoted(e.r.rec.Key)
	case p.header != "":
		h, _ := e.r.rec.Header(p.header)
		return quoted(h)
	}
	v, skip := o.raw, 0
	for i := range p.steps {
		if skip > 0 {
			skip--
			continue
		}
		if v.isString() {
			v = nestedJSON(v)
		}
		if p.index[i] < 0 {
			var used int
			if v, used = p.named(v, i); used > 1 {
				skip = used - 1
			}
			continue
		}
		w, n := walk(v), 0
		v = nil
		for !w.obj && w.next() {
			if n == p.index[i] {
				v = w.val
				break
			}
			n++
		}
	}
	if v.absent() {
		return nil
	}
	return v
}

// named is the member that the path's steps from i on name, and how many of them: names
// of attributes have dots inside, and span.gen_ai.system must find them unescaped.
func (p path) named(v value, i int) (value, int) {
	if found := v.member(p.steps[i]); found != nil {
		return found, 1
	}
	name := p.steps[i]
	for n := 2; i+n <= len(p.steps) && p.index[i+n-1] < 0; n++ {
		name += "." + p.steps[i+n-1]
		if found := v.member(name); found != nil {
			return found, n
		}
	}
	return nil, 1
}

// override applies the source's overrides, which win over the family's rules.
func (e *element) override(o *object) {
	it, src := &e.it, e.r.src
	if len(src.overrides) == 0 {
		return
	}
	src.asked.Add(1)
	for i := range src.overrides {
		ov := &src.overrides[i]
		v := ov.path.find(e, o)
		if v == nil {
			continue
		}
		ov.hits.Add(1)
		switch ov.field {
		case "id":
			e.setID(v)
		case "time":
			e.it.Flags = slices.DeleteFunc(e.it.Flags, func(f string) bool { return strings.HasPrefix(f, "time_") })
			e.setTime(v, e.responseTime)
		case "input":
			if isConversation(v) {
				it.Messages, e.tools = nil, nil
				e.conversation(v, false)
			} else {
				it.Input, e.inputFixed = e.text(v, "input"), true
			}
		case "output":
			it.Output = e.text(v, "output")
		case "expected":
			it.Expected = e.texts(v)
		case "criteria":
			s := strings.Join(e.texts(v), "\n")
			it.Criteria = &s
		case "context":
			it.Context = e.texts(v)
		case "input_tokens":
			it.InputTokens = e.count(v, ov.field)
		case "output_tokens":
			it.OutputTokens = e.count(v, ov.field)
		case "latency_ms":
			it.LatencyMS = e.latency(v, 1e6)
		default:
			e.overrideLabel(ov.field, e.label(v))
		}
	}
}

func (e *element) overrideLabel(field, text string) {
	it := &e.it
	if text == "" {
		return
	}
	if name, ok := strings.CutPrefix(field, "attributes."); ok {
		if it.Attributes == nil {
			it.Attributes = make(map[string]string)
		}
		it.Attributes[name] = text
		return
	}
	switch field {
	case "app":
		it.App = text
	case "model":
		it.Model = text
	case "route":
		it.Route = text
	case "prompt_version":
		it.PromptVersion = text
	case "tenant":
		it.Tenant = text
	case "environment":
		it.Environment = text
	case "session_id":
		it.SessionID = text
	case "user_id":
		it.UserID = text
	case "trace_id":
		it.TraceID = text
	}
}

// nestedJSON opens a string that holds an object or a list; nil if it holds neither.
func nestedJSON(v value) value {
	if !v.isString() {
		return nil
	}
	s, _ := v.text()
	inner := value(strings.TrimSpace(s))
	if !inner.isObject() && !inner.isArray() {
		return nil
	}
	if end, _, err := scan(inner, 0, nestedDepth); err != nil || end != len(inner) {
		return nil
	}
	return inner
}

// quoted makes a JSON string of a header's or key's bytes, so that one set of readers
// serves all; nil stays nil.
func quoted(b []byte) value {
	if b == nil {
		return nil
	}
	out := make(value, 0, len(b)+2)
	out = append(out, '"')
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20:
			out = append(out, fmt.Sprintf(`\u%04x`, c)...)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
