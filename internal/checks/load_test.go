package checks

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"assay/evaluators/judge/embedded"
	"assay/evaluators/judge/openai"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
)

func parse(t *testing.T, text string, options ...Option) *File {
	t.Helper()
	f, err := Parse("assay.yaml", []byte(text), options...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTheExampleIsAValidFileWithItsDefaults(t *testing.T) {
	f := parse(t, string(Example()))
	if len(f.Checks) != 2 || len(f.Judges) != 2 || len(f.Sources) != 1 || len(f.Slices) != 2 {
		t.Fatalf("%+v", f)
	}
	c := f.Checks[0]
	if c.PassLine == nil || *c.PassLine != 0.5 || c.Sample.Salt != "delivery_promise" || c.Sample.Rate != 0.05 || c.EmptyOutput != "not_applicable" ||
		c.Alert.Target != 0.9 || c.Alert.Tolerance != nil || c.Alert.Labels["team"] != "logistics" || !strings.HasPrefix(c.Criteria.Text, "Names a delivery date") {
		t.Errorf("%+v", c)
	}
	c = f.Checks[1]
	if fmt.Sprint(c.Pass) != "[agree]" || c.Sample.Salt != "experts" || c.Reference.Field != "expected" || c.Alert.Severity != "ticket" || c.Alert.Close != "auto" {
		t.Errorf("%+v", c)
	}
	if f.Alerts.MaxFalseAlarmsPerYear != 4 || f.Privacy.StoreText != "excerpt" || len(f.Hash) != 16 || len(c.Version) != 16 || len(f.Notes()) != 0 {
		t.Errorf("%+v", f)
	}
	if got := fmt.Sprint(f.Sources[0].Fields); got != `map[attributes.market:request.headers["x-market"] expected:metadata.approved_answer]` {
		t.Errorf("fields %s", got)
	}
}

func base() string {
	return `version: 1
sources: [{ topic: t }]
judges:
  m: { kind: openai, base_url: "http://h/v1", model: x, method: logprobs, budget: { calls_per_day: 10 } }
checks:
  - name: c
    evaluator: closed_qa
    criteria: { text: Polite. }
    judge: m
    sample: { rate: 0.1 }
`
}

func TestDefaultsOfASmallFile(t *testing.T) {
	f := parse(t, base())
	c := f.Checks[0]
	if !c.Alert.Off || c.When != nil || c.Refusals != "judge" || c.Truncated != "judge" || f.Judges[0].MaxInFlight != 200 ||
		len(f.Privacy.Redact) != 4 || len(f.Dimensions) != 0 || len(f.Slices) != 0 || f.Sources[0].Format != "auto" {
		t.Errorf("%+v", f)
	}
	if len(f.Notes()) != 1 || !strings.Contains(f.Notes()[0], "no alert.target, so its drift detector is off") {
		t.Errorf("notes %q", f.Notes())
	}
}

// change edits the small file: old becomes new, and the fault is expected at the place.
func TestFaultsPointAtTheirPlace(t *testing.T) {
	f := func(old, new, want string) {
		t.Helper()
		text := base()
		if old != "" && !strings.Contains(text, old) {
			t.Fatalf("the file has no %q", old)
		}
		_, err := Parse("a.yaml", []byte(strings.Replace(text, old, new, 1)))
		if err == nil {
			t.Errorf("%s: accepted", new)
			return
		}
		if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "a.yaml:"+want) {
			t.Errorf("%s\n got  %v\n want a.yaml:%s", new, err, want)
		}
	}

	f("version: 1", "version: 2", `1:10: version: 2; this Assay reads version 1`)
	f("version: 1\n", "", `1:1: checks file: version is missing; want 1`)
	f("version: 1", "version: 1\nslice: []", `2:1: checks file: unknown key slice (did you mean slices?); want version`)
	f("version: 1", "version: 1\ngolden: { file: g }", `2:1: golden: golden sets come with a later version of Assay; remove the key`)
	f("version: 1", "version: 1\nmax_values: 50", `2:1: max_values: the cap on listed values comes with a later version of Assay; remove the key`)
	f("judge: m", "judge: m\n    dialect: x", `10:5: check c: dialect: `)
	f("version: 1", "version: 1\nversion: 1", `2:1: checks file: version stands here twice`)
	f("version: 1", "version: 1\ndimensions: [app, window]", `2:19: dimensions: window is a label of Assay's own`)
	f("version: 1", "version: 1\ndimensions: [origin]", `2:14: dimensions: origin is a label of Assay's own`)
	f("version: 1", "version: 1\ndimensions: [App]", `2:14: dimensions: "App"; want small letters`)
	f("version: 1", "version: 1\ndimensions: [user_id]", `2:14: dimensions: user_id has a value of its own`)
	f("version: 1", "version: 1\ndimensions: [a, b, c, d, e, f, g, h, i]", `2:38: dimensions: 9; want at most 8`)
	f("version: 1", "version: 1\ndimensions: [model]\nslices: [{ modle: a }]", `3:12: slices: modle is no declared dimension (did you mean model?)`)
	f("version: 1", "version: 1\ndimensions: [model]\nslices: [{ model: 4 }]", `3:19: slices: model: want text, not the number 4; write "4"`)
	f("topic: t", "topic: t, format: langfuze", `2:31: source t: no format "langfuze"; want one of auto`)
	f("topic: t", "topic: t, fields: { inptu: a.b }", `2:33: source t: fields: no field "inptu"`)
	f("topic: t", "topic: t, join_context: 30s", `2:23: sources.join_context: the formats that need it come`)
	f("topic: t", "topic: t, turn: last", `2:29: source t: turn: "last"; want last_user or first_user or transcript`)
	f("topic: t", "topic: t, snapshots: drop", `2:34: source t: snapshots: "drop"; want judge or skip`)
	f("topic: t", "topic: t, rejudge_updates: always", `2:40: source t: rejudge_updates: want true or false`)
	f("topic: t", "topic: t, unit: trace", `2:29: source t: unit: "trace"; want leaf or root`)
	f("topic: t", "topic: t, join_wait: soon", `2:34: source t: join_wait: "soon" is no duration; want a number with a unit, such as 90s or 10m`)
	f("topic: t", "topic: t, join_wait: 10", `2:34: source t: join_wait: the number 10 has no unit; want a duration such as 90s or 10m`)
	f("topic: t", "topic: t, join_wait: 48h", `2:34: source t: join_wait: 48h; want 1s to 24h0m0s`)
	f("topic: t", "topic: t, feedback: { thumbs: z }", `2:43: source t: feedback: thumbs: no check "z"`)
	f("topic: t", "topic: t, feedback: { thumbs: { pass: 1 } }", `2:43: source t: feedback: thumbs: check is missing; want the name of a check`)
	f("topic: t", "topic: t, feedback: { thumbs: { check: c, pass: good } }", `2:61: source t: feedback: thumbs: pass: want the number from which a score passes, such as 4, or a list of labels, such as [good]`)
	f("topic: t", "topic: t, feedback: { thumbs: { check: c, pass: [] } }", `2:61: source t: feedback: thumbs: pass: no label passes`)
	f("topic: t", "topic: t, feedback: { thumbs: { check: c, pas: 1 } }", `2:55: source t: feedback: thumbs: unknown key pas`)
	f("topic: t", "topic: t, feedback: up", `2:33: source t: feedback: want keys with values, not the text "up"`)
	f("topic: t", "topic: t, tool_results: drop", `2:37: source t: tool_results: "drop"; want context or ignore`)
	f("kind: openai", "kind: opnai", `4:14: judge m: kind "opnai" (did you mean openai?)`)
	f("kind: openai", "kind: jev", `4:14: judge m: kind jev comes with a later version`)
	f("kind: openai", "kind: anthropic", `4:68: judge m: method logprobs: a judge of kind anthropic states no token probabilities; want structured or votes:5`)
	f("method: logprobs, ", "", `4:6: judge m: method is missing; want logprobs, structured or votes:5 (nothing is chosen silently)`)
	f("method: logprobs", "method: votes:1", `4:65: judge m: method "votes:1": want votes:2 to votes:25`)
	f("method: logprobs", "method: votes:11", `4:65: judge m: method votes:11: budget.calls_per_day is 10, less than the votes of one question`)
	f("method: logprobs", "method: logprob", `4:65: judge m: method "logprob" (did you mean logprobs?); want logprobs, structured or votes:5`)
	f("method: logprobs", "method: votes, max_tokens: 0", `4:84: judge m: max_tokens: 0; want 1 to 100000`)
	f("method: logprobs", "method: votes, embedding_model: \"\"", `4:89: judge m: embedding_model is blank`)
	f(", budget: { calls_per_day: 10 }", "", `4:6: judge m: nothing bounds its bill: want price and budget`)
	f("budget: { calls_per_day: 10 }", "price: { input_per_million: 1, output_per_million: 1 }",
		`4:75: judge m: has a price but no budget: want budget: { usd_per_day: N }`)
	f("budget: { calls_per_day: 10 }", "budget: { usd_per_day: 5, calls_per_day: 10 }", `4:75: judge m: budget.usd_per_day needs a price`)
	f(`"http://h/v1"`, `"h/v1"`, `4:32: judge m: base_url: "h/v1"; want an http or https address`)
	f("evaluator: closed_qa", "evaluator: closed_q", `7:16: check c: evaluator "closed_q" (did you mean closed_qa?)`)
	f("criteria: { text: Polite. }", "criteria: { text: Polite., field: criteria }", `8:15: check c: criteria: want exactly one of`)
	f("criteria: { text: Polite. }", `criteria: { text: " " }`, `8:23: check c: criteria: text is blank`)
	f("criteria: { text: Polite. }", "criteria: { field: rubric }", `8:24: check c: criteria: field "rubric"; want criteria or attributes.NAME`)
	f("criteria: { text: Polite. }", "criteria: { book: b }", `8:17: criteria.book: books of references come with a later version of Assay; remove the key`)
	f("    criteria: { text: Polite. }\n", "", `6:5: check c: criteria is missing: closed_qa needs it`)
	f("judge: m", "judge: mm", `9:12: check c: no judge "mm" (did you mean m?)`)
	f("judge: m", "judge: m\n    pass: [yes]", `10:5: check c: pass: want a number`)
	f("judge: m", "judge: m\n    pass: 1.5", `10:5: check c: pass: 1.5: want a number above 0, up to 1`)
	f("judge: m", "judge: m\n    reference: { field: expected }", `10:5: check c: reference: closed_qa takes none; remove the key`)
	f("judge: m", "judge: m\n    coarse: true", `10:5: check c: coarse: this evaluator has one question only`)
	f("rate: 0.1", "rate: 1.1", `10:21: check c: sample: rate: 1.1; want 0 to 1`)
	f("rate: 0.1", "rate: 0.001", `10:21: check c: sample: rate: 0.001; want 0, or 0.002 to 1`)
	f("rate: 0.1", "rate: often", `10:21: check c: sample: rate: want a number, not the text "often"`)
	f("rate: 0.1", "rate: 0.1, by: [model]", `10:26: sample.by: strata come with a later version of Assay; remove the key`)
	f("rate: 0.1", "rate: 0.1, max_per_hour: 9", `10:26: sample.max_per_hour: floors, caps`)
	f("judge: m", "judge: m\n    alert: { target: 0.9, tolerance: 0.95 }", `10:38: check c: alert: tolerance: 0.95; want auto`)
	f("judge: m", "judge: m\n    alert: { target: 90 }", `10:22: check c: alert: target: 90; want a pass rate`)
	f("judge: m", "judge: m\n    alert: { target: 0.9, burn: [1h] }", `10:27: alert.burn:`)
	f("judge: m", "judge: &j m", `9:12: check c: judge: want text, not an anchor`)
	f("judge: m", "judge:", `9:5: check c: judge is empty; give it a value or remove the key`)
	f("checks:", "checks: {", `6:3: not valid YAML`)
	f("sources: [{ topic: t }]", "sources: []", `2:10: sources: want at least one topic`)
	f("version: 1", "version: 1\nprivacy: { redact: [mail] }", `2:21: privacy: redact: "mail" (did you mean email?); want email or phone or card or secret`)
}

func TestTheEmbeddedJudgeServesCoarseFactualityOnly(t *testing.T) {
	file := func(rest string) string {
		return "version: 1\nsources: [{ topic: t }]\njudges: { e: { kind: embedded } }\nchecks:\n  - { name: c, judge: e, sample: { rate: 1 }, " + rest + " }\n"
	}
	f := func(rest, want string) {
		t.Helper()
		if _, err := Parse("a.yaml", []byte(file(rest))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rest, err, want)
		}
	}

	f(`evaluator: closed_qa, criteria: { field: criteria }`, "closed_qa needs a language-model judge")
	f(`evaluator: factuality, reference: { field: expected }`, "want coarse: true, or a language-model judge")
	parse(t, file(`evaluator: factuality, reference: { field: expected }, coarse: true`))
}

func TestSimulatedJudgesAreForTheDemo(t *testing.T) {
	text := strings.Replace(base(), `{ kind: openai, base_url: "http://h/v1", model: x, method: logprobs, budget: { calls_per_day: 10 } }`, "{ kind: simulated }", 1)
	if _, err := Parse("a.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "a.yaml:4:14: judge m: kind simulated invents its answers") {
		t.Errorf("%v", err)
	}
	if f := parse(t, text, AllowSimulated()); f.Judges[0].Kind != KindSimulated {
		t.Errorf("%+v", f.Judges)
	}
}

func TestAllFaultsComeAtOnceInOrder(t *testing.T) {
	text := strings.NewReplacer("version: 1", "version: 3", "rate: 0.1", "rate: 7", "model: x", "modell: x", "topic: t", `topic: "a b"`).Replace(base())
	_, err := Parse("a.yaml", []byte(text))
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 5 {
		t.Fatalf("%v", err)
	}
	line := 0
	for _, fault := range faults {
		if fault.Line < line {
			t.Errorf("out of order: %v", err)
		}
		line = fault.Line
	}
}

func TestNothingThatIsNoChecksFileIsAccepted(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "[]", "text", "---\nversion: 1\n---\nversion: 1\n", "a: b: c", "\t", "{{{", "version: 1\nchecks: [[]]", "checks: [a: b]\n"} {
		if _, err := Parse("a.yaml", []byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if _, err := Load("no/such/file.yaml"); err == nil || !strings.Contains(err.Error(), "no/such/file.yaml") {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Example())
	f.Add([]byte(base()))
	f.Add([]byte("version: 1\nchecks:\n - {name: a, when: 'x', alert: {labels: {a: b}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8<<10 {
			return
		}
		file, err := Parse("a.yaml", data)
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v beside error %v", file, err)
		}
	})
}

func TestVersionsChangeWithWhatChangesAVerdictAndNothingElse(t *testing.T) {
	version := func(old, new string) (string, string) {
		f := parse(t, strings.Replace(base(), old, new, 1))
		return f.Checks[0].Version, f.Hash
	}
	v0, h0 := version("", "")
	f := func(old, new string, changesVersion, changesHash bool) {
		t.Helper()
		v, h := version(old, new)
		if (v != v0) != changesVersion || (h != h0) != changesHash {
			t.Errorf("%s: version changed %t, hash changed %t", new, v != v0, h != h0)
		}
	}

	f("Polite.", "Polite!", true, true)
	f("model: x", "model: y", true, true)
	f("method: logprobs", "method: structured", true, true)
	f("judge: m", "judge: m\n    pass: 0.6", true, true)
	f("judge: m", "judge: m\n    empty_output: fail", true, true)
	// the default written out is the same check
	f("judge: m", "judge: m\n    pass: 0.5\n    refusals: judge", false, false)
	f("http://h/v1", "http://h/v1/", false, false)
	// what chooses interactions changes decisions, not verdicts
	f("judge: m", "judge: m\n    when: app == \"a\"", false, true)
	f("rate: 0.1", "rate: 0.2", false, true)
	f("rate: 0.1", "rate: 0.1, salt: s", false, true)
	f("name: c", "name: d", false, true)
	f("version: 1", "version: 1\ndimensions: [app]", false, true)
	f("topic: t", "topic: t, fields: { expected: a }", false, true)
	// what only reports changes neither
	f("judge: m", "judge: m\n    alert: { target: 0.9 }", false, false)
	f("calls_per_day: 10", "calls_per_day: 11", false, false)
	// a gateway that moves is the same judge
	f("http://h/v1", "https://gateway.example/llm/v1", false, false)
	f("method: logprobs", "method: logprobs, api_key_env: K", false, false)
	f("version: 1", "version: 1\nalerts: { max_false_alarms_per_year: 2 }", false, false)
}

func TestAVersionChangesWithWhatTheJudgeAsksWith(t *testing.T) {
	f := func(j Judge, asksWith string) {
		t.Helper()
		if asksWith == "" || j.Fingerprint() != j.fingerprint(asksWith) || j.Fingerprint() == j.fingerprint(asksWith+"x") {
			t.Errorf("%s: %s does not stand for %q", j.Kind, j.Fingerprint(), asksWith)
		}
	}
	f(Judge{Kind: KindOpenAI, Model: "x", Method: "logprobs"}, openai.SheetVersion)
	f(Judge{Kind: KindEmbedded}, embedded.WeightsVersion())
	f(Judge{Kind: KindEmbedded, AbstainLow: true}, embedded.WeightsVersion())
	if (Judge{Kind: KindEmbedded, AbstainLow: true}).Fingerprint() == (Judge{Kind: KindEmbedded}).Fingerprint() {
		t.Error("abstention does not change the fingerprint")
	}
	if (Judge{Kind: KindOpenAI}).Fingerprint() == (Judge{Kind: KindSimulated}).Fingerprint() {
		t.Error("the kind does not change the fingerprint")
	}
}

// A limit that does nothing would pass for one.
func TestTheEmbeddedJudgeTakesNoLimits(t *testing.T) {
	for _, key := range []string{"max_in_flight: 4", "requests_per_minute: 60", "price: { input_per_million: 1, output_per_million: 1 }", "budget: { calls_per_day: 10 }"} {
		text := strings.Replace(base(), `judges:
`, "judges:\n  e: { kind: embedded, "+key+" }\n", 1)
		_, err := Parse("a.yaml", []byte(text))
		name, _, _ := strings.Cut(key, ":")
		want := "a.yaml:4:24: judge e: " + name + ": a judge of kind embedded computes in this process and costs nothing, so there is nothing to bound; remove the key"
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got  %v\n want %s", key, err, want)
		}
	}
	if f := parse(t, strings.Replace(base(), "judges:\n", "judges:\n  e: { kind: embedded }\n", 1)); f.Judges[0].MaxInFlight != 0 {
		t.Errorf("%+v", f.Judges[0])
	}
}

// Every format can be named, so the example must not list some as if they were all.
func TestEveryFormatCanBeNamed(t *testing.T) {
	for _, format := range decode.Formats() {
		if f := parse(t, strings.Replace(base(), "topic: t", "topic: t, format: "+format, 1)); f.Sources[0].Format != format {
			t.Errorf("%s: %+v", format, f.Sources[0])
		}
	}
	_, line, _ := strings.Cut(string(Example()), "format: auto")
	line, _, _ = strings.Cut(line, "\n")
	if !strings.Contains(line, "auto, or a name of docs/formats.md") {
		t.Errorf("the example says %q", line)
	}
}

func TestTextsComeFromTheFileOrTheRecord(t *testing.T) {
	criteria := "kind"
	it := &interaction.Interaction{Expected: []string{"a", "b"}, Criteria: &criteria, Attributes: map[string]string{"rubric": "r"}}
	f := func(text Text, want string) {
		t.Helper()
		if got := strings.Join(text.Of(it), "|"); got != want {
			t.Errorf("%+v: %q, want %q", text, got, want)
		}
	}

	f(Text{Text: "fixed"}, "fixed")
	f(Text{Field: "expected"}, "a|b")
	f(Text{Field: "criteria"}, "kind")
	f(Text{Field: "attributes.rubric"}, "r")
	f(Text{Field: "attributes.none"}, "")
	f(Text{}, "")
}
