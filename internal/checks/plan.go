package checks

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"assay/evaluators"
	"assay/internal/interaction/decode"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// busy is the rate from which a check without a filter selects so many interactions that
// reading them twice costs more than the first reading saves.
const busy = 0.5

// Plan is what decisions under this file read of an interaction: filters, dimensions and
// what checks need to be applicable. The error says why every record has to be decoded
// in full.
func (f *File) Plan() (decode.Plan, error) {
	r := reads{labels: make(map[string]bool), attributes: make(map[string]bool), textBytes: decode.Unbounded}
	for _, name := range f.Dimensions {
		r.dimension(name)
	}
	var errs []error
	env, err := newFilterEnv()
	if err != nil {
		return decode.Plan{}, err
	}
	for _, c := range f.Checks {
		if c.isBusy() {
			errs = append(errs, fmt.Errorf("check %s: sample: rate: %v of all interactions are judged, and decoded in full for it", c.Name, c.Sample.Rate))
		}
		if err := r.filter(env, c.When); err != nil {
			errs = append(errs, fmt.Errorf("check %s: when: %w", c.Name, err))
		}
		if err := r.applicability(c); err != nil {
			errs = append(errs, fmt.Errorf("check %s: %w", c.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return decode.Plan{}, err
	}
	plan := decode.Plan{Numbers: r.numbers, Refusals: r.refusals, TextBytes: r.textBytes}
	for name := range r.labels {
		plan.Labels = append(plan.Labels, name)
	}
	for name := range r.attributes {
		plan.Attributes = append(plan.Attributes, name)
	}
	slices.Sort(plan.Labels)
	slices.Sort(plan.Attributes)
	return plan, nil
}

// slow says why records are decoded in full although few are selected; empty when they
// are not, or when most are selected.
func (f *File) slow() string {
	if slices.ContainsFunc(f.Checks, Check.isBusy) {
		return ""
	}
	if _, err := f.Plan(); err != nil {
		return "every record is decoded in full, at several times the CPU: " + strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return ""
}

func (c Check) isBusy() bool { return c.When == nil && c.Sample.Rate >= busy }

// reads collects what is read.
type reads struct {
	labels     map[string]bool
	attributes map[string]bool
	numbers    bool
	refusals   bool
	textBytes  int
}

// dimension reads a label, or an attribute of that name.
func (r *reads) dimension(name string) {
	switch name {
	case "app", "model", "route", "prompt_version", "tenant", "environment":
		r.labels[name] = true
	default:
		r.attributes[name] = true
	}
}

// filter finds the variables of an expression.
func (r *reads) filter(env *filterEnv, f *Filter) error {
	if f == nil {
		return nil
	}
	checked, issues := env.env.Compile(f.source)
	if issues != nil && issues.Err() != nil {
		return issues.Err() // it was compiled before
	}
	return r.expression(checked.NativeRep().Expr())
}

func (r *reads) expression(e ast.Expr) error {
	var parts []ast.Expr
	switch e.Kind() {
	case ast.IdentKind:
		return r.variable(nameOf(e))
	case ast.SelectKind:
		s := e.AsSelect()
		if isAttributes(s.Operand()) {
			r.attributes[s.FieldName()] = true
			return nil
		}
		parts = []ast.Expr{s.Operand()}
	case ast.CallKind:
		c := e.AsCall()
		if name, ok := attributeOf(c); ok {
			r.attributes[name] = true
			return nil
		}
		parts = c.Args()
		if c.IsMemberFunction() {
			parts = append([]ast.Expr{c.Target()}, parts...)
		}
	case ast.ListKind:
		parts = e.AsList().Elements()
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		parts = []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	case ast.LiteralKind:
	default:
		return errors.New("it builds a map or a message")
	}
	for _, part := range parts {
		if err := r.expression(part); err != nil {
			return err
		}
	}
	return nil
}

// variable reads a variable. The name of a loop's own variable reads a field of the same
// name too, which costs time only.
func (r *reads) variable(name string) error {
	switch name {
	case "id", "topic", "time", "status": // always read
	case "app", "model", "route", "prompt_version", "tenant", "environment", "session_id", "user_id", "trace_id":
		r.labels[name] = true
	case "input_tokens", "output_tokens", "latency_ms", "feedback":
		r.numbers = true
	case "attributes":
		return errors.New("it looks at all attributes; name them, as in attributes.tier")
	default:
		if variables()[name] != nil {
			return fmt.Errorf("it reads %s", name)
		}
	}
	return nil
}

func isAttributes(e ast.Expr) bool { return e.Kind() == ast.IdentKind && nameOf(e) == "attributes" }

// nameOf is a variable's name; a dot before it asks for the field where a loop's own
// variable has the same name.
func nameOf(e ast.Expr) string { return strings.TrimPrefix(e.AsIdent(), ".") }

// attributeOf is the attribute that attributes["name"] and "name" in attributes ask for.
func attributeOf(c ast.CallExpr) (string, bool) {
	if len(c.Args()) != 2 {
		return "", false
	}
	all, name := c.Args()[0], c.Args()[1]
	switch c.FunctionName() {
	case operators.Index:
	case operators.In:
		all, name = name, all
	default:
		return "", false
	}
	if !isAttributes(all) || name.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := name.AsLiteral().Value().(string)
	return s, ok
}

// present lists the rules that are applicable wherever their texts are there, whatever
// the texts say. A judged evaluator always is, within its bound on their length.
func present() []string {
	return []string{"contains", "exact_match", "fuzzy_match", "json_diff", "json_match", "latency", "length", "levenshtein",
		"list_contains", "numeric_range", "refusal", "regex", "token_f1", "tokens", "valid_json"}
}

// applicability finds what a check needs to be applicable.
func (r *reads) applicability(c Check) error {
	ev, err := evaluators.New(c.Evaluator, c.Settings())
	if err != nil {
		return err
	}
	spec, err := evaluators.Lookup(c.Evaluator)
	if err != nil {
		return err
	}
	if !spec.NeedsJudge() && !slices.Contains(present(), spec.Name) {
		return fmt.Errorf("%s looks at the words to say whether it applies", spec.Name)
	}
	r.numbers = r.numbers || !spec.NeedsJudge()
	if field, ok := c.Options["field"].(string); ok {
		r.attributes[strings.TrimPrefix(field, "attributes.")] = true
	}
	for _, name := range append(slices.Clone(spec.Required), spec.Optional...) {
		if name == "claim" || name == "evidence" { // a log has them as attributes
			r.attributes[name] = true
		}
	}
	for _, t := range []Text{c.Criteria, c.Reference} {
		if t != (Text{Text: t.Text, Field: t.Field}) {
			return errors.New("its criteria or reference are looked up")
		}
		if name, ok := strings.CutPrefix(t.Field, "attributes."); ok {
			r.attributes[name] = true
		}
	}
	d := ev.Definition()
	r.refusals = r.refusals || d.Refusals == evaluators.NotApplicableItem
	if !spec.NeedsJudge() {
		return nil // rules bound their own time, not the text
	}
	left := d.MaxInputRunes - len(c.Criteria.Text) - len(c.Reference.Text)
	if c.Criteria.Field != "" && c.Criteria.Field != "criteria" || c.Reference.Field != "" && c.Reference.Field != "expected" {
		left /= 3 // one field may be up to three of the texts
	}
	if left <= 0 {
		return fmt.Errorf("nothing is left of its %d runes beside the criteria", d.MaxInputRunes)
	}
	r.textBytes = min(r.textBytes, left)
	return nil
}
