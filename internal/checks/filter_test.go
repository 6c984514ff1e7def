package checks

import (
	"strings"
	"testing"
	"time"

	"assay/internal/interaction"
)

func compileFilter(t testing.TB, source string) *Filter {
	t.Helper()
	env, err := newFilterEnv()
	if err != nil {
		t.Fatal(err)
	}
	f, issues := env.compile(source)
	if len(issues) > 0 {
		t.Fatalf("%s: %+v", source, issues)
	}
	return f
}

func TestFiltersReadTheFieldsOfAnInteraction(t *testing.T) {
	n := int64(700)
	it := &interaction.Interaction{
		App: "support", Model: "m1", Route: "billing", PromptVersion: "7", Tenant: "t", Environment: "prod", SessionID: "s", UserID: "u",
		Status: interaction.OK, InputTokens: &n, Flags: []string{"turns:3"}, Attributes: map[string]string{"tier": "gold"},
		Feedback: &interaction.Feedback{Value: -1}, Time: time.Date(2026, 5, 4, 23, 0, 0, 0, time.UTC),
	}
	it.ID, it.Topic = "i-1", "log"
	f := func(source string, want bool) {
		t.Helper()
		got, err := compileFilter(t, source).Match(it)
		if err != nil || got != want {
			t.Errorf("%s: %t %v, want %t", source, got, err, want)
		}
	}

	f(`app == "support" && route == "billing"`, true)
	f(`model in ["m2", "m3"]`, false)
	f(`prompt_version == "7" && tenant == "t" && environment != "dev" && session_id == "s" && user_id == "u" && status == "ok"`, true)
	f(`id.startsWith("i-") && topic == "log" && trace_id == ""`, true)
	f(`input_tokens != null && input_tokens > 500`, true)
	f(`output_tokens != null && output_tokens > 500`, false)
	f(`output_tokens == null && latency_ms == null`, true)
	f(`feedback != null && feedback < 0.0`, true)
	f(`has(attributes.tier) && attributes.tier == "gold"`, true)
	f(`has(attributes.plan) && attributes.plan == "gold"`, false)
	f(`"turns:3" in flags`, true)
	f(`flags.exists(f, f.startsWith("turns:"))`, true)
	f(`time.getHours() >= 22`, true)
	f(`app.matches("^sup")`, true)
	if got, err := (*Filter)(nil).Match(it); !got || err != nil {
		t.Errorf("no filter: %t %v", got, err)
	}
	empty := &interaction.Interaction{}
	if got, err := compileFilter(t, `has(attributes.tier) || "x" in flags`).Match(empty); got || err != nil {
		t.Errorf("empty interaction: %t %v", got, err)
	}
}

func TestAFilterWithoutAnAnswerIsAnErrorAndNoCrash(t *testing.T) {
	it := &interaction.Interaction{App: strings.Repeat("a", 100)}
	for _, source := range []string{
		`input_tokens > 500`,        // absent
		`attributes.tier == "gold"`, // absent
		`int(app) > 5`,              // no number
		`1 / int(size(flags)) > 0`,  // division by zero
		expensive(),                 // over the cost limit
	} {
		if got, err := compileFilter(t, source).Match(it); err == nil || got {
			t.Errorf("%.60s: %t, want an error", source, got)
		}
	}
}

// expensive is a filter of nested loops: 64^3 steps.
func expensive() string {
	list := "[" + strings.Repeat("1,", 63) + "1]"
	return list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c > 0)))"
}

func TestFilterFaultsPointIntoTheExpression(t *testing.T) {
	f := func(when, want string) {
		t.Helper()
		text := strings.Replace(base(), "    judge: m\n", "    judge: m\n    when: "+when+"\n", 1)
		_, err := Parse("a.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got  %v\n want %s", when, err, want)
		}
	}

	f(`app == "x" && roote == "y"`, `a.yaml:10:25: check c: when: no field roote (did you mean route?)`)
	f(`'app == "x" && roote == "y"'`, `a.yaml:10:26: check c: when: no field roote`)
	f("|\n      app == \"x\" &&\n      roote == \"y\"", `a.yaml:12:7: check c: when: no field roote`)
	f(`app == 5`, `a.yaml:10:15: check c: when: found no matching overload`)
	f(`app ==`, `a.yaml:10:17: check c: when: Syntax error`)
	f(`app`, `a.yaml:10:11: check c: when: gives string; want a condition`)
	f(`" "`, `a.yaml:10:11: check c: when is blank`)
	f(`true`, `a.yaml:10:11: check c: when: want text, not the truth value true`)
	f(strings.Repeat("(", 40)+`app == "x"`+strings.Repeat(")", 40), `a.yaml:10:`)
	f(`app == "`+strings.Repeat("x", 5000)+`"`, `a.yaml:10:`)
}

func BenchmarkFilter(b *testing.B) {
	f := compileFilter(b, `app == "support" && route == "billing"`)
	it := &interaction.Interaction{App: "support", Route: "billing"}
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := f.Match(it); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
