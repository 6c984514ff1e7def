// Command passthrough measures what it costs to read, decode, decide and count records
// that are all sampled out, beside a bare kafka-go Reader on the same topic in the same
// run. Machines differ and are shared: quote the ratio.
//
//	go run ./bench/passthrough -records 200000 -partitions 4
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"assay/consumer"
	"assay/internal/checks"
	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/internal/pipeline"
	"assay/sink"
)

const topic = "passthrough"

func main() {
	records := flag.Int("records", 200_000, "records in the topic")
	partitions := flag.Int("partitions", 4, "partitions of the topic")
	rounds := flag.Int("rounds", 3, "times that both are measured, in turn")
	flag.Parse()
	if err := run(context.Background(), *records, *partitions, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "passthrough:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, records, partitions, rounds int) error {
	k, err := demo.StartKafka(demo.KafkaOptions{Partitions: partitions, Topics: []string{topic}})
	if err != nil {
		return err
	}
	defer k.Close()
	if err := fill(ctx, k, records, partitions); err != nil {
		return err
	}
	fmt.Printf("%d records of %d bytes, %d partitions, in-process Kafka (its work is in every figure)\n", records, len(chatLog(0)), partitions)
	for round := range rounds {
		bare, err := measure(func() error { return readBare(ctx, k, records, partitions) })
		if err != nil {
			return err
		}
		ours, err := measure(func() error { return readOurs(ctx, k, records, fmt.Sprint("g", round)) })
		if err != nil {
			return err
		}
		fmt.Printf("bare Reader %7.0f/s %5.2f us CPU   assay at rate 0 %7.0f/s %5.2f us CPU   ratio %.2f\n",
			bare.rate(records), bare.cpu(records), ours.rate(records), ours.cpu(records), ours.rate(records)/bare.rate(records))
	}
	return nil
}

// chatLog is a logged OpenAI chat call of about 2 kB.
func chatLog(i int) []byte {
	return fmt.Appendf(nil, `{"id":"c-%d","request":{"model":"m-1","messages":[{"role":"system","content":"You help customers of a shop."},{"role":"user","content":%q}]},`+
		`"response":{"object":"chat.completion","created":1780000000,"model":"m-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],`+
		`"usage":{"prompt_tokens":310,"completion_tokens":120}},"metadata":{"app":"support","reference":"30 days"}}`,
		i, strings.Repeat("Can I still send back the kettle that I bought? ", 14), strings.Repeat("You can return it within 30 days of delivery. ", 18))
}

func fill(ctx context.Context, k *demo.Kafka, records, partitions int) error {
	p, err := demo.NewProducer(k.Addrs())
	if err != nil {
		return err
	}
	defer p.Close()
	now := time.Now().UTC()
	for at := 0; at < records; at += 2000 {
		batch := make([]interaction.Record, 0, 2000)
		for i := at; i < min(at+2000, records); i++ {
			batch = append(batch, interaction.Record{Partition: i % partitions, Time: now, Value: chatLog(i)})
		}
		if err := p.Produce(ctx, topic, batch...); err != nil {
			return err
		}
	}
	return nil
}

// cost is what a run took.
type cost struct{ wall, user time.Duration }

func (c cost) rate(n int) float64 { return float64(n) / c.wall.Seconds() }
func (c cost) cpu(n int) float64  { return float64(c.user.Microseconds()) / float64(n) }

func measure(work func() error) (cost, error) {
	before, start := cpuTime(), time.Now()
	err := work()
	return cost{time.Since(start), cpuTime() - before}, err
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readBare reads every partition with a Reader and does nothing else.
func readBare(ctx context.Context, k *demo.Kafka, records, partitions int) error {
	var read atomic.Int64
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, partitions)
	for p := range partitions {
		go func() {
			r := kafka.NewReader(kafka.ReaderConfig{Brokers: k.Addrs(), Topic: topic, Partition: p, MinBytes: 1, MaxBytes: 8 << 20, MaxWait: 100 * time.Millisecond})
			defer r.Close()
			for {
				if _, err := r.ReadMessage(ctx); err != nil {
					done <- nil // cancelled: all is read
					return
				}
				if read.Add(1) == int64(records) {
					cancel()
				}
			}
		}()
	}
	for range partitions {
		if err := <-done; err != nil {
			return err
		}
	}
	return nil
}

// readOurs reads the topic as a worker does, with a check whose rate is 0.
func readOurs(ctx context.Context, k *demo.Kafka, records int, group string) error {
	file, err := checks.Parse("bench.yaml", []byte(`
version: 1
dimensions: [app]
sources: [{ topic: `+topic+`, fields: { app: metadata.app, expected: metadata.reference } }]
judges: { small: { kind: embedded } }
checks:
  - { name: facts, evaluator: factuality, coarse: true, reference: { field: expected }, judge: small, sample: { rate: 0 } }
`))
	if err != nil {
		return err
	}
	sources := []decode.Source{{Topic: topic, Fields: file.Sources[0].Fields}}
	decoder, err := decode.New(decode.Defaults(), sources)
	if err != nil {
		return err
	}
	reg, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &counted{want: uint64(records), done: cancel, cells: make(map[string]uint64)}
	handler, err := pipeline.New(pipeline.Config{Deadline: time.Second, Worker: "bench"}, pipeline.Deps{
		Checks: file, Decoder: decoder, Sources: sources, Judges: map[string]pipeline.Judge{"small": {}},
		Rows: store, Recovery: store, Now: time.Now, Log: log, Reg: reg,
	})
	if err != nil {
		return err
	}
	c, err := consumer.New(consumer.KafkaConfig{
		Brokers: k.Addrs(), Group: group, Start: "earliest", OnBeyondEnd: "fail", Isolation: "read_committed",
		SessionTimeout: 20 * time.Second, RebalanceTimeout: time.Minute, Heartbeat: 2 * time.Second, Timeout: 10 * time.Second,
		MaxWait: 100 * time.Millisecond, MinBytes: 1, MaxBytes: 8 << 20,
	}, consumer.Config{
		Window: 1024, WindowBytes: 32 << 20, Total: 8192, TotalBytes: 256 << 20,
		CommitEvery: 100 * time.Millisecond, DrainJudge: time.Second, DrainFlush: time.Second, StuckAfter: time.Minute,
	}, consumer.DeadLetterConfig{MaxRatio: .2}, consumer.Deps{Topics: []string{topic}, Handler: handler, Log: log, Reg: reg})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// counted stands in for ClickHouse: it takes the ledger, whose cells are cumulative, and
// ends the run when every interaction is in it.
type counted struct {
	want uint64
	done func()

	mu    sync.Mutex // guards cells
	cells map[string]uint64
}

func (c *counted) InsertPopulation(_ context.Context, rows []sink.Population) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range rows {
		if r.Decision == "interaction" {
			c.cells[fmt.Sprint(r.Partition, r.Block, r.Minute.Unix())] = r.N
		}
	}
	sum := uint64(0)
	for _, n := range c.cells {
		sum += n
	}
	if sum == c.want {
		c.done()
	}
	return nil
}

func (c *counted) AddEvaluations(context.Context, []sink.Evaluation, func(error)) error { return nil }
func (c *counted) AddTexts(context.Context, []sink.Text, func(error)) error             { return nil }
func (c *counted) AddDeadLetters(context.Context, []sink.DeadLetter, func(error)) error { return nil }
func (c *counted) Flush(context.Context) error                                          { return nil }

func (c *counted) Answered(context.Context, string, uint32, uint64, time.Time) (map[sink.AnswerKey]struct{}, error) {
	return nil, nil
}

func (c *counted) Segments(context.Context, string, uint32, uint64) ([]sink.Segment, error) {
	return nil, nil
}

func (c *counted) LastSegment(context.Context, string, uint32) (sink.Segment, bool, error) {
	return sink.Segment{}, false, nil
}
