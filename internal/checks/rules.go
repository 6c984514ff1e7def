package checks

import (
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"assay/evaluators"
)

// asksNobody reports whether the check's evaluator computes and has no judge.
func (c Check) asksNobody() bool {
	spec, err := evaluators.Lookup(c.Evaluator)
	return err == nil && !spec.NeedsJudge()
}

// judgesNeeded reports a file without judges, unless all its checks compute.
func (l *loader) judgesNeeded(m *mapping) {
	if m.has("judges") || len(l.file.Checks) > 0 && !slices.ContainsFunc(l.file.Checks, func(c Check) bool { return !c.asksNobody() }) {
		return
	}
	l.fault(m.node, "%s: judges is missing; want a judge by name, such as main: { kind: openai, ... }", m.where)
}

// commonKeys are settings that have keys of their own in every check.
var commonKeys = []string{"pass", "dialect", "empty_output", "refusals", "truncated"}

// ruleOptions reads the settings of a deterministic evaluator's own. A judge beside them
// would never be asked.
func (l *loader) ruleOptions(c *Check, spec evaluators.Spec, m *mapping) {
	if m.take("judge") != nil {
		l.fault(m.at("judge"), "%s: judge: %s computes and asks no judge; remove the key", m.where, spec.Name)
	}
	for _, s := range spec.Settings {
		if slices.Contains(commonKeys, s.Name) {
			continue
		}
		n := m.take(s.Name)
		if n == nil {
			continue
		}
		if v, ok := l.option(n, s, m.where+": "+s.Name); ok {
			if c.Options == nil {
				c.Options = make(map[string]any)
			}
			c.Options[s.Name] = v
		}
	}
}

// option reads a value of the setting's kind. Whether it makes sense evaluators knows.
func (l *loader) option(n ast.Node, s evaluators.Setting, where string) (any, bool) {
	switch s.Type {
	case "number":
		return value(l.number(n, where))
	case "boolean":
		return l.truth(n, where), true
	case "text":
		return value(l.text(n, where))
	case "list":
		nodes := l.list(n, where)
		texts := make([]string, 0, len(nodes))
		for _, node := range nodes {
			if t, ok := l.text(node, where); ok {
				texts = append(texts, t)
			}
		}
		return texts, n.Type() == ast.SequenceType && len(texts) == len(nodes)
	}
	if l.mapping(n, where) == nil {
		return nil, false
	}
	var v map[string]any
	if err := yaml.NodeToValue(n, &v); err != nil {
		l.fault(n, "%s: %v", where, err)
		return nil, false
	}
	return v, true
}

func value[T any](v T, ok bool) (any, bool) { return v, ok }
