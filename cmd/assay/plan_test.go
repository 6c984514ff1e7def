package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/internal/checks"
	"assay/internal/testkit"
	"assay/sink"
)

const planChecks = `version: 1
sources:
  - { topic: llm.interactions, fields: { expected: metadata.reference } }
judges:
  main:
    kind: openai
    base_url: https://llm.example/v1
    model: m
    method: logprobs
    requests_per_minute: 600
    price: { input_per_million: 2, output_per_million: 10 }
    budget: { usd_per_day: 25, calls_per_day: 300000 }
checks:
  - name: refunds
    evaluator: closed_qa
    criteria: { text: "Names the day." }
    when: app == "support"
    judge: main
    sample: { rate: 0.05 }
    alert: { target: 0.95, tolerance: 0.02 }
  - name: faithful
    evaluator: faithfulness
    judge: main
    sample: { rate: 0.01 }
  - name: short
    evaluator: length
    max: 500
    sample: { rate: 1 }
`

// planOf runs the command and returns its JSON.
func planOf(t *testing.T, o planOptions, environ ...string) (planned, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assay.yaml")
	if err := os.WriteFile(path, []byte(planChecks), 0o600); err != nil {
		t.Fatal(err)
	}
	if o.since == 0 {
		o.since = 24 * time.Hour
	}
	var out bytes.Buffer
	a := &app{out: &out, err: &out, json: true, environ: append(environ, "ASSAY_CHECKS="+path)}
	if err := a.plan(t.Context(), nil, o); err != nil {
		return planned{}, err
	}
	var p planned
	if err := json.Unmarshal(out.Bytes(), &p); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	// The same for people must come out too.
	a.json = false
	out.Reset()
	if err := a.plan(t.Context(), nil, o); err != nil || !strings.Contains(out.String(), "refunds") {
		t.Errorf("%v\n%s", err, out.String())
	}
	return p, nil
}

func TestAPlanOfStatedTrafficSaysWhatEndsFirst(t *testing.T) {
	p, err := planOf(t, planOptions{rate: "10/s", shares: map[string]string{"refunds": "0.25"}})
	if err != nil {
		t.Fatal(err)
	}
	refunds, faithful, short := p.Checks[0], p.Checks[1], p.Checks[2]
	if refunds.Interactions != 864_000 || refunds.Share != .25 || refunds.ShareFrom != "stated" || refunds.Judged != 10_800 || refunds.CallsPerDay != 10_800 {
		t.Errorf("%+v", refunds)
	}
	// Wilson at .95 of 10,800: 1.96 sqrt(.95*.05/10800) = .0041.
	if refunds.AtPassRate != .95 || math.Abs(*refunds.HalfWidth-.0041) > .0001 {
		t.Errorf("%v at %v", *refunds.HalfWidth, refunds.AtPassRate)
	}
	if want := (refunds.TokensIn*2 + refunds.TokensOut*10) / 1e6; refunds.USDPerDay != want || want <= 0 || refunds.TokensOut != 10_800 {
		t.Errorf("$%v, want %v: %+v", refunds.USDPerDay, want, refunds)
	}
	// A range of calls counts at its upper end.
	if faithful.CallsMin != 1 || faithful.CallsMax != 8 || faithful.CallsPerDay != 8640*8 || faithful.ShareFrom != "assumed" {
		t.Errorf("%+v", faithful)
	}
	if short.CallsPerDay != 0 || short.TokensPerDay != 0 || short.USDPerDay != 0 || short.Judged != 864_000 {
		t.Errorf("%+v", short)
	}
	j := p.Judges[0]
	if len(p.Judges) != 1 || j.CallsPerDay != 10_800+8640*8 || j.First != "budget.usd_per_day" || j.Fits >= 1 || math.Abs(j.Fits*j.USDPerDay-25) > 1e-6 {
		t.Errorf("%+v", j)
	}
	for _, l := range j.Limits {
		switch over := l.Used > 1; {
		case over != (l.Hours != nil):
			t.Errorf("%+v", l)
		case over && math.Abs(*l.Hours*l.Used-24) > 1e-9:
			t.Errorf("%+v", l)
		}
	}
	if len(p.Notes) == 0 || strings.Contains(strings.Join(p.Notes, "\n"), "refunds: assumed") {
		t.Errorf("%v", p.Notes)
	}
	// A trickle carries no interval and fits.
	p, err = planOf(t, planOptions{rate: "3/h"})
	if err != nil || p.Checks[0].HalfWidth != nil || p.Judges[0].Fits != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestAPlanGoesByASampleOfMessages(t *testing.T) {
	sample := filepath.Join(t.TempDir(), "messages.jsonl")
	var b strings.Builder
	for i := range 40 {
		app := []string{"support", "sales", "sales", "sales"}[i%4]
		fmt.Fprintf(&b, `{"id":"i%d","app":%q,"input":"q","output":"It is red. It is old. It is big.","context":["c"]}`+"\n", i, app)
	}
	if err := os.WriteFile(sample, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := planOf(t, planOptions{rate: "1000/day", sample: sample})
	if err != nil {
		t.Fatal(err)
	}
	refunds, faithful := p.Checks[0], p.Checks[1]
	if refunds.Share != .25 || refunds.ShareFrom != "sample" || refunds.TokensFrom != "sample" || math.Abs(refunds.Judged-12.5) > 1e-9 {
		t.Errorf("%+v", refunds)
	}
	// Three sentences are three calls, whatever max_claims allows.
	if faithful.Share != 1 || math.Abs(faithful.CallsPerDay-30) > 1e-9 || math.Abs(faithful.TokensOut-30) > 1e-9 {
		t.Errorf("%+v", faithful)
	}
	if err := os.WriteFile(sample, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var gate errGate
	if _, err := planOf(t, planOptions{rate: "1/s", sample: sample}); !errors.As(err, &gate) || gate.code != exitTooFew {
		t.Errorf("%v", err)
	}
}

// Where later questions depend on answers, they count as often as there may be, with a
// text that is written once whatever the votes.
func TestAPlanCountsQuestionsThatDependOnAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.yaml")
	const text = `version: 1
sources: [{ topic: t }]
judges: { main: { kind: openai, base_url: "https://llm.example/v1", model: m, method: "votes:5", price: { input_per_million: 1, output_per_million: 1 }, budget: { usd_per_day: 1 } } }
checks:
  - { name: extracted, evaluator: faithfulness, claims: extracted, judge: main, sample: { rate: 1 } }
  - { name: citations, evaluator: citation_precision, judge: main, sample: { rate: 1 } }
`
	sample := filepath.Join(t.TempDir(), "messages.jsonl")
	const message = `{"id":"a","input":"q","output":"It is red [1].","context":["It is red."]}` + "\n"
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.WriteFile(sample, []byte(message), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, sample := range []string{"", sample} {
		var out bytes.Buffer
		a := &app{out: &out, err: &out, json: true}
		if err := a.plan(t.Context(), []string{path}, planOptions{rate: "10/day", sample: sample, since: time.Hour}); err != nil {
			t.Fatal(err)
		}
		var p planned
		if err := json.Unmarshal(out.Bytes(), &p); err != nil {
			t.Fatalf("%v in %s", err, out.Bytes())
		}
		extracted, citations := p.Checks[0], p.Checks[1]
		// One text, twice if it is not as asked, and up to eight claims by five votes.
		if extracted.CallsMin != 1+5 || extracted.CallsMax != 2+8*5 || extracted.CallsPerDay != 10*extracted.CallsMax {
			t.Errorf("%+v", extracted)
		}
		for _, c := range []plannedCheck{extracted, citations} {
			// No question is shorter than what stands around it.
			if c.CallsPerDay != 10*c.CallsMax || c.TokensIn < 100*c.CallsPerDay || c.USDPerDay <= 0 {
				t.Errorf("sample %q: %+v", sample, c)
			}
		}
	}
}

func TestAFactorIsNeverRoundedUpNorToNothing(t *testing.T) {
	for v, want := range map[float64]string{.9999: "0.99", .5: "0.5", .001239: "0.0012", .00038: "0.00038"} {
		if got := factor(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

func TestAPlanGoesByTheLedger(t *testing.T) {
	engine := testkit.ClickHouse(t)
	db, err := sink.Open(t.Context(), sink.ConnConfig{Addr: engine.Addr, Protocol: "http", Database: engine.Database, Token: engine.Token}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := sink.Migrate(t.Context(), db, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	environ := []string{
		"ASSAY_CLICKHOUSE_ADDR=" + engine.Addr, "ASSAY_CLICKHOUSE_PROTOCOL=http", "ASSAY_CLICKHOUSE_USERNAME=default",
		"ASSAY_CLICKHOUSE_PASSWORD=" + engine.Token, "ASSAY_CLICKHOUSE_DATABASE=" + engine.Database,
	}
	var gate errGate
	if _, err := planOf(t, planOptions{}, environ...); !errors.As(err, &gate) || gate.code != exitTooFew || !strings.Contains(err.Error(), "--rate") {
		t.Errorf("an empty ledger: %v", err)
	}
	file, err := checks.Parse("assay.yaml", []byte(planChecks))
	if err != nil {
		t.Fatal(err)
	}
	version := file.Checks[0].Version
	minute := time.Now().UTC().Add(-2 * time.Hour).Format("2006-01-02 15:04:00")
	engine.Exec(t, fmt.Sprintf(`INSERT INTO population_1m (check, check_version, minute, n_filtered, n_not_applicable, n_sampled_out, n_selected, n_interactions) VALUES
		('', '', '%[1]s', 0, 0, 0, 0, 60000), ('refunds', '%[2]s', '%[1]s', 48000, 6000, 5700, 300, 0)`, minute, version))
	engine.Exec(t, fmt.Sprintf(`INSERT INTO quality_1m (check, check_version, minute, n_ok, n_unscored, n, input_tokens, output_tokens, cost_nano_usd) VALUES
		('refunds', '%s', '%s', 290, 10, 290, 90000, 600, 5)`, version, minute))
	p, err := planOf(t, planOptions{since: 12 * time.Hour}, environ...)
	if err != nil {
		t.Fatal(err)
	}
	c := p.Checks[0]
	if c.Interactions != 120_000 || c.Share != .1 || c.ShareFrom != "measured" || math.Abs(c.Judged-600) > 1e-6 || c.TokensFrom != "measured" ||
		math.Abs(c.TokensIn-600*300) > 1e-6 || math.Abs(c.TokensOut-600*2) > 1e-6 {
		t.Errorf("%+v", c)
	}
	// A check that the ledger does not know is assumed, and said to be.
	if p.Checks[1].ShareFrom != "assumed" {
		t.Errorf("%+v", p.Checks[1])
	}
}

func TestWrongFlagsOfPlanSayWhatWouldBeRight(t *testing.T) {
	f := func(want string, o planOptions) {
		t.Helper()
		_, err := planOf(t, o)
		var usage errUsage
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want a usage error with %q", o, err, want)
		}
	}
	f("--rate is missing", planOptions{})
	f("--rate 50: want", planOptions{rate: "50"})
	f("--rate x/s", planOptions{rate: "x/s"})
	f("--rate -1/s", planOptions{rate: "-1/s"})
	f("--rate 1/fortnight", planOptions{rate: "1/fortnight"})
	f("the nearest is refunds", planOptions{rate: "1/s", shares: map[string]string{"refund": ".5"}})
	f("from 0 to 1", planOptions{rate: "1/s", shares: map[string]string{"refunds": "5"}})
	f("--since 1s", planOptions{rate: "1/s", since: time.Second})
	f("no such source", planOptions{rate: "1/s", sample: os.DevNull, topic: "other"})
}
