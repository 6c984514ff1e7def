package checks

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"assay/internal/interaction"
	"assay/internal/interaction/decode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// An Option loosens what a file may say.
type Option func(*loader)

// AllowSimulated allows judges of kind simulated, which know nothing: for the demo,
// where the truth is known, and for tests.
func AllowSimulated() Option { return func(l *loader) { l.simulated = true } }

// maxFileBytes is far above any checks file and far below what would hurt.
const maxFileBytes = 4 << 20

// Load reads the checks file at path. The error is Faults when the file is there but
// wrong.
func Load(path string, options ...Option) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("checks file: %w", err)
	}
	return Parse(path, data, options...)
}

// Parse reads a checks file's bytes; path is for its faults.
func Parse(path string, data []byte, options ...Option) (*File, error) {
	l := &loader{reader: reader{path: path}, file: &File{Path: path}}
	for _, o := range options {
		o(l)
	}
	if len(data) > maxFileBytes {
		l.faultAt(1, 1, "%d bytes; a checks file has at most %d", len(data), maxFileBytes)
		return nil, l.faults
	}
	tree, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		line, column, message := syntax(err)
		l.faultAt(line, column, "not valid YAML: %s", message)
		return nil, l.faults
	}
	switch {
	case len(tree.Docs) == 0 || tree.Docs[0].Body == nil:
		l.faultAt(1, 1, "the file is empty; want version, sources, judges and checks")
	case len(tree.Docs) > 1:
		l.fault(tree.Docs[1].Body, "a second document starts here; want one")
	default:
		l.read(tree.Docs[0].Body)
	}
	if len(l.faults) > 0 {
		return nil, l.faults.sorted()
	}
	l.file.Hash = l.file.hash()
	return l.file, nil
}

// syntax takes the place and the sentence out of the library's error, which otherwise
// prints the source around it.
func syntax(err error) (line, column int, message string) {
	var placed interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &placed) && placed.GetToken() != nil && placed.GetToken().Position != nil {
		at := placed.GetToken().Position
		return at.Line, max(at.Column, 1), placed.GetMessage()
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return 1, 1, first
}

type loader struct {
	reader
	simulated bool
	file      *File
	filters   *filterEnv
	refs      []feedbackRef
}

const (
	maxDimensions     = 8
	defaultFalseAlarm = 4
)

func (l *loader) read(root ast.Node) {
	m := l.mapping(root, "checks file")
	if m == nil {
		return
	}
	l.version(m)
	l.dimensions(m)
	l.slices(m)
	l.sources(m)
	l.judges(m)
	l.checks(m)
	l.judgesNeeded(m)
	l.feedbackChecks()
	l.alerts(m)
	l.privacy(m)
	l.suites(m)
	m.done("")
}

func (l *loader) version(m *mapping) {
	n := m.required("version", "1")
	if n == nil {
		return
	}
	if v, ok := l.number(n, "version"); ok && v != 1 {
		l.fault(n, "version: %v; this Assay reads version 1", v)
	}
}

// namePattern is what a dimension may be called: it becomes a Prometheus label.
func namePattern() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`) }

// ourLabels are the labels Assay and Prometheus give a series themselves.
func ourLabels() []string {
	return []string{"check", "check_version", "version", "window", "level", "detector", "slice", "slice_id", "stratum", "judge", "topic",
		"partition", "decision", "status", "reason", "severity", "origin", "instance", "job", "le", "quantile", "alertname", "all", "other"}
}

// unbounded are fields with a value of their own in nearly every record.
func unbounded() []string {
	return []string{"id", "time", "input", "output", "expected", "criteria", "context", "session_id", "user_id", "trace_id",
		"input_tokens", "output_tokens", "latency_ms", "feedback"}
}

func (l *loader) dimensions(m *mapping) {
	n := m.take("dimensions")
	nodes := l.list(n, "dimensions")
	if len(nodes) > maxDimensions {
		l.fault(nodes[maxDimensions], "dimensions: %d; want at most %d", len(nodes), maxDimensions)
	}
	pattern := namePattern()
	for _, node := range nodes {
		name, ok := l.text(node, "dimensions")
		switch {
		case !ok:
		case !pattern.MatchString(name):
			l.fault(node, "dimensions: %q; want small letters, digits and _, starting with a letter", name)
		case slices.Contains(ourLabels(), name):
			l.fault(node, "dimensions: %s is a label of Assay's own; give the attribute another name under sources.fields", name)
		case slices.Contains(unbounded(), name):
			l.fault(node, "dimensions: %s has a value of its own in nearly every record; want a field with few values, such as app, model or an attribute", name)
		case slices.Contains(l.file.Dimensions, name):
			l.fault(node, "dimensions: %s stands here twice", name)
		default:
			l.file.Dimensions = append(l.file.Dimensions, name)
		}
	}
}

func (l *loader) slices(m *mapping) {
	for _, node := range l.list(m.take("slices"), "slices") {
		s := l.mapping(node, "slices")
		if s == nil {
			continue
		}
		if len(s.entries) == 0 {
			l.fault(node, "slices: an empty slice is all of the traffic, which is always there; name a dimension")
			continue
		}
		slice := interaction.Slice{}
		for _, e := range s.entries {
			value, ok := l.text(e.value, "slices: "+e.name)
			switch {
			case !slices.Contains(l.file.Dimensions, e.name):
				l.fault(e.key, "slices: %s is no declared dimension%s; want %s", e.name, nearest(e.name, l.file.Dimensions), orNone(l.file.Dimensions))
			case ok && len(value) > interaction.MaxDimensionBytes:
				l.fault(e.value, "slices: %s: %d bytes; values are cut to %d", e.name, len(value), interaction.MaxDimensionBytes)
			case ok:
				slice[e.name] = value
			}
		}
		if len(slice) < len(s.entries) {
			continue
		}
		if slices.ContainsFunc(l.file.Slices, func(other interaction.Slice) bool { return other.ID() == slice.ID() }) {
			l.fault(node, "slices: %s stands here twice", slice)
			continue
		}
		l.file.Slices = append(l.file.Slices, slice)
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "a name under dimensions (there is none)"
	}
	return strings.Join(names, ", ")
}

func (l *loader) sources(m *mapping) {
	n := m.required("sources", "a list of topics")
	nodes := l.list(n, "sources")
	if n != nil && nodes != nil && len(nodes) == 0 {
		l.fault(n, "sources: want at least one topic")
	}
	for _, node := range nodes {
		s := l.mapping(node, "sources")
		if s == nil {
			continue
		}
		var src Source
		at := s.required("topic", "a Kafka topic")
		if topic, ok := l.text(at, "sources: topic"); ok {
			src.Topic = topic
			if !regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`).MatchString(topic) {
				l.fault(at, "sources: topic: %q is no topic name", topic)
			}
			if slices.ContainsFunc(l.file.Sources, func(o Source) bool { return o.Topic == topic }) {
				l.fault(at, "sources: topic %s stands here twice", topic)
			}
		}
		where := "source " + src.Topic
		src.Format = decode.Formats()[0]
		if at := s.take("format"); at != nil {
			if format, ok := l.text(at, where+": format"); ok {
				if err := decode.CheckFormat(format); err != nil {
					l.fault(at, "%s: %v", where, err)
				}
				src.Format = format
			}
		}
		if at := s.take("fields"); at != nil {
			src.Fields = l.fields(at, where)
		}
		src.Unit, _ = l.choice(s.take("unit"), where+": unit", decode.Units()...)
		src.ToolResults, _ = l.choice(s.take("tool_results"), where+": tool_results", decode.ToolResults()...)
		src.Turn, _ = l.choice(s.take("turn"), where+": turn", decode.Turns()...)
		src.Snapshots, _ = l.choice(s.take("snapshots"), where+": snapshots", decode.Snapshots()...)
		src.Rejudge = l.truth(s.take("rejudge_updates"), where+": rejudge_updates")
		src.JoinWait, _ = l.duration(s.take("join_wait"), where+": join_wait", minJoinWait, maxJoinWait)
		src.Feedback = l.feedback(s.take("feedback"), where)
		src.SchemaRegistry = l.schemaRegistry(s.take("schema_registry"), where)
		s.done("sources")
		l.file.Sources = append(l.file.Sources, src)
	}
}

func (l *loader) fields(n ast.Node, where string) map[string]string {
	m := l.mapping(n, where+": fields")
	if m == nil {
		return nil
	}
	fields := make(map[string]string, len(m.entries))
	for _, e := range m.entries {
		path, ok := l.text(e.value, where+": fields: "+e.name)
		if !ok {
			continue
		}
		if err := decode.CheckField(e.name, path); err != nil {
			l.fault(e.key, "%s: fields: %v%s", where, err, nearest(e.name, decode.Fields()))
			continue
		}
		fields[e.name] = path
	}
	return fields
}

func (l *loader) alerts(m *mapping) {
	l.file.Alerts.MaxFalseAlarmsPerYear = defaultFalseAlarm
	n := m.take("alerts")
	if n == nil {
		return
	}
	a := l.mapping(n, "alerts")
	if a == nil {
		return
	}
	at := a.take("max_false_alarms_per_year")
	if v, ok := l.within(at, "alerts: max_false_alarms_per_year", 0.01, 1000); ok {
		l.file.Alerts.MaxFalseAlarmsPerYear = v
	}
	a.done("alerts")
}

// redactions are what can be taken out of stored text.
func redactions() []string { return []string{"email", "phone", "card", "secret"} }

func (l *loader) privacy(m *mapping) {
	// What is stored outlives the log, so by default everything known is taken out.
	l.file.Privacy = Privacy{StoreText: "excerpt", Redact: redactions()}
	n := m.take("privacy")
	if n == nil {
		return
	}
	p := l.mapping(n, "privacy")
	if p == nil {
		return
	}
	if s, ok := l.choice(p.take("store_text"), "privacy: store_text", "full", "excerpt", "none"); ok {
		l.file.Privacy.StoreText = s
	}
	if at := p.take("redact"); at != nil {
		l.file.Privacy.Redact = nil
		for _, node := range l.list(at, "privacy: redact") {
			if s, ok := l.choice(node, "privacy: redact", redactions()...); ok && !slices.Contains(l.file.Privacy.Redact, s) {
				l.file.Privacy.Redact = append(l.file.Privacy.Redact, s)
			}
		}
	}
	p.done("privacy")
}
