package consumer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"assay/internal/demo"
	"assay/internal/interaction"
)

// direct resolves every record at once and does nothing else.
type direct struct{ count atomic.Int64 }

func (d *direct) Assign(_ context.Context, a Assignment) (Partition, int64, error) {
	return d, a.Committed, nil
}

func (d *direct) Handle(_ context.Context, r Delivery) {
	d.count.Add(1)
	r.Resolve(NotNeeded)
}
func (*direct) Flush(context.Context, int64) error { return nil }
func (*direct) Drain(context.Context) error        { return nil }
func (*direct) CaughtUp(time.Time)                 {}
func (*direct) FlushRows(context.Context) error    { return nil }
func (*direct) Close()                             {}

// BenchmarkPassThrough reads 2 KB records that are resolved at once, from a broker in
// the same process: the broker's work is in the figures.
func BenchmarkPassThrough(b *testing.B) {
	for _, partitions := range []int{1, 4} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			w := newWorld(b, demo.KafkaOptions{Partitions: partitions, Topics: []string{topic}})
			const least = 100_000
			n := max(b.N, least) / partitions
			plain, err := demo.NewProducer(w.brokers, kgo.ProducerBatchCompression(kgo.NoCompression()))
			if err != nil {
				b.Fatal(err)
			}
			defer plain.Close()
			noise := make([]byte, 4096)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(noise)
			for p := range partitions {
				for left := n; left > 0; left -= min(left, 5000) {
					records := make([]interaction.Record, min(left, 5000))
					for i := range records {
						records[i] = interaction.Record{Partition: p, Value: noise[i%2048:][:2048]}
					}
					if err := plain.Produce(b.Context(), topic, records...); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			h := &direct{}
			w.start("bench", option{deps: func(d *Deps) { d.Handler = h }})
			began := time.Now()
			for h.count.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			first := time.Now()
			for h.count.Load() < int64(n*partitions) {
				time.Sleep(time.Millisecond)
			}
			took := time.Since(first)
			b.StopTimer()
			b.ReportMetric(float64(n*partitions)/took.Seconds(), "records/s")
			b.ReportMetric(first.Sub(began).Seconds(), "s-to-first")
		})
	}
}
