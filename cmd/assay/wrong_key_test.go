package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/testkit"
)

// The first start with a wrong key costs what was being asked at that moment. Everything
// else waits in the topic and is judged when the key is right.
func TestAWrongKeyHoldsTheRecordsUntilItIsRight(t *testing.T) {
	const records, atOnce = 400, 32
	kafka, err := demo.StartKafka(demo.KafkaOptions{Partitions: 2, Topics: []string{killTopic}})
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	producer, err := demo.NewProducer(kafka.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	var batch []interaction.Record
	start := time.Now().UTC().Add(-30 * time.Minute)
	for i := range records {
		batch = append(batch, flatRecord(i, start.Add(time.Duration(i)*time.Second)))
	}
	if err := producer.Produce(t.Context(), killTopic, batch...); err != nil {
		t.Fatal(err)
	}
	var right atomic.Bool
	fake := testkit.NewFakeJudge(t, func(testkit.FakeRequest) testkit.FakeReply {
		if !right.Load() {
			return testkit.FakeReply{Fault: testkit.Unauthorized}
		}
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": 0.9, "no": 0.1}}
	})
	engine := testkit.ClickHouse(t)
	a := testkit.StartAssay(t, testkit.AssayOptions{
		Checks: strings.Replace(killChecks(fake.URL), "rate: 0.5", "rate: 1", 1), Kafka: kafka.Addrs(), Engine: engine,
		Env: map[string]string{
			"ASSAY_KAFKA_START": "earliest", "ASSAY_JUDGE_BREAKER_PAUSE": "200ms", "ASSAY_CONSUMER_COMMIT_EVERY": "200ms", "ASSAY_SINK_BATCH_AGE": "50ms",
		},
	})
	a.AwaitReady(t, time.Minute)
	testkit.Eventually(t, time.Minute, "the breaker is open", func() error {
		if metrics := a.Get(t, "/metrics"); !strings.Contains(metrics, `assay_consumer_paused{partition="0",reason="judge",topic="kill.interactions"} 1`) {
			return fmt.Errorf("no pause for the judge yet")
		}
		return nil
	})
	right.Store(true)
	conn := engine.Conn(t)
	count := func(status string) (n uint64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM evaluations FINAL WHERE status = '"+status+"'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	testkit.Eventually(t, time.Minute, "everything has a row", func() error {
		if n := count("ok") + count("error") + count("shed"); n != records {
			return fmt.Errorf("%d of %d rows", n, records)
		}
		return nil
	})
	if failed, shed := count("error"), count("shed"); failed > atOnce || shed > 0 {
		t.Errorf("%d judgements failed and %d were shed, want at most the %d that were being asked, and none", failed, shed, atOnce)
	}
	if code := a.Stop(t, 30*time.Second); code != 0 {
		t.Fatalf("assay run ended with %d:\n%s", code, a.Output())
	}
}
