package checks

import (
	"reflect"
	"strings"
	"testing"

	"assay/evaluators"
)

// withRule is a file with a check that asks nobody, and no judges.
func withRule(lines string) string {
	return "version: 1\nsources: [{ topic: t }]\nchecks:\n  - name: c\n    " +
		strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n    ") + "\n    sample: { rate: 1 }\n"
}

func TestACheckWithARuleNeedsNoJudge(t *testing.T) {
	f := func(lines string, want map[string]any) Check {
		t.Helper()
		file, err := Parse("assay.yaml", []byte(withRule(lines)))
		if err != nil {
			t.Fatalf("%s:\n%v", lines, err)
		}
		c := file.Checks[0]
		if c.Judge != "" || len(c.Version) != 16 || !reflect.DeepEqual(c.Options, want) {
			t.Errorf("%s: %+v", lines, c)
		}
		if _, err := evaluators.New(c.Evaluator, c.Settings()); err != nil {
			t.Errorf("%s: %v", lines, err)
		}
		return c
	}
	f("evaluator: exact_match\nreference: { field: expected }", nil)
	c := f("evaluator: levenshtein\nreference: { field: attributes.gold }\npass: 0.9\nempty_output: fail", nil)
	if *c.PassLine != .9 || c.EmptyOutput != "fail" || c.Reference.Field != "attributes.gold" {
		t.Errorf("%+v", c)
	}
	a := f("evaluator: length\nmax: 500\nunit: words", map[string]any{"max": 500., "unit": "words"})
	b := f("evaluator: length\nmax: 501\nunit: words", map[string]any{"max": 501., "unit": "words"})
	if a.Version == b.Version {
		t.Error("another bound is the same version")
	}
	f("evaluator: contains\nany: [days, weeks]\nignore_case: true", map[string]any{"any": []string{"days", "weeks"}, "ignore_case": true})
	f("evaluator: regex\nmust_not: '(?i)as an ai'", map[string]any{"must_not": "(?i)as an ai"})
	f("evaluator: valid_json\nschema: { type: object, required: [id], properties: { id: { type: integer, minimum: 1 } } }", map[string]any{"schema": map[string]any{
		"type": "object", "required": []any{"id"}, "properties": map[string]any{"id": map[string]any{"type": "integer", "minimum": uint64(1)}}}})
	f("evaluator: numeric_range\nfield: attributes.retrieved\nmin: 1", map[string]any{"field": "attributes.retrieved", "min": 1.})
	if c := f("evaluator: exact_match\nreference: { field: expected }\ndialect: squad", nil); c.Dialect != "squad" {
		t.Errorf("%+v", c)
	}
}

func TestFaultsOfRulesPointAtTheirKey(t *testing.T) {
	f := func(lines, want string) {
		t.Helper()
		if _, err := Parse("assay.yaml", []byte(withRule(lines))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v, want %q", lines, err, want)
		}
	}
	f("evaluator: latency\nmax: 5\njudge: main", "assay.yaml:7:5: check c: judge: latency computes and asks no judge; remove the key")
	f("evaluator: latency", "assay.yaml:4:5: check c: min: want at least one of min, max")
	f("evaluator: latency\nmax: five", "assay.yaml:6:10: check c: max: want a number, not the text \"five\"")
	f("evaluator: contains\nany: []", "assay.yaml:6:5: check c: any: want a list of texts with at least one")
	f("evaluator: contains\nany: days", "assay.yaml:6:10: check c: any: want a list, not the text \"days\"")
	f("evaluator: contains\nany: [1]", "want text, not the number 1")
	f("evaluator: regex\npattern: '('", "assay.yaml:6:5: check c: pattern: error parsing")
	f("evaluator: regex\npatern: x", "assay.yaml:6:5: check c: unknown key patern (did you mean pattern?)")
	f("evaluator: valid_json\nschema: { type: objekt }", "assay.yaml:6:5: check c: schema")
	f("evaluator: valid_json\nschema: text", "schema: want keys with values")
	f("evaluator: exact_match", "reference is missing: exact_match needs it")
	f("evaluator: exact_match\nreference: { field: expected }\nmax_claims: 3", "max_claims")
	f("evaluator: exact_match\nreference: { field: expected }\npass: [C]", "pass")
	f("evaluator: factuality\nreference: { field: expected }", "judges is missing; want a judge by name")
}
