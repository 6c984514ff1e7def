package consumer

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"assay/internal/demo"
	"assay/internal/interaction"
)

func TestAbortedRecordsAndMarkersAreNotHandedOut(t *testing.T) {
	abortedRecordsAndMarkersAreNotHandedOut(t, oneTopic)
}

func abortedRecordsAndMarkersAreNotHandedOut(t *testing.T, where place) {
	w := where(t, 1)
	var want []int64
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.TransactionalID("tx"), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 16 {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		end, records := kgo.TryAbort, []*kgo.Record{}
		if i%2 == 0 {
			end = kgo.TryCommit
		}
		for range 1 + i%3 {
			records = append(records, &kgo.Record{Value: fmt.Appendf(nil, "tx %d", i)})
		}
		res := client.ProduceSync(t.Context(), records...)
		if err := res.FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := client.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		if end == kgo.TryCommit {
			for _, r := range res {
				want = append(want, r.Record.Offset)
			}
		}
	}
	w.produce(0, 1)
	m := w.start("a", option{kafka: func(k *KafkaConfig) { k.MaxBytes = 1 << 10 }}) // several fetches
	last := want[len(want)-1] + 1
	eventually(t, func() string { return fmt.Sprint("committed ", w.committed(1)) }, func() bool {
		got := w.committed(1)
		return got != nil && got[0] > last
	})
	got := m.handler.resolvedOffsets(0)
	if !slices.Equal(got[:len(got)-1], want) {
		t.Errorf("handed out %v, want %v and the plain one", got, want)
	}
	m.awaitMetric(0, "assay_consumer_lag_records")
}

func TestHolesOfACompactedTopicAreSteppedOver(t *testing.T) {
	w := oneTopic(t, 1)
	compacting(t, w)
	for i := range 40 {
		err := w.producer.Produce(t.Context(), topic, interaction.Record{Key: fmt.Appendf(nil, "k%d", i%3), Value: fmt.Append(nil, i)})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.kafka.Cluster.Compact()
	m := w.start("a")
	w.awaitCommitted(40)
	if n, times := m.handler.count(0); n == 40 || n != times || n < 3 {
		t.Errorf("%d records handed out %d times, want what compaction left, once", n, times)
	}
	w.produce(0, 2)
	w.awaitCommitted(42)
}

func TestWhatARecordCarriesArrivesAsItWasWritten(t *testing.T) {
	whatARecordCarriesArrivesAsItWasWritten(t, oneTopic)
}

func whatARecordCarriesArrivesAsItWasWritten(t *testing.T, where place) {
	w := where(t, 1)
	at := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	sent := []interaction.Record{
		{Time: at, Key: []byte("k"), Value: []byte("v"), Headers: []interaction.Header{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}}},
		{Time: at, Value: []byte{}},
		{Time: at, Key: []byte("gone")}, // a tombstone
	}
	if err := w.producer.Produce(t.Context(), topic, sent...); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []interaction.Record
	w.start("a", option{handler: func(h *handler) {
		h.handle = func(_ context.Context, p *handled, d Delivery) {
			mu.Lock()
			defer mu.Unlock()
			r := d.Record
			r.Value, r.Key, r.Headers = bytes.Clone(r.Value), bytes.Clone(r.Key), slices.Clone(r.Headers)
			for i := range r.Headers {
				r.Headers[i].Value = bytes.Clone(r.Headers[i].Value)
			}
			got = append(got, r)
			p.resolve(d, NotNeeded)
		}
	}})
	w.awaitCommitted(3)
	mu.Lock()
	defer mu.Unlock()
	for i, r := range got {
		s := sent[i]
		if r.Topic != topic || r.Offset != int64(i) || !r.Time.Equal(at) || string(r.Key) != string(s.Key) || string(r.Value) != string(s.Value) {
			t.Errorf("record %d: %+v, sent %+v", i, r, s)
		}
		if (r.Value == nil) != (s.Value == nil) || (r.Key == nil) != (s.Key == nil) {
			t.Errorf("record %d: null and empty are mixed up: %v %v", i, r.Key, r.Value)
		}
	}
	if v, ok := got[0].Header("a"); !ok || string(v) != "2" || len(got[0].Headers) != 2 {
		t.Errorf("headers %v", got[0].Headers)
	}
}

// The bytes of a record that stays open are not overwritten by the next fetches.
func TestAnOpenRecordKeepsItsBytes(t *testing.T) {
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.ZstdCompression()} {
		w := oneTopic(t, 1)
		p, err := demo.NewProducer(w.brokers, kgo.ProducerBatchCompression(codec))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 300) }
		var mu sync.Mutex
		open := map[int64]Delivery{}
		m := w.start("a", option{handler: func(h *handler) {
			h.handle = func(_ context.Context, p *handled, d Delivery) {
				if d.Record.Offset%10 != 0 {
					p.resolve(d, NotNeeded)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				d.Release()
				open[d.Record.Offset] = d
			}
		}})
		const n = 100
		for i := range n {
			if err := p.Produce(t.Context(), topic, interaction.Record{Value: value(i)}); err != nil {
				t.Fatal(err)
			}
		}
		m.awaitMetric(n-n/10, "assay_consumer_resolved_total", "outcome", "not_needed")
		mu.Lock()
		for o, d := range open {
			if !bytes.Equal(d.Record.Value, value(int(o))) {
				t.Errorf("offset %d holds the bytes of another record", o)
			}
			d.Resolve(Durable)
		}
		mu.Unlock()
		w.awaitCommitted(n)
		m.stop()
	}
}

func TestADamagedBatchIsNotPassed(t *testing.T) {
	w := oneTopic(t, 1)
	w.produce(0, 10)
	var damage atomic.Bool
	damage.Store(true)
	good := edit(encode(t, 0, wire{value: []byte("x")}), setBase(10))
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	w.kafka.Cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.Cluster.KeepControl()
		req := r.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].FetchOffset != 10 || !damage.Load() {
			return nil, nil, false
		}
		res := req.ResponseKind().(*kmsg.FetchResponse)
		ft := kmsg.NewFetchResponseTopic()
		ft.Topic = topic
		fp := kmsg.NewFetchResponseTopicPartition()
		fp.HighWatermark, fp.LastStableOffset, fp.RecordBatches = 11, 11, bad
		ft.Partitions = append(ft.Partitions, fp)
		res.Topics = append(res.Topics, ft)
		return res, nil, true
	})
	m := w.start("a", option{consumer: func(c *Consumer) { c.corruptRetry = 50 * time.Millisecond }})
	m.awaitMetric(1, "assay_consumer_partition_state", "state", "stopped")
	w.produce(0, 5)
	w.awaitCommitted(10)
	damage.Store(false) // another replica leads
	w.awaitCommitted(15)
	if n, times := m.handler.count(0); n != 15 || times != 15 {
		t.Errorf("%d records, %d times", n, times)
	}
}
