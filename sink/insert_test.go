package sink

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRowsComeBackAsTheyWereStored(t *testing.T) {
	db := migratedDB(t)
	ctx := t.Context()
	check := func(what string, got, want any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read\n%+v\nstored\n%+v", what, got, want)
		}
	}

	e := evaluation(1)
	e.Time = noon.Add(123 * time.Millisecond)
	e.Repeat, e.Element, e.Tenant, e.Environment, e.Stratum, e.Outside = 2, 3, "acme", "prod", "model=m1", 0.01
	e.Attributes = map[string]string{"team": "billing", "länge": "ß'\\\n"}
	e.InteractionID = "it's \\ odd\tid"
	insertAll(t, db, evaluationsTable(), []Evaluation{e})
	got, err := db.EvaluationsOf(ctx, e.InteractionID)
	check("evaluation", got, []Evaluation{e}, err)

	failed := failure(evaluation(2), "error", "timeout")
	insertAll(t, db, evaluationsTable(), []Evaluation{failed})
	got, err = db.EvaluationsOf(ctx, failed.InteractionID)
	failed.EvaluatedAt = time.Unix(0, 0).UTC()
	failed.Attributes, failed.OptionNames, failed.OptionProbs = map[string]string{}, []string{}, []float32{}
	check("failure", got, []Evaluation{failed}, err)

	text := Text{
		Time: noon, InteractionID: "t1", Topic: "chat", Partition: 3, Offset: 9, Element: 1, Input: "Hi", Output: "Hello", Expected: []string{"a", "b"},
		Criteria: "greets", Context: []string{"c"}, Messages: `[{"role":"user"}]`, Tenant: "acme", App: "support", Model: "m1", Route: "r", PromptVersion: "p",
		Environment: "prod", SessionID: "s", UserID: "u", TraceID: "tr", InputTokens: 1, OutputTokens: 2, LatencyMS: 3, Feedback: ptr(float32(1)),
		Status: "success", Flags: []string{"truncated"}, Attributes: map[string]string{"k": "v"}, Store: "excerpt", Redactions: 4,
	}
	insertAll(t, db, interactionsTable(), []Text{text})
	gotText, err := db.TextOf(ctx, "t1")
	check("text", gotText, &text, err)
	gotText, err = db.TextOf(ctx, "nobody")
	check("unknown text", gotText, (*Text)(nil), err)

	cell := Population{Topic: "chat", Partition: 3, Block: 2, SegmentFrom: 65_536, Minute: noon, Check: "refunds", CheckVersion: "v1", Stratum: "model=m1",
		Decision: "selected", Pi: 0.25, Epoch: 7, N: 11, UptoOffset: 65_600, LogTime: noon.Add(time.Minute), ChecksHash: "h1"}
	insertAll(t, db, populationTable(), []Population{cell})
	cells, err := db.LedgerCell(ctx, "chat", 3, 65_537)
	check("ledger", cells, []Population{cell}, err)

	dead := DeadLetter{Topic: "chat", Partition: 1, Offset: 5, LogTime: noon, Reason: "bad_json", Error: "unexpected end", Attempts: 1, FirstFailure: noon.Add(time.Second),
		AssayVersion: "0.1", Headers: map[string]string{"h": "\x00\xff"}, Key: []byte("k\x00"), Body: []byte("{\xfe"), BodyBytes: 2, BodySHA256: [32]byte{0, 1, 0xff, 31: 7}, Stub: true}
	insertAll(t, db, deadLettersTable(), []DeadLetter{dead})
	letters, err := db.DeadLettersAt(ctx, "chat", 1, 5)
	check("dead letter", letters, []DeadLetter{dead}, err)
	letters, err = db.RecentDeadLetters(ctx, 10)
	check("recent dead letters", letters, []DeadLetter{dead}, err)

	version := CheckVersion{Check: "refunds", Version: "v1", Evaluator: "closed_qa", QuestionKind: "boolean", OptionNames: []string{"yes", "no"},
		OptionScores: []*float32{ptr(float32(1)), nil}, PassLine: ptr(0.5), PassOptions: []string{"yes"}, Judge: "main", JudgeFingerprint: "f", Definition: "{}", FirstSeen: noon}
	if err := db.PutCheckVersions(ctx, []CheckVersion{version, {Check: "facts", Version: "v2", QuestionKind: "choice", FirstSeen: noon}}); err != nil {
		t.Fatal(err)
	}
	versions, err := db.CheckVersions(ctx)
	check("check versions", versions, []CheckVersion{
		{Check: "facts", Version: "v2", QuestionKind: "choice", FirstSeen: noon, OptionNames: []string{}, OptionScores: []*float32{}, PassOptions: []string{}}, version}, err)

	state := DetectorState{Check: "refunds", CheckVersion: "v1", SliceID: 9, Slice: map[string]string{"app": "support"}, Detector: "esr", Minute: noon, Samples: 100,
		NullRate: 0.9, Tolerance: 0.02, Threshold: 1e6, WMax: 4, R: []float64{1, 2.5}, EValue: 3.5, Latched: true, Baseline: "{}", InputsDigest: [16]byte{0, 1, 15: 0xfe}, ComputedAt: noon.Add(time.Hour)}
	older := state
	older.Minute, older.EValue = noon.Add(-time.Minute), 1
	if err := db.PutDetectorStates(ctx, []DetectorState{state, older}); err != nil {
		t.Fatal(err)
	}
	states, err := db.DetectorStates(ctx, "refunds", "v1")
	check("detector states", states, []DetectorState{state}, err)

	alarm := Alarm{ID: "a1", Check: "refunds", CheckVersion: "v1", SliceID: 9, Slice: map[string]string{"app": "support"}, Detector: "esr", OpenedAt: noon, Revision: 1,
		State: "open", UpdatedAt: noon, By: "monitor", Note: "n", Summary: "fell", Evidence: "{}"}
	closed := alarm
	closed.Revision, closed.State, closed.ClosedAt = 2, "closed", ptr(noon.Add(time.Hour))
	open := alarm
	open.ID, open.OpenedAt = "a0", noon.Add(-48*time.Hour)
	if err := db.PutAlarms(ctx, []Alarm{closed, alarm, open}); err != nil {
		t.Fatal(err)
	}
	alarms, err := db.Alarms(ctx, noon)
	check("alarms since noon, and the open one", alarms, []Alarm{open, closed}, err)
	alarms, err = db.Alarms(ctx, noon.Add(time.Hour))
	check("alarms since later", alarms, []Alarm{open}, err)
}

// The story: a consumer starts at the beginning of a long log. Its dead letters are of
// old records and are kept from when they were written.
func TestADeadLetterOfAnOldRecordIsKept(t *testing.T) {
	db := migratedDB(t)
	old := DeadLetter{Topic: "chat", Offset: 1, LogTime: noon.AddDate(0, 0, -60), Reason: "not_json", FirstFailure: noon}
	insertAll(t, db, deadLettersTable(), []DeadLetter{old})
	exec(t, db, "INSERT INTO {{db}}.dead_letters (kafka_topic, kafka_offset, log_time, inserted_at) SELECT 'chat', 2, now64(3), now64(3) - INTERVAL 31 DAY")
	exec(t, db, "OPTIMIZE TABLE {{db}}.dead_letters FINAL")
	for offset, want := range map[uint64]int{1: 1, 2: 0} {
		letters, err := db.DeadLettersAt(t.Context(), "chat", 0, offset)
		if err != nil || len(letters) != want {
			t.Errorf("offset %d: %d letters (%v), want %d", offset, len(letters), err, want)
		}
	}
}

// The story: the same log is read by processes that die, overlap and cut their batches
// as it comes; every way of reading has to show each judgement once.
func TestRowsInsertedShuffledRecutAndRepeatedAreSeenOnce(t *testing.T) {
	db := migratedDB(t)
	const n = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]Evaluation, n)
	var wantScore float64
	for i := range rows {
		rows[i] = evaluation(i)
		rows[i].Time = noon.Add(time.Duration(i%3600) * time.Second)
		rows[i].Score = ptr(float32(i%5) / 4)
		rows[i].Passed = ptr(i%5 > 2)
		wantScore += float64(*rows[i].Score)
	}
	sent := slices.Concat(rows, rows[:n/20])
	random.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	start := time.Now()
	for at := 0; at < len(sent); {
		size := min(1+random.IntN(30_000), len(sent)-at)
		insertAll(t, db, evaluationsTable(), sent[at:at+size])
		at += size
	}
	t.Logf("%d rows in %v", len(sent), time.Since(start).Round(time.Millisecond))

	if got := number(t, db, "SELECT count() AS x FROM {{db}}.evaluations FINAL"); got != n {
		t.Errorf("FINAL counts %v, want %d", got, n)
	}
	if got := number(t, db, "SELECT sum(score) AS x FROM {{db}}.evaluations FINAL"); got != wantScore {
		t.Errorf("FINAL sums %v, want %v", got, wantScore)
	}
	judged, err := db.JudgedRows(t.Context(), "refunds", "v1", noon, noon.Add(time.Hour))
	if err != nil || len(judged) != n {
		t.Errorf("%d judged rows (%v), want %d", len(judged), err, n)
	}
	if !slices.IsSortedFunc(judged, func(a, b JudgedRow) int {
		if c := a.Minute.Compare(b.Minute); c != 0 {
			return c
		}
		return strings.Compare(a.InteractionID, b.InteractionID)
	}) {
		t.Error("judged rows are not in the order of minutes and interactions")
	}
	sums, err := db.SelectedWeights(t.Context(), "refunds", noon, noon.Add(time.Hour), noon)
	if err != nil || sums != (SelectedSums{SW: 4 * n, VarSum: 12 * n, N: n}) {
		t.Errorf("selected weights %+v (%v)", sums, err)
	}
	rollAll(t, db, noon.Add(2*time.Hour))
	quality, err := db.Quality(t.Context(), "refunds", nil, noon, noon.Add(time.Hour))
	if err != nil || len(quality) != 1 || quality[0].N != n || quality[0].SW != 4*n || quality[0].SWS != 4*wantScore || quality[0].X != 2*n/5 {
		t.Errorf("rollup %+v (%v)", quality, err)
	}
}

// The ledger's minutes and the rows' are compared one by one: what lacks in one is not
// made good by what is on its way in another.
func TestEachMinuteIsHeldAgainstItsLedger(t *testing.T) {
	db := migratedDB(t)
	cell := func(minute int, n uint64) Population {
		return Population{Topic: "chat", Minute: noon.Add(time.Duration(minute) * time.Minute), Check: "refunds", CheckVersion: "v1", Decision: "selected", Pi: .25, N: n}
	}
	// three rows and the ledger; a row without a ledger; a ledger without its row
	insertAll(t, db, evaluationsTable(), []Evaluation{evaluation(0), evaluation(1), evaluation(2), evaluation(60), evaluation(61)})
	insertAll(t, db, populationTable(), []Population{cell(0, 3), cell(1, 1), cell(2, 1)})
	rollAll(t, db, noon.Add(time.Hour))
	now, err := db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := func(settled time.Time, surplus uint64) {
		t.Helper()
		got, err := db.SelectedWeights(t.Context(), "refunds", noon, noon.Add(time.Hour), settled)
		if want := (SelectedSums{SW: 20, VarSum: 60, N: 5, Missing: 1, Surplus: surplus}); err != nil || got != want {
			t.Errorf("settled at %v of %v: %+v (%v), want %+v", settled, now, got, err, want)
		}
	}
	f(now.Add(time.Minute), 1)
	f(now.Add(-10*time.Minute), 0)
}

func TestAnAnswerBeatsAFailureInEitherOrder(t *testing.T) {
	f := func(first, second Evaluation, want string) {
		t.Helper()
		db := migratedDB(t)
		insertAll(t, db, evaluationsTable(), []Evaluation{first})
		insertAll(t, db, evaluationsTable(), []Evaluation{second})
		got, err := db.EvaluationsOf(t.Context(), first.InteractionID)
		if err != nil || len(got) != 1 || got[0].Status != want {
			t.Errorf("%s then %s reads %+v (%v), want one %s", first.Status, second.Status, got, err, want)
		}
		rollAll(t, db, noon.Add(2*time.Hour))
		sums, err := db.Quality(t.Context(), "refunds", nil, noon, noon.Add(time.Hour))
		if err != nil || len(sums) != 1 {
			t.Fatalf("sums %+v (%v)", sums, err)
		}
		q := sums[0]
		if total := q.NOK + q.NUnscored + q.NShed + q.NError; total != 1 || (q.NOK == 1) != (want == "ok") {
			t.Errorf("%s then %s counts %+v, want one %s", first.Status, second.Status, q, want)
		}
		// a failure has no score, so it moves no mean
		if wantSum := map[bool]float64{true: 3, false: 0}[want == "ok"]; q.SWS != wantSum || q.N != q.NOK {
			t.Errorf("%s then %s: weighted score %v of n %d, want %v", first.Status, second.Status, q.SWS, q.N, wantSum)
		}
	}
	ok := evaluation(1)
	f(ok, failure(ok, "error", "timeout"), "ok")
	f(failure(ok, "error", "timeout"), ok, "ok")
	f(failure(ok, "shed", "budget"), ok, "ok")
	// an unusable answer is an answer, so the later one counts
	unscored := failure(ok, "unscored", "unparsable")
	unscored.EvaluatedAt = ok.EvaluatedAt.Add(time.Minute)
	f(ok, unscored, "unscored")
	f(unscored, failure(ok, "error", "timeout"), "unscored")
}

func TestImpossibleRowsAreNamedBeforeTheInsert(t *testing.T) {
	f := func(change func(*Evaluation), want string) {
		t.Helper()
		e := evaluation(1)
		change(&e)
		err := evaluationsTable().validate(&e)
		if want == "" {
			if err != nil {
				t.Errorf("refused: %v", err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(func(e *Evaluation) {}, "")
	f(func(e *Evaluation) { e.Pi = 1 }, "")
	f(func(e *Evaluation) { *e = failure(*e, "shed", "budget"); e.EvaluatedAt = time.Time{} }, "")
	f(func(e *Evaluation) { e.Pi = 0 }, "pi")
	f(func(e *Evaluation) { e.Pi = 1.01 }, "pi")
	f(func(e *Evaluation) { e.Pi = nan() }, "pi")
	f(func(e *Evaluation) { e.Score = nil }, "score")
	f(func(e *Evaluation) { e.Status = "unscored" }, "score")
	f(func(e *Evaluation) { e.Score = ptr(float32(nan())) }, "not a number")
	f(func(e *Evaluation) { e.OptionProbs = []float32{1} }, "probabilities")
	f(func(e *Evaluation) { e.Status, e.Score = "maybe", nil }, "status")
	f(func(e *Evaluation) { e.Method = "oracle" }, "method")
	f(func(e *Evaluation) { e.EvaluatedAt = time.Time{} }, "lose against a failure")
	f(func(e *Evaluation) { e.Time = time.Time{} }, "outside 1970")
	f(func(e *Evaluation) { e.Time = noon.AddDate(200, 0, 0) }, "outside 1970")
	f(func(e *Evaluation) { e.InteractionID = "" }, "empty")
}

func nan() float64 { var zero float64; return zero / zero }

// The writer relies on this: a token is about one block of bytes. The other half is
// why a token is never used for other rows.
func TestATokenStoresItsFirstRowsAndDropsAllOthers(t *testing.T) {
	db := migratedDB(t)
	tab := evaluationsTable()
	rows := []Evaluation{evaluation(1), evaluation(2)}
	for range 3 {
		if err := tab.send(t.Context(), db, "p:1", rows); err != nil {
			t.Fatal(err)
		}
	}
	if got := number(t, db, "SELECT count() AS x FROM {{db}}.evaluations"); got != 2 {
		t.Errorf("%v raw rows after a resend, want 2", got)
	}
	if err := tab.send(t.Context(), db, "p:1", []Evaluation{evaluation(3)}); err != nil {
		t.Fatal(err)
	}
	if got := number(t, db, "SELECT count() AS x FROM {{db}}.evaluations"); got != 2 {
		t.Errorf("%v raw rows after other rows under the token; the server no longer drops them, so the rule about tokens may be relaxed", got)
	}
	if err := tab.send(t.Context(), db, "p:2", rows); err != nil {
		t.Fatal(err)
	}
	if got := number(t, db, "SELECT count() AS x FROM {{db}}.evaluations FINAL"); got != 2 {
		t.Errorf("%v rows after the same rows under another token, want 2", got)
	}
}

func TestTheWriterNeverRepeatsATokenForOtherRows(t *testing.T) {
	used := map[string]bool{}
	tok := newTokens("p")
	for range 1000 {
		s := tok.next()
		if used[s] {
			t.Fatalf("token %s twice", s)
		}
		used[s] = true
	}
}
