package demo

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"assay/internal/interaction"
)

// KafkaOptions say what an in-process Kafka looks like.
type KafkaOptions struct {
	Brokers    int      // 1 when 0
	Partitions int      // of every topic; 1 when 0
	Topics     []string // created at the start
	DataDir    string   // topics and groups outlive the process when set
	Options    []kfake.Opt
}

// Kafka is a cluster inside this process: the real protocol over loopback, one copy of
// every record, no network. Cluster is open for those who want to make it fail.
type Kafka struct {
	Cluster *kfake.Cluster
}

// StartKafka starts a cluster on free ports; Close ends it.
func StartKafka(o KafkaOptions) (*Kafka, error) {
	opts := []kfake.Opt{
		kfake.NumBrokers(max(o.Brokers, 1)),
		kfake.GroupMinSessionTimeout(100 * time.Millisecond),
	}
	if len(o.Topics) > 0 {
		opts = append(opts, kfake.SeedTopics(int32(max(o.Partitions, 1)), o.Topics...))
	}
	if o.DataDir != "" {
		if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
			return nil, fmt.Errorf("kafka data: %w", err)
		}
		opts = append(opts, kfake.DataDir(o.DataDir))
	}
	cluster, err := kfake.NewCluster(append(opts, o.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("in-process Kafka: %w", err)
	}
	return &Kafka{cluster}, nil
}

// Addrs are the brokers' addresses.
func (k *Kafka) Addrs() []string { return k.Cluster.ListenAddrs() }

// Close ends the cluster and every connection to it.
func (k *Kafka) Close() { k.Cluster.Close() }

// ByKey as a record's partition leaves the choice to its key.
const ByKey = -1

// A Producer writes records and returns when every copy has them.
type Producer struct {
	client *kgo.Client
}

// NewProducer connects to brokers when it is first used; Close ends it.
func NewProducer(brokers []string, more ...kgo.Opt) (*Producer, error) {
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(brokers...),
		kgo.ClientID("assay-demo"),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			return pickPartition
		})),
	}, more...)...)
	if err != nil {
		return nil, fmt.Errorf("producer: %w", err)
	}
	return &Producer{client}, nil
}

// pickPartition takes the record's own partition, else the hash of its key.
func pickPartition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition) // the client refuses one that does not exist
	}
	h := fnv.New32a()
	_, _ = h.Write(r.Key) // never fails
	return int(h.Sum32() % uint32(n))
}

// Produce writes records to a topic, in their order within each partition: to the
// partition each names, or by its key where that is ByKey. A record's time is kept,
// or is now when it has none; a nil value is a tombstone.
func (p *Producer) Produce(ctx context.Context, topic string, records ...interaction.Record) error {
	batch := make([]*kgo.Record, len(records))
	for i, r := range records {
		out := &kgo.Record{Topic: topic, Partition: int32(r.Partition), Timestamp: r.Time, Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		batch[i] = out
	}
	var errs []error
	for _, res := range p.client.ProduceSync(ctx, batch...) {
		if res.Err != nil {
			errs = append(errs, res.Err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("produce to %s, %d of %d records: %w", topic, len(errs), len(records), errs[0])
	}
	return nil
}

// Close ends the connections; what was produced stays.
func (p *Producer) Close() { p.client.Close() }
