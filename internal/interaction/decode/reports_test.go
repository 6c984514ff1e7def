package decode

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/internal/interaction"
)

// reports are the field reports of this package's area that have a test, by id. A test
// shows the right behaviour on the report's own case or on one built like it.
func reports() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"ext-01": reportCutAttribute,
		"ext-02": reportCutLongHistory,
		"ext-17": reportParentRepeatsItsCalls,
		"ext-18": reportSameCallTwice,
		"ext-19": TestStartAndEndOfACallAreJudgedOnce,
		"ext-20": TestCutStreamsAndNestedResponsesOfGateways,
		"ext-22": TestCutStreamsAndNestedResponsesOfGateways,
		"ext-25": TestTombstonesAmongGoodRecords,
		"ext-26": TestFramingsMixOnOneTopic,
	}
}

func TestCasesFieldReports(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(casesDir(t), "field_reports.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	tests, all, passed := reports(), 0, 0
	var later []string
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct{ ID, Area string }
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Area != "decode" {
			continue
		}
		all++
		test := tests[entry.ID]
		if test == nil {
			later = append(later, entry.ID)
			continue
		}
		delete(tests, entry.ID)
		if t.Run(entry.ID, test) {
			passed++
		}
	}
	if len(tests) > 0 {
		t.Errorf("tests of reports that the bank does not have: %v", slices.Sorted(maps.Keys(tests)))
	}
	fmt.Printf("field_reports: %d of %d\n", passed, all)
	for _, id := range later {
		fmt.Printf("field_reports: later: %s\n", id)
	}
}

// formatsCase decodes one case of the formats bank.
func formatsCase(t *testing.T, d *Decoder, name string) Result {
	t.Helper()
	_, rec := load(t, filepath.Join(casesDir(t), "formats", name+".want.json"))
	return d.Decode(rec)
}

// A prompt attribute was cut at a length, and with its JSON every span of the app was
// lost. The record is kept, its text up to the cut, and marked.
func reportCutAttribute(t *testing.T) {
	it := soleOf(t, formatsCase(t, newDecoder(t), "otel_genai_otlp_json/17"))
	if !it.HasFlag("input_truncated") || !strings.HasPrefix(*it.Input, "Summarise: lorem ipsum") || len(*it.Input) < 400 || !it.Judgeable {
		t.Errorf("%+v", it)
	}
}

// A client cut a history of forty messages inside the third. What is whole is history;
// the question may lie behind the cut, and no older one is put in its place.
func reportCutLongHistory(t *testing.T) {
	var history []string
	for i := range 40 {
		role := []string{"user", "assistant"}[i%2]
		history = append(history, fmt.Sprintf(`{"role":%q,"parts":[{"type":"text","content":"Turn %d. %s"}]}`, role, i, strings.Repeat("soil ", 5200)))
	}
	s := chatSpan(1, 2, 0)
	s.a["gen_ai.input.messages"] = ("[" + strings.Join(history, ",") + "]")[:65536]
	it := soleOf(t, decodeSpans(t, newDecoder(t), s))
	if it.Input != nil || it.SkipReason != noInput || !it.HasFlag("input_truncated") || it.Output == nil {
		t.Errorf("input %v, skip reason %q, flags %v", it.Input, it.SkipReason, it.Flags)
	}
	if len(it.Messages) != 3 || len(it.Messages[1].Text) != len("Turn 1. ")+5*5200 || !strings.HasPrefix(it.Messages[2].Text, "Turn 2.") {
		t.Errorf("%d messages; want two whole ones and what is left of the third", len(it.Messages))
	}
}

// An agent's span repeats the sum of its calls: what is judged and what is counted
// doubled.
func reportParentRepeatsItsCalls(t *testing.T) {
	f := func(d *Decoder, name, id string) {
		t.Helper()
		it := soleOf(t, formatsCase(t, d, name))
		if !strings.HasSuffix(it.ID, "/"+id) || *it.InputTokens != 58 || *it.OutputTokens != 12 {
			t.Errorf("%s: %s with %d and %d tokens, want %s once", name, it.ID, *it.InputTokens, *it.OutputTokens, id)
		}
	}
	f(newDecoder(t), "otel_genai_otlp_json/20", "a1b2c3d400000001")
	f(newDecoder(t), "vercel_ai/01", "a1b2c3d40000000c")
	root := newDecoder(t, Source{Topic: "llm-logs", Unit: "root"})
	f(root, "otel_genai_otlp_json/20", "a1b2c3d400000005")
	f(root, "vercel_ai/01", "a1b2c3d40000000b")
	// two steps of an agent, and the agent: the answer is judged once
	agent := chatSpan(1, 1, 0)
	agent.a["gen_ai.operation.name"] = "invoke_agent"
	step := chatSpan(1, 2, 1)
	step.a["gen_ai.output.messages"] = `[{"role":"assistant","parts":[{"type":"tool_call","name":"look"}]}]`
	got := decodeSpans(t, newDecoder(t), agent, step, chatSpan(1, 3, 1))
	judgeable := 0
	for _, it := range got.Interactions {
		if it.Judgeable {
			judgeable++
		}
	}
	if len(got.Interactions) != 2 || judgeable != 1 {
		t.Errorf("%d interactions, %d judgeable; want the two calls and one answer", len(got.Interactions), judgeable)
	}
}

// A gateway and an SDK both wrote the same call: two spans, one answer of the provider.
func reportSameCallTwice(t *testing.T) {
	gateway, sdk := chatSpan(1, 2, 0), chatSpan(1, 3, 0)
	gateway.a["gen_ai.response.id"], sdk.a["gen_ai.response.id"] = "resp-1", "resp-1"
	delete(gateway.a, "gen_ai.input.messages")
	it := soleOf(t, decodeSpans(t, newDecoder(t), gateway, sdk))
	if it.ID != traceHex(1)+"/"+spanHex(3) || !it.HasFlag("duplicate") || !it.Judgeable {
		t.Errorf("%+v; want the one with more text", it)
	}
	// another trace's answer is another call
	other := chatSpan(2, 4, 0)
	other.a["gen_ai.response.id"] = "resp-1"
	if got := decodeSpans(t, newDecoder(t), sdk, other); len(got.Interactions) != 2 || slices.ContainsFunc(got.Interactions,
		func(it interaction.Interaction) bool { return it.HasFlag("duplicate") }) {
		t.Errorf("%+v", got)
	}
}
