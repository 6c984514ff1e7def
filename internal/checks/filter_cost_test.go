package checks

import (
	"fmt"
	"strings"
	"testing"

	"assay/internal/interaction"

	"cel.dev/cel-go/cel"
)

// What is estimated must never be below what a filter really costs on the largest
// interaction, or a costly filter would run without a limit.
func TestTheCostOfAFilterIsNeverUnderestimated(t *testing.T) {
	env, err := newFilterEnv()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", maxFilterText)
	it := &interaction.Interaction{ID: text, App: text, Model: text, Route: text, UserID: text, SessionID: text, Attributes: map[string]string{"tier": text}}
	for i := range 300 {
		it.Attributes[fmt.Sprint("k", i)] = text
		it.Flags = append(it.Flags, text)
	}
	f := func(source string, counted bool) {
		t.Helper()
		checked, issues := env.env.Compile(source)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", source, issues.Err())
		}
		estimate, err := env.env.EstimateCost(checked, fieldSizes{})
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if got := estimate.Max > maxFilterCost; got != counted {
			t.Errorf("%s: costs %d at most, so it is counted: %t, want %t", source, estimate.Max, got, counted)
		}
		program, err := env.env.Program(checked, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost))
		if err != nil {
			t.Fatal(err)
		}
		_, details, err := program.Eval(fields{it})
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		if cost := details.ActualCost(); cost == nil || *cost > estimate.Max {
			t.Errorf("%s: cost %v, estimated at most %d", source, *cost, estimate.Max)
		}
	}
	f(`app == "support" && route == "billing"`, false)
	f(`attributes.tier == "gold" || app == model`, false)
	f(`has(attributes.tier) && "k1" in attributes && attributes["k2"].startsWith("b")`, false)
	f(`id.contains("b") || route.matches("^a+b$") || size(user_id) > 5000`, false)
	f(`app in ["a", "b"] && !(session_id in ["c"])`, false)
	f(`["x", "y", "z"].exists(s, app.endsWith(s))`, false)
	f(`(app + model + route).contains(user_id)`, true)
	f(`attributes.exists(k, k.contains("zz"))`, true)
	f(`flags.exists(x, x == "joined")`, true)
}

func TestACheapFilterIsNotCounted(t *testing.T) {
	filter := compileFilter(t, `app == "support" && route == "billing"`)
	it := &interaction.Interaction{App: "support", Route: "billing"}
	if n := testing.AllocsPerRun(100, func() {
		if ok, err := filter.Match(it); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n > 4 {
		t.Errorf("%v allocations a record; counting what a filter costs is most of them", n)
	}
}
