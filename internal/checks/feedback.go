package checks

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Feedback says what a score of a log means: which check's question it answers, and
// whether it passes.
type Feedback struct {
	Check  string
	Line   *float64 // numbers pass from here on; nil: 1 passes, 0 and -1 do not
	Labels []string // labels that pass, the others do not; nil: labels say nothing
}

// Passes reads a score. It is not ok when the score says nothing that this understands:
// a guess would be a person's verdict that nobody gave.
func (f Feedback) Passes(value *float64, label string) (passed, ok bool) {
	switch {
	case f.Labels != nil:
		return slices.Contains(f.Labels, label), label != ""
	case value == nil:
		return false, false
	case f.Line != nil:
		return *value >= *f.Line, true
	}
	return *value == 1, *value == 1 || *value == 0 || *value == -1
}

// A feedbackRef is a check that a source's feedback names, asked for when the checks are
// read: they stand below.
type feedbackRef struct {
	at    ast.Node
	where string
	check string
}

// feedback reads a source's feedback: by the score's name, a check or a mapping of check
// and pass.
func (l *loader) feedback(n ast.Node, where string) map[string]Feedback {
	if n == nil {
		return nil
	}
	where += ": feedback"
	m := l.mapping(n, where)
	if m == nil {
		return nil
	}
	out := make(map[string]Feedback, len(m.entries))
	for _, e := range m.entries {
		var f Feedback
		at, own := e.value, where+": "+e.name
		switch e.value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode:
			body := l.mapping(e.value, own)
			if body == nil {
				continue
			}
			at = body.required("check", "the name of a check")
			l.passes(&f, body.take("pass"), own+": pass")
			body.done("sources.feedback")
		}
		if name, ok := l.text(at, own); ok {
			f.Check = name
			l.refs = append(l.refs, feedbackRef{at, own, name})
		}
		out[e.name] = f
	}
	return out
}

// passes reads the number from which a score passes, or the labels that do.
func (l *loader) passes(f *Feedback, n ast.Node, where string) {
	switch n.(type) {
	case nil:
	case *ast.SequenceNode:
		f.Labels = []string{}
		for _, node := range l.list(n, where) {
			if label, ok := l.text(node, where); ok {
				f.Labels = append(f.Labels, label)
			}
		}
		if len(f.Labels) == 0 {
			l.fault(n, "%s: no label passes; want one at least, such as [good]", where)
		}
	case *ast.StringNode, *ast.LiteralNode:
		l.fault(n, "%s: want the number from which a score passes, such as 4, or a list of labels, such as [good]", where)
	default:
		if v, ok := l.number(n, where); ok {
			f.Line = &v
		}
	}
}

// feedbackChecks reports checks that feedback names and that are not there.
func (l *loader) feedbackChecks() {
	var names []string
	for _, c := range l.file.Checks {
		names = append(names, c.Name)
	}
	for _, r := range l.refs {
		if !slices.Contains(names, r.check) {
			l.fault(r.at, "%s: no check %q%s; want one of checks: %s", r.where, r.check, nearest(r.check, names), strings.Join(names, ", "))
		}
	}
}
