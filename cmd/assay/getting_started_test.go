package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/demo"
	"assay/internal/monitor"
	"assay/internal/testkit"
)

// A reader has what the page asks for: a topic with traffic, and the rest.
type reader struct {
	shell   *readersShell
	dir     string
	yours   *strings.Replacer // the page's addresses and secrets, and what stands for them here
	engine  *testkit.Engine
	webhook *testkit.Webhook
	truth   map[string]bool // whether an answer is good, by its interaction
	asked   []string        // interactions that the reader labelled
	rang    bool            // the alert's message has come
}

// newReader writes a day of the simulated shop's traffic into the topic of the page;
// in its last six hours the support app answers much worse.
func newReader(t *testing.T) *reader {
	t.Helper()
	const topic = "llm.interactions"
	r := &reader{dir: t.TempDir(), webhook: testkit.NewWebhook(t), truth: map[string]bool{}}
	kafka := testkit.Kafka(t, testkit.KafkaOptions{Partitions: 4, Topics: []string{topic}})
	r.engine = testkit.ClickHouse(t)

	end := time.Now().UTC().Truncate(time.Second)
	o := simulatedSpan(end.Add(-24*time.Hour), end, 8000, 5)
	o.Drop = demo.Drop{App: "support", PromptVersion: demo.NewPrompt, From: 18 * time.Hour, To: 24 * time.Hour, Loss: 0.4}
	sim, err := demo.New(o)
	if err != nil {
		t.Fatal(err)
	}
	producer, err := demo.NewProducer(kafka.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for e := range sim.Events() {
		for _, truth := range e.Truths {
			r.truth[truth.ID] = truth.Class == demo.Good
		}
		e.Record.Partition = demo.ByKey
		if err := producer.Produce(t.Context(), topic, e.Record); err != nil {
			t.Fatal(err)
		}
	}
	judge := testkit.NewFakeJudge(t, func(q testkit.FakeRequest) testkit.FakeReply {
		yes := .1
		if class, _ := sim.Bank().Grade(q.Field("input"), q.Field("output")); class == demo.Good {
			yes = .95
		}
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": yes, "no": 1 - yes}, Model: "some-model-2026-08-01"}
	})

	ports := make(map[string]string)
	for _, page := range []string{"localhost:8420", "localhost:9090", "localhost:9093"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all are taken before the first is given back
		ports[page] = l.Addr().String()
	}
	checkout := filepath.Join(t.TempDir(), "checkout")
	r.yours = strings.NewReplacer(
		"~/src/assay", checkout, "kafka.example:9092", kafka.Addrs()[0], "https://llm.example/v1", judge.URL,
		"clickhouse.example:8123", r.engine.Addr, "CLICKHOUSE_DATABASE=assay", "CLICKHOUSE_DATABASE="+r.engine.Database,
		"CLICKHOUSE_PASSWORD=change-me", "CLICKHOUSE_PASSWORD="+r.engine.Token,
		"localhost:8420", ports["localhost:8420"], "localhost:9090", ports["localhost:9090"], "localhost:9093", ports["localhost:9093"],
		"http://127.0.0.1:9095", r.webhook.URL)
	// the files of deploy as they are, but for shorter waits
	waits := strings.NewReplacer("_interval: 15s", "_interval: 1s", "group_wait: 30s", "group_wait: 300ms", "group_interval: 5m", "group_interval: 1s")
	for _, name := range []string{"prometheus/prometheus.yml", "prometheus/assay.rules.yml", "alertmanager/alertmanager.yml"} {
		file := filepath.Join(checkout, "deploy", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(waits.Replace(r.yours.Replace(deployed(t, name)))), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	bin := t.TempDir()
	kafka.Tool(t, bin, "kafka-console-consumer.sh", "org.apache.kafka.tools.consumer.ConsoleConsumer")
	if err := os.Symlink(testkit.Program(t, "assay"), filepath.Join(bin, "assay")); err != nil {
		t.Fatal(err)
	}
	if debian, err := exec.LookPath("prometheus-alertmanager"); err == nil { // its name there
		if err := os.Symlink(debian, filepath.Join(bin, "alertmanager")); err != nil {
			t.Fatal(err)
		}
	}
	r.shell = newReadersShell(t, r.dir, []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TZ=UTC",
		"ASSAY_MONITOR_EVERY=1s", "ASSAY_CONSUMER_COMMIT_EVERY=250ms", "ASSAY_SINK_BATCH_AGE=250ms",
	})
	return r
}

// catchUp waits for the backlog: a reader takes longer than a test.
func (r *reader) catchUp(t *testing.T) {
	t.Helper()
	conn := r.engine.Conn(t)
	testkit.Eventually(t, shellWait, "the topic is read", func() error {
		var counted uint64
		err := conn.QueryRow(t.Context(), "SELECT sum(n_interactions) FROM population_1m FINAL WHERE check = ''").Scan(&counted)
		if err == nil && counted < uint64(len(r.truth)) {
			err = fmt.Errorf("%d of %d interactions", counted, len(r.truth))
		}
		return err
	})
}

// awaitMessage waits for the end of the alert's way, beyond what the page looks at.
func (r *reader) awaitMessage(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, shellWait, "a message about app=support comes", func() error {
		if !slices.ContainsFunc(r.webhook.Alerts("firing"), func(a testkit.NotifiedAlert) bool {
			return a.Labels["alertname"] == monitor.AlertDrift && a.Labels["check"] == "helpful" && a.Annotations["slice"] == "app=support"
		}) {
			return fmt.Errorf("messages %+v", r.webhook.Notifications())
		}
		r.rang = true
		return nil
	})
}

// labels fills in what people say, once the page has drawn whom to ask about: the truth,
// but for every seventh answer.
func (r *reader) labels(t *testing.T) {
	t.Helper()
	file := filepath.Join(r.dir, "labels.csv")
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) || len(r.asked) > 0 {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	for i, line := range lines[1:] {
		id, empty := strings.CutSuffix(line, `,""`)
		id = strings.Trim(id, `"`)
		good, known := r.truth[id]
		if !empty || !known {
			t.Fatalf("labels.csv: %q: want a simulated interaction and an empty column", line)
		}
		lines[i+1] = fmt.Sprintf("%q,%t", id, good != (i%7 == 6))
		r.asked = append(r.asked, id)
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// follow does what a block says. When the page shows what is printed, the reader looks
// again until it is.
func (r *reader) follow(t *testing.T, b pageBlock, shown *pageBlock) {
	t.Helper()
	text := r.yours.Replace(b.text)
	if left := regexp.MustCompile(`\S*\.example\b\S*`).FindString(text); left != "" {
		t.Fatalf("line %d: %s stands for something of the reader's, and the test has nothing for it", b.line, left)
	}
	if b.file != "" {
		if err := os.WriteFile(filepath.Join(r.dir, b.file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	try := func() error {
		output, ok, err := r.shell.run(text)
		if err != nil {
			t.Fatalf("line %d: %v\n%s\n%s", b.line, err, b.text, output)
		}
		if !ok {
			return fmt.Errorf("a command failed:\n%s", output)
		}
		if shown == nil {
			return nil
		}
		return printed(output, r.yours.Replace(shown.text))
	}
	if shown == nil {
		if err := try(); err != nil {
			t.Fatalf("line %d: %v", b.line, err)
		}
		return
	}
	testkit.Eventually(t, shellWait, fmt.Sprintf("the commands of line %d print what line %d shows", b.line, shown.line), try)
}

// docs/getting-started.md as its reader follows it, from a topic to the alert.
func TestGettingStartedWorksAsItIsWritten(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "getting-started.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := pageBlocks(string(page))
	if err != nil {
		t.Fatalf("docs/getting-started.md: %v", err)
	}
	r := newReader(t)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, name := range []string{"assay.log", "prometheus.log", "alertmanager.log", "labels.csv"} {
			if raw, err := os.ReadFile(filepath.Join(r.dir, name)); err == nil {
				t.Logf("%s:\n%s", name, raw[max(0, len(raw)-4000):])
			}
		}
	})
	for i, b := range blocks {
		if b.kind == "text" {
			if i == 0 || blocks[i-1].kind != "sh" || blocks[i-1].file != "" {
				t.Fatalf("line %d: no commands print this", b.line)
			}
			continue
		}
		var shown *pageBlock
		if i+1 < len(blocks) && blocks[i+1].kind == "text" {
			shown = &blocks[i+1]
		}
		began := time.Now()
		switch {
		case b.file == "draw.sql":
			r.catchUp(t)
		case strings.HasPrefix(b.text, "kill "):
			r.awaitMessage(t)
		}
		r.follow(t, b, shown)
		r.labels(t)
		t.Logf("line %d: %s", b.line, time.Since(began).Round(10*time.Millisecond))
	}

	if len(r.asked) < 5 {
		t.Errorf("%d interactions were drawn for labels, want a handful", len(r.asked))
	}
	if !r.rang {
		t.Error("the page does not lead to an alert")
	}
}
