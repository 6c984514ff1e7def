package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"assay/internal/interaction"
	"assay/internal/testkit"
)

// What the consumer promises on the in-process broker it keeps on Apache Kafka.
func TestOnARealBroker(t *testing.T) {
	kafka := testkit.Kafka(t, testkit.KafkaOptions{Secured: true})
	where := realPlace(kafka)
	for _, c := range []struct {
		name string
		test func(*testing.T, place)
	}{
		{"every record is resolved and the end committed", everyRecordIsResolvedAndTheEndCommitted},
		{"what a record carries arrives as it was written", whatARecordCarriesArrivesAsItWasWritten},
		{"a record larger than a fetch arrives", aRecordLargerThanAFetchArrives},
		{"aborted records and markers are not handed out", abortedRecordsAndMarkersAreNotHandedOut},
		{"holes of a compacted topic are stepped over", realHolesAreSteppedOver},
		{"a topic that does not exist yet is waited for", aTopicThatDoesNotExistYetIsWaitedFor},
		{"partitions that are added are read from their first record", partitionsThatAreAddedAreReadFromTheirFirstRecord},
		{"latest is resolved and committed at once", latestIsResolvedAndCommittedAtOnce},
		{"retention that overtakes a commit is counted", retentionThatOvertakesACommitIsCountedExactly},
		{"retention that overtakes a slow reader is counted", retentionThatOvertakesASlowReaderIsCountedExactly},
		{"a recreated topic stops the partition", aRecreatedTopicStopsThePartition},
		{"a recreated topic is read from its start when chosen", aRecreatedTopicIsReadFromItsStartWhenChosen},
		{"a commit beyond the end is noticed", anEmptyRecreatedTopicIsNoticed},
		{"a topic that comes again is read from its first record", aTopicThatComesAgainIsReadFromItsFirstRecord},
		{"a drain finishes what runs and commits it", aDrainFinishesWhatRunsAndCommitsIt},
		{"a restart reaches back by the log's times", reachGoesByTheRecordBeforeTheOffset},
		{"members come and go", realMembersComeAndGo},
		{"a zombie's commit is fenced", realZombieIsFenced},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, where) })
	}
	t.Run("every way in", func(t *testing.T) { everyWayIn(t, kafka, where) })
	t.Run("every refusal", func(t *testing.T) { everyRefusal(t, kafka) })
	t.Run("every mix-up", func(t *testing.T) { everyMixUp(t, kafka) })
	t.Run("a broker that comes back is read on at once", func(t *testing.T) { brokerComesBack(t, kafka, where) })
}

// realPlace makes the topic anew for each world; the group's offsets go with it.
func realPlace(k *testkit.KafkaCluster) place {
	return func(tb testing.TB, partitions int) *world {
		tb.Helper()
		w := &world{tb: tb, brokers: k.Addrs()}
		if partitions > 0 {
			k.CreateTopic(tb, topic, partitions, nil)
		}
		w.freshProducer()
		tb.Cleanup(func() { removeTopic(tb, w) })
		return w
	}
}

// removeTopic does not ask whether the topic is still there.
func removeTopic(tb testing.TB, w *world) {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...))
	if err != nil {
		tb.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrDeleteTopicsRequest()
	tp := kmsg.NewDeleteTopicsRequestTopic()
	name := topic
	tp.Topic = &name
	req.Topics = append(req.Topics, tp)
	// after the test: its context has ended
	if _, err := req.RequestWith(context.Background(), client); err != nil {
		tb.Error(err)
	}
}

// onTheLog returns the offsets of one partition as another client library reads them,
// up to end.
func onTheLog(t *testing.T, w *world, end int64) []int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var out []int64
	for len(out) == 0 || out[len(out)-1] < end-1 {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fetches.Records() {
			out = append(out, r.Offset)
		}
	}
	return out
}

func realHolesAreSteppedOver(t *testing.T, where place) {
	w := where(t, 1)
	configure(t, w, map[string]string{
		"cleanup.policy": "compact", "segment.ms": "20", "min.cleanable.dirty.ratio": "0.001", "min.compaction.lag.ms": "0", "delete.retention.ms": "0",
	})
	const written = 60
	for i := range written {
		r := interaction.Record{Key: fmt.Appendf(nil, "k%d", i%3), Value: fmt.Append(nil, i)}
		if i == written-1 {
			r.Key = []byte("last") // stays
		}
		if err := w.producer.Produce(t.Context(), topic, r); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			time.Sleep(25 * time.Millisecond) // the broker's clock ends a segment
		}
	}
	var left []int64
	eventually(t, func() string { return fmt.Sprintf("never compacted: %v", left) }, func() bool {
		left = onTheLog(t, w, written)
		return len(left) < written/2
	})
	m := w.start("a")
	w.awaitCommitted(written)
	if got := m.handler.resolvedOffsets(0); !isSubset(got, left) || len(got) < 3 {
		t.Errorf("handed out %v, on the log are %v", got, left)
	}
	w.produce(0, 2) // without the holes' segment before it
	w.awaitCommitted(written + 2)
}

// isSubset allows for a cleaner that went on after the look.
func isSubset(some, of []int64) bool {
	for _, o := range some {
		if !slices.Contains(of, o) {
			return false
		}
	}
	return true
}

func realMembersComeAndGo(t *testing.T, where place) {
	const partitions, each = 6, 300
	w := where(t, partitions)
	script := option{handler: later}
	all := []*member{w.start("a", script)}
	for range each / 20 {
		for p := range partitions {
			w.produce(p, 20)
		}
		if len(all) < 3 {
			all = append(all, w.start(fmt.Sprint("joins-", len(all)), script))
		}
	}
	eventually(t, func() string { return "three members never shared the topic" }, func() bool {
		return !slices.ContainsFunc(all, func(m *member) bool { return len(m.consumer.series.list()) == 0 })
	})
	all[0].stop()
	evict(t, w) // the coordinator knows nobody who asks next
	for p := range partitions {
		w.produce(p, 20)
	}
	w.awaitCommitted(slices.Repeat([]int64{each + 20}, partitions)...)
	for _, m := range all {
		m.stop()
	}
	for p := range partitions {
		union := map[int64]bool{}
		for _, m := range all {
			for _, o := range m.handler.resolvedOffsets(p) {
				union[o] = true
			}
		}
		if len(union) != each+20 {
			t.Errorf("partition %d: %d of %d offsets resolved", p, len(union), each+20)
		}
	}
}

func realZombieIsFenced(t *testing.T, where place) {
	w := where(t, 1)
	w.produce(0, 20)
	hold := make(chan struct{})
	zombie := w.start("zombie", option{
		handler: func(h *handler) {
			h.drain = func(context.Context, *handled) error { <-hold; return nil }
		},
		config: func(c *Config) { c.CommitEvery = time.Minute },
	})
	eventually(t, func() string { return "not resolved" }, func() bool { n, _ := zombie.handler.count(0); return n == 20 })
	evict(t, w)
	eventually(t, func() string { return "does not drain" }, func() bool {
		n, _ := zombie.metric("assay_consumer_partition_state", "state", "draining")
		return n == 1
	})
	owner := w.start("owner")
	w.awaitCommitted(20)
	w.produce(0, 5)
	w.awaitCommitted(25)
	close(hold)
	zombie.awaitMetric(1, "assay_consumer_commits_total", "result", "refused")
	if got := owner.handler.resolvedOffsets(0); len(got) != 25 {
		t.Errorf("the owner resolved %d of 25", len(got))
	}
	zombie.stop()
	owner.stop()
	w.awaitCommitted(25)
}

// The coordinator's connection goes with the broker, and with it every commit of the
// generation: to try on until the drain's end would only delay the next one.
func brokerComesBack(t *testing.T, k *testkit.KafkaCluster, where place) {
	w := where(t, 1)
	w.produce(0, 50)
	m := w.start("a", option{
		kafka: func(k *KafkaConfig) { k.SessionTimeout, k.RebalanceTimeout = 5*time.Minute, 5*time.Minute },
		config: func(c *Config) { // a drain that lasts longer than this test waits
			c.DrainJudge, c.DrainFlush, c.CommitEvery = 2*time.Minute, time.Minute, time.Minute
		},
		// the library comes back as a new member: the group waits for the old one's session
		consumer: func(c *Consumer) { c.kafka.SessionTimeout = 2 * time.Second },
	})
	eventually(t, func() string { return "not resolved" }, func() bool { n, _ := m.handler.count(0); return n == 50 })
	k.Kill(1)
	k.Start(t, 1)
	began := time.Now()
	w.produce(0, 5)
	eventually(t, func() string { return "the new records are not read" }, func() bool { n, _ := m.handler.count(0); return n == 55 })
	t.Logf("read on within %s", time.Since(began).Round(10*time.Millisecond))
	if n, _ := m.metric("assay_consumer_commits_total", "result", "refused"); n != 1 {
		t.Errorf("%v commits given up, want 1", n)
	}
	m.stop()
	w.awaitCommitted(55)
}

// wayIn is a listener and what a client needs to enter by it.
type wayIn struct {
	name     string
	listener testkit.KafkaListener
	with     func(*KafkaConfig)
	refused  string // what the error must say; a good entry when empty
}

func enterWith(k *testkit.KafkaCluster, e wayIn) func(*KafkaConfig) {
	return func(c *KafkaConfig) {
		c.Brokers = k.AddrsOf(e.listener)
		c.Username, c.Password = testkit.KafkaUser, testkit.KafkaPassword
		e.with(c)
		if c.SASL == "" {
			c.Username, c.Password = "", ""
		}
	}
}

func everyWayIn(t *testing.T, k *testkit.KafkaCluster, where place) {
	tls := func(c *KafkaConfig) { c.TLS, c.TLSCA = true, k.Certificates.CA }
	for _, e := range []wayIn{
		{"plain", testkit.KafkaSASL, func(c *KafkaConfig) { c.SASL = "plain" }, ""},
		{"scram-sha-256", testkit.KafkaSASL, func(c *KafkaConfig) { c.SASL = "scram-sha-256" }, ""},
		{"scram-sha-512", testkit.KafkaSASL, func(c *KafkaConfig) { c.SASL = "scram-sha-512" }, ""},
		{"tls", testkit.KafkaTLS, tls, ""},
		{"mtls", testkit.KafkaMTLS, func(c *KafkaConfig) {
			tls(c)
			c.TLSCert, c.TLSKey = k.Certificates.ClientCert, k.Certificates.ClientKey
		}, ""},
		{"scram over tls", testkit.KafkaSASLTLS, func(c *KafkaConfig) { tls(c); c.SASL = "scram-sha-512" }, ""},
	} {
		t.Run(e.name, func(t *testing.T) {
			w := where(t, 1)
			w.produce(0, 10)
			m := w.start("a", option{kafka: enterWith(k, e)})
			w.awaitCommitted(10)
			if n, _ := m.handler.count(0); n != 10 {
				t.Errorf("%d of 10 records", n)
			}
		})
	}
}

// inspected expects what `assay doctor` says.
func inspected(t *testing.T, k KafkaConfig, want string) {
	t.Helper()
	look, err := NewInspector(k)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	b := look.Brokers(t.Context())[0]
	if b.Err == nil || !strings.Contains(b.Err.Error(), want) || b.Fix == "" {
		t.Errorf("the inspector says %v (fix: %s), want %q", b.Err, b.Fix, want)
	}
	t.Log(b.Err, "\nfix:", b.Fix)
}

// The wrong listener is no refusal: the broker hangs up and says nothing, and it may be
// another one tomorrow. The likely setting is named.
func everyMixUp(t *testing.T, k *testkit.KafkaCluster) {
	for _, e := range []wayIn{
		{"no encryption where it is wanted", testkit.KafkaTLS, func(*KafkaConfig) {}, "ASSAY_KAFKA_TLS=true?"},
		{"encryption where there is none", testkit.KafkaOpen, func(c *KafkaConfig) { c.TLS = true }, "a listener without TLS?"},
		{"no name where it is wanted", testkit.KafkaSASL, func(*KafkaConfig) {}, "ASSAY_KAFKA_SASL?"},
		{"no name where it is wanted, encrypted", testkit.KafkaSASLTLS, func(c *KafkaConfig) { c.TLS, c.TLSCA = true, k.Certificates.CA }, "ASSAY_KAFKA_SASL?"},
		{"a name where there is none", testkit.KafkaOpen, func(c *KafkaConfig) { c.SASL = "plain" }, "Illegal SASL State"},
	} {
		t.Run(e.name, func(t *testing.T) {
			kc, _ := settings(t, &world{tb: t, brokers: k.Addrs()})
			enterWith(k, e)(&kc)
			inspected(t, kc, e.refused)
		})
	}
}

func everyRefusal(t *testing.T, k *testkit.KafkaCluster) {
	stranger := testkit.NewCertificates(t)
	tls := func(c *KafkaConfig) { c.TLS, c.TLSCA = true, k.Certificates.CA }
	for _, e := range []wayIn{
		{"plain, wrong password", testkit.KafkaSASL, func(c *KafkaConfig) { c.SASL, c.Password = "plain", "wrong" }, "SASL Authentication Failed"},
		{"scram, wrong password", testkit.KafkaSASL, func(c *KafkaConfig) { c.SASL, c.Password = "scram-sha-256", "wrong" }, "SASL Authentication Failed"},
		{"scram, unknown name", testkit.KafkaSASL, func(c *KafkaConfig) { c.SASL, c.Username = "scram-sha-512", "nobody" }, "SASL Authentication Failed"},
		{"an authority nobody knows", testkit.KafkaTLS, func(c *KafkaConfig) { c.TLS = true }, "certificate signed by unknown authority"},
		{"another authority", testkit.KafkaTLS, func(c *KafkaConfig) { c.TLS, c.TLSCA = true, stranger.CA }, "certificate signed by unknown authority"},
		{"no client certificate", testkit.KafkaMTLS, tls, "asks for a client's certificate"},
		{"a stranger's client certificate", testkit.KafkaMTLS, func(c *KafkaConfig) {
			tls(c)
			c.TLSCert, c.TLSKey = stranger.ClientCert, stranger.ClientKey
		}, "unknown certificate"},
	} {
		t.Run(e.name, func(t *testing.T) {
			w := &world{tb: t, brokers: k.Addrs()}
			kc, c := settings(t, w)
			enterWith(k, e)(&kc)
			inspected(t, kc, e.refused)
			con, err := New(kc, c, DeadLetterConfig{MaxRatio: .2}, Deps{Topics: []string{topic}, Handler: newHandler(), Log: quiet(), Reg: prometheus.NewRegistry()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err = con.Run(ctx)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), e.refused) {
				t.Errorf("Run ended with %v, want %q", err, e.refused)
			}
		})
	}
}
