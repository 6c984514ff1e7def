package checks

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"assay/evaluators/judge"
	"assay/evaluators/judge/openai"
)

// The kinds of judges.
const (
	KindOpenAI    = "openai"
	KindAnthropic = "anthropic"
	KindEmbedded  = "embedded"
	KindSimulated = "simulated"
)

const defaultInFlight = 200

func identifier() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`) }

func (l *loader) judges(m *mapping) {
	n := m.take("judges")
	if n == nil {
		return
	}
	js := l.mapping(n, "judges")
	if js == nil {
		return
	}
	for _, e := range js.entries {
		if !identifier().MatchString(e.name) {
			l.fault(e.key, "judges: %q; want letters, digits, _, - and ., at most 64", e.name)
		}
		if body := l.mapping(e.value, "judge "+e.name); body != nil {
			l.file.Judges = append(l.file.Judges, l.judge(e.name, body))
		}
	}
	if len(js.entries) == 0 {
		l.fault(n, "judges: want at least one")
	}
}

func (l *loader) judge(name string, m *mapping) Judge {
	j := Judge{Name: name}
	where := m.where
	kinds := []string{KindOpenAI, KindAnthropic, KindEmbedded}
	want := strings.Join(kinds, " or ")
	at := m.required("kind", want)
	if kind, ok := l.text(at, where+": kind"); ok {
		j.Kind = kind
		switch {
		case slices.Contains(kinds, kind):
		case kind == KindSimulated && l.simulated:
		case kind == KindSimulated:
			l.fault(at, "%s: kind simulated invents its answers and is allowed in the demo only; want %s", where, want)
		case laterKind(kind):
			l.fault(at, "%s: kind %s comes with a later version of Assay; want %s", where, kind, want)
		default:
			l.fault(at, "%s: kind %q%s; want %s", where, kind, nearest(kind, kinds), want)
		}
	}
	if j.Kind == KindEmbedded {
		l.noLimits(m)
	} else {
		l.limits(&j, m)
	}
	switch j.Kind {
	case KindOpenAI, KindAnthropic:
		l.overHTTP(&j, m)
	case KindEmbedded:
		if s, ok := l.choice(m.take("abstain"), where+": abstain", "low_confidence", "never"); ok {
			j.AbstainLow = s == "low_confidence"
		}
	case KindSimulated:
		j.Model, _ = l.text(m.take("model"), where+": model")
	}
	if slices.Contains(kinds, j.Kind) || j.Kind == KindSimulated {
		m.done("judges")
	}
	return j
}

// limits reads what bounds the use of a judge.
func (l *loader) limits(j *Judge, m *mapping) {
	j.MaxInFlight = defaultInFlight
	if v, ok := l.whole(m.take("max_in_flight"), m.where+": max_in_flight", 1, 100_000); ok {
		j.MaxInFlight = int(v)
	}
	if v, ok := l.whole(m.take("requests_per_minute"), m.where+": requests_per_minute", 1, 100_000_000); ok {
		j.RequestsPerMinute = int(v)
	}
	l.budget(j, m)
}

// noLimits refuses what would do nothing for the embedded judge.
func (l *loader) noLimits(m *mapping) {
	for _, e := range m.entries {
		switch e.name {
		case "max_in_flight", "requests_per_minute", "price", "budget":
			m.taken = append(m.taken, e.name) // has its own fault here
			l.fault(e.key, "%s: %s: a judge of kind embedded computes in this process and costs nothing, so there is nothing to bound; remove the key", m.where, e.name)
		}
	}
}

// overHTTP reads where a language model is and how it is asked.
func (l *loader) overHTTP(j *Judge, m *mapping) {
	where := m.where
	var at ast.Node
	if j.Kind == KindAnthropic {
		at, j.BaseURL = m.take("base_url"), openai.MessagesURL
	} else {
		at = m.required("base_url", "the address up to and including /v1, such as https://llm.example/v1")
	}
	if s, ok := l.text(at, where+": base_url"); ok {
		u, err := url.Parse(s)
		switch {
		case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
			l.fault(at, "%s: base_url: %q; want an http or https address", where, s)
		case u.User != nil || u.RawQuery != "":
			l.fault(at, "%s: base_url: want no user, password or query in it; keys go into the variable that api_key_env names", where)
		}
		j.BaseURL = strings.TrimRight(s, "/")
	}
	at = m.take("api_key_env")
	if s, ok := l.text(at, where+": api_key_env"); ok {
		if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(s) {
			l.fault(at, "%s: api_key_env: want the name of an environment variable, not the key itself", where)
		}
		j.APIKeyEnv = s
	}
	at = m.required("model", "the model's name as the provider knows it")
	if s, ok := l.text(at, where+": model"); ok {
		if strings.TrimSpace(s) == "" {
			l.fault(at, "%s: model is blank", where)
		}
		j.Model = s
	}
	// No default: the methods measure differently, and a fallback would change
	// what the numbers mean without a word.
	methods := "logprobs, structured or votes:5"
	if j.Kind == KindAnthropic {
		methods = "structured or votes:5"
	}
	at = m.required("method", methods+" (nothing is chosen silently)")
	if s, ok := l.text(at, where+": method"); ok {
		switch method, votes, err := judge.ParseMethod(s); {
		case err != nil && strings.HasPrefix(s, string(judge.Votes)+":"):
			l.fault(at, "%s: %v", where, err)
		case err != nil:
			l.fault(at, "%s: method %q%s; want %s", where, s, nearest(s, []string{"logprobs", "structured", "votes"}), methods)
		case method == judge.Logprobs && j.Kind == KindAnthropic:
			l.fault(at, "%s: method logprobs: a judge of kind %s states no token probabilities; want %s", where, j.Kind, methods)
		case method == judge.Votes:
			j.Method = fmt.Sprintf("%s:%d", method, votes) // votes and votes:5 are the same judge
		default:
			j.Method = s
		}
	}
	if calls := j.Budget.CallsPerDay; calls > 0 && calls < int64(j.Votes()) {
		l.fault(at, "%s: method %s: budget.calls_per_day is %d, less than the votes of one question", where, j.Method, calls)
	}
	if v, ok := l.whole(m.take("max_tokens"), where+": max_tokens", 1, 100_000); ok {
		j.MaxTokens = int(v)
	}
	at = m.take("embedding_model")
	if s, ok := l.text(at, where+": embedding_model"); ok {
		if strings.TrimSpace(s) == "" {
			l.fault(at, "%s: embedding_model is blank", where)
		}
		if j.Kind == KindAnthropic {
			l.fault(at, "%s: embedding_model: a judge of kind %s has no embeddings; remove the key, and name a judge of kind openai for what needs them", where, j.Kind)
		}
		j.EmbeddingModel = s
	}
}

// budget reads price and budget and holds the rule that no bill is unbounded.
func (l *loader) budget(j *Judge, m *mapping) {
	where := m.where
	if at := m.take("price"); at != nil {
		if p := l.mapping(at, where+": price"); p != nil {
			j.Price = &Price{}
			j.Price.InputPerMillion, _ = l.within(p.required("input_per_million", "USD per million tokens"), where+": price: input_per_million", 0, 1e6)
			j.Price.OutputPerMillion, _ = l.within(p.required("output_per_million", "USD per million tokens"), where+": price: output_per_million", 0, 1e6)
			p.done("price")
		}
	}
	if at := m.take("budget"); at != nil {
		if b := l.mapping(at, where+": budget"); b != nil {
			j.Budget.USDPerDay, _ = l.within(b.take("usd_per_day"), where+": budget: usd_per_day", 0.01, 1e7)
			j.Budget.CallsPerDay, _ = l.whole(b.take("calls_per_day"), where+": budget: calls_per_day", 1, 1e12)
			j.Budget.TokensPerDay, _ = l.whole(b.take("tokens_per_day"), where+": budget: tokens_per_day", 1, 1e15)
			b.done("budget")
		}
	}
	if j.Kind == KindSimulated {
		if j.Price != nil {
			l.fault(m.at("price"), "%s: price: a judge of kind %s costs nothing; remove the key", where, j.Kind)
		}
		if j.Budget.USDPerDay > 0 {
			l.fault(m.at("budget"), "%s: budget.usd_per_day: a judge of kind %s costs nothing; want calls_per_day or nothing", where, j.Kind)
		}
		return
	}
	if j.Kind != KindOpenAI && j.Kind != KindAnthropic {
		return // the kind itself is at fault
	}
	priced := j.Price != nil && j.Price.InputPerMillion+j.Price.OutputPerMillion > 0
	bounded := func(key string) bool {
		// A limit that is there but wrong has its own fault.
		b, ok := mappingEntry(m, "budget")
		return ok && b.has(key)
	}
	switch {
	case priced && !bounded("usd_per_day"):
		l.fault(m.at("price"), "%s: has a price but no budget: want budget: { usd_per_day: N } (or, without price, budget: { calls_per_day: N } or { tokens_per_day: N })", where)
	case !priced && !bounded("calls_per_day") && !bounded("tokens_per_day"):
		l.fault(m.node, "%s: nothing bounds its bill: want price and budget: { usd_per_day: N }, or without a price budget: { calls_per_day: N } or { tokens_per_day: N }", where)
	}
	if !priced && j.Budget.USDPerDay > 0 {
		l.fault(m.at("budget"), "%s: budget.usd_per_day needs a price above 0 to count by", where)
	}
}

// mappingEntry looks into a nested mapping without reporting anything.
func mappingEntry(m *mapping, name string) (*mapping, bool) {
	for _, e := range m.entries {
		if e.name == name {
			quiet := (&reader{}).mapping(e.value, "")
			return quiet, quiet != nil
		}
	}
	return nil, false
}
