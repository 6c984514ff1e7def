package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/checks"
	"assay/internal/testkit"
	"assay/sink"
)

const labelChecks = `
version: 1
sources: [{ topic: t }]
judges:
  small: { kind: embedded }
checks:
  - { name: facts, evaluator: factuality, coarse: true, reference: { field: expected }, judge: small, sample: { rate: 1 } }
`

func readLabelText(t *testing.T, name, text string, o labelOptions) ([]sink.LabelChange, []error, error) {
	t.Helper()
	file, err := checks.Parse("assay.yaml", []byte(labelChecks))
	if err != nil {
		t.Fatal(err)
	}
	if o.origin == "" {
		o.origin = "imported"
	}
	return readLabels(strings.NewReader(text), name, file, o)
}

func TestLinesAndTablesAreTheSameLabels(t *testing.T) {
	f := func(name, text string, o labelOptions, want ...sink.LabelChange) {
		t.Helper()
		got, bad, err := readLabelText(t, name, text, o)
		if err != nil || len(bad) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, %v, want %+v", name, got, bad, err, want)
		}
	}
	agree := sink.LabelChange{Check: "facts", InteractionID: "i,1", Rater: "ana", Option: "agree", Value: new(float32(1)), Passed: new(true), Pi2: 1, Origin: "imported"}
	fails := sink.LabelChange{Check: "facts", InteractionID: "i2", Rater: "bob", Passed: new(false), Pi2: 1, Origin: "imported", Comment: "wrong \"year\"\nand place"}
	gone := sink.LabelChange{Check: "facts", InteractionID: "i3", Rater: "ana", Pi2: 1, Origin: "imported", Removed: true}
	f("l.jsonl", `{"check":"facts","interaction_id":"i,1","rater":"ana","option":"agree"}

{"check":"facts","interaction_id":"i2","rater":"bob","passed":false,"comment":"wrong \"year\"\nand place"}
{"check":"facts","interaction_id":"i3","rater":"ana","removed":true}`, labelOptions{}, agree, fails, gone)
	f("l.csv", "check,interaction_id,rater,option,passed,comment,removed\r\n"+
		`facts,"i,1",ana,agree,,,`+"\r\n"+`facts,i2,bob,,FALSE,"wrong ""year""`+"\n"+`and place",`+"\r\n"+`facts,i3,ana,,,,true`, labelOptions{}, agree, fails, gone)
	f("l.csv", "\ufeffinteraction_id,option\n\"i,1\",agree\n", labelOptions{check: "facts", rater: "ana"}, agree)

	drawn := agree
	drawn.Origin, drawn.Pi2 = "sampled", .25
	f("-", `{"interaction_id":"i,1","option":"agree"}`, labelOptions{check: "facts", rater: "ana", format: "jsonl", origin: "sampled", pi2: .25, drawn: true}, drawn)
}

func TestAFaultyLineIsNamed(t *testing.T) {
	f := func(name, text string, want ...string) {
		t.Helper()
		_, bad, err := readLabelText(t, name, text, labelOptions{})
		got := []string{}
		if err != nil {
			got = append(got, err.Error())
		}
		for _, b := range bad {
			got = append(got, b.Error())
		}
		if len(got) != len(want) {
			t.Errorf("%q: faults %q, want %d", text, got, len(want))
			return
		}
		for i, w := range want {
			if !strings.Contains(got[i], w) {
				t.Errorf("%q: %q does not say %q", text, got[i], w)
			}
		}
	}
	f("l.jsonl", `{"check":"facts","interaction_id":"i1","rater":"ana","passed":true}
{"check":"facts","interaction_id":"i1","passed":true}
{"check":"fact","interaction_id":"i1","rater":"ana","passed":true}
{"check":"facts","interaction_id":"i1","rater":"ana","option":"agrees"}
{"check":"facts"`, "l.jsonl:2: rater: missing", "l.jsonl:3: check: unknown check \"fact\"", "l.jsonl:4: option: no option \"agrees\"", "l.jsonl:5: not JSON")
	f("l.csv", "check,interaction_id,rater,passed\nfacts,i1,ana,true\nfacts,i1,ana\nfacts,i2,ana,maybe\n",
		"l.csv:3: 3 columns: want 4", "l.csv:4: passed: \"maybe\": want true or false")
	f("l.csv", "check,interaction,rater\n", "line 1: no label has a column \"interaction\"; the nearest is interaction_id")
	f("l.csv", "check,check\n", "column check twice")
	f("l.csv", "", "first line")
	f("l.csv", "check,interaction_id\n", "no labels in it")
	f("l.txt", "x", "want --format jsonl or csv")
}

// The command over a real engine, with a faulty file, twice the same one, and one label
// before its judgement.
func TestImportingLabelsTwiceStoresThemOnce(t *testing.T) {
	engine := testkit.ClickHouse(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	environ := append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, prefix) }),
		"ASSAY_CHECKS="+write("assay.yaml", labelChecks), "ASSAY_CLICKHOUSE_ADDR="+engine.Addr, "ASSAY_CLICKHOUSE_PROTOCOL=http",
		"ASSAY_CLICKHOUSE_DATABASE="+engine.Database, "ASSAY_CLICKHOUSE_PASSWORD="+engine.Token, "ASSAY_LOG_LEVEL=error")
	migrate := newRoot(environ)
	migrate.SetArgs([]string{"migrate", "--json"})
	if err := migrate.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{environ: environ, out: &out, err: &out, json: true}
	engine.Exec(t, "INSERT INTO "+engine.Database+".evaluations (check, check_version, ts, interaction_id, pi, status, score, passed, evaluated_at) VALUES ('facts', 'v1', now64(3) - 60, 'i1', 1, 'ok', 1, 1, now64(3))")
	count := func(want labelImport, path string) {
		t.Helper()
		out.Reset()
		if err := a.importLabels(t.Context(), path, labelOptions{origin: "imported"}); err != nil {
			t.Fatal(err)
		}
		var got labelImport
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v in %s", err, out.String())
		}
		want.File = path
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	good := write("good.csv", "check,interaction_id,rater,passed\nfacts,i1,ana,true\nfacts,i2,ana,false\n")
	count(labelImport{Labels: 2, Stored: 2, Waiting: 1}, good)
	count(labelImport{Labels: 2, Unchanged: 2, Waiting: 1}, good)

	bad := write("bad.csv", "check,interaction_id,rater,passed\nfacts,i1,ana,false\nfacts,i1,bob,perhaps\n")
	err := a.importLabels(t.Context(), bad, labelOptions{origin: "imported"})
	var usage errUsage
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "bad.csv:3: passed") || !strings.Contains(err.Error(), "nothing was stored") {
		t.Errorf("a file with a faulty line: %v", err)
	}
	count(labelImport{Labels: 2, Unchanged: 2, Waiting: 1}, good)
}

var _ labelWriter = (*sink.DB)(nil)

var errFull = errors.New("the disk is full")

// fullAfter takes some writes and then none.
type fullAfter struct{ calls int }

func (f *fullAfter) WriteLabels(_ context.Context, changes []sink.LabelChange, _ time.Time) ([]sink.LabelOutcome, error) {
	if f.calls == 0 {
		return nil, errFull
	}
	f.calls--
	outcomes := make([]sink.LabelOutcome, len(changes))
	for i := range outcomes {
		outcomes[i].Outcome = sink.LabelStored
	}
	return outcomes, nil
}

func TestAnImportThatFailsSaysHowFarItCame(t *testing.T) {
	changes := make([]sink.LabelChange, 2*labelsAtOnce+1)
	a := &app{out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	done, err := a.storeLabels(t.Context(), &fullAfter{calls: 2}, changes)
	if !errors.Is(err, errFull) || done.Stored != 2*labelsAtOnce {
		t.Errorf("%+v, %v", done, err)
	}
}
