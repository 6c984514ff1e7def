package checks

import (
	"slices"
	"strings"

	"assay/evaluators"
	"assay/evaluators/judge"

	"github.com/goccy/go-yaml/ast"
)

// minRate is the least inclusion probability of a check that samples at all: below it
// a single row stands for more than 500 and the interval is one row's luck.
const minRate = 0.002

func (l *loader) checks(m *mapping) {
	n := m.required("checks", "a list of checks")
	nodes := l.list(n, "checks")
	if n != nil && nodes != nil && len(nodes) == 0 {
		l.fault(n, "checks: want at least one")
	}
	filters, err := newFilterEnv()
	if err != nil {
		l.fault(n, "filters: %v", err)
		return
	}
	l.filters = filters
	for _, node := range nodes {
		if c := l.mapping(node, "check"); c != nil {
			l.check(c)
		}
	}
}

func (l *loader) check(m *mapping) {
	c := Check{}
	at := m.required("name", "a name, such as refund_policy")
	if name, ok := l.text(at, "check: name"); ok {
		c.Name = name
		m.where = "check " + name
		if !identifier().MatchString(name) {
			l.fault(at, "check: name: %q; want letters, digits, _, - and ., starting with a letter, at most 64", name)
		}
		if _, twice := l.file.Check(name); twice {
			l.fault(at, "check: the name %s stands here twice", name)
		}
	}
	where := m.where

	var spec *evaluators.Spec
	at = m.required("evaluator", evaluatorNames())
	if name, ok := l.text(at, where+": evaluator"); ok {
		c.Evaluator = name
		if s, err := evaluators.Lookup(name); err == nil {
			spec, c.Evaluator = &s, s.Name // an alias is the same check
		} else {
			l.fault(at, "%s: evaluator %q%s; want %s", where, name, nearest(name, strings.Split(evaluatorNames(), " or ")), evaluatorNames())
		}
	}

	criteria, reference := m.take("criteria"), m.take("reference")
	if spec != nil {
		c.Criteria = l.source(m, *spec, "criteria", "criteria", criteria)
		c.Reference = l.source(m, *spec, "reference", "expected", reference)
	}
	c.Coarse = l.truth(m.take("coarse"), where+": coarse")
	l.claims(&c, m)
	if at := m.take("when"); at != nil {
		c.When = l.filter(at, where)
	}
	c.EmptyOutput, _ = l.choice(m.take("empty_output"), where+": empty_output", evaluators.NotApplicableItem, evaluators.Fail)
	c.Refusals, _ = l.choice(m.take("refusals"), where+": refusals", evaluators.JudgeItem, evaluators.NotApplicableItem, evaluators.Fail)
	c.Truncated, _ = l.choice(m.take("truncated"), where+": truncated", evaluators.JudgeItem, evaluators.NotApplicableItem)
	if v, ok := l.whole(m.take("max_input_runes"), where+": max_input_runes", 1, 1_000_000); ok {
		c.MaxInputRunes = int(v)
	}
	if v, ok := l.whole(m.take("orders"), where+": orders", 1, 2); ok {
		c.Orders = int(v)
	}
	l.pass(&c, m)
	if spec != nil && !spec.NeedsJudge() {
		l.ruleOptions(&c, *spec, m)
	} else {
		l.judgeOf(&c, m)
	}
	c.Sample = l.sample(c.Name, m)
	c.Alert = l.alert(m)
	m.done("checks")
	if spec != nil {
		l.settle(&c, m)
	}
	l.file.Checks = append(l.file.Checks, c)
}

func evaluatorNames() string {
	var names []string
	for _, s := range evaluators.Table() {
		names = append(names, s.Name)
	}
	return strings.Join(names, " or ")
}

// source reads where a check's criteria or reference come from.
func (l *loader) source(m *mapping, spec evaluators.Spec, key, field string, n ast.Node) Text {
	where := m.where + ": " + key
	needed := slices.Contains(spec.Required, field)
	if !needed && (n == nil || !slices.Contains(spec.Optional, field)) {
		if n != nil {
			l.fault(m.at(key), "%s: %s takes none; remove the key", where, spec.Name)
		}
		return Text{}
	}
	want := "{ field: expected }"
	if key == "criteria" {
		want = `{ text: "..." } or { field: criteria }`
	}
	if n == nil {
		if !m.has(key) {
			l.fault(m.node, "%s is missing: %s needs it; want %s", where, spec.Name, want)
		}
		return Text{}
	}
	body := l.mapping(n, where)
	if body == nil {
		return Text{}
	}
	var t Text
	var hasText, hasField bool
	if key == "criteria" {
		at := body.take("text")
		if t.Text, hasText = l.text(at, where+": text"); hasText && strings.TrimSpace(t.Text) == "" {
			l.fault(at, "%s: text is blank; a judge never sees an empty one", where)
		}
	}
	at := body.take("field")
	if t.Field, hasField = l.text(at, where+": field"); hasField && !isTextField(t.Field, field) {
		l.fault(at, "%s: field %q; want %s or attributes.NAME", where, t.Field, field)
	}
	body.done(key)
	if (!hasText && !hasField && !body.has("book")) || hasText && hasField {
		l.fault(n, "%s: want exactly one of %s", where, want)
	}
	return t
}

func isTextField(name, field string) bool {
	attribute, ok := strings.CutPrefix(name, "attributes.")
	return name == field || ok && attribute != ""
}

// claims reads the settings of evaluators that have several ways of judging, or that
// take a text apart; evaluators knows which of them takes which.
func (l *loader) claims(c *Check, m *mapping) {
	where := m.where + ": "
	c.Dialect, _ = l.text(m.take("dialect"), where+"dialect")
	c.Claims, _ = l.choice(m.take("claims"), where+"claims", "single", "batched", "extracted")
	if v, ok := l.whole(m.take("questions"), where+"questions", 1, 1000); ok {
		c.Questions = int(v)
	}
	if v, ok := l.whole(m.take("max_claims"), where+"max_claims", 1, 1000); ok {
		c.MaxClaims = int(v)
	}
	c.Count, _ = l.text(m.take("count"), where+"count")
	c.Similarity = l.truth(m.take("similarity"), where+"similarity")
	for _, node := range l.list(m.take("weights"), where+"weights") {
		if v, ok := l.number(node, where+"weights"); ok {
			c.Weights = append(c.Weights, v)
		}
	}
}

// pass reads the pass line or the options that pass; evaluators knows which is right.
func (l *loader) pass(c *Check, m *mapping) {
	n := m.take("pass")
	if n == nil {
		return
	}
	where := m.where + ": pass"
	switch n.(type) {
	case *ast.SequenceNode:
		c.Pass = []string{}
		for _, node := range l.list(n, where) {
			if key, ok := l.text(node, where); ok {
				c.Pass = append(c.Pass, key)
			}
		}
	default:
		if v, ok := l.number(n, where); ok {
			c.PassLine = &v
		}
	}
}

func (l *loader) judgeOf(c *Check, m *mapping) {
	at := m.required("judge", "the name of a judge")
	name, ok := l.text(at, m.where+": judge")
	if !ok {
		return
	}
	c.Judge = name
	j, known := l.file.Judge(name)
	if known && c.Claims == "batched" && (j.Kind == KindOpenAI || j.Kind == KindAnthropic) && j.Method != string(judge.Structured) {
		l.fault(at, "%s: claims: batched needs a judge with method structured; %s has method %s, which reads one letter at a time", m.where, name, j.Method)
	}
	if !known {
		var names []string
		for _, j := range l.file.Judges {
			names = append(names, j.Name)
		}
		l.fault(at, "%s: no judge %q%s; want one of judges: %s", m.where, name, nearest(name, names), strings.Join(names, ", "))
		return
	}
	if j.Kind != KindEmbedded {
		return
	}
	// On anything else the embedded judge answers at chance (embedded-judge figures),
	// so the file is refused rather than filled with noise.
	switch {
	case c.Evaluator == "factuality" && c.Coarse:
	case c.Evaluator == "factuality":
		l.fault(at, "%s: judge %s is embedded and tells agree from disagree only: want coarse: true, or a language-model judge", m.where, name)
	default:
		l.fault(at, "%s: %s needs a language-model judge; %s is embedded and serves factuality with coarse: true only", m.where, c.Evaluator, name)
	}
}

func (l *loader) sample(name string, m *mapping) Sample {
	s := Sample{Salt: name}
	where := m.where + ": sample"
	n := m.required("sample", "{ rate: 0.05 }, the share that is judged")
	if n == nil {
		return s
	}
	body := l.mapping(n, where)
	if body == nil {
		return s
	}
	at := body.required("rate", "0 to 1, the share that is judged")
	if rate, ok := l.within(at, where+": rate", 0, 1); ok {
		if rate > 0 && rate < minRate {
			l.fault(at, "%s: rate: %v; want 0, or %v to 1 (one row in 500 is the least that carries an interval)", where, rate, minRate)
		}
		s.Rate = rate
	}
	at = body.take("salt")
	if salt, ok := l.text(at, where+": salt"); ok {
		if salt == "" || strings.ContainsRune(salt, 0) {
			l.fault(at, "%s: salt: want a text without NUL", where)
		}
		s.Salt = salt
	}
	body.done("sample")
	return s
}

func (l *loader) alert(m *mapping) Alert {
	a := Alert{Severity: "ticket", Close: "auto"}
	n := m.take("alert")
	if n == nil {
		a.Off = true
		return a
	}
	where := m.where + ": alert"
	body := l.mapping(n, where)
	if body == nil {
		return a
	}
	a.Off = l.truth(body.take("off"), where+": off")
	at := body.take("target")
	if v, ok := l.number(at, where+": target"); ok {
		if v <= 0 || v >= 1 {
			l.fault(at, "%s: target: %v; want a pass rate above 0 and below 1, such as 0.9", where, v)
		}
		a.Target = v
	} else if at == nil {
		// Without a target the rate to hold would come from a baseline of days, which
		// no version before that one can learn.
		a.Off = true
	}
	if at := body.take("tolerance"); at != nil {
		if s, isText := at.(*ast.StringNode); !isText {
			if v, ok := l.number(at, where+": tolerance"); ok {
				if v <= 0 || v >= 1 || a.Target > 0 && v >= a.Target {
					l.fault(at, "%s: tolerance: %v; want auto, or a drop above 0 and below the target", where, v)
				}
				a.Tolerance = &v
			}
		} else if s.Value != "auto" {
			l.fault(at, "%s: tolerance: %q; want auto or a number such as 0.03", where, s.Value)
		}
	}
	if s, ok := l.choice(body.take("severity"), where+": severity", "page", "ticket"); ok {
		a.Severity = s
	}
	if s, ok := l.choice(body.take("close"), where+": close", "auto", "manual"); ok {
		a.Close = s
	}
	if at := body.take("labels"); at != nil {
		if labels := l.mapping(at, where+": labels"); labels != nil {
			a.Labels = make(map[string]string, len(labels.entries))
			for _, e := range labels.entries {
				value, ok := l.text(e.value, where+": labels: "+e.name)
				switch {
				case !namePattern().MatchString(e.name), slices.Contains(ourLabels(), e.name):
					l.fault(e.key, "%s: labels: %q; want small letters, digits and _, and no label of Assay's own", where, e.name)
				case ok:
					a.Labels[e.name] = value
				}
			}
		}
	}
	body.done("alert")
	return a
}

// settle asks the evaluator whether the settings make sense together, fills in what it
// settled, and takes the version.
func (l *loader) settle(c *Check, m *mapping) {
	e, err := evaluators.New(c.Evaluator, c.Settings())
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			line = strings.TrimPrefix(line, c.Evaluator+": ")
			key, _, _ := strings.Cut(line, ":")
			l.fault(m.at(key), "%s: %s", m.where, line)
		}
		return
	}
	d := e.Definition()
	c.PassLine, c.Pass = d.PassLine, d.Pass
	c.EmptyOutput, c.Refusals, c.Truncated = d.EmptyOutput, d.Refusals, d.Truncated
	j, ok := l.file.Judge(c.Judge)
	if ok && d.Embeddings && j.EmbeddingModel == "" {
		l.fault(m.at("dialect"), "%s: dialect: %s compares embeddings, and judge %s has none: want embedding_model in judge %s, or another dialect", m.where, c.Dialect, j.Name, j.Name)
	}
	if ok && d.Drafts && j.Kind == KindSimulated {
		l.fault(m.at("judge"), "%s: judge %s is simulated and writes nothing: want a language model", m.where, j.Name)
	}
	if ok || c.asksNobody() {
		c.Version = version(d, *c, j)
	}
}
