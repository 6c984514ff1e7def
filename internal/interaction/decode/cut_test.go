package decode

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSalvageClosesWhatWasCut(t *testing.T) {
	f := func(cut, want string) {
		t.Helper()
		got, _, ok := salvage([]byte(cut))
		if !ok || string(got) != want {
			t.Errorf("salvage(%s) = %s %t, want %s", cut, got, ok, want)
		}
	}
	f(`[{"a":"one"},{"a":"tw`, `[{"a":"one"},{"a":"tw"}]`)
	f(`[{"a":"one"},{"a":"t\`, `[{"a":"one"},{"a":"t"}]`)
	f(`[{"a":"one"},{"a":"t\\`, `[{"a":"one"},{"a":"t\\"}]`)
	f(`[{"a":"t\u00`, `[{"a":"t"}]`)
	f(`[{"a":"t\u00e4`, `[{"a":"t\u00e4"}]`)
	f("[{\"a\":\"t\xc3", `[{"a":"t"}]`)
	f("[{\"a\":\"t\xc3\xa4", `[{"a":"tä"}]`)
	f(`[{"a":1,"b`, `[{"a":1}]`)
	f(`[{"a":1,"b":`, `[{"a":1}]`)
	f(`[{"a":12`, `[{}]`) // 12 may have been 123
	f(`[{"a":12,`, `[{"a":12}]`)
	f(`[{"a":tru`, `[{}]`)
	f(`[{"a":{"b":[1,2`, `[{"a":{"b":[1]}}]`)
	f(`[{"a":"x"}, ...`, `[{"a":"x"}]`)
	f(`{`, `{}`)
	for _, whole := range []string{`[{"a":1}]`, `{}`, `"text"`, `12`, ``} {
		if got, _, ok := salvage([]byte(whole)); ok {
			t.Errorf("salvage(%s) = %s: nothing was cut", whole, got)
		}
	}
}

// Whatever is cut, and wherever, what comes out is JSON and a beginning of what was.
func FuzzSalvage(f *testing.F) {
	for _, seed := range []string{`[{"role":"user","parts":[{"type":"text","content":"Grüße \"x\" \ud83c\udf3f \\"}]},{"n":[1,2.5e3,true,null]}]`,
		`{"messages":[{"role":"user","content":"a"}],"k":{"l":{}}}`} {
		f.Add([]byte(seed), 30)
	}
	f.Fuzz(func(t *testing.T, raw []byte, at int) {
		if at < 0 || at > len(raw) {
			at = len(raw)
		}
		got, depth, ok := salvage(raw[:at])
		if !ok {
			return
		}
		if depth < 1 {
			t.Fatalf("cut with %d containers open", depth)
		}
		if end, _, err := scan(got, 0, depthCap); err != nil || end != len(got) {
			t.Fatalf("salvage(%q) = %q: %v", raw[:at], got, err)
		}
		trimmed := strings.TrimRight(string(got), `"]}`)
		if !strings.HasPrefix(string(raw), trimmed) && utf8.Valid(raw) {
			t.Fatalf("salvage(%q) = %q: not how it began", raw[:at], got)
		}
	})
}

// A label in brackets is a text, not the beginning of a list.
func TestATextInBracketsIsNoCutList(t *testing.T) {
	for _, text := range []string{"[draft] How are you?", "{name}, hello", "[", "{", "[1] the source says"} {
		var want string
		got := contentOf(text)
		if err := json.Unmarshal(got.value, &want); err != nil || want != text || got.cut != 0 {
			t.Errorf("%q read as %s", text, got.value)
		}
	}
}

func TestTheCutMessageIsTheQuestionOnlyIfItIsTheFirst(t *testing.T) {
	f := func(messages string, input string, judgeable bool) {
		t.Helper()
		s := chatSpan(1, 2, 0)
		s.a["gen_ai.input.messages"] = messages
		it := soleOf(t, decodeSpans(t, newDecoder(t), s))
		got := ""
		if it.Input != nil {
			got = *it.Input
		}
		if got != input || it.Judgeable != judgeable || !it.HasFlag("input_truncated") {
			t.Errorf("%s\ninput %q, judgeable %t, flags %v; want %q", messages, got, it.Judgeable, it.Flags, input)
		}
	}
	const system = `[{"role":"system","parts":[{"type":"text","content":"Be brief."}]},`
	const user = `{"role":"user","parts":[{"type":"text","content":"First?"}]}`
	f(system+`{"role":"user","parts":[{"type":"text","content":"How oft`, "How oft", true)
	f(system+user, "", false)
	f(system+user+`,{"role":"assistant","parts":[{"type":"text","con`, "", false)
	f(system+user+`,{"role":"user","parts":[{"type":"text","content":"Sec`, "", false)
	f(`[{"role":"system","parts":[{"type":"text","content":"Be br`, "", false)
}

func TestACutAnswerKeepsItsTextAndIsMarked(t *testing.T) {
	s := chatSpan(1, 2, 0)
	s.a["gen_ai.output.messages"] = `[{"role":"assistant","parts":[{"type":"text","content":"Every thi`
	it := soleOf(t, decodeSpans(t, newDecoder(t), s))
	if *it.Output != "Every thi" || !it.HasFlag("output_truncated") {
		t.Errorf("%+v", it)
	}
}
