package evaluators_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/evaluators"
)

// everyRule are all rules with settings under which they have something to say.
func everyRule() []struct {
	name string
	s    evaluators.Settings
} {
	type configured = struct {
		name string
		s    evaluators.Settings
	}
	return []configured{
		{"contains", evaluators.Settings{Options: options{"any": []string{"a", "the"}, "none": []string{"zz"}, "ignore_case": true}}},
		{"exact_match", evaluators.Settings{}},
		{"exact_match", evaluators.Settings{Dialect: "autoevals"}},
		{"exact_match", evaluators.Settings{Dialect: "squad"}},
		{"exact_match", evaluators.Settings{Dialect: "hf_evaluate", Options: options{"ignore_case": true, "ignore_punctuation": true, "ignore_numbers": true}}},
		{"fuzzy_match", evaluators.Settings{}},
		{"json_diff", evaluators.Settings{}},
		{"json_diff", evaluators.Settings{Dialect: "py"}},
		{"json_match", evaluators.Settings{}},
		{"language", evaluators.Settings{Options: options{"any": []string{"en", "zh"}}}},
		{"latency", evaluators.Settings{Options: options{"max": 100}}},
		{"length", evaluators.Settings{Options: options{"max": 100}}},
		{"length", evaluators.Settings{Options: options{"max": 100, "unit": "words"}}},
		{"length", evaluators.Settings{Options: options{"max": 100, "unit": "sentences"}}},
		{"levenshtein", evaluators.Settings{}},
		{"list_contains", evaluators.Settings{}},
		{"list_contains", evaluators.Settings{Options: options{"allow_extra": true}}},
		{"numeric_diff", evaluators.Settings{}},
		{"numeric_range", evaluators.Settings{Options: options{"field": "attributes.n", "min": 0}}},
		{"refusal", evaluators.Settings{}},
		{"regex", evaluators.Settings{Options: options{"pattern": `(a|aa)+$`, "must_not": `(x*)*y`}}},
		{"token_f1", evaluators.Settings{}},
		{"tokens", evaluators.Settings{Options: options{"min": 10, "of": "output"}}},
		{"valid_json", evaluators.Settings{}},
		{"valid_json", evaluators.Settings{Options: options{"schema": options{"type": "array", "uniqueItems": true, "items": options{"pattern": "^(a|aa)+$"}}}}},
		{"valid_json", evaluators.Settings{Options: options{"schema": options{"minimum": 0, "items": options{"minimum": 0, "multipleOf": .01}}}}},
	}
}

func TestEveryRuleOfTheTableIsFuzzed(t *testing.T) {
	fuzzed := make(map[string]bool)
	for _, r := range everyRule() {
		fuzzed[r.name] = true
	}
	for _, spec := range evaluators.Table() {
		if fuzzed[spec.Name] == spec.NeedsJudge() {
			t.Errorf("%s: fuzzed %t, asks a judge %t: everyRule lists what computes", spec.Name, fuzzed[spec.Name], spec.NeedsJudge())
		}
	}
}

// Rules that compare may not care which text is which. A list is another matter: several
// references are one too.
func symmetric(name string) bool {
	switch name {
	case "exact_match", "fuzzy_match", "json_diff", "levenshtein", "token_f1":
		return true
	}
	return false
}

func FuzzRules(f *testing.F) {
	for _, seed := range [][2]string{
		{"Paris", "paris"}, {"", "x"}, {`{"a":[1,"2",null]}`, `{"a":"[1]"}`}, {`["a","b"]`, `["b"]`}, {"-1e308", "1e308"}, {"ΟΔΟΣ\x00", "\xff\xfe"},
		{`"{\"a\":1}"`, `{"a":1}`}, {"[[[[", "]]]]"}, {"1e999", "NaN"}, {"1e9999999", "[1e-9999999]"}, {"İ", "i̇"}, {"a\u0301", "á"}, {"I’m sorry, but I can't", "no."}, {"5e-324", "-5e-324"},
	} {
		f.Add(seed[0], seed[1])
	}
	type made struct {
		name      string
		evaluator evaluators.Evaluator
	}
	var rules []made
	for _, r := range everyRule() {
		e, err := evaluators.New(r.name, r.s)
		if err != nil {
			f.Fatal(err)
		}
		rules = append(rules, made{r.name, e})
	}
	f.Fuzz(func(t *testing.T, output, expected string) {
		for _, r := range rules {
			there := rulesResult(t, r.evaluator, output, expected)
			if again := rulesResult(t, r.evaluator, output, expected); math.Float64bits(again) != math.Float64bits(there) {
				t.Fatalf("%s: %v, then %v", r.name, there, again)
			}
			if !symmetric(r.name) {
				continue
			}
			back := rulesResult(t, r.evaluator, expected, output)
			// a blank output and a blank reference are not the same
			if !math.IsNaN(there) && !math.IsNaN(back) && math.Abs(there-back) > 1e-9 {
				t.Fatalf("%s of %q and %q: %v, the other way round %v", r.name, output, expected, there, back)
			}
		}
	})
}

// rulesResult is the score, or NaN where there is none.
func rulesResult(t *testing.T, e evaluators.Evaluator, output, expected string) float64 {
	t.Helper()
	it := pair(output, expected)
	it.Attributes = map[string]string{"n": output}
	if v, err := strconv.ParseFloat(output, 64); err == nil {
		it.LatencyMS = &v
	}
	it.OutputTokens = new(int64(len(output)))
	r, err := e.Evaluate(t.Context(), nil, it)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case r.Status == evaluators.OK && r.Score != nil && *r.Score >= 0 && *r.Score <= 1:
		return *r.Score
	case r.Status == evaluators.NotApplicable && r.Score == nil && r.Passed == nil && r.Reason != "":
		return math.NaN()
	}
	t.Fatalf("%s: %+v", e.Name(), r)
	return 0
}

// Megabytes that make careless code slow: one rune, random words, deep and unclosed
// brackets, JSON in JSON, many items, many references.
func TestRulesAreBoundedOnAMegabyte(t *testing.T) {
	const n = large
	words := strings.Repeat("The quick brown fox, 1.5 of them, jumps. ", n/41)
	texts := map[string]string{
		"one rune":        strings.Repeat("a", n),
		"another rune":    "b" + strings.Repeat("a", n-2) + "b",
		"wide":            strings.Repeat("語", n/3),
		"words":           words,
		"stops":           strings.Repeat(".", n),
		"open":            strings.Repeat("[", n),
		"strings in list": "[" + strings.Repeat(`"a",`, n/4) + `"a"]`,
		"deep":            strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"object":          "{" + manyKeys(n/26) + "}",
		"unique":          "[" + strings.ReplaceAll(manyKeys(n/35), ":", ",") + "]",
		"numbers":         "[" + strings.Repeat("1,", n/2) + "1]",
		"digits":          strings.Repeat("9", n),
		"exponents":       "[" + strings.Repeat("1e300,", n/6) + "1e300]",
		"exponent":        "1e" + strings.Repeat("9", 6),
		"just comparable": strings.Repeat("ab", 2450),
	}
	for _, r := range everyRule() {
		e, err := evaluators.New(r.name, r.s)
		if err != nil {
			t.Fatal(err)
		}
		slowest, which := time.Duration(0), ""
		for a, output := range texts {
			partners := []string{a}
			if symmetric(r.name) {
				partners = append(partners, "another rune")
			}
			for _, b := range partners {
				start := time.Now()
				rulesResult(t, e, output, texts[b])
				if took := time.Since(start); took > slowest {
					slowest, which = took, a+" with "+b
				}
			}
		}
		// Quadratic in a megabyte would be minutes. The bound is for loaded machines.
		if slowest > 20*time.Second {
			t.Errorf("%s %v: %v for %s", r.name, r.s.Options, slowest, which)
		}
		t.Logf("%s %s: at most %v (%s)", r.name, r.s.Dialect, slowest.Round(time.Millisecond), which)
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"key %d":"value %d"`, i, i*7)
	}
	return b.String()
}
