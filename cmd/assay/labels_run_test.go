package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/monitor"
	"assay/internal/testkit"
)

// A verdict is one line of a file of labels.
type verdict struct {
	id, rater string
	passed    bool
	origin    string
	pi2       float64 // of sampled ones; else 1
}

// labelledLog are human-judged answers as a log of eight days, and what people say of
// them: the verdicts of the file as imported labels, some with a second opinion, and a
// panel's, for whom the answers were drawn with two probabilities.
func labelledLog(t *testing.T, n int) (records []interaction.Record, verdicts []verdict) {
	t.Helper()
	answers, records := evouna(t)
	answers, records = answers[:n], records[:n]
	start := time.Now().UTC().Truncate(time.Second).Add(-8 * 24 * time.Hour)
	for i, a := range answers {
		at := start.Add(time.Duration(i) * (8*24*time.Hour - 10*time.Minute) / time.Duration(n)).Truncate(time.Second)
		var body map[string]any
		if err := json.Unmarshal(records[i].Value, &body); err != nil {
			t.Fatal(err)
		}
		body["response"].(map[string]any)["created"] = at.Unix()
		value, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		records[i].Time, records[i].Value = at, value
		if a.verdict == nil {
			continue
		}
		verdicts = append(verdicts, verdict{a.id, "people", *a.verdict, "imported", 1})
		if i%4 == 0 {
			verdicts = append(verdicts, verdict{a.id, "second opinion", *a.verdict != (i%16 == 0), "imported", 1})
		}
		if i%3 != 0 {
			verdicts = append(verdicts, verdict{a.id, "panel", *a.verdict, "sampled", []float64{.5, .125}[i%2]})
		}
	}
	return records, verdicts
}

// labelFile writes verdicts as JSONL or CSV, by the name.
func labelFile(t *testing.T, name string, verdicts []verdict) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if filepath.Ext(name) == ".jsonl" {
		enc := json.NewEncoder(file)
		for _, v := range verdicts {
			line := map[string]any{"check": "facts", "interaction_id": v.id, "rater": v.rater, "passed": v.passed, "origin": v.origin}
			if v.origin == "sampled" {
				line["pi2"] = v.pi2
			}
			if err := enc.Encode(line); err != nil {
				t.Fatal(err)
			}
		}
		return file.Name()
	}
	table := csv.NewWriter(file)
	rows := [][]string{{"interaction_id", "passed", "rater", "pi2", "origin"}}
	for _, v := range verdicts {
		pi2 := ""
		if v.origin == "sampled" {
			pi2 = strconv.FormatFloat(v.pi2, 'g', -1, 64)
		}
		rows = append(rows, []string{v.id, strconv.FormatBool(v.passed), v.rater, pi2, v.origin})
	}
	if err := table.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// shownQuality is what /api/v1/quality and /metrics show of one round.
type shownQuality struct {
	at    time.Time // the round's
	check monitor.Check
	gauge map[string]float64 // by name and labels but the check's and its version
}

func labelsOf(slice interaction.Slice, window, origin string) string {
	return strings.Join([]string{slice["app"], window, origin}, " ")
}

// showQuality reads both, again until they are of the same round.
func showQuality(t *testing.T, a *testkit.Assay) shownQuality {
	t.Helper()
	var out shownQuality
	testkit.Eventually(t, time.Minute, "the API and the metrics show the same round", func() error {
		var body struct {
			State    string            `json:"state"`
			Snapshot *monitor.Snapshot `json:"snapshot"`
		}
		if err := json.Unmarshal([]byte(a.Get(t, "/api/v1/quality")), &body); err != nil {
			return err
		}
		if body.State != "ok" {
			return fmt.Errorf("the snapshot is %s", body.State)
		}
		check, ok := body.Snapshot.Check("facts")
		if !ok {
			return fmt.Errorf("no check facts")
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(a.Get(t, "/metrics")))
		if err != nil {
			return err
		}
		out = shownQuality{at: body.Snapshot.At, check: check, gauge: map[string]float64{}}
		round := 0.
		for name, f := range families {
			for _, m := range f.Metric {
				if name == "assay_monitor_last_refresh_timestamp_seconds" {
					round = m.GetGauge().GetValue()
				}
				if !strings.HasPrefix(name, "assay_calibration_") {
					continue
				}
				l := map[string]string{}
				for _, p := range m.Label {
					l[p.GetName()] = p.GetValue()
				}
				if l["check"] == "facts" && l["check_version"] == check.Version {
					out.gauge[name+" "+labelsOf(interaction.Slice{"app": l["app"]}, l["window"], l["origin"])] = m.GetGauge().GetValue()
				}
			}
		}
		if math.Abs(round-float64(out.at.UnixNano())/1e9) > 1e-5 {
			return fmt.Errorf("the API shows the round of %s, the metrics that of %f", out.at, round)
		}
		return nil
	})
	return out
}

// holds compares every slice, window and origin of what is shown, to 1e-9.
func (s shownQuality) holds(t *testing.T, when string, judged map[string]judgedRow, verdicts []verdict) {
	t.Helper()
	if want := 1 + len(assistants); len(s.check.Slices) != want {
		t.Fatalf("%s: %d slices, want %d", when, len(s.check.Slices), want)
	}
	compared := 0
	for _, slice := range s.check.Slices {
		if len(slice.Calibration) != 4 {
			t.Errorf("%s: %s: %d sets, want two windows of two origins", when, slice.Slice, len(slice.Calibration))
		}
		for _, c := range slice.Calibration {
			where := fmt.Sprintf("%s: %s, %s, %s", when, slice.Slice, c.Window, c.Origin)
			length := map[string]time.Duration{"24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}[c.Window]
			if c.To.Sub(c.From) != length || s.at.Sub(c.To).Abs() > 2*time.Minute {
				t.Errorf("%s: from %s to %s at %s", where, c.From, c.To, s.at)
			}
			want := agreementOf(judged, verdicts, slice.Slice["app"], c.Origin, c.From, c.To)
			if want.labels < 20 || c.Labels != uint64(want.labels) {
				t.Errorf("%s: %d labels, want %d, and 20 at least", where, c.Labels, want.labels)
				continue
			}
			for _, v := range []struct {
				gauge string
				api   *float64
				want  float64
			}{
				{"labels", new(float64(c.Labels)), float64(want.labels)}, {"agreement", c.Agreement.Value, want.agreement},
				{"kappa", c.Kappa, want.kappa}, {"brier", c.Brier, want.brier}, {"error_debiased", c.Error, want.error},
			} {
				shown, there := s.gauge["assay_calibration_"+v.gauge+" "+labelsOf(slice.Slice, c.Window, c.Origin)]
				if v.api == nil || !there || math.Abs(*v.api-v.want) > 1e-9 || shown != *v.api {
					t.Errorf("%s: %s: API %v, metric %v (there: %t), want %v", where, v.gauge, v.api, shown, there, v.want)
				}
				compared++
			}
			for gauge, v := range map[string]float64{"agreement_lower": c.Agreement.Lower, "agreement_upper": c.Agreement.Upper, "p_value": *c.PValue} {
				if shown, there := s.gauge["assay_calibration_"+gauge+" "+labelsOf(slice.Slice, c.Window, c.Origin)]; !there || shown != v {
					t.Errorf("%s: %s: API %v, metric %v (there: %t)", where, gauge, v, shown, there)
				}
			}
		}
	}
	t.Logf("%s: %d figures compared", when, compared)
}

// People's verdicts on real answers come as files while assay runs: the judge is held
// against them as the formulas say, and a late label counts in two rounds.
func TestImportedVerdictsCalibrateTheJudgeOfARun(t *testing.T) {
	const answers = 5000
	records, verdicts := labelledLog(t, answers)
	kafka, err := demo.StartKafka(demo.KafkaOptions{Partitions: 4, Topics: []string{evounaTopic}})
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	engine := testkit.ClickHouse(t)
	yaml := evounaChecks(0.8)
	a := testkit.StartAssay(t, testkit.AssayOptions{Checks: yaml, Kafka: kafka.Addrs(), Engine: engine, Env: map[string]string{
		"ASSAY_KAFKA_START": "earliest", "ASSAY_MONITOR_EVERY": "1s", "ASSAY_CONSUMER_COMMIT_EVERY": "250ms", "ASSAY_SINK_BATCH_AGE": "250ms",
	}})
	a.AwaitReady(t, time.Minute)

	checks := filepath.Join(t.TempDir(), "assay.yaml")
	if err := os.WriteFile(checks, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(file string, flags ...string) labelImport {
		t.Helper()
		out, code := execAssay(t, []string{
			"ASSAY_CHECKS=" + checks, "ASSAY_CLICKHOUSE_ADDR=" + engine.Addr, "ASSAY_CLICKHOUSE_PROTOCOL=http",
			"ASSAY_CLICKHOUSE_DATABASE=" + engine.Database, "ASSAY_CLICKHOUSE_PASSWORD=" + engine.Token, "ASSAY_LOG_LEVEL=error",
		}, append([]string{"labels", "import", file, "--json"}, flags...)...)
		var done labelImport
		if err := json.Unmarshal([]byte(out), &done); code != exitDone || err != nil {
			t.Fatalf("assay labels import: exit %d, %v\n%s", code, err, out)
		}
		return done
	}

	var before, during, after []verdict
	parts, random := []*[]verdict{&before, &during, &after}, rand.New(rand.NewPCG(1, 2))
	for _, v := range verdicts {
		part := parts[random.IntN(len(parts))]
		*part = append(*part, v)
	}
	if done := load(labelFile(t, "before.jsonl", before)); done.Stored != len(before) || done.Waiting != len(before) {
		t.Errorf("labels before any interaction: %+v, want %d stored, all waiting", done, len(before))
	}
	produceAll(t, kafka.Addrs(), evounaTopic, records)
	if done := load(labelFile(t, "during.csv", during), "--check", "facts"); done.Stored != len(during) {
		t.Errorf("labels while the log is judged: %+v, want %d stored", done, len(during))
	}
	conn := engine.Conn(t)
	testkit.Eventually(t, 2*time.Minute, "the log is judged", func() error {
		var counted uint64
		err := conn.QueryRow(t.Context(), "SELECT sum(n_interactions) FROM population_1m FINAL WHERE check = ''").Scan(&counted)
		if err == nil && counted != answers {
			err = fmt.Errorf("%d of %d interactions", counted, answers)
		}
		return err
	})
	judged, withRow := judgedRows(t, engine)
	now := time.Now()
	// a late label of an answer that was judged, and that nobody else has labelled
	late := slices.IndexFunc(after, func(v verdict) bool {
		r, ok := judged[v.id]
		return ok && v.origin == "imported" && r.app == "gpt4" && r.at.Before(now.Add(-3*24*time.Hour)) && r.at.After(now.Add(-6*24*time.Hour)) &&
			!slices.ContainsFunc(verdicts, func(o verdict) bool { return o.id == v.id && o != v })
	})
	if late < 0 {
		t.Fatal("no answer for the late label")
	}
	lateLabel := after[late]
	after = slices.Delete(after, late, late+1)
	if done := load(labelFile(t, "after.csv", after), "--check", "facts"); done.Stored != len(after) {
		t.Errorf("labels after their interactions: %+v, want %d stored", done, len(after))
	}
	known := slices.Concat(before, during, after)

	shown := roundsLater(t, a, 2)
	shown.holds(t, "labels before, while and after", judged, known)
	waiting := 0
	for _, v := range known {
		if !withRow[v.id] {
			waiting++
		}
	}
	if q := shown.check.LabelQueue; waiting == 0 || q.Waiting != uint64(waiting) || q.Unmatched != 0 {
		t.Errorf("%+v, want the %d labels of answers that were not drawn to wait", q, waiting)
	}

	if done := load(labelFile(t, "late.jsonl", []verdict{lateLabel})); done.Stored != 1 || done.Waiting != 0 {
		t.Errorf("the late label: %+v", done)
	}
	moved := roundsLater(t, a, 2)
	moved.holds(t, "with the late label", judged, append(known, lateLabel))
	for _, s := range moved.check.Slices {
		if app := s.Slice["app"]; app != "" && app != "gpt4" {
			continue
		}
		for _, c := range s.Calibration {
			without := agreementOf(judged, known, s.Slice["app"], c.Origin, c.From, c.To)
			gained := c.Labels - uint64(without.labels)
			if c.Window == "7d" && c.Origin == "imported" {
				if gained != 1 || *c.Brier == without.brier {
					t.Errorf("%s, %s, %s: %d labels more, Brier %v of %v: the late label changed nothing", s.Slice, c.Window, c.Origin, gained, *c.Brier, without.brier)
				}
			} else if gained != 0 {
				t.Errorf("%s, %s, %s: %d labels more, want none", s.Slice, c.Window, c.Origin, gained)
			}
		}
	}
}

// roundsLater is what is shown by the n-th round that ends from now on. The first of them
// may have begun before, the second has not.
func roundsLater(t *testing.T, a *testkit.Assay, n int) shownQuality {
	t.Helper()
	last := showQuality(t, a)
	for seen := 0; seen < n; {
		testkit.Eventually(t, time.Minute, "another round ends", func() error {
			next := showQuality(t, a)
			if next.at.Equal(last.at) {
				return fmt.Errorf("still the round of %s", last.at)
			}
			last = next
			return nil
		})
		seen++
	}
	return last
}
