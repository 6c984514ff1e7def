package checks

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// A reader walks the file's syntax tree and collects what is wrong with it. It reads
// the tree and not a struct, because every fault must point at its place, and because
// a strict decoder stops at the first one.
type reader struct {
	path   string
	faults Faults
}

func (r *reader) fault(n ast.Node, format string, args ...any) {
	line, column := position(n)
	r.faultAt(line, column, format, args...)
}

func (r *reader) faultAt(line, column int, format string, args ...any) {
	r.faults = append(r.faults, Fault{Path: r.path, Line: line, Column: column, Message: fmt.Sprintf(format, args...)})
}

// position is where a node starts. The library places a block mapping at its first
// colon; people look for its first key.
func position(n ast.Node) (line, column int) {
	switch x := n.(type) {
	case *ast.MappingNode:
		if !x.IsFlowStyle && len(x.Values) > 0 {
			return position(x.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(x.Key)
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1, 1
	}
	at := n.GetToken().Position
	return at.Line, max(at.Column, 1)
}

// An entry is a key of a mapping with its value.
type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

// A mapping is a mapping whose keys are taken one by one; keys that nobody took are
// unknown.
type mapping struct {
	r       *reader
	where   string // for people: check facts: sample
	node    ast.Node
	entries []entry
	taken   []string
}

// mapping reads n as a mapping, nil (and a fault) if it is none.
func (r *reader) mapping(n ast.Node, where string) *mapping {
	m := &mapping{r: r, where: where, node: n}
	var values []*ast.MappingValueNode
	switch x := n.(type) {
	case *ast.MappingNode:
		values = x.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{x}
	default:
		r.fault(n, "%s: want keys with values, not %s", where, describe(n))
		return nil
	}
	for _, v := range values {
		name, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.fault(v.Key, "%s: want a plain name as a key, not %s", where, describe(v.Key))
			continue
		}
		if slices.ContainsFunc(m.entries, func(e entry) bool { return e.name == name.Value }) {
			r.fault(v.Key, "%s: %s stands here twice", where, name.Value)
			continue
		}
		m.entries = append(m.entries, entry{name.Value, v.Key, v.Value})
	}
	return m
}

// take returns the value of a key, nil if it is missing or empty.
func (m *mapping) take(name string) ast.Node {
	m.taken = append(m.taken, name)
	for _, e := range m.entries {
		if e.name != name {
			continue
		}
		if _, null := e.value.(*ast.NullNode); null {
			m.r.fault(e.key, "%s: %s is empty; give it a value or remove the key", m.where, name)
			return nil
		}
		return e.value
	}
	return nil
}

func (m *mapping) has(name string) bool {
	return slices.ContainsFunc(m.entries, func(e entry) bool { return e.name == name })
}

// key is the node of a key, or the mapping itself if there is none: where to point.
func (m *mapping) at(name string) ast.Node {
	for _, e := range m.entries {
		if e.name == name {
			return e.key
		}
	}
	return m.node
}

// required is take with a fault when the key is missing.
func (m *mapping) required(name, want string) ast.Node {
	if !m.has(name) {
		m.taken = append(m.taken, name)
		m.r.fault(m.node, "%s: %s is missing; want %s", m.where, name, want)
		return nil
	}
	return m.take(name)
}

// done reports the keys that nobody took.
func (m *mapping) done(scope string) {
	for _, e := range m.entries {
		if slices.Contains(m.taken, e.name) {
			continue
		}
		if what, ok := later(scope, e.name); ok {
			m.r.fault(e.key, "%s: %s; remove the key", dotted(scope, e.name), what)
			continue
		}
		m.r.fault(e.key, "%s: unknown key %s%s; want %s", m.where, e.name, nearest(e.name, m.taken), strings.Join(m.taken, ", "))
	}
}

func dotted(scope, name string) string {
	if scope == "" {
		return name
	}
	return scope + "." + name
}

// text reads a string. A number or truth value is refused rather than turned into
// text: 1.10 would become 1.1, and no would become false.
func (r *reader) text(n ast.Node, where string) (string, bool) {
	switch x := n.(type) {
	case nil:
		return "", false
	case *ast.StringNode:
		return x.Value, true
	case *ast.LiteralNode:
		return x.Value.Value, true
	}
	r.fault(n, "%s: want text, not %s%s", where, describe(n), quoteHint(n))
	return "", false
}

func quoteHint(n ast.Node) string {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return fmt.Sprintf("; write %q", n.GetToken().Value)
	}
	return ""
}

// choice reads a string out of a closed list.
func (r *reader) choice(n ast.Node, where string, options ...string) (string, bool) {
	s, ok := r.text(n, where)
	if !ok {
		return "", false
	}
	if !slices.Contains(options, s) {
		r.fault(n, "%s: %q%s; want %s", where, s, nearest(s, options), strings.Join(options, " or "))
		return "", false
	}
	return s, true
}

func (r *reader) number(n ast.Node, where string) (float64, bool) {
	f := math.NaN()
	switch x := n.(type) {
	case nil:
		return 0, false
	case *ast.IntegerNode:
		switch v := x.Value.(type) {
		case int64:
			f = float64(v)
		case uint64:
			f = float64(v)
		}
	case *ast.FloatNode:
		f = x.Value
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.fault(n, "%s: want a number, not %s", where, describe(n))
		return 0, false
	}
	return f, true
}

// within is number with bounds.
func (r *reader) within(n ast.Node, where string, lo, hi float64) (float64, bool) {
	f, ok := r.number(n, where)
	if ok && (f < lo || f > hi) {
		r.fault(n, "%s: %v; want %v to %v", where, f, lo, hi)
		return 0, false
	}
	return f, ok
}

func (r *reader) whole(n ast.Node, where string, lo, hi int64) (int64, bool) {
	f, ok := r.within(n, where, float64(lo), float64(hi))
	if ok && f != math.Trunc(f) {
		r.fault(n, "%s: %v; want a whole number", where, f)
		return 0, false
	}
	return int64(f), ok
}

func (r *reader) truth(n ast.Node, where string) bool {
	switch x := n.(type) {
	case nil:
		return false
	case *ast.BoolNode:
		return x.Value
	}
	r.fault(n, "%s: want true or false, not %s", where, describe(n))
	return false
}

func (r *reader) list(n ast.Node, where string) []ast.Node {
	switch x := n.(type) {
	case nil:
		return nil
	case *ast.SequenceNode:
		return x.Values
	}
	r.fault(n, "%s: want a list, not %s", where, describe(n))
	return nil
}

func describe(n ast.Node) string {
	switch x := n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.StringNode:
		return fmt.Sprintf("the text %q", x.Value)
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + n.GetToken().Value
	case *ast.BoolNode:
		return "the truth value " + n.GetToken().Value
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor or alias (write the value out: a check must be readable where it stands)"
	case *ast.TagNode:
		return "a tag"
	}
	return "this"
}
