package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"assay/internal/demo"
)

const sampleChecks = `
version: 1
dimensions: [app]
sources:
  - { topic: parcels, fields: { expected: metadata.gold, tenant: metadata.nowhere } }
  - { topic: quiet }
judges:
  main: { kind: openai, base_url: "http://127.0.0.1:1/v1", model: fake-model, method: logprobs, budget: { calls_per_day: 1000 } }
checks:
  - { name: policy, evaluator: closed_qa, criteria: { text: "Says when it comes." }, when: app == "shop", judge: main, sample: { rate: 1 }, alert: { target: 0.9 } }
  - { name: facts, evaluator: factuality, reference: { field: expected }, judge: main, sample: { rate: 0.002 }, alert: { target: 0.9 } }
privacy: { store_text: excerpt, redact: [email] }
`

// A topic as they are: several formats and framings, texts left out, rubbish, a
// transaction that was taken back. The numbers are those of what was written.
func TestASampleSaysWhatATopicIsReadAs(t *testing.T) {
	inParallel(t)
	kafka, err := demo.StartKafka(demo.KafkaOptions{Partitions: 2, Topics: []string{"parcels", "quiet"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var records []*kgo.Record
	add := func(value string) {
		i := len(records)
		records = append(records, &kgo.Record{Topic: "parcels", Partition: int32(i % 2), Value: []byte(value), Timestamp: start.Add(time.Duration(i) * time.Second)})
	}
	for i := range 10 {
		add(fmt.Sprintf(`{"id":"old-%d","input":"a","output":"b"}`, i)) // older than the sample
	}
	for i := range 50 {
		gold := ""
		if i%5 == 0 {
			gold = `,"metadata":{"gold":"In Lyon."}`
		}
		add(fmt.Sprintf(`{"id":"f-%d","app":"shop","input":"Write to anna@parcels.example, where is %d?","output":"In Lyon."%s}`, i, i, gold))
	}
	for i := range 30 {
		add(fmt.Sprintf(`{"request":{"id":"k-%d"},"route":{"name":"chat"},"started_at":1777888800000,"latencies":{"request":9},"ai":{"proxy":{"usage":{"prompt_tokens":3}}}}`, i))
	}
	for range 15 {
		add("not json")
	}
	for range 5 {
		add("null")
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "assay.yaml")
	if err := os.WriteFile(file, []byte(sampleChecks), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(asJSON bool) string {
		t.Helper()
		var out bytes.Buffer
		a := &app{out: &out, err: &out, json: asJSON, environ: []string{"ASSAY_CHECKS=" + file, "ASSAY_KAFKA_GROUP=sampled", "ASSAY_KAFKA_BROKERS=" + strings.Join(kafka.Addrs(), ",")}}
		if err := a.doctorSample(t.Context(), 100, "", nil); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		return out.String()
	}

	var samples []topicSample
	if err := json.Unmarshal([]byte(run(true)), &samples); err != nil {
		t.Fatal(err)
	}
	if len(samples) != 2 || samples[1].Topic != "quiet" || samples[1].Records != 0 {
		t.Fatalf("%+v", samples)
	}
	s := samples[0]
	if s.Records != 100 || !s.From.Equal(start.Add(10*time.Second)) || !s.To.Equal(start.Add(109*time.Second)) || s.PerSecond != 1 {
		t.Errorf("%d records from %s to %s, %v/s", s.Records, s.From, s.To, s.PerSecond)
	}
	if want := []formatSample{{"flat", "none", 50}, {"kong", "none", 30}, {"unknown", "none", 20}}; !slices.Equal(s.Formats, want) {
		t.Errorf("formats %v, want %v", s.Formats, want)
	}
	if s.Interactions != 80 || s.Judgeable != 50 || s.WithoutText != 30 || s.NotJudged["no_content"] != 30 || s.Bad["not_json"] != 15 || s.Skips["json_null"] != 5 {
		t.Errorf("%+v", s)
	}
	if len(s.TextSwitches) != 1 || !strings.HasPrefix(s.TextSwitches[0], "kong: ") || !strings.Contains(s.TextSwitches[0], "log_payloads") {
		t.Errorf("switches %v", s.TextSwitches)
	}
	if want := []string{"tenant: metadata.nowhere"}; !slices.Equal(s.Unmatched, want) {
		t.Errorf("unmatched %v, want %v", s.Unmatched, want)
	}
	policy, facts := s.Checks[0], s.Checks[1]
	if policy.Filtered != 30 || policy.CanJudge != 50 || policy.Selected != 50 {
		t.Errorf("policy: %+v", policy)
	}
	if facts.Filtered != 0 || facts.CanJudge != 10 || facts.Why["missing:expected"] != 40 || facts.Why["no_content"] != 30 {
		t.Errorf("facts: %+v", facts)
	}
	if len(s.Examples) < 2 || s.Examples[0].Input == nil || !strings.Contains(*s.Examples[0].Input, "[email]") || strings.Contains(*s.Examples[0].Input, "anna") {
		t.Errorf("examples %+v", s.Examples)
	}
	// 50 of 100 records would be judged, and the judge is away: as long as it may take
	if s.Load == nil || s.Load.SelectedPerSecond != 0.5 || s.Load.JudgementSeconds != 20 || s.Load.Unresolved != 10 {
		t.Errorf("load %+v", s.Load)
	}

	text := run(false)
	for _, want := range []string{"the 100 newest records", "judgeable 62.5% (50), without text 37.5% (30)", "fix: to have text logged by kong",
		"check facts: could judge 12.5% (10)", "fields: tenant: metadata.nowhere matched nothing", "example 1", "topic quiet: no records"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}

	// a topic that is not there keeps nobody from seeing the others
	if err := os.WriteFile(file, []byte(strings.Replace(sampleChecks, "topic: quiet", "topic: nowhere", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{out: &out, err: &out, environ: []string{"ASSAY_CHECKS=" + file, "ASSAY_KAFKA_BROKERS=" + strings.Join(kafka.Addrs(), ",")}}
	if err := a.doctorSample(t.Context(), 100, "", nil); err == nil || !strings.Contains(err.Error(), "topic nowhere: ") || !strings.Contains(out.String(), "the 100 newest records") {
		t.Errorf("%v\n%s", err, out.String())
	}

	// nobody joined and nothing was committed
	req := kmsg.NewPtrListGroupsRequest()
	res, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range res.Groups {
		t.Errorf("group %s exists", g.Group)
	}
}

// Markers and records that were taken back hold offsets and are no records.
func TestASampleLeavesOutWhatWasTakenBack(t *testing.T) {
	inParallel(t)
	kafka, err := demo.StartKafka(demo.KafkaOptions{Partitions: 2, Topics: []string{killTopic}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kafka.Close)
	committed := writeInTransactions(t, kafka.Addrs())
	file := filepath.Join(t.TempDir(), "assay.yaml")
	if err := os.WriteFile(file, []byte(killChecks("http://127.0.0.1:1/v1")), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(n, want int) {
		t.Helper()
		var out bytes.Buffer
		a := &app{out: &out, err: &out, json: true, environ: []string{"ASSAY_CHECKS=" + file, "ASSAY_KAFKA_BROKERS=" + kafka.Addrs()[0]}}
		if err := a.doctorSample(t.Context(), n, "", nil); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		var samples []topicSample
		if err := json.Unmarshal(out.Bytes(), &samples); err != nil {
			t.Fatal(err)
		}
		if s := samples[0]; s.Records != want || s.Judgeable != want {
			t.Errorf("a sample of %d: %d records, %d judgeable, want %d", n, s.Records, s.Judgeable, want)
		}
	}

	f(60, 60)
	f(10_000, committed)
}
