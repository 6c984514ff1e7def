package decode

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Foreign Protobuf under a source that promises OTLP: the unmarshaler reads whatever
// begins like a batch, and what it makes of it becomes something well formed.
func FuzzOTLPProtobuf(f *testing.F) {
	agent := chatSpan(1, 1, 0)
	agent.a["gen_ai.operation.name"] = "invoke_agent"
	spelled := testSpan{trace: 1, id: 3, a: map[string]any{"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "[{\"type\":\"text\",\"text\":\"a\"}]",
		"gen_ai.completion.0.content": "b", "tags": []any{"x", 1, 2.5, true, map[string]any{"k": nil}}}}
	vercel := testSpan{trace: 1, id: 4, parent: 4, a: map[string]any{"ai.operationId": "ai.generateText", "ai.prompt": `{"messages":[{"role":"user","content":"a"}]}`,
		"ai.response.text": "b"}, events: []testEvent{{evaluationEvent, map[string]any{"gen_ai.evaluation.name": "fit", "gen_ai.evaluation.score.value": 1.5}}}}
	for _, spans := range [][]testSpan{{chatSpan(1, 2, 1), agent}, {spelled}, {vercel}} {
		b, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(batch(f, spans...))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	d := newDecoder(f, Source{Topic: "t", Format: otlpProto, Fields: map[string]string{"tenant": "span.tags[0]"}})
	root := newDecoder(f, Source{Topic: "t", Format: otlpProto, Unit: "root"})
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t, d, raw)
		bounded(t, root, raw)
	})
}

// Whatever comes to a joiner in whatever order, its books agree: an offset is released
// once, after it was held, nothing waits at the end, and both bounds hold all the time.
func FuzzJoiner(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 128, 129, 130, 131})
	f.Add([]byte{5, 5, 133, 133, 5, 200, 64, 64, 192})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 200 {
			return
		}
		cfg := Defaults()
		cfg.MaxHeld, cfg.MaxHeldBytes = 6, 4<<10
		d, err := New(cfg, []Source{{Topic: "logs", JoinWait: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		j := d.NewJoiner("logs")
		held := map[int64]bool{}
		interactions := 0
		check := func(res Result) {
			for _, offset := range res.Released {
				if !held[offset] {
					t.Fatalf("released %d, which was not held", offset)
				}
				delete(held, offset)
			}
			for _, it := range res.Interactions {
				interactions++
				if it.Judgeable && (it.Input == nil || it.Output == nil) {
					t.Fatalf("%+v", it)
				}
			}
		}
		at := time.Duration(0)
		for i, op := range script {
			at += time.Duration(op&0x60) * time.Second / 8
			rec := askedIn(int64(i), at, int(op&0x0f))
			if op&0x80 != 0 {
				rec = answeredIn(int64(i), at, int(op&0x0f))
			}
			res := j.Decode(rec)
			if len(res.Bad) > 0 {
				t.Fatalf("%+v", res.Bad)
			}
			check(res)
			if res.Held > 0 {
				held[int64(i)] = true
			}
			if j.bytes < 0 || j.bytes > int64(cfg.MaxHeldBytes) {
				t.Fatalf("%d bytes are held, at most %s may be", j.bytes, cfg.MaxHeldBytes)
			}
			if c := j.Counts(); c.Waiting > cfg.MaxHeld || c.Waiting > 0 != (len(held) > 0) {
				t.Fatalf("%d wait, %d offsets are held", c.Waiting, len(held))
			}
		}
		check(j.Rest())
		if len(held) > 0 || j.Counts().Waiting > 0 || len(script) > 0 && interactions == 0 {
			t.Fatalf("at the end %d offsets are held, %d wait, %d interactions", len(held), j.Counts().Waiting, interactions)
		}
	})
}
