package evaluators_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/evaluators"
	"assay/internal/interaction"
)

type options = map[string]any

// ruled evaluates without a judge and checks what holds for every rule.
func ruled(t testing.TB, name string, s evaluators.Settings, it evaluators.Item) evaluators.Result {
	t.Helper()
	e, err := evaluators.New(name, s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	r, err := e.Evaluate(t.Context(), nil, it)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	ok := r.Status == evaluators.OK
	if !ok && r.Status != evaluators.NotApplicable || (r.Score != nil) != ok || (r.Passed != nil) != ok || (r.Label != "") != ok || (r.Reason == "") != ok {
		t.Errorf("%s: status %s, score %v, passed %v, label %q, reason %q", name, r.Status, r.Score, r.Passed, r.Label, r.Reason)
	}
	if r.Confidence != nil || r.Method != "" || r.Option != "" || r.Probabilities != nil || r.Attempts != 0 || r.Evaluator != name || r.Version == "" {
		t.Errorf("%s: a rule with a judge's traits: %+v", name, r)
	}
	if ok && !(*r.Score >= 0 && *r.Score <= 1) {
		t.Errorf("%s: score %v", name, *r.Score)
	}
	return r
}

func pair(output string, expected ...string) evaluators.Item {
	return evaluators.Item{Output: &output, Expected: expected, Judgeable: true}
}

func scores(t *testing.T, name string, s evaluators.Settings, it evaluators.Item, want float64) {
	t.Helper()
	r := ruled(t, name, s, it)
	if r.Status != evaluators.OK || math.Abs(*r.Score-want) > 1e-9 {
		t.Errorf("%s of %.60q for %.60q: %s %s %v, want %v (%v)", name, *it.Output, it.Expected, r.Status, r.Reason, r.Label, want, r.Detail)
	}
}

func TestStringRulesCompareWithTheBestReference(t *testing.T) {
	f := func(name string, o options, want float64, output string, expected ...string) {
		t.Helper()
		s := evaluators.Settings{Options: o}
		if d, ok := o["dialect"].(string); ok {
			s = evaluators.Settings{Dialect: d, Options: options{}}
			for k, v := range o {
				if k != "dialect" {
					s.Options[k] = v
				}
			}
		}
		scores(t, name, s, pair(output, expected...), want)
	}
	f("exact_match", nil, 1, "  New\tYork ", "new york")
	f("exact_match", nil, 0, "New York.", "New York")
	f("exact_match", nil, 1, "ΟΔΟΣ", "οδος") // the sigma at the end of a word
	f("exact_match", options{"dialect": "autoevals"}, 0, "york", "York")
	f("exact_match", options{"dialect": "squad"}, 1, "The York!", "york", "a city")
	f("exact_match", options{"dialect": "hf_evaluate"}, 0, "York", "york")
	f("exact_match", options{"dialect": "hf_evaluate", "ignore_case": true, "ignore_numbers": true, "regexes_to_ignore": []string{"^Dr "}}, 1, "Dr York 7", "york ")
	f("levenshtein", nil, .75, "abcd", "abce", "zzzz")
	f("levenshtein", nil, .5, "ä€", "ä$") // runes, not bytes
	f("token_f1", nil, .8, "in the year 1995", "year 1995")
	f("token_f1", nil, .8, "go go go", "go go") // as often as it occurs, and no more
	f("token_f1", nil, 1, "!", "the")           // nothing is left of either
	f("fuzzy_match", nil, 1, "It is Canberra, of course.", "canberra")
	f("fuzzy_match", nil, 0, "the", "canberra")
	f("numeric_diff", nil, 1, " 12.50 ", "12.5")
	f("numeric_diff", nil, 0, "-3", "3")
	f("numeric_diff", nil, 1-5./205, "105", "100", "7")
	f("numeric_diff", nil, 0, "about 12", "12") // an answer that is no number
	f("list_contains", nil, 1, `["b","a"]`, `["a","b"]`)
	f("list_contains", nil, 1, `["b","a"]`, "a", "b") // the references are the list
	f("list_contains", options{"allow_extra": true}, 1, `["b","a","x"]`, `["a","b"]`)
	f("list_contains", nil, 0, "a, b", `["a","b"]`)
	f("json_diff", nil, .5, `{"a":1,"b":true}`, `{"b":null,"a":1.0}`)
	f("json_diff", nil, .2, "true", "false")
	f("json_diff", options{"dialect": "py"}, 0, "true", "false")
	f("json_match", nil, 1, `{"a":[1,2.0],"b":null}`, "no JSON", `{"b":null,"a":[1e0,2]}`)
	f("json_match", nil, 0, `[9007199254740993]`, `[9007199254740992]`) // equal as floats
	f("json_match", nil, 0, `{"a":1`, `{"a":1`)
}

func TestTheReferenceThatDecidedIsRecorded(t *testing.T) {
	r := ruled(t, "levenshtein", evaluators.Settings{}, pair("blue", "green", "", "blues", "blue"))
	if r.Detail["reference"] != 3 { // of those that hold something
		t.Errorf("%v", r.Detail)
	}
	if r = ruled(t, "levenshtein", evaluators.Settings{}, pair("blue", "blue")); r.Detail["reference"] != nil {
		t.Errorf("one reference: %v", r.Detail)
	}
}

func TestRulesOverTheOutputAlone(t *testing.T) {
	f := func(name string, o options, output string, want float64) {
		t.Helper()
		scores(t, name, evaluators.Settings{Options: o}, pair(output), want)
	}
	f("valid_json", nil, "[1]", 1)
	f("valid_json", nil, "7", 0)
	f("valid_json", nil, "[1] [2]", 0)
	schema := options{"schema": options{"type": "object", "required": []any{"id"}, "properties": options{"id": options{"type": "integer"}}}}
	f("valid_json", schema, `{"id": 3}`, 1)
	f("valid_json", schema, `{"id": 3.5}`, 0)
	f("valid_json", options{"schema": json.RawMessage(`{"type":"integer"}`)}, "7", 1)
	// the validator would count with a million digits, or crash
	f("valid_json", options{"schema": options{"minimum": 0}}, "1e9999999", 0)
	f("valid_json", options{"schema": options{"items": options{"multipleOf": .1}}}, "[1e-9999999]", 0)
	f("regex", options{"pattern": `order \d+`}, "your order 77 is here", 1)
	f("regex", options{"pattern": `^order`}, "your order 77 is here", 0)
	f("regex", options{"must_not": `(?i)guarantee`}, "We GUARANTEE it", 0)
	f("regex", options{"pattern": "it", "must_not": "always"}, "We do it", 1)
	f("contains", options{"any": []any{"days", "weeks"}}, "in two weeks", 1)
	f("contains", options{"all": []string{"days", "weeks"}}, "in two weeks", 0)
	f("contains", options{"none": []string{"Weeks"}}, "in two weeks", 1)
	f("contains", options{"none": []string{"Weeks"}, "ignore_case": true}, "in two weeks", 0)
	f("length", options{"max": 3}, "äöü", 1)
	f("length", options{"max": 2}, "äöü", 0)
	f("length", options{"min": 3., "max": 3., "unit": "words"}, "one - two, three", 1)
	f("length", options{"min": 2, "unit": "sentences"}, "It costs 3.50 e.g. today.", 0)
	f("length", options{"min": 2, "unit": "sentences"}, "It costs 3.50. Not more.", 1)
	german := "Die Lieferung kommt voraussichtlich am Donnerstag bei Ihnen an, und Sie müssen nichts weiter tun."
	f("language", options{"any": []string{"de"}}, german, 1)
	f("language", options{"any": []string{"en", "fr"}}, german, 0)
	f("language", options{"any": []string{"EN"}}, "The delivery is expected on Thursday, and there is nothing more for you to do until then.", 1)
	f("language", options{"any": []string{"ru"}}, "Доставка ожидается в четверг, и вам больше ничего делать не нужно.", 1)
	f("language", options{"any": []string{"ja"}}, "配達は木曜日に予定されています。それまでお客様にしていただくことはありません。", 1)
	f("refusal", nil, "I’m sorry, but I can’t share that.", 0)
	f("refusal", nil, "Dabei kann ich Ihnen leider nicht helfen.", 0)
	f("refusal", nil, "Please ask our legal team.", 1)
	f("refusal", options{"phrases": []string{"Ask our  legal team"}}, "Please ask our legal team.", 0)
	f("refusal", nil, "Yes, it ships today."+strings.Repeat(" It is a long answer.", 20)+" I can't help with taxes.", 1)

	declined := pair("No.")
	declined.Status = interaction.Refusal
	scores(t, "refusal", evaluators.Settings{}, declined, 0)
}

func TestRulesOverNumbersOfTheInteraction(t *testing.T) {
	ms, in, out := 1250.5, int64(300), int64(40)
	value := -1.0
	it := evaluators.ItemOf(&interaction.Interaction{
		LatencyMS: &ms, InputTokens: &in, OutputTokens: &out, Feedback: &interaction.Feedback{Value: value},
		Attributes: map[string]string{"retrieved": "7", "route": "billing"}, Judgeable: true,
	})
	f := func(name string, o options, want float64) {
		t.Helper()
		r := ruled(t, name, evaluators.Settings{Options: o}, it)
		if r.Status != evaluators.OK || *r.Score != want || *r.Passed != (want == 1) {
			t.Errorf("%s %v: %s %s %q, want %v", name, o, r.Status, r.Reason, r.Label, want)
		}
	}
	f("latency", options{"max": 1250.5}, 1)
	f("latency", options{"max": 1250}, 0)
	f("tokens", options{"max": 340}, 1)
	f("tokens", options{"max": 299, "of": "input"}, 0)
	f("tokens", options{"min": 41, "of": "output"}, 0)
	f("numeric_range", options{"field": "feedback", "min": 0}, 0)
	f("numeric_range", options{"field": "attributes.retrieved", "min": 7, "max": 7}, 1)

	for field, want := range map[string]string{"attributes.route": "missing:attributes.route", "attributes.none": "missing:attributes.none"} {
		r := ruled(t, "numeric_range", evaluators.Settings{Options: options{"field": field, "min": 1}}, it)
		if r.Status != evaluators.NotApplicable || r.Reason != want {
			t.Errorf("%s: %s %q", field, r.Status, r.Reason)
		}
	}
}

func TestWhatARuleCannotSayIsNotApplicable(t *testing.T) {
	f := func(name string, s evaluators.Settings, it evaluators.Item, want string) {
		t.Helper()
		if r := ruled(t, name, s, it); r.Status != evaluators.NotApplicable || r.Reason != want {
			t.Errorf("%s: %s %q %q, want %q", name, r.Status, r.Reason, r.Label, want)
		}
	}
	none := evaluators.Settings{}
	f("exact_match", none, pair("x"), "missing:expected")
	f("exact_match", none, pair("x", " ", "\u200b"), "missing:expected")
	f("exact_match", none, pair(" ", "x"), "empty_output")
	f("exact_match", none, evaluators.Item{Expected: []string{"x"}, Judgeable: true}, "missing:output")
	f("exact_match", none, evaluators.Item{Output: text("x"), Expected: []string{"x"}, SkipReason: "tool_call"}, "tool_call")
	f("numeric_diff", none, pair("5", "five"), "expected_not_a_number")
	f("language", evaluators.Settings{Options: options{"any": []string{"en"}}}, pair("OK, 12345678901234567890 it is"), "too_short")
	f("levenshtein", none, pair(strings.Repeat("a", 6000), strings.Repeat("b", 6000)), "too_long")
	f("latency", evaluators.Settings{Options: options{"max": 1}}, pair("x"), "missing:latency_ms")
	long := make([]string, 501)
	raw, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	f("list_contains", none, pair(string(raw), string(raw)), "too_long")
	cut := pair("x", "x")
	cut.Flags = []string{"truncated"}
	f("exact_match", evaluators.Settings{Truncated: "not_applicable"}, cut, "truncated")
	cut.Status = interaction.Refusal
	f("exact_match", evaluators.Settings{Refusals: "not_applicable"}, cut, "refusal")
}

func TestABlankOutputIsTheWorstAnswerWhereTheCheckSaysSo(t *testing.T) {
	r := ruled(t, "contains", evaluators.Settings{EmptyOutput: "fail", Options: options{"none": []string{"x"}}}, pair(" \n"))
	if r.Status != evaluators.OK || *r.Score != 0 || *r.Passed || r.Detail["rule"] != "empty_output" {
		t.Errorf("%+v", r)
	}
}

func TestThePassLineOfAGradedRuleIsASetting(t *testing.T) {
	line := .5
	strict := ruled(t, "levenshtein", evaluators.Settings{}, pair("abcd", "abxx"))
	loose := ruled(t, "levenshtein", evaluators.Settings{PassLine: &line}, pair("abcd", "abxx"))
	if *strict.Passed || !*loose.Passed || *strict.Score != *loose.Score || strict.Version == loose.Version {
		t.Errorf("%+v, %+v", strict, loose)
	}
}

func TestOptionsThatMakeNoSenseAreRefusedAllAtOnce(t *testing.T) {
	f := func(name string, s evaluators.Settings, want ...string) {
		t.Helper()
		_, err := evaluators.New(name, s)
		if err == nil {
			t.Errorf("%s %+v was taken", name, s)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}
	o := func(o options) evaluators.Settings { return evaluators.Settings{Options: o} }
	f("regex", o(nil), "pattern", "must_not")
	f("regex", o(options{"pattern": "(", "must_not": `\p{Nowhere}`}), "pattern: error parsing", "must_not: error parsing")
	f("regex", o(options{"patern": "x"}), "patern: unknown option (did you mean pattern?)")
	f("contains", o(options{"any": "x"}), "any: want a list")
	f("contains", o(options{"any": []any{}}), "any: want a list")
	f("contains", o(options{"any": []any{"x", ""}, "ignore_case": "yes"}), "empty text", "ignore_case: want true or false")
	f("length", o(options{"min": 5, "max": 4, "unit": "bytes"}), "min: 5 is above max 4", "unit")
	f("length", o(options{"min": math.NaN()}), "finite")
	f("language", o(options{"any": []string{"english"}}), `"english"`, "de")
	f("numeric_range", o(options{"min": 1}), "field")
	f("numeric_range", o(options{"min": 1, "field": "attributes."}), "field")
	f("tokens", o(options{"max": 1, "of": "all"}), "of")
	f("valid_json", o(options{"schema": "x"}), "schema: want an object")
	f("valid_json", o(options{"schema": options{"type": "objekt"}}), "schema")
	f("valid_json", o(options{"schema": options{"$ref": "file:///etc/hostname"}}), "its own parts only")
	f("exact_match", o(options{"ignore_case": true}), "hf_evaluate")
	f("exact_match", evaluators.Settings{Dialect: "mine"}, "mine", "autoevals")
	f("exact_match", evaluators.Settings{Coarse: true}, "coarse")
	f("exact_match", evaluators.Settings{Pass: []string{"yes"}}, "pass")
}

func TestTheVersionOfARuleChangesWithItsOptions(t *testing.T) {
	hash := func(name string, s evaluators.Settings) string { return evaluator(t, name, s).Definition().Hash() }
	if hash("exact_match", evaluators.Settings{}) != hash("exact_match", evaluators.Settings{Dialect: "assay", Options: options{}}) {
		t.Error("a default written out is another version")
	}
	a := hash("length", evaluators.Settings{Options: options{"max": 10, "unit": "runes"}})
	if a != hash("length", evaluators.Settings{Options: options{"max": 10.}}) {
		t.Error("10 as a float, and a default written out, are another version")
	}
	b := hash("contains", evaluators.Settings{Options: options{"all": []string{"x", "y"}}})
	if b != hash("contains", evaluators.Settings{Options: options{"all": []any{"x", "y"}}}) {
		t.Error("a list of YAML is another version than one of Go")
	}
	seen := []string{a, b, hash("exact_match", evaluators.Settings{}), hash("exact_match", evaluators.Settings{Dialect: "squad"}),
		hash("length", evaluators.Settings{Options: options{"max": 11}}), hash("contains", evaluators.Settings{Options: options{"any": []string{"x", "y"}}})}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 6 {
		t.Error("two rules have one version")
	}
}

func TestRulesAskNobodyAndSayWhatTheyNeed(t *testing.T) {
	asking, rules := 0, 0
	for _, spec := range evaluators.Table() {
		if spec.NeedsJudge() {
			asking++
			if spec.NeedsSettings() {
				t.Errorf("%s does nothing without settings", spec.Name)
			}
			continue
		}
		rules++
		names := make(map[string]bool)
		for _, s := range spec.Settings {
			if s.Name == "" || s.Help == "" || names[s.Name] || !slices.Contains([]string{"number", "text", "boolean", "list", "object"}, s.Type) {
				t.Errorf("%s: setting %+v", spec.Name, s)
			}
			names[s.Name] = true
		}
		if spec.PassLine == nil || spec.DefaultPass() != nil || len(spec.Options()) > 0 || spec.Summary == "" || spec.Kind != "" {
			t.Errorf("%s: row %+v", spec.Name, spec)
		}
		if spec.NeedsSettings() {
			continue
		}
		e := evaluator(t, spec.Name, evaluators.Settings{})
		if q, err := e.Questions(complete()); len(q) > 0 || err != nil {
			t.Errorf("%s asks %v, %v", spec.Name, q, err)
		}
	}
	if asking == 0 || rules != 17 {
		t.Errorf("%d evaluators with a judge, %d rules", asking, rules)
	}
}

func TestACancelledRuleIsNoResultAndADeadlineIsNothingToIt(t *testing.T) {
	e := evaluator(t, "exact_match", evaluators.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := e.Evaluate(ctx, nil, pair("x", "x")); !errors.Is(err, context.Canceled) || r.Status != "" {
		t.Errorf("%+v, %v", r, err)
	}
	late, end := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer end()
	if r, err := e.Evaluate(late, nil, pair("x", "x")); err != nil || r.Status != evaluators.OK {
		t.Errorf("%+v, %v", r, err)
	}
}
