package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"assay/internal/testkit"
)

// A broker that asks who comes, a topic written in transactions: assay reads what was
// committed, and says the true reason where it is not let in.
func TestASecuredBrokerWithTransactions(t *testing.T) {
	inParallel(t)
	kafka := testkit.Kafka(t, testkit.KafkaOptions{Secured: true, Partitions: 2, Topics: []string{killTopic}})
	committed := writeInTransactions(t, kafka.Addrs())
	w := newWorkers(t, kafka.AddrsOf(testkit.KafkaSASLTLS))
	right := map[string]string{
		"ASSAY_KAFKA_SASL": "scram-sha-512", "ASSAY_KAFKA_USERNAME": testkit.KafkaUser, "ASSAY_KAFKA_PASSWORD": testkit.KafkaPassword,
		"ASSAY_KAFKA_TLS": "true", "ASSAY_KAFKA_TLS_CA": kafka.Certificates.CA,
	}
	a := testkit.StartAssay(t, with(w.options, right))
	w.awaitCounted(t, committed, time.Minute)
	stopAll(t, a)
	got := audit(t, w.conn, kafka.Addrs(), realGroup, killTopic, "policy", 0.5)
	if got.logged != committed {
		t.Errorf("%d records counted, %d were committed", got.logged, committed)
	}

	t.Run("doctor says ok", func(t *testing.T) {
		found := doctorFinds(t, with(w.options, right))
		if f := found["topic "+killTopic]; f.State != stateOK {
			t.Errorf("%+v", f)
		}
		// a day is what the tests' certificates are good for
		if f := found["broker "+kafka.AddrsOf(testkit.KafkaSASLTLS)[0]]; f.State != stateWarn || !strings.Contains(f.Says, "answers; a certificate ends in 0 days") {
			t.Errorf("%+v", f)
		}
	})
	for _, c := range []struct {
		name     string
		listener testkit.KafkaListener
		change   map[string]string
		says     string
		exit     int // of assay run; 0 where it goes on trying
	}{
		{"wrong password", testkit.KafkaSASLTLS, map[string]string{"ASSAY_KAFKA_PASSWORD": "wrong"}, "SASL Authentication Failed", exitUsage},
		{"authority not known", testkit.KafkaSASLTLS, map[string]string{"ASSAY_KAFKA_TLS_CA": ""}, "certificate signed by unknown authority", exitUsage},
		{"no client certificate", testkit.KafkaMTLS,
			map[string]string{"ASSAY_KAFKA_SASL": "", "ASSAY_KAFKA_USERNAME": "", "ASSAY_KAFKA_PASSWORD": ""}, "ASSAY_KAFKA_TLS_CERT", exitUsage},
		{"the listener of another protocol", testkit.KafkaOpen,
			map[string]string{"ASSAY_KAFKA_SASL": "", "ASSAY_KAFKA_USERNAME": "", "ASSAY_KAFKA_PASSWORD": ""}, "is this a listener without TLS?", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := with(with(w.options, right), c.change)
			o.Kafka = kafka.AddrsOf(c.listener)
			if f := doctorFinds(t, o, "kafka")["broker "+o.Kafka[0]]; f.State != "fail" || !strings.Contains(f.Says, c.says) || f.Fix == "" {
				t.Errorf("doctor: %+v, want %q and a fix", f, c.says)
			}
			run := testkit.StartAssay(t, o)
			if c.exit == 0 {
				testkit.Eventually(t, 30*time.Second, "assay run says why it waits", func() error {
					if !strings.Contains(run.Output(), c.says) {
						return fmt.Errorf("it printed\n%s", run.Output())
					}
					return nil
				})
				return
			}
			if code := run.Wait(t, 30*time.Second); code != c.exit || !strings.Contains(lastLine(run.Output()), c.says) {
				t.Errorf("assay run ended with %d, want %d and %q:\n%s", code, c.exit, c.says, run.Output())
			}
		})
	}
}

// writeInTransactions commits every other transaction and returns how many records were
// committed.
func writeInTransactions(t *testing.T, brokers []string) (committed int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID("writer"), kgo.DefaultProduceTopic(killTopic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	start := time.Now().UTC().Add(-time.Hour)
	for n := range 20 {
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		var records []*kgo.Record
		for i := range 20 {
			r := flatRecord(n*20+i, start.Add(time.Duration(n)*time.Second))
			records = append(records, &kgo.Record{Key: r.Key, Value: r.Value, Timestamp: r.Time})
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		end := kgo.TryAbort
		if n%2 == 0 {
			end, committed = kgo.TryCommit, committed+len(records)
		}
		if err := client.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	return committed
}

// with adds to the environment of a run.
func with(o testkit.AssayOptions, more map[string]string) testkit.AssayOptions {
	env := make(map[string]string, len(o.Env)+len(more))
	for _, m := range []map[string]string{o.Env, more} {
		for k, v := range m {
			env[k] = v
		}
	}
	o.Env = env
	return o
}

// doctorFinds returns what `assay doctor` found, by what it looked at.
func doctorFinds(t *testing.T, o testkit.AssayOptions, sections ...string) map[string]finding {
	t.Helper()
	o.Args = append([]string{"doctor", "--json"}, sections...)
	run := testkit.StartAssay(t, o)
	run.Wait(t, time.Minute)
	out := run.Output()
	end := strings.LastIndex(out, "]")
	if end < 0 {
		t.Fatalf("doctor printed\n%s", out)
	}
	var list []finding
	if err := json.Unmarshal([]byte(out[:end+1]), &list); err != nil {
		t.Fatalf("doctor printed\n%s: %v", out, err)
	}
	found := make(map[string]finding)
	for _, f := range list {
		found[f.What] = f
	}
	return found
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
