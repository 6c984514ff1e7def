package decode

import (
	"fmt"
	"testing"
)

// The same conversation in the shapes that families read each in their own way.
func TestTheInputIsTheTurnThatTheSourceAsksFor(t *testing.T) {
	chat := `{"id":"1","request":{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Where is it?"},{"role":"assistant","content":"Which one?"},{"role":"user","content":"The red one."}]},"response":{"choices":[{"message":{"role":"assistant","content":"In Lyon."},"finish_reason":"stop"}]}}`
	alone := `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Where is it?"},{"role":"assistant","content":"Which one?"},{"role":"user","content":"The red one."},{"role":"assistant","content":"In Lyon."}]}`
	anthropic := `{"id":"3","request":{"system":"Be brief.","max_tokens":9,"messages":[{"role":"user","content":"Where is it?"},{"role":"assistant","content":[{"type":"text","text":"Which one?"}]},{"role":"user","content":[{"type":"text","text":"The red one."}]}]},"response":{"type":"message","id":"m","content":[{"type":"text","text":"In Lyon."}],"stop_reason":"end_turn"}}`
	otlp := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","startTimeUnixNano":"1777888800000000000","attributes":[
		{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"gen_ai.input.messages","value":{"stringValue":"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"Where is it?\"}]},{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"Which one?\"}]},{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"The red one.\"}]}]"}},
		{"key":"gen_ai.output.messages","value":{"stringValue":"[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"In Lyon.\"}],\"finish_reason\":\"stop\"}]"}}]}]}]}]}`
	flatList := `{"id":"5","input":[{"role":"user","content":"Where is it?"},{"role":"assistant","content":"Which one?"},{"role":"user","content":"The red one."}],"output":"In Lyon."}`
	want := map[string]string{
		"": "The red one.", lastUser: "The red one.", firstUser: "Where is it?",
		transcript: "user: Where is it?\n\nassistant: Which one?\n\nuser: The red one.",
	}
	for turn, input := range want {
		d := newDecoder(t, Source{Topic: "t", Turn: turn})
		for name, body := range map[string]string{"chat": chat, "alone": alone, "anthropic": anthropic, "otlp": otlp, "flat": flatList} {
			it := one(t, d, body)
			if deref(it.Input) != input || deref(it.Output) != "In Lyon." || !it.Judgeable {
				t.Errorf("turn %q, %s: input %q, output %q, %s", turn, name, deref(it.Input), deref(it.Output), it.SkipReason)
			}
		}
		// one text is one turn
		if it := one(t, d, parcel); deref(it.Input) != "Where is my parcel?" {
			t.Errorf("turn %q: input %q", turn, deref(it.Input))
		}
	}
	// what a path points at is what was asked for
	d := newDecoder(t, Source{Topic: "t", Turn: firstUser, Fields: map[string]string{"input": "id"}})
	if it := one(t, d, chat); deref(it.Input) != "1" {
		t.Errorf("input %q, want what the path points at", deref(it.Input))
	}
	// the first turn may be redacted, and a question without a user's turn has none
	d = newDecoder(t, Source{Topic: "t", Turn: firstUser})
	if it := one(t, d, `{"input":[{"role":"user","content":"[REDACTED]"},{"role":"user","content":"And now?"}],"output":"Yes."}`); deref(it.Input) != "And now?" {
		t.Errorf("input %q", deref(it.Input))
	}
}

func TestASnapshotIsLeftOutWhereTheSourceSaysSo(t *testing.T) {
	body := `{"op":"r","before":null,"after":` + parcel + `}`
	if it := one(t, newDecoder(t), body); !it.Judgeable || !it.HasFlag(cdcSnapshot) {
		t.Errorf("%+v", it)
	}
	res := decodeText(t, newDecoder(t, Source{Topic: "t", Snapshots: "skip"}), body)
	if res.Outcome != Skip || fmt.Sprint(res.Skips) != "[cdc_snapshot]" {
		t.Errorf("%+v", res)
	}
	// the rows that come later are no snapshot
	d := newDecoder(t, Source{Topic: "t", Snapshots: "skip"})
	if it := one(t, d, `{"op":"c","after":`+parcel+`}`); !it.Judgeable {
		t.Errorf("%+v", it)
	}
}

// An application writes its row at the question and changes it at the answer: that
// update is the first whole one. What changes afterwards is no new answer.
func TestAChangedRowIsJudgedOnce(t *testing.T) {
	asked := `{"id":"p-1","input":"Where is my parcel?","output":null}`
	seen := `{"id":"p-1","input":"Where is my parcel?","output":"In Lyon.","metadata":{"seen":true}}`
	update := func(before, after string) string { return `{"op":"u","before":` + before + `,"after":` + after + `}` }
	quoted := func(s string) string { return string(quoted([]byte(s))) }
	f := func(src Source, body, outcome string) {
		t.Helper()
		src.Topic = "t"
		res := decodeText(t, newDecoder(t, src), body)
		got := fmt.Sprint(res.Skips)
		if len(res.Interactions) == 1 {
			it := res.Interactions[0]
			got = fmt.Sprint(it.Judgeable, it.HasFlag(cdcUpdate))
		}
		if got != outcome {
			t.Errorf("%+v of %s: %s, want %s", src, body, got, outcome)
		}
	}

	f(Source{}, update(asked, parcel), "true true")
	f(Source{}, update(parcel, seen), "[cdc_update]")
	f(Source{}, update(quoted(parcel), quoted(seen)), "[cdc_update]") // MongoDB writes documents as texts
	// the database logs no row before the change, or its key alone
	f(Source{}, update("null", seen), "true true")
	f(Source{}, update(`{"id":"p-1"}`, seen), "true true")
	f(Source{Rejudge: true}, update(parcel, seen), "true true")
	// what the source's paths find counts before the change as it does after
	f(Source{Fields: map[string]string{"output": "said"}}, update(`{"input":"a","said":"b"}`, `{"input":"a","said":"c"}`), "[cdc_update]")
	f(Source{Fields: map[string]string{"output": "said"}}, update(`{"input":"a"}`, `{"input":"a","said":"c"}`), "true true")
}
