package checks

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"assay/evaluators"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
)

func planOf(t *testing.T, dimensions, when, check string) (decode.Plan, error) {
	t.Helper()
	if when != "" {
		when = fmt.Sprintf("when: %q\n", when)
	}
	file, err := Parse("assay.yaml", []byte("version: 1\ndimensions: ["+dimensions+"]\nsources: [{ topic: t }]\njudges: { main: { kind: embedded } }\nchecks:\n  - name: c\n    "+
		strings.ReplaceAll(strings.TrimSpace(when+check), "\n", "\n    ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return file.Plan()
}

const judgedCheck = "evaluator: factuality\ncoarse: true\nreference: { field: expected }\njudge: main\nsample: { rate: 0.1 }"

func TestThePlanHoldsWhatFiltersAndDimensionsRead(t *testing.T) {
	f := func(when string, labels, attributes []string, numbers bool) {
		t.Helper()
		got, err := planOf(t, "app, region", when, judgedCheck)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		want := decode.Plan{Labels: labels, Attributes: attributes, Numbers: numbers, TextBytes: 24_000}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	region := []string{"region"}
	f("", []string{"app"}, region, false)
	f(`id.startsWith("a") && status == "ok" && topic != "x"`, []string{"app"}, region, false)
	f(`model in ["m1", "m2"] || user_id == "u"`, []string{"app", "model", "user_id"}, region, false)
	f(`input_tokens != null && input_tokens > 500`, []string{"app"}, region, true)
	f(`attributes.tier == "gold" && has(attributes.shop)`, []string{"app"}, []string{"region", "shop", "tier"}, false)
	f(`"vip" in attributes && attributes["shop id"] != ""`, []string{"app"}, []string{"region", "shop id", "vip"}, false)
	f(`["a", route].exists(x, x == tenant)`, []string{"app", "route", "tenant"}, region, false)
	f(`["a"].exists(tenant, .tenant == "n")`, []string{"app", "tenant"}, region, false)
	f(`["a"].exists(attributes, .attributes.tier == "gold")`, []string{"app"}, []string{"region", "tier"}, false)
	f(`(app == "a" ? session_id : trace_id).matches("^s")`, []string{"app", "session_id", "trace_id"}, region, false)
}

func TestAPlanIsRefusedWithItsReason(t *testing.T) {
	f := func(when, check, want string) {
		t.Helper()
		if _, err := planOf(t, "app", when, check); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s: %v, want %q", when, check, err, want)
		}
	}
	f(`attributes.size() > 2`, judgedCheck, "check c: when: it looks at all attributes")
	f(`attributes.exists(k, k == "x")`, judgedCheck, "it looks at all attributes")
	f(`attributes[app] == "x"`, judgedCheck, "it looks at all attributes")
	f(`"joined" in flags`, judgedCheck, "it reads flags")
	f(`["a"].exists(flags, "joined" in .flags)`, judgedCheck, "it reads flags")
	f("", strings.Replace(judgedCheck, "0.1", "0.5", 1), "check c: sample: rate")
	f("", "evaluator: language\nany: [en]\nsample: { rate: 0.1 }", "language looks at the words")
	f("", "evaluator: numeric_diff\nreference: { field: expected }\nsample: { rate: 0.1 }", "numeric_diff looks at the words")
}

// Whoever writes such a filter is told what it costs; whoever judges nearly everything
// need not be.
func TestAFilterThatCostsTheFastPathIsNoted(t *testing.T) {
	f := func(when, rate, want string) {
		t.Helper()
		file, err := Parse("assay.yaml", fmt.Appendf(nil, "version: 1\nsources: [{ topic: t }]\njudges: { main: { kind: embedded } }\nchecks:\n"+
			"  - { name: c, evaluator: factuality, coarse: true, reference: { field: expected }, judge: main, when: %q, sample: { rate: %s } }\n"+
			"  - { name: d, evaluator: factuality, coarse: true, reference: { field: expected }, judge: main, sample: { rate: %s } }\n", when, rate, rate))
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(file.Notes(), "\n"); want == "" && strings.Contains(notes, "decoded in full") || !strings.Contains(notes, want) {
			t.Errorf("%s at %s: notes %s, want %q", when, rate, notes, want)
		}
	}
	f(`app == "a"`, "0.1", "")
	f(`size(flags) > 0`, "0.1", "every record is decoded in full, at several times the CPU: check c: when: it reads flags")
	f(`size(flags) > 0`, "0.9", "")
}

func TestThePlanHoldsWhatChecksNeedToApply(t *testing.T) {
	f := func(check string, want decode.Plan) {
		t.Helper()
		got, err := planOf(t, "", "", check)
		if err != nil {
			t.Fatalf("%s: %v", check, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", check, got, want)
		}
	}
	f("evaluator: numeric_range\nfield: attributes.retrieved\nmin: 1\nsample: { rate: 0.1 }",
		decode.Plan{Numbers: true, Attributes: []string{"retrieved"}, TextBytes: decode.Unbounded})
	f("evaluator: factuality\ncoarse: true\nreference: { field: attributes.gold }\njudge: main\nsample: { rate: 0.1 }",
		decode.Plan{Attributes: []string{"gold"}, TextBytes: 8000})
	f("evaluator: factuality\ncoarse: true\nreference: { field: expected }\njudge: main\nrefusals: not_applicable\nsample: { rate: 0.1 }",
		decode.Plan{Refusals: true, TextBytes: 24_000})
}

// Of every evaluator that a plan lets through, applicability must be the same whether it
// sees the texts or only that they are there.
func TestApplicabilityNeedsNoWordsWhereThePlanSaysSo(t *testing.T) {
	options := map[string]map[string]any{
		"contains": {"any": []string{"a"}}, "language": {"any": []string{"en"}}, "latency": {"max": 5.}, "length": {"max": 5.},
		"numeric_range": {"field": "attributes.n", "min": 1.}, "regex": {"must_not": "a"}, "tokens": {"max": 5.},
	}
	tried := 0
	for _, spec := range evaluators.Table() {
		if spec.NeedsJudge() {
			continue
		}
		ev, err := evaluators.New(spec.Name, evaluators.Settings{Options: options[spec.Name]})
		if err != nil {
			t.Fatalf("%s: give this test its settings: %v", spec.Name, err)
		}
		if !slices.Contains(present(), spec.Name) {
			continue
		}
		tried++
		for _, text := range []string{"a", "12", "{}", "not JSON", "Ich weiß es nicht", "I cannot help with that.", strings.Repeat("long ", 50_000), "[1,2]", "$"} {
			item := func(text string) evaluators.Item {
				return evaluators.ItemOf(&interaction.Interaction{
					Input: &text, Output: &text, Expected: []string{text}, Criteria: &text, Context: []string{text}, Judgeable: true, Status: interaction.OK,
				})
			}
			whole, wholeOK := ev.Applicable(item(text))
			only, onlyOK := ev.Applicable(item("x"))
			if whole != only || wholeOK != onlyOK {
				t.Errorf("%s: %.20q is applicable %t (%s), its presence %t (%s)", spec.Name, text, wholeOK, whole, onlyOK, only)
			}
		}
	}
	if tried != len(present()) {
		t.Errorf("%d of %d evaluators were tried", tried, len(present()))
	}
}
