package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/sethvargo/go-envconfig"

	"assay/consumer"
	"assay/internal/demo"
	"assay/internal/interaction"
)

// A call as each family that writes halves logs it: how it begins, how it ends, and the
// id that it has then.
type halves func(n int) (begin, end, id string)

func langfuseHalves(n int) (begin, end, id string) {
	id = fmt.Sprint("generation-", n)
	return events(begun(id)), events(ended(id)), id
}

func langsmithHalves(n int) (begin, end, id string) {
	id = fmt.Sprint("run-", n)
	return fmt.Sprintf(`{"post":[{"id":%q,"run_type":"llm","inputs":{"messages":[[{"type":"human","content":"Where is it?"}]]}}],"patch":[]}`, id),
		fmt.Sprintf(`{"post":[],"patch":[{"id":%q,"outputs":{"generations":[[{"text":"In Lyon."}]]}}]}`, id), id
}

func azureHalves(n int) (begin, end, id string) {
	id = fmt.Sprint("correlation-", n)
	row := func(sequence int, key, messages string) string {
		return fmt.Sprintf(`{"records":[{"category":"GatewayLlmLogs","properties":{"CorrelationId":%q,"SequenceNumber":%d,%q:%q}}]}`, id, sequence, key, messages)
	}
	return row(0, "RequestMessages", `[{"role":"user","content":"Where is it?"}]`), row(1, "ResponseMessages", `[{"role":"assistant","content":"In Lyon."}]`), id
}

func eventHalves(n int) (begin, end, id string) {
	const trace = "000102030405060708090a0b0c0d0e0f"
	span := fmt.Sprintf("%016x", n+1)
	event := func(name, body string) string {
		return fmt.Sprintf(`{"resourceLogs":[{"resource":{"attributes":[]},"scopeLogs":[{"logRecords":[{"timeUnixNano":"1777888800000000000","eventName":%q,`+
			`"traceId":%q,"spanId":%q,"body":{"stringValue":%q}}]}]}]}`, name, trace, span, body)
	}
	return event("gen_ai.user.message", `{"content":"Where is it?"}`),
		event("gen_ai.choice", `{"index":0,"finish_reason":"stop","message":{"content":"In Lyon."}}`), trace + "/" + span
}

// settling makes rows durable as they come, as the sink's writer does.
func (w *world) settling(ctx context.Context) {
	for ctx.Err() == nil {
		if !w.store.step(nil) {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// worker is a process with a real consumer.
func (w *world) worker(brokers []string, change func(*consumer.Config)) (stop func()) {
	w.t.Helper()
	var k consumer.KafkaConfig
	var c consumer.Config
	for _, target := range []any{&k, &c} {
		if err := envconfig.ProcessWith(w.t.Context(), &envconfig.Config{Target: target, Lookuper: envconfig.MapLookuper(nil)}); err != nil {
			w.t.Fatal(err)
		}
	}
	k.Brokers, k.Start = brokers, "earliest"
	k.Heartbeat, k.SessionTimeout, k.Timeout, k.MaxWait = 100*time.Millisecond, 20*time.Second, 10*time.Second, 50*time.Millisecond
	c.CommitEvery = 20 * time.Millisecond
	if change != nil {
		change(&c)
	}
	p := w.pipeline(w.file)
	worker, err := consumer.New(k, c, consumer.DeadLetterConfig{MaxRatio: .2}, consumer.Deps{Topics: []string{topic}, Handler: p,
		Reg: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(w.log, nil))})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.t.Errorf("worker: %v", err)
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

// committed sums what the group has committed over all partitions.
func committed(t *testing.T, brokers []string, partitions int) (sum int64) {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second, Transport: transport}
	ids := make([]int, partitions)
	for i := range ids {
		ids[i] = i
	}
	res, err := client.OffsetFetch(t.Context(), &kafka.OffsetFetchRequest{GroupID: "assay", Topics: map[string][]int{topic: ids}})
	if err != nil {
		return -1 // the coordinator moves: ask again
	}
	for _, p := range res.Topics[topic] {
		sum += max(p.CommittedOffset, 0)
	}
	return sum
}

func awaitCommitted(t *testing.T, brokers []string, partitions int, want int64, log *lines) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); committed(t, brokers, partitions) != want; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("committed %d, want %d\n%s", committed(t, brokers, partitions), want, log)
		}
	}
}

const kafkaJoinRules = `
version: 1
sources: [{ topic: assistant.log, join_wait: 2s }]
judges: { a: { kind: simulated } }
checks:
  - { name: polite, evaluator: closed_qa, criteria: { text: "Greets." }, judge: a, sample: { rate: 1 } }
`

// Every family's halves through a broker, a window much smaller than the number of calls
// that are open at once, and workers that come and go between the halves: each call is
// judged once, under its id, and counted once; the end of the log is committed although
// some calls never end.
func TestHalvesOfEveryFamilyAreJoinedWhileWorkersComeAndGo(t *testing.T) {
	const partitions, calls, openAtOnce = 2, 400, 60
	k, err := demo.StartKafka(demo.KafkaOptions{Partitions: partitions, Topics: []string{topic}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	producer, err := demo.NewProducer(k.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	w := newWorld(t, kafkaJoinRules)
	ctx, cancel := context.WithCancel(t.Context())
	var settling sync.WaitGroup
	settling.Go(func() { w.settling(ctx) })
	t.Cleanup(func() { cancel(); settling.Wait() })

	families := []halves{langfuseHalves, langsmithHalves, azureHalves, eventHalves}
	var want []string
	var produced int64
	at := time.Now().Add(-time.Hour)
	// Calls begin in turn, and each ends when so many others have begun. One in 40 never
	// ends.
	produce := func(from, to int) {
		for n := from; n < to; n++ {
			at = at.Add(5 * time.Millisecond)
			var batch []interaction.Record
			add := func(n int, value string) {
				batch = append(batch, interaction.Record{Partition: n / len(families) % partitions, Time: at, Value: []byte(value)})
			}
			if n < calls {
				begin, _, id := families[n%len(families)](n)
				add(n, begin)
				if n%40 != 7 {
					want = append(want, id)
				}
			}
			if m := n - openAtOnce; m >= 0 && m%40 != 7 {
				_, end, _ := families[m%len(families)](m)
				add(m, end)
			}
			if err := producer.Produce(t.Context(), topic, batch...); err != nil {
				t.Fatal(err)
			}
			produced += int64(len(batch))
		}
	}
	small := func(c *consumer.Config) { c.Window = 8 }
	first := w.worker(k.Addrs(), small)
	produce(0, 130)
	second := w.worker(k.Addrs(), small)
	produce(130, 260)
	first()
	produce(260, calls+openAtOnce)
	w.worker(k.Addrs(), small)
	second()
	// what never ends is let go of by the clock, and given up when the log moves on
	awaitCommitted(t, k.Addrs(), partitions, produced, w.log)
	at = at.Add(time.Minute)
	for p := range partitions {
		if err := producer.Produce(t.Context(), topic, interaction.Record{Partition: p, Time: at, Value: []byte(`{"id":"last","input":"q","output":"a"}`)}); err != nil {
			t.Fatal(err)
		}
		produced++
	}
	awaitCommitted(t, k.Addrs(), partitions, produced, w.log)

	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	got := make(map[string]int)
	for key := range w.store.evaluations {
		got[key.id]++
	}
	for _, id := range want {
		if got[id] != 1 {
			t.Errorf("%s: %d judgements, want 1", id, got[id])
		}
	}
	if len(got) != len(want)+1 {
		t.Errorf("%d calls judged, want %d and the last record's", len(got), len(want))
	}
	counts := make(map[string]uint64)
	for _, r := range w.store.population {
		counts[strings.TrimSpace(r.Check+" "+r.Decision)] += r.N
		if r.Check != "" && r.Decision == "not_applicable" && r.Reason != "incomplete" {
			t.Errorf("not applicable: %s", r.Reason)
		}
	}
	if n := uint64(calls + partitions); counts["interaction"] != n || counts["polite selected"] != uint64(len(want)+partitions) ||
		counts["polite not_applicable"] != uint64(calls-len(want)) {
		t.Errorf("the ledger says %v; want %d interactions, %d of them judged", counts, n, len(want)+partitions)
	}
}
