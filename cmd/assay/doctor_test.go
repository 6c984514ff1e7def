package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"assay/internal/testkit"
)

// examined is what a doctor finds in an environment, by what it looked at.
func examined(t *testing.T, env map[string]string, sections ...string) map[string]finding {
	t.Helper()
	a := &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	for k, v := range env {
		a.environ = append(a.environ, k+"="+v)
	}
	d := a.newDoctor(t.Context())
	d.examine(t.Context(), sections)
	found := make(map[string]finding)
	for _, f := range d.found {
		found[f.What] = f
		if f.State == stateFail && f.Fix == "" {
			t.Errorf("%s failed without a fix: %s", f.What, f.Says)
		}
	}
	return found
}

// says expects a finding's state and parts of its sentence.
func says(t *testing.T, found map[string]finding, what, state string, parts ...string) {
	t.Helper()
	f, ok := found[what]
	if !ok {
		t.Errorf("nothing is said of %s", what)
		return
	}
	if f.State != state {
		t.Errorf("%s: %s (%s), want %s", what, f.State, f.Says, state)
	}
	for _, p := range parts {
		if !strings.Contains(f.Says+"\n"+f.Fix, p) {
			t.Errorf("%s says %q, fix %q; want %q in it", what, f.Says, f.Fix, p)
		}
	}
}

const doctorChecks = `
version: 1
dimensions: [app]
sources: [{ topic: parcels }, { topic: compacted }, { topic: nowhere }, { topic: short }]
judges:
  main: { kind: openai, base_url: %s, model: fake-model, method: logprobs, max_in_flight: 16, requests_per_minute: 600, budget: { calls_per_day: 1000 } }
checks:
  - { name: policy, evaluator: closed_qa, criteria: { text: "Says when it comes." }, judge: main, sample: { rate: 0.5 }, alert: { target: 0.9 } }
`

func TestDoctorOnRealServers(t *testing.T) {
	inParallel(t)
	kafka := testkit.Kafka(t, testkit.KafkaOptions{Partitions: 2, Topics: []string{"parcels"}})
	kafka.CreateTopic(t, "compacted", 1, map[string]string{"cleanup.policy": "compact"})
	kafka.CreateTopic(t, "short", 1, map[string]string{"retention.ms": "600000", "max.message.bytes": "20000000"})
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 7200 {
		client.Produce(t.Context(), &kgo.Record{Topic: "parcels", Value: []byte("{}"), Partition: int32(i % 2)}, nil)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "short", Value: []byte("{}"), Timestamp: time.Now().Add(-time.Minute)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}

	var refuses atomic.Bool
	judge := testkit.NewFakeJudge(t, func(testkit.FakeRequest) testkit.FakeReply {
		if refuses.Load() {
			return testkit.FakeReply{Fault: testkit.Unauthorized}
		}
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": 0.9, "no": 0.1}}
	})
	engine := testkit.ClickHouse(t)
	checksFile := filepath.Join(t.TempDir(), "assay.yaml")
	if err := os.WriteFile(checksFile, fmt.Appendf(nil, doctorChecks, judge.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"ASSAY_CHECKS": checksFile, "ASSAY_KAFKA_BROKERS": kafka.Addrs()[0], "ASSAY_KAFKA_GROUP": "doctors",
		"ASSAY_CLICKHOUSE_ADDR": engine.Addr, "ASSAY_CLICKHOUSE_PROTOCOL": "http", "ASSAY_CLICKHOUSE_USERNAME": "default",
		"ASSAY_CLICKHOUSE_PASSWORD": engine.Token, "ASSAY_CLICKHOUSE_DATABASE": engine.Database,
	}
	others := func(more map[string]string) map[string]string {
		return with(testkit.AssayOptions{Env: env}, more).Env
	}

	t.Run("what is there, and what is missing", func(t *testing.T) {
		found := examined(t, env)
		says(t, found, "checks file", stateOK, "1 checks on parcels, compacted, nowhere, short, 1 exported slices: up to 90 series")
		says(t, found, "broker "+kafka.Addrs()[0], stateOK, "not encrypted")
		says(t, found, "group doctors", stateOK, "no assay run is reading")
		says(t, found, "topic parcels", stateOK, "2 partitions", "7,200 records in the last hour (2.0/s)")
		says(t, found, "topic parcels: policy", stateOK, "kept for 7 days")
		says(t, found, "topic parcels: offsets", stateOK, "ASSAY_KAFKA_START=latest leaves the 7,200 records")
		says(t, found, "topic compacted: policy", stateWarn, "of records with the same key only the last is kept", "cleanup.policy=delete")
		says(t, found, "topic short: policy", stateWarn, "less than the 40m0s that a restart looks back", "join_wait")
		says(t, found, "topic short: sizes", stateWarn, "20,000,000 bytes", "ASSAY_DECODE_MAX_RECORD")
		says(t, found, "topic nowhere", stateFail, "does not exist", "create it")
		says(t, found, "clickhouse", stateOK, "version ", "user default")
		says(t, found, "clickhouse clock", stateOK)
		says(t, found, "tables", stateFail, "are missing", "assay migrate", "this user may")
		says(t, found, "judge main", stateOK, "by logprobs in ", "at most 1,000 calls a day")
		says(t, found, "load of parcels", stateOK, "2.0 records/s, at most 1.0/s judged")
		says(t, found, "load of judge main", stateWarn, "86,4", "calls_per_day is 1,000")
	})

	t.Run("tables that are there", func(t *testing.T) {
		var environ []string
		for k, v := range env {
			environ = append(environ, k+"="+v)
		}
		root := newRoot(environ)
		root.SetArgs([]string{"migrate"})
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		found := examined(t, env, "clickhouse")
		says(t, found, "tables", stateOK)
		says(t, found, "rights", stateOK, "SELECT and INSERT on all", "async_insert=0")
		says(t, found, "retention", stateOK, "evaluations until toDate(ts) + toIntervalDay(400)")
		if _, ok := found["group doctors"]; ok {
			t.Error("kafka was looked at, though clickhouse alone was named")
		}
	})

	t.Run("the load goes by what judgements took", func(t *testing.T) {
		if err := engine.Conn(t).Exec(t.Context(), "INSERT INTO evaluations (check, ts, interaction_id, judge, latency_ms, status, pi) "+
			"SELECT 'policy', now64(3), toString(number), 'main', 30000, 'unscored', 1 FROM numbers(50)"); err != nil {
			t.Fatal(err)
		}
		found := examined(t, env)
		says(t, found, "load of judge main", stateWarn, "of 30s each: 30.0 under way of 16", "max_in_flight")
		says(t, found, "load of parcels", stateOK, "30.0 records unresolved at a time, the window holds 2,048")
	})

	t.Run("one of two brokers is away", func(t *testing.T) {
		nobody := "127.0.0.1:1"
		found := examined(t, others(map[string]string{"ASSAY_KAFKA_BROKERS": nobody + "," + kafka.Addrs()[0]}), "kafka")
		says(t, found, "broker "+nobody, stateWarn, "refused", "nobody listens there")
		says(t, found, "broker "+kafka.Addrs()[0], stateOK)
		found = examined(t, others(map[string]string{"ASSAY_KAFKA_BROKERS": nobody}), "kafka")
		says(t, found, "broker "+nobody, stateFail, "refused")
		if _, ok := found["topic parcels"]; ok {
			t.Error("a topic was looked at without a broker")
		}
	})

	t.Run("offsets that the log no longer has", func(t *testing.T) {
		commit(t, kafka.Addrs()[0], "doctors", map[string][]kafkago.OffsetCommit{
			"parcels": {{Partition: 0, Offset: 10}, {Partition: 1, Offset: 3600}}, "compacted": {{Offset: 50}}, "short": {{}},
		})
		deleteBefore(t, client, "parcels", 0, 100)
		found := examined(t, env, "kafka")
		says(t, found, "topic parcels: offsets", stateWarn, "retention took 90 records", "3,500 wait")
		says(t, found, "topic compacted: offsets", stateFail, "committed more than the log holds", "ASSAY_KAFKA_ON_OFFSET_BEYOND_END")
		says(t, found, "topic short: offsets", stateOK, "1 records wait, the oldest for ")
	})

	t.Run("a stranger in the group", func(t *testing.T) {
		joined := make(chan struct{})
		member, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...), kgo.ConsumerGroup("doctors"), kgo.ConsumeTopics("parcels"), kgo.ClientID("billing"),
			kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { close(joined) }))
		if err != nil {
			t.Fatal(err)
		}
		defer member.Close()
		select {
		case <-joined:
		case <-time.After(time.Minute):
			t.Fatal("the stranger did not join")
		}
		says(t, examined(t, env, "kafka"), "group doctors", stateFail, "billing at /127.0.0.1 (protocol cooperative-sticky)", "ASSAY_KAFKA_GROUP")
	})

	t.Run("a group of the newer protocol", func(t *testing.T) {
		joined := make(chan struct{})
		member, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...), kgo.ConsumerGroup("newer"), kgo.ConsumeTopics("parcels"), kgo.ServerSideBalancer(),
			kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { close(joined) }))
		if err != nil {
			t.Fatal(err)
		}
		defer member.Close()
		select {
		case <-joined:
		case <-time.After(time.Minute):
			t.Fatal("it did not join")
		}
		says(t, examined(t, others(map[string]string{"ASSAY_KAFKA_GROUP": "newer"}), "kafka"), "group newer", stateFail, "KIP-848")
	})

	t.Run("a judge that refuses us", func(t *testing.T) {
		refuses.Store(true)
		says(t, examined(t, env, "judges"), "judge main", stateFail, "401", "key")
	})
}

// commit is what another program than ours, or another time, left of the group.
func commit(t *testing.T, broker, group string, offsets map[string][]kafkago.OffsetCommit) {
	t.Helper()
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&kafkago.Client{Addr: kafkago.TCP(broker), Timeout: time.Minute, Transport: transport}).OffsetCommit(t.Context(),
		&kafkago.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: offsets})
	if err != nil {
		t.Fatal(err)
	}
	for topic, partitions := range res.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				t.Fatalf("commit %s/%d: %v", topic, p.Partition, p.Error)
			}
		}
	}
}

func deleteBefore(t *testing.T, client *kgo.Client, topic string, partition int32, offset int64) {
	t.Helper()
	req := kmsg.NewPtrDeleteRecordsRequest()
	rt := kmsg.NewDeleteRecordsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewDeleteRecordsRequestTopicPartition()
	rp.Partition, rp.Offset = partition, offset
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	res, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(res.Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// Each fault of a certificate is told apart from the others, and all of one certificate
// at once.
func TestDoctorTellsWhatIsWrongWithACertificate(t *testing.T) {
	dir := t.TempDir()
	authority := newAuthority(t)
	ca := writePEM(t, filepath.Join(dir, "ca.pem"), authority.cert)
	stranger := writePEM(t, filepath.Join(dir, "stranger.pem"), newAuthority(t).cert)
	f := func(notAfter time.Duration, name, trust string, state string, want ...string) {
		t.Helper()
		addr := authority.listen(t, notAfter, name)
		found := examined(t, map[string]string{
			"ASSAY_CHECKS": filepath.Join(dir, "none.yaml"), "ASSAY_KAFKA_BROKERS": addr, "ASSAY_KAFKA_TLS": "true",
			"ASSAY_KAFKA_TLS_CA": trust, "ASSAY_KAFKA_TIMEOUT": "5s",
		}, "kafka")
		says(t, found, "broker "+addr, state, want...)
	}

	f(-time.Hour, "127.0.0.1", ca, stateFail, "ended on "+time.Now().Add(-time.Hour).UTC().Format(time.DateOnly), "renew")
	f(time.Hour, "kafka.example", ca, stateFail, "not for 127.0.0.1 but for kafka.example", "connect by a name that the certificate has")
	f(time.Hour, "127.0.0.1", stranger, stateFail, "signed by the parcels' authority, which is not trusted here", "stranger.pem holds another authority")
	f(time.Hour, "127.0.0.1", "", stateFail, "not trusted here", "set ASSAY_KAFKA_TLS_CA")
	f(-time.Hour, "kafka.example", ca, stateFail, "ended on", "not for 127.0.0.1")
	// the certificate is right, but nobody speaks Kafka behind it
	f(time.Hour, "127.0.0.1", ca, stateFail, "hangs up")
}

type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the parcels' authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{key, cert}
}

// listen shows a certificate to whoever connects, and hangs up.
func (a authority) listen(t *testing.T, notAfter time.Duration, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, NotBefore: time.Now().AddDate(0, -1, 0), NotAfter: time.Now().Add(notAfter),
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context()) // the client says what it thinks of it
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

func writePEM(t *testing.T, path string, cert *x509.Certificate) string {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
