package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/monitor"
	"assay/internal/testkit"
)

// alertChecks is the shop's policy check: all of it, and both apps declared.
func alertChecks(judgeURL string) string {
	return fmt.Sprintf(`
version: 1
dimensions: [app, prompt_version]
slices: [{ app: support }, { app: billing-bot }]
sources:
  - topic: %s
    fields: { app: metadata.app, prompt_version: metadata.prompt_version, criteria: metadata.criteria }
judges:
  main:
    kind: openai
    base_url: %s
    model: fake-model
    method: logprobs
    max_in_flight: 32
    budget: { calls_per_day: 10000000 }
checks:
  - name: answers_policy
    evaluator: closed_qa
    criteria: { field: criteria }
    judge: main
    sample: { rate: 1 }
    alert: { target: 0.93, tolerance: 0.02, severity: page, labels: { team: shop } }
alerts: { max_false_alarms_per_year: 4 }
`, demo.Topic, judgeURL)
}

// simulatedSpan is a span of the shop's traffic: all of support on one prompt version.
func simulatedSpan(start, end time.Time, perDay int, seed uint64) demo.Options {
	o := demo.DefaultOptions(start, end)
	o.Interactions = int(float64(perDay) * end.Sub(start).Hours() / 24)
	o.Seed = seed
	o.Rollout = []demo.RolloutPoint{{After: 0, Share: 1}}
	o.Drop = demo.Drop{}
	o.Broken = 0
	return o
}

// alertWorld is everything that an alert passes on its way.
type alertWorld struct {
	kafka      *demo.Kafka
	engine     *testkit.Engine
	assay      *testkit.Assay
	prometheus *testkit.Prometheus
	alerts     *testkit.Alertmanager
	webhook    *testkit.Webhook
	rules      []string // as deployed and exported
	judgeDown  atomic.Bool
	written    int // interactions
}

// newAlertWorld starts assay run on an in-process Kafka, and a Prometheus and an
// Alertmanager with the files of deploy: only their waits are shorter, and the
// receivers lead here.
func newAlertWorld(t *testing.T, env map[string]string) *alertWorld {
	t.Helper()
	w := &alertWorld{webhook: testkit.NewWebhook(t)}
	var err error
	if w.kafka, err = demo.StartKafka(demo.KafkaOptions{Partitions: 4, Topics: []string{demo.Topic}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kafka.Close)
	grader, err := demo.New(simulatedSpan(time.Unix(0, 0), time.Unix(86400, 0), 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	judge := testkit.NewFakeJudge(t, func(r testkit.FakeRequest) testkit.FakeReply {
		if w.judgeDown.Load() {
			return testkit.FakeReply{Fault: testkit.ServerError}
		}
		class, ok := grader.Bank().Grade(r.Field("input"), r.Field("output"))
		if !ok && !r.Probe {
			t.Errorf("the bank does not know the answer %q to %q", r.Field("output"), r.Field("input"))
		}
		if class == demo.Good {
			return testkit.FakeReply{Probabilities: map[string]float64{"yes": .95, "no": .05}}
		}
		return testkit.FakeReply{Probabilities: map[string]float64{"yes": .1, "no": .9}}
	})
	checks := alertChecks(judge.URL)
	w.engine = testkit.ClickHouse(t)
	vars := map[string]string{
		"ASSAY_KAFKA_START": "earliest", "ASSAY_MONITOR_CLOCK": "event", "ASSAY_MONITOR_EVERY": "500ms", "ASSAY_MONITOR_IDLE": "3s",
		"ASSAY_MONITOR_LOOKBACK": "5s", "ASSAY_CONSUMER_COMMIT_EVERY": "250ms", "ASSAY_SINK_BATCH_AGE": "250ms", "ASSAY_JUDGE_BREAKER_PAUSE": "500ms",
	}
	for k, v := range env {
		vars[k] = v
	}
	w.assay = testkit.StartAssay(t, testkit.AssayOptions{Checks: checks, Kafka: w.kafka.Addrs(), Engine: w.engine, Env: vars})

	config := deployed(t, "alertmanager/alertmanager.yml")
	config = strings.ReplaceAll(config, "http://127.0.0.1:9095", w.webhook.URL)
	config = strings.NewReplacer("group_wait: 30s", "group_wait: 300ms", "group_interval: 5m", "group_interval: 1s").Replace(config)
	w.alerts = testkit.StartAlertmanager(t, config)
	w.rules = []string{deployed(t, "prometheus/assay.rules.yml"), exported(t, checks)}
	w.assay.AwaitReady(t, time.Minute)
	w.prometheus = testkit.StartPrometheus(t, testkit.PrometheusOptions{
		Targets: []string{strings.TrimPrefix(w.assay.URL, "http://")}, Alertmanager: w.alerts,
		Rules: []string{quick(w.rules[0]), quick(w.rules[1])}, Every: 1500 * time.Millisecond, // a scrape may take as long: machines that test are busy
	})
	return w
}

// produce writes the records of a simulation from one time to another.
func (w *alertWorld) produce(t *testing.T, o demo.Options, from, until time.Time) {
	t.Helper()
	sim, err := demo.New(o)
	if err != nil {
		t.Fatal(err)
	}
	producer, err := demo.NewProducer(w.kafka.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	var records []interaction.Record
	for e := range sim.Events() {
		if e.Record.Time.Before(from) || !e.Record.Time.Before(until) {
			continue
		}
		w.written += len(e.Truths)
		r := e.Record
		r.Partition = demo.ByKey
		records = append(records, r)
	}
	for batch := range slices.Chunk(records, 500) {
		if err := producer.Produce(t.Context(), demo.Topic, batch...); err != nil {
			t.Fatal(err)
		}
	}
}

// play writes a part of a simulation and waits until it is read: then the log
// stands, and alarms and alerts with it.
func (w *alertWorld) play(t *testing.T, o demo.Options, from, until time.Time) {
	t.Helper()
	w.produce(t, o, from, until)
	w.awaitRead(t, until.Add(-10*time.Minute))
}

// awaitRead waits until everything is counted and the detectors have read it.
func (w *alertWorld) awaitRead(t *testing.T, until time.Time) {
	t.Helper()
	conn := w.engine.Conn(t)
	testkit.Eventually(t, 2*time.Minute, "all of the traffic is read", func() error {
		var counted uint64
		if err := conn.QueryRow(t.Context(), "SELECT sum(n_interactions) FROM population_1m FINAL WHERE check = ''").Scan(&counted); err != nil {
			return err
		}
		var read time.Time
		if err := conn.QueryRow(t.Context(), "SELECT max(minute) FROM detector_state FINAL").Scan(&read); err != nil {
			return err
		}
		if counted != uint64(w.written) || read.Before(until) {
			return fmt.Errorf("%d of %d interactions, detectors are at %s of %s", counted, w.written, read.Format("Jan 2 15:04"), until.Format("15:04"))
		}
		return nil
	})
}

// quality are the messages about quality, as "status alertname slice".
func (w *alertWorld) quality(status string) []string {
	var found []string
	for _, a := range w.webhook.Alerts(status) {
		if strings.HasPrefix(a.Labels["alertname"], "AssayQuality") {
			found = append(found, a.Labels["alertname"]+" "+a.Annotations["slice"])
		}
	}
	return found
}

// One app answers worse by ten points for seven hours of a day. The alert reaches the
// end of the way with its numbers, and is resolved after the repair.
//
// Ids and so the order of rows differ from run to run. Of the fall there are about
// 4,000 rows, which carry four standard deviations more evidence than the alarm needs.
func TestADropOfTenPointsReachesTheWebhookAndResolves(t *testing.T) {
	w := newAlertWorld(t, nil)
	end := time.Now().UTC().Truncate(time.Minute)
	o := simulatedSpan(end.Add(-24*time.Hour), end, 20_000, 7)
	o.Drop = demo.Drop{App: "support", PromptVersion: demo.NewPrompt, From: 3 * time.Hour, To: 10 * time.Hour, Loss: 0.10}
	falls, repaired := o.Start.Add(o.Drop.From), o.Start.Add(o.Drop.To)
	w.play(t, o, o.Start, falls)
	w.quiet(t)

	w.play(t, o, falls, repaired)
	var n testkit.Notification
	testkit.Eventually(t, time.Minute, "the drift alert on app=support has come", func() error {
		all := w.webhook.Notifications()
		at := slices.IndexFunc(all, func(n testkit.Notification) bool {
			return n.Status == "firing" && n.GroupLabels["check"] == "answers_policy" &&
				slices.ContainsFunc(n.Alerts, func(a testkit.NotifiedAlert) bool { return a.Annotations["slice"] == "app=support" })
		})
		if at < 0 {
			return fmt.Errorf("messages %+v", all)
		}
		n = all[at]
		return nil
	})
	if n.Receiver != "page" {
		t.Errorf("it went to %s, want page", n.Receiver)
	}
	for _, a := range n.Alerts {
		checkDriftAlert(t, a)
	}

	w.play(t, o, repaired, o.End)
	testkit.Eventually(t, time.Minute, "the drift alert on app=support is resolved", func() error {
		if !slices.Contains(w.quality("resolved"), monitor.AlertDrift+" app=support") {
			return fmt.Errorf("resolved so far: %v", w.quality("resolved"))
		}
		return nil
	})
	for _, a := range w.webhook.Alerts("firing") {
		if a.Labels["app"] == "billing-bot" {
			t.Errorf("an alert on the app that did not change: %+v", a)
		}
		if a.Labels["alertname"] == monitor.AlertMissing {
			t.Errorf("nothing is missing: %+v", a)
		}
	}

	// Here every role has run; with people's labels the series of every part are there.
	w.label(t)
	w.showsTheOverview(t, o.Start)
	if errs := w.prometheus.RuleErrors(t); len(errs) > 0 {
		t.Errorf("rules fail: %v", errs)
	}
	namesOnlyWhatExists(t, w.assay.Get(t, "/metrics"), w.rules...)
	w.runsDocumentedSQL(t)
}

// checkDriftAlert holds an alert's words against each other: check, slice, rate,
// interval and n are there, and say what they should.
func checkDriftAlert(t *testing.T, a testkit.NotifiedAlert) {
	t.Helper()
	t.Logf("%s: %s", a.Annotations["summary"], a.Annotations["description"])
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		if err != nil {
			t.Errorf("%s: %q is no number", a.Annotations["summary"], text)
		}
		return v
	}
	lower, upper, _ := strings.Cut(a.Annotations["interval"], " to ")
	rate, lo, hi, n := number(a.Annotations["rate"]), number(lower), number(upper), number(a.Annotations["n"])
	if !(lo < rate && rate < hi && lo < 91) || n < 30 || n != math.Trunc(n) {
		t.Errorf("rate %v, interval %v to %v, n %v: want a rate inside its interval, which reaches below 91%%, and whole rows", rate, lo, hi, n)
	}
	if a.Labels["check"] != "answers_policy" || a.Labels["severity"] != "page" || a.Labels["team"] != "shop" {
		t.Errorf("labels %v", a.Labels)
	}
	if slice := a.Annotations["slice"]; slice != "all" && slice != "app="+a.Labels["app"] {
		t.Errorf("slice %q with labels %v", slice, a.Labels)
	}
	for _, want := range []string{a.Annotations["rate"], a.Annotations["interval"], a.Annotations["n"] + " judged", "target 93.0%"} {
		if !strings.Contains(a.Annotations["description"], want) {
			t.Errorf("the description lacks %q: %s", want, a.Annotations["description"])
		}
	}
}

// runsDocumentedSQL runs what docs/alerts.md asks people to run.
func (w *alertWorld) runsDocumentedSQL(t *testing.T) {
	t.Helper()
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(root + "/docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	statements := regexp.MustCompile(`(?m)^    SELECT .*(?:\n    .*)*`).FindAllString(string(raw), -1)
	if len(statements) < 2 {
		t.Errorf("only %d statements in docs/alerts.md", len(statements))
	}
	for _, sql := range statements {
		w.engine.Exec(t, sql)
	}
}

// Days without a change raise nothing about quality, nor does a wobble inside the
// tolerance. Then the judge stops: that is an alert on the judge, and none on quality;
// it answers again, and nothing was lost.
//
// ASSAY_LONG=1 plays seven days instead of two.
func TestQuietDaysAndAStoppedJudgeRaiseNoQualityAlert(t *testing.T) {
	days := 2
	if os.Getenv("ASSAY_LONG") != "" {
		days = 7
	}
	// every question is asked anew, or the cache would answer for a judge that is down
	w := newAlertWorld(t, map[string]string{"ASSAY_JUDGE_CACHE_ENTRIES": "0"})
	end := time.Now().UTC().Truncate(time.Minute).Add(-24 * time.Hour)
	began := time.Now()
	for day := range days {
		until := end.AddDate(0, 0, day+1-days)
		o := simulatedSpan(until.AddDate(0, 0, -1), until, 8000, uint64(11+day))
		if day == days-1 { // a wobble that the tolerance allows: 92.5% is above 91%
			o.Drop = demo.Drop{App: "support", PromptVersion: demo.NewPrompt, From: 6 * time.Hour, To: 18 * time.Hour, Loss: 0.03}
		}
		w.play(t, o, o.Start, o.End)
	}
	t.Logf("%d quiet days, %d interactions, took %s", days, w.written, time.Since(began).Round(time.Second))
	testkit.Eventually(t, 10*time.Second, "the detector of app=support has read the days", func() error {
		s := w.prometheus.Query(t, `max(assay_drift_samples{app="support"})`)
		if len(s) != 1 || s[0].Value < 0.7*8000*.95*float64(days) {
			return fmt.Errorf("rows read: %v", s)
		}
		return nil
	})
	w.quiet(t)

	w.judgeDown.Store(true)
	stopped := simulatedSpan(end, end.Add(4*time.Hour), 8000, 30)
	w.produce(t, stopped, stopped.Start, stopped.End)
	failing := func(status string) func() error {
		return func() error {
			for _, a := range w.webhook.Alerts(status) {
				if a.Labels["alertname"] == "AssayJudgeFailing" && a.Labels["judge"] == "main" {
					return nil
				}
			}
			return fmt.Errorf("messages %+v", w.webhook.Notifications())
		}
	}
	testkit.Eventually(t, 30*time.Second, "AssayJudgeFailing has come", failing("firing"))
	// long enough for everything that could follow
	testkit.Eventually(t, 30*time.Second, "AssayJudgeFailing goes on", func() error {
		s := w.prometheus.Query(t, `count_over_time(ALERTS{alertname="AssayJudgeFailing",alertstate="firing"}[1h]) >= 6`)
		if len(s) != 1 {
			return fmt.Errorf("alerts %v", w.prometheus.Query(t, "ALERTS"))
		}
		return nil
	})
	w.quiet(t)

	w.judgeDown.Store(false)
	w.awaitRead(t, stopped.End.Add(-10*time.Minute))
	testkit.Eventually(t, 30*time.Second, "AssayJudgeFailing is resolved", failing("resolved"))
	w.quiet(t)
}

// quiet asserts that no detector has opened an alarm so far and that no message about
// quality has come.
func (w *alertWorld) quiet(t *testing.T) {
	t.Helper()
	if got := w.quality("firing"); len(got) > 0 {
		t.Errorf("alerts on quality: %v\n%+v", got, w.webhook.Notifications())
	}
	for _, s := range w.prometheus.Query(t, `max_over_time(assay_drift_alarm[1h]) > 0`) {
		t.Errorf("the alarm of %v was open", s.Labels)
	}
}
