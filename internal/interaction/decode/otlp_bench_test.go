package decode

import (
	"testing"

	"assay/internal/interaction"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// A batch as a collector sends it: calls among the spans of HTTP and databases.
func BenchmarkOTLPBatchOfTwentySpans(b *testing.B) {
	var spans []testSpan
	for i := range byte(20) {
		s := testSpan{trace: i/5 + 1, id: i + 1, name: "GET /stock", a: map[string]any{"http.request.method": "GET", "http.route": "/stock",
			"http.response.status_code": 200, "server.address": "stock", "server.port": 8080, "network.protocol.version": "1.1"}}
		if i%5 == 0 {
			s = chatSpan(i/5+1, i+1, 0)
			s.a["gen_ai.response.id"] = string(rune('a' + i))
			s.a["gen_ai.conversation.id"] = "conv"
		}
		spans = append(spans, s)
	}
	td := batch(b, spans...)
	d := newDecoder(b)
	run := func(name string, value []byte) {
		b.Run(name, func(b *testing.B) {
			rec := interaction.Record{Topic: "t", Time: joinStart, Value: value}
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			for b.Loop() {
				if got := d.Decode(rec); len(got.Interactions) != 4 {
					b.Fatalf("%+v", got)
				}
			}
			b.ReportMetric(float64(20*b.N)/b.Elapsed().Seconds(), "spans/s")
		})
	}
	proto, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	doc, _ := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	run("proto", proto)
	run("json", doc)
}
