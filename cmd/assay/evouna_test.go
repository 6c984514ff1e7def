package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/evaluators/judge/embedded"
	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/monitor"
	"assay/internal/stats"
	"assay/internal/testkit"
	"assay/sink"
)

// assistants are the five whose answers people judged, by the file's keys.
var assistants = []string{"fid", "gpt35", "chatgpt", "gpt4", "newbing"}

const evounaTopic = "evouna.interactions"

// evounaAnswer is one logged answer with the human verdict, when there is one.
type evounaAnswer struct {
	id, app, question string
	verdict           *bool
	applicable        bool // there is an answer and a reference
}

// evouna reads the human-judged answers and the log that would have recorded them.
func evouna(t *testing.T) (answers []evounaAnswer, records []interaction.Record) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(testkit.Data(t), "EVOUNA", "EVOUNA__NQ.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	start := time.Now().UTC().Truncate(time.Hour).Add(-3 * time.Hour)
	for i, row := range rows {
		for k, app := range assistants {
			question := row["question"].(string)
			output, _ := row["answer_"+app].(string) // null for a few hundred
			_, hasReference := row["golden_answer"].(string)
			a := evounaAnswer{
				id: fmt.Sprintf("q%d-%s", i, app), app: app, question: question,
				applicable: hasReference && strings.TrimSpace(output) != "",
			}
			if v, ok := row["judge_"+app].(bool); ok {
				a.verdict = &v
			}
			at := start.Add(time.Duration(i)*time.Second + time.Duration(k)*time.Millisecond)
			body, err := json.Marshal(map[string]any{
				"id": a.id,
				"request": map[string]any{
					"model":    app + "-model",
					"messages": []map[string]any{{"role": "user", "content": question}},
				},
				"response": map[string]any{
					"object": "chat.completion", "created": at.Unix(), "model": app + "-model",
					"choices": []map[string]any{{
						"index": 0, "finish_reason": "stop",
						"message": map[string]any{"role": "assistant", "content": row["answer_"+app]},
					}},
				},
				"metadata": map[string]any{"app": app, "reference": row["golden_answer"]},
			})
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, a)
			records = append(records, interaction.Record{Time: at, Key: []byte(a.id), Value: body, Partition: demo.ByKey})
		}
	}
	return answers, records
}

func evounaChecks(rate float64) string {
	return fmt.Sprintf(`
version: 1
dimensions: [app]
slices: [{ app: fid }, { app: gpt35 }, { app: chatgpt }, { app: gpt4 }, { app: newbing }]
sources:
  - topic: %s
    fields: { expected: metadata.reference, app: metadata.app }
judges:
  small: { kind: embedded }
checks:
  - name: facts
    evaluator: factuality
    coarse: true
    reference: { field: expected }
    judge: small
    sample: { rate: %g }
    alert: { target: 0.5, tolerance: 0.05 }
`, evounaTopic, rate)
}

// judged is what a finished run left in ClickHouse.
type judged struct {
	engine *testkit.Engine
	conn   clickhouse.Conn
	passed map[string]*bool // by interaction, nil where the judge abstained
}

// runEvouna judges the whole log in a database of its own.
func runEvouna(t *testing.T, brokers []string, rate float64, want int) judged {
	t.Helper()
	engine := testkit.ClickHouse(t)
	a := testkit.StartAssay(t, testkit.AssayOptions{
		Checks: evounaChecks(rate), Kafka: brokers, Engine: engine,
		Env: map[string]string{
			"ASSAY_KAFKA_GROUP": fmt.Sprintf("evouna-%g", rate), "ASSAY_KAFKA_START": "earliest",
			"ASSAY_MONITOR_CLOCK": "event", "ASSAY_MONITOR_EVERY": "500ms", "ASSAY_MONITOR_IDLE": "2s",
		},
	})
	a.AwaitReady(t, time.Minute)
	conn := engine.Conn(t)
	testkit.Eventually(t, 3*time.Minute, "the whole log is counted and rolled up", func() error {
		var counted, rows, rolled uint64
		if err := conn.QueryRow(t.Context(), "SELECT sum(n_interactions) FROM population_1m FINAL WHERE check = ''").Scan(&counted); err != nil {
			return err
		}
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM evaluations FINAL").Scan(&rows); err != nil {
			return err
		}
		if err := conn.QueryRow(t.Context(), "SELECT sum(n_ok + n_unscored + n_not_applicable + n_shed + n_error) FROM quality_1m FINAL").Scan(&rolled); err != nil {
			return err
		}
		if counted != uint64(want) || rolled != rows {
			return fmt.Errorf("%d of %d interactions, %d of %d rows", counted, want, rolled, rows)
		}
		return nil
	})
	if code := a.Stop(t, 30*time.Second); code != 0 {
		t.Fatalf("assay run ended with %d:\n%s", code, a.Output())
	}
	out := judged{engine: engine, conn: conn, passed: make(map[string]*bool)}
	rows, err := conn.Query(t.Context(), "SELECT interaction_id, passed, status FROM evaluations FINAL")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, status string
		var passed *uint8
		if err := rows.Scan(&id, &passed, &status); err != nil {
			t.Fatal(err)
		}
		if _, twice := out.passed[id]; twice {
			t.Errorf("%s has two rows", id)
		}
		out.passed[id] = nil
		if passed != nil {
			out.passed[id] = new(*passed == 1)
		} else if status != "unscored" {
			t.Errorf("%s: status %s without a verdict", id, status)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// produceAll writes records in their order, a thousand at a time.
func produceAll(t *testing.T, brokers []string, topic string, records []interaction.Record) {
	t.Helper()
	producer, err := demo.NewProducer(brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for at := 0; at < len(records); at += 1000 {
		if err := producer.Produce(t.Context(), topic, records[at:min(at+1000, len(records))]...); err != nil {
			t.Fatal(err)
		}
	}
}

// Real answers of five assistants, with people's verdicts on them, go through Kafka,
// the embedded judge and ClickHouse, once in full and once sampled; first through the
// in-process Kafka, then through a broker.
func TestHumanJudgedAnswersThroughTheWholeWay(t *testing.T) {
	answers, records := evouna(t)
	kafka, err := demo.StartKafka(demo.KafkaOptions{Partitions: 4, Topics: []string{evounaTopic}})
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	produceAll(t, kafka.Addrs(), evounaTopic, records)

	full := runEvouna(t, kafka.Addrs(), 1, len(answers))
	sampled := runEvouna(t, kafka.Addrs(), 0.2, len(answers))

	checkDecisions(t, full, answers, 1)
	checkDecisions(t, sampled, answers, 0.2)
	checkCoverage(t, full, sampled, answers)
	checkAgreement(t, full, answers)
	sameOnARealBroker(t, records, answers, map[float64]judged{1: full, 0.2: sampled})
}

// checkDecisions holds the ledger and the rows against a count of our own.
func checkDecisions(t *testing.T, run judged, answers []evounaAnswer, rate float64) {
	t.Helper()
	selected, inapplicable := 0, 0
	for _, a := range answers {
		sum := sha256.Sum256([]byte("facts\x00" + a.id))
		u := float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
		_, judged := run.passed[a.id]
		want := a.applicable && u < rate
		if judged != want {
			t.Errorf("rate %g: %s judged %t, the hash says %t", rate, a.id, judged, want)
		}
		switch {
		case !a.applicable:
			inapplicable++
		case want:
			selected++
		}
	}
	rows, err := run.conn.Query(t.Context(), `
		SELECT check, toString(decision) AS d, sum(n)
		FROM (SELECT check, decision, n FROM population FINAL) GROUP BY check, d`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	got := make(map[string]int)
	for rows.Next() {
		var check, decision string
		var n uint64
		if err := rows.Scan(&check, &decision, &n); err != nil {
			t.Fatal(err)
		}
		got[check+" "+decision] += int(n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{" interaction": len(answers), "facts selected": selected, "facts not_applicable": inapplicable}
	if out := len(answers) - inapplicable - selected; out > 0 {
		want["facts sampled_out"] = out
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("rate %g: the ledger holds %v, counted %v", rate, got, want)
	}
	if len(run.passed) != selected {
		t.Errorf("rate %g: %d rows for %d selected", rate, len(run.passed), selected)
	}
}

// checkCoverage holds the sampled run's intervals against the full run's rates.
func checkCoverage(t *testing.T, full, sampled judged, answers []evounaAnswer) {
	t.Helper()
	db, err := sink.Open(t.Context(), sink.ConnConfig{
		Addr: sampled.engine.Addr, Protocol: "http", Database: sampled.engine.Database, Token: sampled.engine.Token,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	versions, err := db.CheckVersions(context.Background())
	if err != nil || len(versions) != 1 {
		t.Fatalf("check versions %v, %v", versions, err)
	}
	held := 0
	for _, app := range assistants {
		n, x := 0, 0
		for _, a := range answers {
			if v := full.passed[a.id]; a.app == app && v != nil {
				n++
				if *v {
					x++
				}
			}
		}
		truth := float64(x) / float64(n)
		w, err := monitor.Between(t.Context(), db, "facts", versions[0].Version, interaction.Slice{"app": app},
			time.Now().Add(-24*time.Hour), time.Now().Add(time.Hour))
		if err != nil || w.PassRate.Value == nil {
			t.Fatalf("%s: %+v, %v", app, w, err)
		}
		inside := w.PassRate.Lower <= truth && truth <= w.PassRate.Upper
		if inside {
			held++
		}
		t.Logf("%-8s all %d: %.4f   sampled %d: %.4f (%.4f to %.4f) held %t",
			app, n, truth, w.N, *w.PassRate.Value, w.PassRate.Lower, w.PassRate.Upper, inside)
	}
	if held < 4 {
		t.Errorf("the sampled run's interval held the full run's rate for %d of 5 assistants, want at least 4", held)
	}
}

// checkAgreement compares the embedded judge with people on questions it never saw.
func checkAgreement(t *testing.T, full judged, answers []evounaAnswer) {
	t.Helper()
	n, agree, abstained := 0, 0, 0
	byQuestion := make(map[string][2]int) // compared, agreed
	for _, a := range answers {
		if a.verdict == nil || !embedded.HeldOut(a.question) {
			continue
		}
		v := full.passed[a.id]
		if v == nil {
			abstained++
			continue
		}
		q := byQuestion[a.question]
		n, q[0] = n+1, q[0]+1
		if *v == *a.verdict {
			agree, q[1] = agree+1, q[1]+1
		}
		byQuestion[a.question] = q
	}
	// Five answers to one question are no five independent ones: the effective n comes
	// from the variance between questions.
	p := float64(agree) / float64(n)
	var v float64
	for _, q := range byQuestion {
		v += math.Pow(float64(q[1])-p*float64(q[0]), 2)
	}
	v /= float64(n) * float64(n)
	neff := p * (1 - p) / v
	lo, hi, err := stats.Wilson(p*neff, neff, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("embedded judge: agrees with people on %d of %d answers to %d unseen questions: %.4f (%.4f to %.4f), abstained on %d\n",
		agree, n, len(byQuestion), p, lo, hi, abstained)
	if p < 0.90 {
		t.Errorf("agreement %.4f, want at least 0.90", p)
	}
}
