package testkit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaWait bounds a broker's start.
const kafkaWait = time.Minute

// kafkaReady is what a broker writes into its log when it serves.
const kafkaReady = "Kafka Server started"

// KafkaOptions say what a cluster looks like.
type KafkaOptions struct {
	Brokers    int      // 1 (the default) or 3
	Partitions int      // of every topic; 1 when 0
	Topics     []string // created at the start
	Secured    bool     // with the listeners that ask who comes
}

// A KafkaCluster is real Apache Kafka brokers, processes on this machine that end with
// the test.
type KafkaCluster struct {
	Certificates *Certificates // of the encrypted listeners; nil unless secured

	listeners []KafkaListener
	brokers   []*kafkaBroker
	jars      string
	dir       string
}

type kafkaBroker struct {
	id    int
	addrs map[KafkaListener]string // the same ones after a restart
	data  string
	file  string // its settings

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	log  *kafkaLog
}

// Kafka starts a cluster: one broker takes about four seconds.
func Kafka(tb testing.TB, o KafkaOptions) *KafkaCluster {
	tb.Helper()
	jars, err := kafkaJars(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	k := &KafkaCluster{jars: jars, listeners: []KafkaListener{KafkaOpen, controllerListener}, dir: tb.TempDir()}
	if o.Secured {
		k.listeners = append(k.listeners, KafkaSASL, KafkaTLS, KafkaMTLS, KafkaSASLTLS)
		k.Certificates = NewCertificates(tb)
	}
	n := max(o.Brokers, 1)
	addrs := freeAddrs(tb, n*len(k.listeners))
	for i := range n {
		b := &kafkaBroker{id: i + 1, addrs: make(map[KafkaListener]string)}
		b.data = filepath.Join(k.dir, fmt.Sprintf("data-%d", b.id))
		b.file = filepath.Join(k.dir, fmt.Sprintf("server-%d.properties", b.id))
		for _, l := range k.listeners {
			b.addrs[l], addrs = addrs[0], addrs[1:]
		}
		k.brokers = append(k.brokers, b)
	}
	tb.Cleanup(func() {
		for _, b := range k.brokers {
			b.kill()
			if tb.Failed() && b.log != nil {
				tb.Logf("the last lines of broker %d:\n%s", b.id, b.log.tail(2000))
			}
		}
	})
	each(tb, k.brokers, func(b *kafkaBroker) error {
		if err := os.WriteFile(b.file, []byte(b.settings(k)), 0o600); err != nil {
			return err
		}
		if err := k.format(tb.Context(), b); err != nil {
			return err
		}
		return k.start(b)
	})
	each(tb, k.brokers, (*kafkaBroker).await)
	for _, topic := range o.Topics {
		k.CreateTopic(tb, topic, max(o.Partitions, 1), nil)
	}
	return k
}

// each does the same to all brokers at once.
func each(tb testing.TB, brokers []*kafkaBroker, do func(*kafkaBroker) error) {
	tb.Helper()
	errs := make([]error, len(brokers))
	var wg sync.WaitGroup
	for i, b := range brokers {
		wg.Go(func() { errs[i] = do(b) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}

// kafkaClusterID is shared by brokers that are to find each other; ports keep clusters
// apart.
const kafkaClusterID = "4L6g3nShT-eMCtK--X86sw"

func (k *KafkaCluster) format(ctx context.Context, b *kafkaBroker) error {
	args := []string{"kafka.tools.StorageTool", "format", "-t", kafkaClusterID, "-c", b.file}
	if len(k.brokers) == 1 {
		args = append(args, "--standalone")
	}
	if k.Certificates != nil {
		for _, m := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", m, KafkaUser, KafkaPassword))
		}
	}
	out, err := k.java(ctx, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format broker %d: %w\n%s", b.id, err, out)
	}
	return nil
}

// java runs a class of Kafka's with a small heap, compiled once and lightly: a test's
// broker lives for seconds.
func (k *KafkaCluster) java(ctx context.Context, args ...string) *exec.Cmd {
	flags := []string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError",
		"-Dorg.slf4j.simpleLogger.showThreadName=false", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-cp", filepath.Join(k.jars, "*"),
	}
	cmd := exec.CommandContext(ctx, "java", append(flags, args...)...)
	cmd.Dir = k.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (k *KafkaCluster) start(b *kafkaBroker) error {
	b.log, b.done = newKafkaLog(), make(chan struct{})
	b.cmd = k.java(context.Background(), "kafka.Kafka", b.file)
	b.cmd.Stdout, b.cmd.Stderr = b.log, b.log
	if err := b.cmd.Start(); err != nil {
		return fmt.Errorf("start broker %d: %w", b.id, err)
	}
	go func() {
		_ = b.cmd.Wait() // told by done and the log
		close(b.done)
	}()
	return nil
}

func (b *kafkaBroker) await() error {
	timer := time.NewTimer(kafkaWait)
	defer timer.Stop()
	select {
	case <-b.log.ready:
		return nil
	case <-b.done:
		return fmt.Errorf("broker %d ended:\n%s", b.id, b.log.tail(4000))
	case <-timer.C:
		return fmt.Errorf("broker %d did not start within %s:\n%s", b.id, kafkaWait, b.log.tail(4000))
	}
}

func (b *kafkaBroker) kill() {
	if b.done == nil {
		return
	}
	_ = b.cmd.Process.Kill() // it may have ended
	<-b.done
}

// Addrs are the addresses of the open listener.
func (k *KafkaCluster) Addrs() []string { return k.AddrsOf(KafkaOpen) }

// AddrsOf are the addresses of one listener.
func (k *KafkaCluster) AddrsOf(l KafkaListener) []string {
	var out []string
	for _, b := range k.brokers {
		if a, ok := b.addrs[l]; ok {
			out = append(out, a)
		}
	}
	return out
}

// Kill ends a broker with SIGKILL, the first one is 1. Its disk stays.
func (k *KafkaCluster) Kill(broker int) { k.brokers[broker-1].kill() }

// Stop ends a broker as an operator does, and waits for it.
func (k *KafkaCluster) Stop(tb testing.TB, broker int) {
	tb.Helper()
	b := k.brokers[broker-1]
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Fatal(err)
	}
	select {
	case <-b.done:
	case <-time.After(kafkaWait):
		tb.Fatalf("broker %d does not end:\n%s", broker, b.log.tail(4000))
	}
}

// Start starts a broker that was killed or stopped, on its disk and its ports, and
// waits until it serves.
func (k *KafkaCluster) Start(tb testing.TB, broker int) {
	tb.Helper()
	b := k.brokers[broker-1]
	if err := k.start(b); err != nil {
		tb.Fatal(err)
	}
	if err := b.await(); err != nil {
		tb.Fatal(err)
	}
}

// CreateTopic creates a topic with a copy on every broker and returns when all of its
// partitions have a leader.
func (k *KafkaCluster) CreateTopic(tb testing.TB, topic string, partitions int, settings map[string]string) {
	tb.Helper()
	client := k.admin(tb)
	defer client.Close()
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, int32(partitions), int16(len(k.brokers))
	for name, value := range settings {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = name, &value
		t.Configs = append(t.Configs, c)
	}
	req.Topics = append(req.Topics, t)
	res, err := req.RequestWith(tb.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(res.Topics[0].ErrorCode)
	}
	if err != nil {
		tb.Fatalf("create topic %s: %v", topic, err)
	}
	Eventually(tb, kafkaWait, topic+" has leaders", func() error {
		leaders, err := k.leaders(tb.Context(), client, topic)
		if err == nil && len(leaders) != partitions {
			err = fmt.Errorf("%d of %d partitions", len(leaders), partitions)
		}
		return err
	})
}

// Leader is the broker that leads a partition.
func (k *KafkaCluster) Leader(tb testing.TB, topic string, partition int) int {
	tb.Helper()
	client := k.admin(tb)
	defer client.Close()
	leaders, err := k.leaders(tb.Context(), client, topic)
	if err != nil {
		tb.Fatal(err)
	}
	return leaders[partition]
}

func (k *KafkaCluster) admin(tb testing.TB) *kgo.Client {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addrs()...), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// leaders leaves out partitions without one.
func (k *KafkaCluster) leaders(ctx context.Context, client *kgo.Client, topic string) (map[int]int, error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	res, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(res.Topics[0].ErrorCode); err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", topic, err)
	}
	out := make(map[int]int)
	for _, p := range res.Topics[0].Partitions {
		if p.Leader >= 0 && p.ErrorCode == 0 {
			out[int(p.Partition)] = int(p.Leader)
		}
	}
	return out, nil
}

// freeAddrs are loopback addresses nobody listens on, all different.
func freeAddrs(tb testing.TB, n int) []string {
	tb.Helper()
	out := make([]string, n)
	for i := range out {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		out[i] = l.Addr().String()
	}
	return out
}

// kafkaLog keeps what a broker writes and tells when it serves.
type kafkaLog struct {
	ready chan struct{}

	mu    sync.Mutex // guards the fields below
	text  []byte
	serve bool
}

func newKafkaLog() *kafkaLog { return &kafkaLog{ready: make(chan struct{})} }

func (l *kafkaLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := max(len(l.text)-len(kafkaReady), 0)
	l.text = append(l.text, p...)
	if !l.serve && bytes.Contains(l.text[from:], []byte(kafkaReady)) {
		l.serve = true
		close(l.ready)
	}
	return len(p), nil
}

func (l *kafkaLog) tail(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(len(l.text)-n, 0):])
}
