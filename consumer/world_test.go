package consumer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/sethvargo/go-envconfig"

	"assay/internal/demo"
	"assay/internal/interaction"
)

// world is a Kafka with a topic and a way to write to it.
type world struct {
	tb       testing.TB
	brokers  []string
	kafka    *demo.Kafka // the in-process one; nil on a real broker
	producer *demo.Producer
}

// A place makes worlds with one topic of so many partitions, or with none: behaviours
// that hold on every Kafka are tested in more than one place.
type place func(tb testing.TB, partitions int) *world

const topic = "calls"

func newWorld(tb testing.TB, o demo.KafkaOptions) *world {
	tb.Helper()
	k, err := demo.StartKafka(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(k.Close)
	w := &world{tb: tb, brokers: k.Addrs(), kafka: k}
	w.freshProducer()
	return w
}

// freshProducer forgets what the producer knows about topics.
func (w *world) freshProducer() {
	w.tb.Helper()
	p, err := demo.NewProducer(w.brokers)
	if err != nil {
		w.tb.Fatal(err)
	}
	w.tb.Cleanup(p.Close)
	w.producer = p
}

// oneTopic is the in-process place.
func oneTopic(tb testing.TB, partitions int) *world {
	tb.Helper()
	if partitions == 0 {
		return newWorld(tb, demo.KafkaOptions{})
	}
	return newWorld(tb, demo.KafkaOptions{Partitions: partitions, Topics: []string{topic}})
}

// produce writes n records to a partition, one batch each call.
func (w *world) produce(partition, n int) {
	w.tb.Helper()
	w.produceOf(partition, n, 100)
}

func (w *world) produceOf(partition, n, size int) {
	w.tb.Helper()
	records := make([]interaction.Record, n)
	for i := range records {
		records[i] = interaction.Record{Partition: partition, Key: fmt.Appendf(nil, "k%d", i), Value: make([]byte, size)}
	}
	if err := w.producer.Produce(w.tb.Context(), topic, records...); err != nil {
		w.tb.Fatal(err)
	}
}

// settings are the defaults with timings that suit a test.
func settings(tb testing.TB, w *world) (KafkaConfig, Config) {
	tb.Helper()
	var k KafkaConfig
	var c Config
	load := &envconfig.Config{Target: &k, Lookuper: envconfig.MapLookuper(nil)}
	if err := envconfig.ProcessWith(tb.Context(), load); err != nil {
		tb.Fatal(err)
	}
	load = &envconfig.Config{Target: &c, Lookuper: envconfig.MapLookuper(nil)}
	if err := envconfig.ProcessWith(tb.Context(), load); err != nil {
		tb.Fatal(err)
	}
	k.Brokers = w.brokers
	k.Start = startEarliest
	k.Heartbeat = 50 * time.Millisecond
	k.SessionTimeout = 10 * time.Second
	k.Timeout = 3 * time.Second
	k.MaxWait = 50 * time.Millisecond
	c.CommitEvery = 20 * time.Millisecond
	c.DrainJudge = 2 * time.Second
	c.DrainFlush = time.Second
	return k, c
}

// member is one running consumer.
type member struct {
	tb       testing.TB
	name     string
	consumer *Consumer
	handler  *handler
	reg      *prometheus.Registry
	cancel   context.CancelFunc
	done     chan struct{}
	err      error
}

// option changes a member before it starts.
type option struct {
	kafka    func(*KafkaConfig)
	config   func(*Config)
	handler  func(*handler)
	consumer func(*Consumer)
	deps     func(*Deps)
}

func (w *world) start(name string, opts ...option) *member {
	w.tb.Helper()
	k, c := settings(w.tb, w)
	h := newHandler()
	reg := prometheus.NewRegistry()
	out := io.Discard
	if os.Getenv("CONSUMER_LOG") != "" {
		out = os.Stderr
	}
	deps := Deps{Topics: []string{topic}, Handler: h, Reg: reg,
		Log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})).With("member", name)}
	for _, o := range opts {
		if o.kafka != nil {
			o.kafka(&k)
		}
		if o.config != nil {
			o.config(&c)
		}
		if o.handler != nil {
			o.handler(h)
		}
		if o.deps != nil {
			o.deps(&deps)
		}
	}
	con, err := New(k, c, DeadLetterConfig{MaxRatio: .2}, deps)
	if err != nil {
		w.tb.Fatal(err)
	}
	con.endsEvery, con.lookEvery, con.watchEvery = 50*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond
	for _, o := range opts {
		if o.consumer != nil {
			o.consumer(con)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{tb: w.tb, name: name, consumer: con, handler: h, reg: reg, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		m.err = con.Run(ctx)
	}()
	w.tb.Cleanup(m.stop)
	return m
}

// stop ends the member as SIGTERM does and waits for it.
func (m *member) stop() {
	m.tb.Helper()
	m.cancel()
	select {
	case <-m.done:
	case <-time.After(30 * time.Second):
		m.tb.Errorf("member %s did not end\n%s", m.name, stacks())
	}
}

// handler is a pipeline that a test scripts.
type handler struct {
	// handle runs for every record; by default it resolves at once.
	handle func(ctx context.Context, p *handled, d Delivery)
	assign func(ctx context.Context, a Assignment) (int64, error)
	drain  func(ctx context.Context, p *handled) error
	flush  func(p *handled, watermark int64) error
	// caughtUp runs whenever the partition was read to its end.
	caughtUp func(p *handled, now time.Time)

	mu    sync.Mutex
	parts []*handled
	seen  map[topicPartition]map[int64]int // how often an offset was resolved
	below map[int64]int
}

// handled is one assignment of it.
type handled struct {
	h *handler
	a Assignment

	mu      sync.Mutex
	offsets []int64
	flushed []int64
	closed  bool
}

func newHandler() *handler {
	return &handler{seen: make(map[topicPartition]map[int64]int), below: make(map[int64]int)}
}

func (h *handler) Assign(ctx context.Context, a Assignment) (Partition, int64, error) {
	start := a.Committed
	if h.assign != nil {
		from, err := h.assign(ctx, a)
		if err != nil {
			return nil, 0, err
		}
		start = from
	}
	p := &handled{h: h, a: a}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = append(h.parts, p)
	return p, start, nil
}

func (p *handled) Handle(ctx context.Context, d Delivery) {
	p.mu.Lock()
	p.offsets = append(p.offsets, d.Record.Offset)
	p.mu.Unlock()
	if d.Below {
		p.h.mu.Lock()
		p.h.below[d.Record.Offset]++
		p.h.mu.Unlock()
		return
	}
	if p.h.handle != nil {
		p.h.handle(ctx, p, d)
		return
	}
	p.resolve(d, NotNeeded)
}

// resolve notes and resolves.
func (p *handled) resolve(d Delivery, o Outcome) {
	tp := topicPartition{p.a.Topic, p.a.Partition}
	p.h.mu.Lock()
	if p.h.seen[tp] == nil {
		p.h.seen[tp] = make(map[int64]int)
	}
	p.h.seen[tp][d.Record.Offset]++
	p.h.mu.Unlock()
	d.Resolve(o)
}

func (p *handled) CaughtUp(now time.Time) {
	if p.h.caughtUp != nil {
		p.h.caughtUp(p, now)
	}
}

func (p *handled) Flush(_ context.Context, watermark int64) error {
	if p.h.flush != nil {
		if err := p.h.flush(p, watermark); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushed = append(p.flushed, watermark)
	return nil
}

func (p *handled) Drain(ctx context.Context) error {
	if p.h.drain != nil {
		return p.h.drain(ctx, p)
	}
	return nil
}

func (p *handled) FlushRows(context.Context) error { return nil }

func (p *handled) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// assignments returns what was assigned so far.
func (h *handler) assignments() []*handled {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.parts)
}

// count returns how many offsets of a partition were resolved, and how often in all.
func (h *handler) count(partition int) (distinct, times int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.seen[topicPartition{topic, partition}] {
		distinct++
		times += n
	}
	return distinct, times
}

// resolvedOffsets returns a partition's resolved offsets, ascending.
func (h *handler) resolvedOffsets(partition int) []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.seen[topicPartition{topic, partition}]))
}

// committed asks the broker.
func (w *world) committed(n int) []int64 {
	w.tb.Helper()
	k, _ := settings(w.tb, w)
	c, err := newCluster(k, []string{topic})
	if err != nil {
		w.tb.Fatal(err)
	}
	defer c.close()
	out, err := c.committed(w.tb.Context(), topic, n)
	if err != nil {
		return nil // the coordinator moves: ask again
	}
	return out
}

func (w *world) awaitCommitted(want ...int64) {
	w.tb.Helper()
	var got []int64
	eventually(w.tb, func() string { return fmt.Sprintf("committed %v, want %v", got, want) }, func() bool {
		got = w.committed(len(want))
		return slices.Equal(got, want)
	})
}

// eventually polls a condition that real I/O brings about; the bound is against
// hanging only.
func eventually(tb testing.TB, say func() string, ok func() bool) {
	tb.Helper()
	end := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(end) {
			tb.Fatal(say())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// metric returns the value of one series, and whether there is one.
func (m *member) metric(name string, labels ...string) (float64, bool) {
	m.tb.Helper()
	families, err := m.reg.Gather()
	if err != nil {
		m.tb.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.GetMetric() {
			if hasLabels(s, labels) {
				switch {
				case s.Counter != nil:
					return s.Counter.GetValue(), true
				case s.Histogram != nil:
					return float64(s.Histogram.GetSampleCount()), true
				default:
					return s.Gauge.GetValue(), true
				}
			}
		}
	}
	return 0, false
}

func hasLabels(s *dto.Metric, want []string) bool {
	for i := 0; i < len(want); i += 2 {
		ok := slices.ContainsFunc(s.Label, func(l *dto.LabelPair) bool {
			return l.GetName() == want[i] && l.GetValue() == want[i+1]
		})
		if !ok {
			return false
		}
	}
	return true
}

func (m *member) awaitMetric(want float64, name string, labels ...string) {
	m.tb.Helper()
	var got float64
	eventually(m.tb, func() string { return fmt.Sprintf("%s%v is %v, want %v", name, labels, got, want) }, func() bool {
		var ok bool
		got, ok = m.metric(name, labels...)
		return ok && got == want
	})
}
