package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/checks"
	"assay/sampler"
	"assay/sink"
)

// idWhere finds an id that the sample of a check holds, or does not.
func idWhere(t *testing.T, c checks.Check, prefix string, sampled bool) string {
	t.Helper()
	for n := range 10_000 {
		id := prefix + string(rune('a'+n%26)) + strings.Repeat("x", n/26)
		if (sampler.U(c.Sample.Salt, id) < c.Sample.Rate) == sampled {
			return id
		}
	}
	t.Fatal("no such id")
	return ""
}

// offsetWhere does the same for an id that is a place in the log.
func offsetWhere(t *testing.T, c checks.Check) uint64 {
	t.Helper()
	for n := range uint64(1000) {
		if sampler.U(c.Sample.Salt, derived(n)) < c.Sample.Rate {
			return n
		}
	}
	t.Fatal("no such offset")
	return 0
}

func derived(offset uint64) string { return fmt.Sprintf("llm.interactions/3/%d", offset) }

func explain(t *testing.T, m *memory, file *checks.File, id string) Explanation {
	t.Helper()
	why, err := Why(t.Context(), m, file, id)
	if err != nil {
		t.Fatal(err)
	}
	if len(why.Checks) < len(file.Checks) {
		t.Fatalf("%d outcomes for %d checks", len(why.Checks), len(file.Checks))
	}
	return why
}

func TestARowSaysWhatTheJudgeSaid(t *testing.T) {
	file := parseChecks(t, checksFile)
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	score, confidence, passed := float32(.22), float32(.56), false
	m := &memory{
		rows: []sink.Evaluation{
			{Check: "refunds", CheckVersion: "0ld", InteractionID: "i", Status: "error", Reason: "timeout", Pi: .25,
				Topic: "llm.interactions", Partition: 1, Offset: 40_000, EvaluatedAt: at.Add(time.Hour)},
			{Check: "refunds", CheckVersion: file.Checks[0].Version, InteractionID: "i", Status: "ok", Score: &score, Passed: &passed, Confidence: &confidence,
				Option: "no", OptionNames: []string{"yes", "no"}, OptionProbs: []float32{.22, .78}, Method: "logprobs", Judge: "main", JudgeModel: "m-1", Pi: .25,
				Topic: "llm.interactions", Partition: 1, Offset: 40_000, EvaluatedAt: at, Detail: `{"floor":0.01}`, CostNanoUSD: 40_000},
			{Check: "former", CheckVersion: "f1", InteractionID: "i", Status: "unscored", Reason: "prose", EvaluatedAt: at},
		},
		texts: []sink.Text{{InteractionID: "i", Time: at, Topic: "llm.interactions", Partition: 1, Offset: 40_000, Input: "q", Output: "o", Store: "full"}},
	}
	why := explain(t, m, file, "i")
	c := why.Checks[0]
	if c.Check != "refunds" || c.Outcome != OutcomeJudged || len(c.Rows) != 2 || !c.Rows[0].Current || c.Rows[1].Current {
		t.Fatalf("%+v", c)
	}
	// As stored, and not 0.2199999988079071.
	if r := c.Rows[0]; *r.Score != .22 || r.Probabilities["no"] != .78 || r.Pi != .25 || r.JudgeModel != "m-1" || r.CostUSD != 0.00004 || string(r.Detail) != `{"floor":0.01}` {
		t.Errorf("%+v", r)
	}
	if last := why.Checks[2]; last.Check != "former" || last.Outcome != "unscored" || !strings.Contains(last.Because, "no such check") {
		t.Errorf("%+v", last)
	}
	if why.Text == nil || why.Text.Output != "o" || why.Position == nil || *why.Position != (Position{"llm.interactions", 1, 40_000, 0}) {
		t.Errorf("text %+v at %+v", why.Text, why.Position)
	}
}

func TestOnlyAnOlderVersionJudgedIt(t *testing.T) {
	file := parseChecks(t, checksFile)
	m := &memory{rows: []sink.Evaluation{{Check: "facts", CheckVersion: "0ld", InteractionID: "i", Status: "ok", Pi: .5}}}
	c := explain(t, m, file, "i").Checks[1]
	if c.Outcome != OutcomeOlderVersion || !strings.Contains(c.Because, "0ld") || !strings.Contains(c.Because, file.Checks[1].Version) {
		t.Errorf("%+v", c)
	}
}

// An id that nobody has recorded may be a slip of the pen: the hash says what it would
// be, and nothing claims that it was.
func TestWithoutARowOrAPlaceTheHashSaysWhatItWouldBe(t *testing.T) {
	file := parseChecks(t, checksFile)
	check := file.Checks[0]
	out := explain(t, &memory{}, file, idWhere(t, check, "conv-", false)).Checks[0]
	if out.Outcome != OutcomeUnknown || *out.U < *out.Rate || *out.Rate != .25 || !strings.Contains(out.Because, "not in the sample") {
		t.Errorf("%+v", out)
	}
	in := explain(t, &memory{}, file, idWhere(t, check, "conv-", true)).Checks[0]
	if in.Outcome != OutcomeUnknown || *in.U >= *in.Rate || !strings.Contains(in.Because, "filtered, not applicable") {
		t.Errorf("%+v", in)
	}
}

func TestAnIDThatIsAPlaceIsLookedUpInTheLedger(t *testing.T) {
	file := parseChecks(t, checksFile)
	check := file.Checks[0]
	offset := offsetWhere(t, check)
	id := derived(offset)
	cell := func(of, decision, reason string, segment, n, upto uint64) sink.Population {
		p := sink.Population{Topic: "llm.interactions", Partition: 3, SegmentFrom: segment, Check: of, Decision: decision, Reason: reason, N: n, UptoOffset: upto}
		if of != "" {
			p.CheckVersion = check.Version
		}
		return p
	}
	f := func(want string, words []string, m *memory) {
		t.Helper()
		why := explain(t, m, file, id)
		c := why.Checks[0]
		if c.Outcome != want {
			t.Errorf("%q, want %q: %s", c.Outcome, want, c.Because)
		}
		for _, word := range words {
			if !strings.Contains(c.Because, word) {
				t.Errorf("%s: no %q in %q", want, word, c.Because)
			}
		}
	}
	f(OutcomePending, []string{"counted nothing"}, &memory{})
	// Counted up to the record before it: in flight, or not read yet.
	if offset > 0 {
		f(OutcomePending, []string{"up to offset"}, &memory{cells: []sink.Population{cell("refunds", "filtered", "", 0, 5, offset-1)}})
	}
	// Counted, and one decision alone can explain that there is no row.
	f(OutcomeNotJudged, []string{"not_applicable (missing:criteria), 7 in its block"}, &memory{cells: []sink.Population{
		cell("refunds", "not_applicable", "missing:criteria", 0, 7, offset+9), cell("refunds", "selected", "", 0, 3, offset+9), cell("facts", "filtered", "", 0, 9, offset+9),
	}})
	f(OutcomeNotJudged, []string{"filtered, 4 in its block; or", "nothing to judge in the record (tombstone)"}, &memory{cells: []sink.Population{
		cell("refunds", "filtered", "", 0, 4, offset+9), cell("", "no_interaction", "tombstone", 0, 1, offset+9),
	}})
	// A segment that begins later says nothing of an earlier record.
	f(OutcomePending, nil, &memory{cells: []sink.Population{cell("refunds", "filtered", "", offset+1, 4, offset+9)}})
	f(OutcomeDeadLettered, []string{"bad_json"}, &memory{letters: []sink.DeadLetter{{Topic: "llm.interactions", Partition: 3, Offset: offset, Reason: "bad_json"}}})
}

func TestPlacesAreReadAsTheDecoderWritesThem(t *testing.T) {
	f := func(id string, want Position, ok bool) {
		t.Helper()
		if got, is := positionIn(id); is != ok || got != want {
			t.Errorf("%s: %+v %v", id, got, is)
		}
	}
	f("a.b_c-d/0/7", Position{"a.b_c-d", 0, 7, 0}, true)
	f("t/12/9000000000#3", Position{"t", 12, 9_000_000_000, 3}, true)
	f("t/1/2#", Position{}, false)
	f("t/-1/2", Position{}, false)
	f("t/1", Position{}, false)
	f("/1/2", Position{}, false)
	f("a/b/1/2", Position{}, false)
	f("conv-77", Position{}, false)
	f("t/1/18446744073709551615", Position{}, false)
}

func TestAForeignIDThatLooksLikeAPlaceIsNotTakenForOne(t *testing.T) {
	file := parseChecks(t, checksFile)
	why := explain(t, &memory{}, file, "conv/3/17")
	if why.Position != nil || !slices.ContainsFunc(why.Notes, func(n string) bool { return strings.Contains(n, "no source of assay.yaml reads topic conv") }) {
		t.Errorf("%+v", why)
	}
}

func TestWhyTakesAnyIDInItsPath(t *testing.T) {
	w := start(t)
	w.store.rows = []sink.Evaluation{{Check: "facts", CheckVersion: w.server.deps.Checks.Checks[1].Version, InteractionID: "t/1/2#3 ü?%", Status: "shed", Reason: "budget", Pi: .5}}
	a := w.get("/api/v1/why/" + url.PathEscape("t/1/2#3 ü?%"))
	var body Explanation
	a.into(t, &body)
	if a.status != 200 || body.ID != "t/1/2#3 ü?%" || body.Checks[1].Outcome != "shed" || body.Checks[1].Because != "budget" {
		t.Errorf("%d %s", a.status, a.body)
	}
}
