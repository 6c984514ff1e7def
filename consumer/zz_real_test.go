package consumer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sethvargo/go-envconfig"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"assay/internal/demo"
	"assay/internal/interaction"
)

var addrs = []string{"127.0.0.1:29192"}

type real struct {
	t     *testing.T
	topic string
	group string
}

func (r *real) request(req kmsg.Request) kmsg.Response {
	c, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil { r.t.Fatal(err) }
	defer c.Close()
	res, err := c.Request(r.t.Context(), req)
	if err != nil { r.t.Fatal(err) }
	return res
}

func (r *real) create(n int, cfg map[string]string) {
	req := kmsg.NewPtrCreateTopicsRequest()
	tp := kmsg.NewCreateTopicsRequestTopic()
	tp.Topic, tp.NumPartitions, tp.ReplicationFactor = r.topic, int32(n), 1
	for k, v := range cfg {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = k, &v
		tp.Configs = append(tp.Configs, c)
	}
	req.Topics = append(req.Topics, tp)
	res := r.request(req).(*kmsg.CreateTopicsResponse)
	if err := kerr.ErrorForCode(res.Topics[0].ErrorCode); err != nil { r.t.Fatal(err) }
}

func (r *real) produce(part, n, size int, opts ...kgo.Opt) {
	p, err := demo.NewProducer(addrs, opts...)
	if err != nil { r.t.Fatal(err) }
	defer p.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	for n > 0 {
		k := min(n, 5000)
		recs := make([]interaction.Record, k)
		for i := range recs {
			v := make([]byte, size)
			for j := 0; j < size; j += 2 { v[j] = byte(rng.Uint32()) }
			recs[i] = interaction.Record{Partition: part, Key: fmt.Appendf(nil, "k%d", i%7), Value: v, Headers: []interaction.Header{{Key: "h", Value: []byte("v")}}}
		}
		if err := p.Produce(r.t.Context(), r.topic, recs...); err != nil { r.t.Fatal(err) }
		n -= k
	}
}

func (r *real) cfg() (KafkaConfig, Config) {
	var k KafkaConfig
	var c Config
	_ = envconfig.ProcessWith(r.t.Context(), &envconfig.Config{Target: &k, Lookuper: envconfig.MapLookuper(nil)})
	_ = envconfig.ProcessWith(r.t.Context(), &envconfig.Config{Target: &c, Lookuper: envconfig.MapLookuper(nil)})
	k.Brokers, k.Group, k.Start, k.Heartbeat = addrs, r.group, startEarliest, 300*time.Millisecond
	c.CommitEvery = 200 * time.Millisecond
	return k, c
}

func (r *real) start(h Handler, change func(*KafkaConfig)) (*Consumer, *prometheus.Registry, func()) {
	k, c := r.cfg()
	if change != nil { change(&k) }
	reg := prometheus.NewRegistry()
	var out io.Writer = io.Discard
	if os.Getenv("CONSUMER_LOG") != "" { out = os.Stderr }
	con, err := New(k, c, DeadLetterConfig{.2}, Deps{Topics: []string{r.topic}, Handler: h, Reg: reg, Log: slog.New(slog.NewTextHandler(out, nil))})
	if err != nil { r.t.Fatal(err) }
	con.watchEvery, con.endsEvery = time.Second, time.Second
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); if err := con.Run(ctx); err != nil { r.t.Error(err) } }()
	stop := func() { cancel(); <-done }
	r.t.Cleanup(stop)
	return con, reg, stop
}

func (r *real) await(want ...int64) {
	r.t.Helper()
	k, _ := r.cfg()
	c, err := newCluster(k, []string{r.topic})
	if err != nil { r.t.Fatal(err) }
	defer c.close()
	var got []int64
	end := time.Now().Add(40 * time.Second)
	for time.Now().Before(end) {
		got, err = c.committed(r.t.Context(), r.topic, len(want))
		if slices.Equal(got, want) { return }
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("committed %v (%v), want %v", got, err, want)
}

func newReal(t *testing.T, name string) *real {
	s := fmt.Sprintf("%s-%d", name, time.Now().UnixNano())
	return &real{t, s, "g-" + s}
}

func (r *real) count(h *handler, p int) (int, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, n := 0, 0
	for _, c := range h.seen[topicPartition{r.topic, p}] { d++; n += c }
	return d, n
}

func TestRealPlain(t *testing.T) {
	r := newReal(t, "plain")
	r.create(3, nil)
	h, h2 := newHandler(), newHandler()
	later(h); later(h2)
	_, _, _ = r.start(h, nil)
	time.Sleep(500 * time.Millisecond)
	_, _, stop2 := r.start(h2, nil)
	for i, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		for p := range 3 { r.produce(p, 2000, 500, kgo.ProducerBatchCompression(codec)) }
		if i == 3 { stop2() }
	}
	r.await(10000, 10000, 10000)
	for p := range 3 {
		d1, n1 := r.count(h, p)
		d2, n2 := r.count(h2, p)
		t.Log("partition", p, "distinct", d1, d2, "times", n1, n2)
		union := map[int64]bool{}
		for _, hh := range []*handler{h, h2} { for o := range hh.seen[topicPartition{r.topic, p}] { union[o] = true } }
		if len(union) != 10000 { t.Errorf("%d of 10000", len(union)) }
	}
}

func TestRealTx(t *testing.T) {
	r := newReal(t, "tx")
	r.create(1, nil)
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.TransactionalID(r.topic), kgo.DefaultProduceTopic(r.topic))
	if err != nil { t.Fatal(err) }
	defer client.Close()
	var want []int64
	for i := range 16 {
		_ = client.BeginTransaction()
		res := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte("a")}, &kgo.Record{Value: []byte("b")})
		if err := res.FirstErr(); err != nil { t.Fatal(err) }
		if err := client.EndTransaction(t.Context(), kgo.TransactionEndTry(i%2 == 0)); err != nil { t.Fatal(err) }
		if i%2 == 0 { want = append(want, res[0].Record.Offset, res[1].Record.Offset) }
	}
	h := newHandler()
	r.start(h, func(k *KafkaConfig) { k.MaxBytes = 1 << 10 })
	r.await(48)
	var got []int64
	for o := range h.seen[topicPartition{r.topic, 0}] { got = append(got, o) }
	slices.Sort(got)
	if !slices.Equal(got, want) { t.Errorf("got %v want %v", got, want) }
	t.Log("transactions exact:", len(got))
}

func TestRealCompacted(t *testing.T) {
	r := newReal(t, "compact")
	r.create(1, map[string]string{"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "1048576", "delete.retention.ms": "100"})
	for range 6 { r.produce(0, 500, 100); time.Sleep(700 * time.Millisecond) }
	time.Sleep(8 * time.Second)
	h := newHandler()
	r.start(h, nil)
	r.await(3000)
	d, n := r.count(h, 0)
	t.Log("compacted: handed out", d, n)
	if d == 3000 || d != n { t.Error("nothing compacted, or doubled") }
}

func TestRealLatestAndRecreate(t *testing.T) {
	r := newReal(t, "latest")
	r.create(4, nil)
	for p := range 4 { r.produce(p, 10, 50) }
	h, h2 := newHandler(), newHandler()
	latest := func(k *KafkaConfig) { k.Start = startLatest }
	r.start(h, latest)
	_, _, stop2 := r.start(h2, latest)
	r.await(10, 10, 10, 10)
	r.produce(2, 5, 50)
	r.await(10, 10, 15, 10)
	stop2()
	req := kmsg.NewPtrDeleteRecordsRequest()
	tp := kmsg.NewDeleteRecordsRequestTopic()
	tp.Topic = r.topic
	pp := kmsg.NewDeleteRecordsRequestTopicPartition()
	pp.Partition, pp.Offset = 2, 12
	tp.Partitions = append(tp.Partitions, pp)
	req.Topics = append(req.Topics, tp)
	res := r.request(req).(*kmsg.DeleteRecordsResponse)
	if err := kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode); err != nil { t.Fatal(err) }
	total := 0
	for p := range 4 { a, _ := r.count(h, p); b, _ := r.count(h2, p); total += a + b }
	if total != 5 { t.Errorf("%d records read, want the 5 new ones", total) }
}

func TestRealSpeed(t *testing.T) {
	r := newReal(t, "speed")
	r.create(1, nil)
	const n = 300_000
	r.produce(0, n, 2048, kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range 2 {
		r.group += "x"
		h := &direct{}
		cpu := func() time.Duration { var u syscall.Rusage; _ = syscall.Getrusage(0, &u); return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
		_, _, stop := r.start(h, nil)
		for h.count.Load() == 0 { time.Sleep(time.Millisecond) }
		began, c0 := time.Now(), cpu()
		for h.count.Load() < n { time.Sleep(time.Millisecond) }
		took, used := time.Since(began), cpu()-c0
		t.Logf("real broker: %d records of 2 KB in %s: %.0f/s, %.2f us CPU each", n, took, n/took.Seconds(), float64(used.Microseconds())/n)
		stop()
	}
}

func TestRealKill(t *testing.T) {
	r := newReal(t, "kill")
	r.create(3, nil)
	h := newHandler()
	later(h)
	con, _, _ := r.start(h, nil)
	_ = con
	p, err := demo.NewProducer(addrs)
	if err != nil { t.Fatal(err) }
	defer p.Close()
	done := make(chan int)
	go func() {
		n := 0
		end := time.Now().Add(15 * time.Second)
		for time.Now().Before(end) {
			recs := make([]interaction.Record, 30)
			for i := range recs { recs[i] = interaction.Record{Partition: i % 3, Value: []byte("x")} }
			if err := p.Produce(context.Background(), r.topic, recs...); err != nil { t.Log("produce", err); continue }
			n += 10
			time.Sleep(10 * time.Millisecond)
		}
		done <- n
	}()
	time.Sleep(4 * time.Second)
	os.WriteFile("/tmp/consumer/kafka/killme", nil, 0o644)
	n := int64(<-done)
	r.await(n, n, n)
	for q := range 3 {
		d, c := r.count(h, q)
		t.Log("partition", q, "produced", n, "distinct", d, "times", c)
		if int64(d) != n { t.Error("lost") }
	}
}

func TestRealRecreate(t *testing.T) {
	r := newReal(t, "recreate")
	r.create(1, nil)
	r.produce(0, 100, 50)
	h := newHandler()
	con, _, _ := r.start(h, nil)
	r.await(100)
	del := kmsg.NewPtrDeleteTopicsRequest()
	tp := kmsg.NewDeleteTopicsRequestTopic()
	tp.Topic = &r.topic
	del.Topics = append(del.Topics, tp)
	del.TopicNames = []string{r.topic}
	r.request(del)
	time.Sleep(time.Second)
	r.create(1, nil)
	r.produce(0, 3, 50)
	end := time.Now().Add(20 * time.Second)
	for time.Now().Before(end) {
		for _, p := range con.series.list() {
			if p.state() == stateStopped { t.Log("stopped"); return }
		}
		time.Sleep(50 * time.Millisecond)
	}
	d, n := r.count(h, 0)
	t.Error("never stopped; handed out", d, n)
}
