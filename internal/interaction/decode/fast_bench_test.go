package decode

import (
	"testing"

	"assay/internal/interaction"
)

func BenchmarkProbeChatLog2KB(b *testing.B) {
	d, err := New(Defaults(), []Source{{Topic: "t", Fields: map[string]string{"expected": "metadata.reference"}}})
	if err != nil {
		b.Fatal(err)
	}
	p := d.Prober("t", Plan{Labels: []string{"app", "model"}, TextBytes: 24_000})
	rec := interaction.Record{Topic: "t", Time: at(), Value: chatLog()}
	if _, ok := p.Probe(rec); !ok {
		b.Fatal("declined")
	}
	b.SetBytes(int64(len(rec.Value)))
	b.ReportAllocs()
	for b.Loop() {
		p.Probe(rec)
	}
}
