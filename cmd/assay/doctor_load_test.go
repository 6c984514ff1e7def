package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/consumer"
	"assay/internal/checks"
	"assay/internal/interaction"
)

// A record is open while the slowest of the checks that selected it is: half of 10 a
// second for 8 s, and of the other half half for 2 s, in whatever order the checks stand.
func TestTheLoadDoesNotDependOnTheOrderOfTheChecks(t *testing.T) {
	slow := checks.Check{Name: "slow", Judge: "slow", Sample: checks.Sample{Rate: 0.5}}
	fast := checks.Check{Name: "fast", Judge: "fast", Sample: checks.Sample{Rate: 0.5}}
	local := checks.Check{Name: "local", Sample: checks.Sample{Rate: 1}} // asks nobody
	for _, order := range [][]checks.Check{{slow, fast, local}, {local, fast, slow}} {
		d := &doctor{
			env:    environment{Consumer: consumer.Config{Window: 50, Total: 1000}},
			file:   &checks.File{Checks: order},
			probed: map[string]time.Duration{"slow": 8 * time.Second, "fast": 2 * time.Second},
			loads:  []topicLoad{{"t", 1, 10}},
		}
		d.load()
		if want := "10.0 records/s, at most 7.5/s judged: 45.0 records unresolved at a time, the window holds 50"; len(d.found) != 1 || d.found[0].Says != want || d.found[0].State != stateOK {
			t.Errorf("%+v, want %q", d.found, want)
		}
	}
}

// Budgets count requests, and five votes are five of them.
func TestTheLoadOfAJudgeCountsItsVotes(t *testing.T) {
	file, err := checks.Parse("assay.yaml", []byte(`
version: 1
sources: [{ topic: t }]
judges:
  main: { kind: openai, base_url: "http://127.0.0.1:1/v1", model: m, method: "votes:5", budget: { calls_per_day: 400000 } }
checks:
  - { name: policy, evaluator: closed_qa, criteria: { text: "Says when it comes." }, judge: main, sample: { rate: 0.5 }, alert: { target: 0.9 } }
`))
	if err != nil {
		t.Fatal(err)
	}
	d := &doctor{
		env: environment{Consumer: consumer.Config{Window: 50, Total: 1000}}, file: file,
		probed: map[string]time.Duration{"main": time.Second}, loads: []topicLoad{{"t", 1, 2}},
	}
	d.load()
	if len(d.found) != 2 || d.found[1].State != stateWarn || !strings.Contains(d.found[1].Says, "at most 1.0 judgements/s of 1s each: 1.0 under way") ||
		!strings.Contains(d.found[1].Says, "432,000 requests a day; calls_per_day is 400,000") {
		t.Errorf("%+v", d.found)
	}
}

// One partition's newest records are of the last seconds, another's of last week: the
// topic's rate is that of both, not that of a week.
func TestARateIsThatOfEachPartition(t *testing.T) {
	at := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var records []interaction.Record
	for i := range 101 {
		records = append(records, interaction.Record{Partition: 0, Time: at.Add(time.Duration(i-100) * 100 * time.Millisecond)})
	}
	for i := range 11 {
		records = append(records, interaction.Record{Partition: 1, Time: at.Add(time.Duration(i-10) * 1000 * time.Second)})
	}
	slices.SortStableFunc(records, func(a, b interaction.Record) int { return a.Time.Compare(b.Time) })
	if got := perSecond(records, at); got != 10+0.001 {
		t.Errorf("%v records/s, want 10.001", got)
	}
	if got := perSecond(records, at.Add(time.Hour)); math.Abs(got-(101/3610.0+11/13600.0)) > 1e-12 {
		t.Errorf("after an hour of silence %v records/s", got)
	}
	if got := perSecond(records[:1], at); got != 0 {
		t.Errorf("of one record %v/s", got)
	}
}
