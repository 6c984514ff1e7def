package checks

import (
	"fmt"
	"strings"

	"assay/internal/interaction"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"
	"github.com/goccy/go-yaml/ast"
)

// A Filter is a check's when: a CEL expression over the fields of an interaction. It
// is safe for concurrent use; a nil Filter matches everything.
type Filter struct {
	source  string
	program cel.Program
}

// Bounds of one filter. A filter runs for every interaction of the log, so a costly
// one would cost more than all judging; the sizes leave room for any list a person
// writes by hand.
const (
	maxFilterRunes = 4096
	maxFilterDepth = 32
	maxFilterCost  = 20_000
)

// Match reports whether the check wants the interaction. An error means that the
// expression has no answer for it, such as a comparison with an absent number.
func (f *Filter) Match(it *interaction.Interaction) (bool, error) {
	if f == nil {
		return true, nil
	}
	out, _, err := f.program.Eval(fields{it})
	if err != nil {
		return false, fmt.Errorf("filter %q: %w", f.source, err)
	}
	matched, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("filter %q: gave %v, not true or false", f.source, out.Value())
	}
	return matched, nil
}

// String is the expression as written; empty for none.
func (f *Filter) String() string {
	if f == nil {
		return ""
	}
	return f.source
}

// filterEnv compiles filters.
type filterEnv struct{ env *cel.Env }

// variables are the names a filter may use. Numbers that a log may lack are null then:
// `input_tokens != null && input_tokens > 500`.
func variables() map[string]*cel.Type {
	text, number := cel.StringType, cel.NullableType(cel.IntType)
	return map[string]*cel.Type{
		"id": text, "topic": text, "app": text, "model": text, "route": text, "prompt_version": text, "tenant": text,
		"environment": text, "session_id": text, "user_id": text, "trace_id": text, "status": text,
		"time":         cel.TimestampType,
		"input_tokens": number, "output_tokens": number, "latency_ms": number,
		"feedback":   cel.NullableType(cel.DoubleType),
		"attributes": cel.MapType(cel.StringType, cel.StringType),
		"flags":      cel.ListType(cel.StringType),
	}
}

func newFilterEnv() (*filterEnv, error) {
	options := []cel.EnvOption{cel.ParserRecursionLimit(maxFilterDepth), cel.ParserExpressionSizeLimit(maxFilterRunes)}
	for name, kind := range variables() {
		options = append(options, cel.Variable(name, kind))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	return &filterEnv{env}, nil
}

// An issue is what is wrong with an expression, at a line and column of its own, both
// from 1.
type issue struct {
	line, column int
	message      string
}

func (e *filterEnv) compile(source string) (*Filter, []issue) {
	checked, problems := e.env.Compile(source)
	if problems != nil && problems.Err() != nil {
		var all []issue
		for _, p := range problems.Errors() {
			all = append(all, issue{p.Location.Line(), p.Location.Column() + 1, explain(p.Message)})
		}
		return nil, all
	}
	if kind := checked.OutputType(); !kind.IsExactType(cel.BoolType) {
		return nil, []issue{{1, 1, fmt.Sprintf("gives %s; want a condition that is true or false, such as app == \"support\"", kind)}}
	}
	program, err := e.program(checked)
	if err != nil {
		return nil, []issue{{1, 1, err.Error()}}
	}
	return &Filter{source: source, program: program}, nil
}

// explain turns CEL's commonest message into one that names the field.
func explain(message string) string {
	rest, ok := strings.CutPrefix(message, "undeclared reference to '")
	if !ok {
		return message
	}
	name, _, _ := strings.Cut(rest, "'")
	var known []string
	for v := range variables() {
		known = append(known, v)
	}
	return fmt.Sprintf("no field %s%s; attributes are attributes.NAME", name, nearest(name, known))
}

// filter compiles a check's when and places its faults in the file.
func (l *loader) filter(n ast.Node, where string) *Filter {
	source, ok := l.text(n, where+": when")
	if !ok {
		return nil
	}
	if strings.TrimSpace(source) == "" {
		l.fault(n, "%s: when is blank; remove the key to judge every interaction", where)
		return nil
	}
	f, issues := l.filters.compile(source)
	for _, i := range issues {
		line, column := within(n, i)
		l.faultAt(line, column, "%s: when: %s", where, i.message)
	}
	return f
}

// within is the place in the file of a place in an expression.
func within(n ast.Node, i issue) (line, column int) {
	line, column = position(n)
	switch x := n.(type) {
	case *ast.LiteralNode:
		if !strings.HasPrefix(x.Start.Value, "|") {
			return line, column // folded lines have lost their own
		}
		origin := x.Value.GetToken().Origin
		indent := len(origin) - len(strings.TrimLeft(origin, " "))
		return line + i.line, indent + i.column
	case *ast.StringNode:
		if i.line > 1 {
			return line, column
		}
		if o := strings.TrimLeft(x.Token.Origin, " "); strings.HasPrefix(o, `"`) || strings.HasPrefix(o, "'") {
			column++
		}
	}
	return line, column + i.column - 1
}

// fields lets a filter read an interaction without copying it into a map.
type fields struct{ it *interaction.Interaction }

// ResolveName returns the value of a variable.
func (f fields) ResolveName(name string) (any, bool) {
	it := f.it
	switch name {
	case "id":
		return it.ID, true
	case "topic":
		return it.Topic, true
	case "session_id":
		return it.SessionID, true
	case "user_id":
		return it.UserID, true
	case "trace_id":
		return it.TraceID, true
	case "status":
		return string(it.Status), true
	case "time":
		return it.Time, true
	case "input_tokens":
		return orNull(it.InputTokens), true
	case "output_tokens":
		return orNull(it.OutputTokens), true
	case "latency_ms":
		return orNull(it.WholeLatency()), true
	case "feedback":
		if it.Feedback == nil {
			return types.NullValue, true
		}
		return it.Feedback.Value, true
	case "attributes":
		return it.Attributes, true
	case "flags":
		return it.Flags, true
	case "app":
		return it.App, true
	case "model":
		return it.Model, true
	case "route":
		return it.Route, true
	case "prompt_version":
		return it.PromptVersion, true
	case "tenant":
		return it.Tenant, true
	case "environment":
		return it.Environment, true
	}
	return nil, false
}

// Parent is none: there is nothing beyond the interaction.
func (f fields) Parent() interpreter.Activation { return nil }

func orNull(n *int64) any {
	if n == nil {
		return types.NullValue
	}
	return *n
}
