package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/testkit"
)

const joinsTopic = "kill.halves"

func joinsChecks(judgeURL string) string {
	return fmt.Sprintf(`
version: 1
dimensions: [app]
sources: [{ topic: %s, join_wait: 20s, feedback: { thumbs: polite } }]
judges:
  main:
    kind: openai
    base_url: %s
    model: fake-model
    method: logprobs
    max_in_flight: 16
    requests_per_minute: 12000
    budget: { calls_per_day: 10000000 }
checks:
  - { name: polite, evaluator: closed_qa, criteria: { text: "Greets." }, judge: main, sample: { rate: 0.5 } }
`, joinsTopic, judgeURL)
}

// traceEvents is a record of a trace store.
func traceEvents(at time.Time, partition int, events ...map[string]any) interaction.Record {
	body, err := json.Marshal(map[string]any{"batch": events})
	if err != nil {
		panic(err) // strings and maps
	}
	return interaction.Record{Time: at, Value: body, Partition: partition}
}

func traceEvent(kind string, body map[string]any) map[string]any {
	return map[string]any{"type": kind, "timestamp": "2026-03-01T12:00:00Z", "body": body}
}

// assay run is killed while calls are open: their first halves lie below and above what is
// committed. In the end each call is judged or counted once, under its own id, and what
// users said of it has found it.
func TestSIGKILLBetweenHalvesLosesAndDoublesNothing(t *testing.T) {
	const partitions, calls, openAtOnce, kills = 2, 2400, 150, 2
	kafka, err := demo.StartKafka(demo.KafkaOptions{Partitions: partitions, Topics: []string{joinsTopic}})
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	producer, err := demo.NewProducer(kafka.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	fake := testkit.NewFakeJudge(t, func(testkit.FakeRequest) testkit.FakeReply {
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": 0.9, "no": 0.1}, Latency: 5 * time.Millisecond}
	})
	engine := testkit.ClickHouse(t)

	id := func(n int) string { return fmt.Sprintf("call-%d", n) }
	never := func(n int) bool { return n%200 == 17 } // its end never comes
	rated := func(n int) bool { return n%50 == 3 }
	at := time.Now().UTC().Add(-time.Hour)
	var batch []interaction.Record
	add := func(n int, event map[string]any) {
		batch = append(batch, traceEvents(at, n%partitions, event))
	}
	for n := range calls + 2*openAtOnce {
		at = at.Add(20 * time.Millisecond)
		if n < calls {
			add(n, traceEvent("generation-create", map[string]any{"id": id(n), "input": fmt.Sprintf("Where is parcel %d?", n), "metadata": map[string]any{"app": "desk"}}))
		}
		if m := n - openAtOnce; m >= 0 && m < calls && !never(m) {
			add(m, traceEvent("generation-update", map[string]any{"id": id(m), "output": "In Lyon.", "endTime": at.Format(time.RFC3339Nano)}))
		}
		if m := n - 2*openAtOnce; m >= 0 && rated(m) {
			add(m, traceEvent("score-create", map[string]any{"observationId": id(m), "name": "thumbs", "value": m % 2}))
		}
	}
	at = at.Add(time.Minute) // the log moves on, and what never ended is given up
	for p := range partitions {
		add(p, traceEvent("generation-create", map[string]any{"id": fmt.Sprint("last-", p), "input": "Hello?", "output": "Hello.", "endTime": at.Format(time.RFC3339Nano)}))
	}
	if err := producer.Produce(t.Context(), joinsTopic, batch...); err != nil {
		t.Fatal(err)
	}

	options := testkit.AssayOptions{
		Checks: joinsChecks(fake.URL), Kafka: kafka.Addrs(), Engine: engine,
		Env: map[string]string{
			"ASSAY_KAFKA_START": "earliest", "ASSAY_KAFKA_SESSION_TIMEOUT": "3s", "ASSAY_KAFKA_HEARTBEAT": "300ms",
			"ASSAY_KAFKA_TIMEOUT": "2s", "ASSAY_KAFKA_MAX_WAIT": "200ms", "ASSAY_CONSUMER_DRAIN_JUDGE": "200ms", "ASSAY_CONSUMER_DRAIN_FLUSH": "300ms",
			"ASSAY_CONSUMER_COMMIT_EVERY": "100ms", "ASSAY_CONSUMER_WINDOW": "64", "ASSAY_SINK_BATCH_AGE": "20ms",
			"ASSAY_MONITOR_CLOCK": "event", "ASSAY_MONITOR_EVERY": "500ms", "ASSAY_MONITOR_IDLE": "2s",
		},
	}
	conn := engine.Conn(t)
	count := func(sql string) (n uint64, err error) {
		return n, conn.QueryRow(t.Context(), sql).Scan(&n)
	}
	// A kill comes when some more calls are counted, so that it finds work wherever the
	// machine stands.
	moments := rand.New(rand.NewPCG(1, kills))
	counted := func(want uint64) func() error {
		return func() error {
			n, err := count("SELECT sum(n) FROM (SELECT n FROM population FINAL WHERE decision = 'interaction')")
			if err == nil && n < want {
				err = fmt.Errorf("%d of %d interactions", n, want)
			}
			return err
		}
	}
	for kill := range kills {
		a := testkit.StartAssay(t, options)
		testkit.Eventually(t, 2*time.Minute, "some calls are counted", counted(uint64(kill*800+1+moments.IntN(500))))
		a.Kill()
	}
	a := testkit.StartAssay(t, options)
	testkit.Eventually(t, 3*time.Minute, "every call is counted", counted(calls+partitions))

	judged, incomplete := 0, 0
	for n := range calls {
		switch {
		case never(n):
			incomplete++
		case hashU("polite", id(n)) < 0.5:
			judged++
		}
	}
	for p := range partitions {
		if hashU("polite", fmt.Sprint("last-", p)) < 0.5 {
			judged++
		}
	}
	for _, c := range []struct {
		what, sql string
		want      int
	}{
		{"interactions", "SELECT sum(n) FROM (SELECT n FROM population FINAL WHERE decision = 'interaction')", calls + partitions},
		{"incomplete", "SELECT sum(n) FROM (SELECT n FROM population FINAL WHERE decision = 'not_applicable' AND reason = 'incomplete')", incomplete},
		{"not applicable", "SELECT sum(n) FROM (SELECT n FROM population FINAL WHERE decision = 'not_applicable')", incomplete},
		{"selected", "SELECT sum(n) FROM (SELECT n FROM population FINAL WHERE decision = 'selected')", judged},
	} {
		if n, err := count(c.sql); err != nil || n != uint64(c.want) {
			t.Errorf("the ledger has %d %s (%v), want %d", n, c.what, err, c.want)
		}
	}
	testkit.Eventually(t, time.Minute, "every selected call has its judgement", func() error {
		rows, err := count("SELECT count() FROM evaluations FINAL WHERE status = 'ok'")
		if err != nil {
			return err
		}
		ids, err := count("SELECT uniqExact(interaction_id) FROM evaluations FINAL WHERE status = 'ok'")
		if err == nil && (rows != ids || rows != uint64(judged)) {
			err = fmt.Errorf("%d rows of %d calls, want %d", rows, ids, judged)
		}
		return err
	})
	placed, waiting := 0, 0
	for n := range calls {
		if rated(n) && hashU("polite", id(n)) < 0.5 && !never(n) {
			placed++
		} else if rated(n) {
			waiting++
		}
	}
	testkit.Eventually(t, time.Minute, "what users said has found its calls", func() error {
		const newest = "(SELECT interaction_id, ts, passed, deleted FROM labels FINAL WHERE check = 'polite' AND rater = 'feedback:thumbs' AND deleted = 0)"
		n, err := count("SELECT count() FROM " + newest + " WHERE ts > toDateTime64(86400, 3, 'UTC') AND passed = toUInt64(substring(interaction_id, 6)) % 2")
		if err != nil {
			return err
		}
		left, err := count("SELECT count() FROM " + newest + " WHERE ts < toDateTime64(86400, 3, 'UTC')")
		if err == nil && (n != uint64(placed) || left != uint64(waiting)) {
			err = fmt.Errorf("%d found their calls and %d wait, want %d and %d", n, left, placed, waiting)
		}
		return err
	})
	if code := a.Stop(t, 30*time.Second); code != 0 {
		t.Fatalf("assay run ended with %d:\n%s", code, a.Output())
	}
}
