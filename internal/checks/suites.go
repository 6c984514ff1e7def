package checks

import (
	"fmt"
	"slices"
	"strings"

	"assay/evaluators"
)

// AllSuites are the built-in suites and, after them, those of the file; of no file
// (nil) the built-in ones.
func (f *File) AllSuites() []evaluators.Suite {
	all := evaluators.Suites()
	if f != nil {
		all = append(all, f.Suites...)
	}
	return all
}

// Suite returns the suite of that name; the error names all and the nearest.
func (f *File) Suite(name string) (evaluators.Suite, error) {
	var known []string
	for _, s := range f.AllSuites() {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return evaluators.Suite{}, fmt.Errorf("unknown suite %q: want one of %s%s", name, strings.Join(known, ", "), nearest(name, known))
}

// suites reads the file's own suites: names of evaluators under a name.
func (l *loader) suites(m *mapping) {
	n := m.take("suites")
	if n == nil {
		return
	}
	body := l.mapping(n, "suites")
	if body == nil {
		return
	}
	if len(body.entries) == 0 {
		l.fault(n, "suites: want at least one, such as ours: [factuality, exact_match]")
	}
	for _, e := range body.entries {
		where := "suite " + e.name
		switch _, err := evaluators.LookupSuite(e.name); {
		case err == nil:
			l.fault(e.key, "suites: %s is a suite of Assay's own; take another name", e.name)
		case !identifier().MatchString(e.name):
			l.fault(e.key, "suites: %q; want letters, digits, _, - and ., starting with a letter, at most 64", e.name)
		}
		suite := evaluators.Suite{Name: e.name, Summary: "Of the checks file."}
		nodes := l.list(e.value, where)
		if nodes != nil && len(nodes) == 0 {
			l.fault(e.value, "%s: want at least one evaluator", where)
		}
		for _, node := range nodes {
			name, ok := l.text(node, where)
			if !ok {
				continue
			}
			spec, err := evaluators.Lookup(name)
			switch {
			case err != nil:
				l.fault(node, "%s: evaluator %q%s; want %s", where, name, nearest(name, strings.Split(evaluatorNames(), " or ")), evaluatorNames())
			case slices.Contains(suite.Evaluators, spec.Name):
				l.fault(node, "%s: %s stands here twice", where, name)
			default:
				suite.Evaluators = append(suite.Evaluators, spec.Name)
			}
		}
		l.file.Suites = append(l.file.Suites, suite)
	}
}
