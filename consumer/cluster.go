package consumer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/segmentio/kafka-go/sasl"
)

// clientID names us in the brokers' logs and quotas.
const clientID = "assay"

// metadataTTL is how old the library's picture of the cluster may be. It is also the
// deadline of the request that renews it.
const metadataTTL = 3 * time.Second

// refreshEvery bounds how often errors may force a new picture of the cluster.
const refreshEvery = time.Second

// oversize is how much a single batch may exceed MAX_BYTES: the broker always sends
// the first one whole.
const oversize = 128 << 20

// A cluster asks the brokers what the group protocol does not say: topics, ends of
// logs, committed offsets, records.
type cluster struct {
	cfg       KafkaConfig
	addr      net.Addr
	tls       *tls.Config
	sasl      sasl.Mechanism
	conns     *connections // of the transport
	transport *kafka.Transport
	client    *kafka.Client

	mu        sync.Mutex // guards refreshed
	refreshed time.Time
}

func newCluster(cfg KafkaConfig, topics []string) (*cluster, error) {
	tlsConfig, err := cfg.tlsConfig()
	if err != nil {
		return nil, err
	}
	mechanism, err := cfg.mechanism()
	if err != nil {
		return nil, err
	}
	c := &cluster{cfg: cfg, addr: kafka.TCP(cfg.Brokers...), tls: tlsConfig, sasl: mechanism, conns: newConnections()}
	c.transport = &kafka.Transport{
		Dial:           c.conns.dial,
		DialTimeout:    cfg.Timeout,
		MetadataTTL:    metadataTTL,
		MetadataTopics: topics,
		ClientID:       clientID,
		TLS:            tlsConfig,
		SASL:           mechanism,
	}
	c.client = &kafka.Client{Addr: c.addr, Timeout: cfg.Timeout, Transport: c.transport}
	return c, nil
}

// dialer is for the group protocol, which has connections of its own.
func (c *cluster) dialer(conns *connections) *kafka.Dialer {
	return &kafka.Dialer{
		ClientID:      clientID,
		DialFunc:      conns.dial,
		Timeout:       c.cfg.Timeout,
		TLS:           c.tls,
		SASLMechanism: c.sasl,
	}
}

// close ends what the transport still has open, the fetch nobody waits for included.
func (c *cluster) close() {
	c.transport.CloseIdleConnections()
	c.conns.closeOlder(0)
}

// refresh throws the picture of the cluster away, so that the next request draws a new
// one: the library has no other way to ask for it. Requests under way end in peace.
func (c *cluster) refresh() {
	c.mu.Lock()
	due := time.Since(c.refreshed) >= refreshEvery
	if due {
		c.refreshed = time.Now()
	}
	c.mu.Unlock()
	if due {
		c.transport.CloseIdleConnections()
	}
}

// reason dials a broker to learn why it cannot be used: the transport reports every
// refusal as "broker not available".
func (c *cluster) reason(ctx context.Context) error {
	conns := newConnections()
	defer conns.closeOlder(0)
	var errs []error
	for _, b := range c.cfg.Brokers {
		conn, err := c.dialer(conns).DialContext(ctx, "tcp", b)
		greeted := false
		if err == nil {
			_, err = conn.ApiVersions() // the first answer brings what the broker thinks of our certificate
			if greeted = err == nil; greeted {
				_, err = conn.Brokers() // strangers may ask for versions, and for nothing else
			}
			_ = conn.Close()
		}
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("%s: %w%s", b, err, c.hint(err, greeted)))
	}
	return errors.Join(errs...)
}

// hint says what a setting is likely to be missing where a broker gives no reason.
func (c *cluster) hint(err error, greeted bool) string {
	switch {
	case refusedCertificate(err) && c.cfg.TLSCert == "":
		return " (the broker asks for a client's certificate: ASSAY_KAFKA_TLS_CERT and ASSAY_KAFKA_TLS_KEY)"
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return ""
	case greeted && c.cfg.SASL == "":
		return " (the broker hangs up: does this listener want ASSAY_KAFKA_SASL?)"
	case c.cfg.TLS:
		return " (the broker hangs up: is this a listener without TLS?)"
	default:
		return " (the broker hangs up: does this listener want ASSAY_KAFKA_TLS=true?)"
	}
}

// partitions returns how many partitions each of the topics has; a missing topic is
// not in the map.
func (c *cluster) partitions(ctx context.Context, topics []string) (map[string]int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	res, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, err
	}
	out := make(map[string]int, len(topics))
	for _, t := range res.Topics {
		if t.Error == nil && len(t.Partitions) > 0 {
			out[t.Name] = len(t.Partitions)
		}
	}
	return out, nil
}

// isolation is what the user chose to see of transactions.
func (c *cluster) isolation() kafka.IsolationLevel {
	if c.cfg.Isolation == isolationCommitted {
		return kafka.ReadCommitted
	}
	return kafka.ReadUncommitted
}

// committed returns what the group has committed for each of a topic's first n
// partitions; -1 where nothing is.
func (c *cluster) committed(ctx context.Context, topic string, n int) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	ids, out := make([]int, n), make([]int64, n)
	for i := range ids {
		ids[i], out[i] = i, -1
	}
	res, err := c.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: c.cfg.Group, Topics: map[string][]int{topic: ids}})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return nil, fmt.Errorf("committed offsets of %s: %w", topic, err)
	}
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("committed offset of %s/%d: %w", topic, p.Partition, p.Error)
		}
		if p.Partition >= 0 && p.Partition < n {
			out[p.Partition] = p.CommittedOffset
		}
	}
	return out, nil
}

// fetch reads from one offset on. buffer is taken over: the answer lies in it when it
// is large enough.
func (c *cluster) fetch(ctx context.Context, topic string, partition int, offset int64, buffer []byte) (*fetchAnswer, error) {
	return c.fetchBytes(ctx, topic, partition, offset, buffer, int32(c.cfg.MaxBytes))
}

// fetchBytes is fetch of so many bytes at most, but of one whole batch in any case.
func (c *cluster) fetchBytes(ctx context.Context, topic string, partition int, offset int64, buffer []byte, bytes int32) (*fetchAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.MaxWait+c.cfg.Timeout)
	defer cancel()
	isolation := c.isolation()
	req := &fetchExchange{clientID: clientID, buffer: buffer, limit: int(c.cfg.MaxBytes) + oversize}
	req.Request = fetch.Request{
		ReplicaID:   -1,
		MaxWaitTime: int32(c.cfg.MaxWait.Milliseconds()),
		MinBytes:    int32(c.cfg.MinBytes),
		// one partition: its own limit decides. The in-process broker forgets the aborted
		// list when it is the request's limit that ends an answer
		MaxBytes:       math.MaxInt32,
		IsolationLevel: int8(isolation),
		SessionEpoch:   -1, // no fetch session: each request says all it wants
		Topics: []fetch.RequestTopic{{Topic: topic, Partitions: []fetch.RequestPartition{{
			Partition:          int32(partition),
			CurrentLeaderEpoch: -1,
			FetchOffset:        offset,
			LogStartOffset:     -1,
			PartitionMaxBytes:  bytes,
		}}}},
	}
	res, err := c.transport.RoundTrip(ctx, c.addr, req)
	if err != nil {
		return nil, fmt.Errorf("fetch %s/%d at %d: %w", topic, partition, offset, err)
	}
	answer := res.(*fetchAnswer)
	if answer.code != 0 {
		return nil, fmt.Errorf("fetch %s/%d at %d: %w", topic, partition, offset, kafka.Error(answer.code))
	}
	answer.end = answer.high
	if isolation == kafka.ReadCommitted {
		answer.end = answer.stable
	}
	return answer, nil
}
