package sink

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/testkit"
)

// A wire stands between driver and engine and does to inserts what networks do. What
// it does to the n-th insert is faults[n]; past the end it only passes on.
type wire struct {
	addr string

	mu      sync.Mutex
	faults  []fault
	inserts int
	query   url.Values // added to every request
}

type fault int

const (
	pass       fault = iota
	loseAnswer       // the insert is stored, the answer never arrives
	loseInsert       // the connection ends before the server has heard of it
	tooBusy          // code 202
	noMemory         // code 241
	badGateway       // a proxy's answer
	hangUp           // the answer ends in its headers
)

func newWire(t testing.TB, e *testkit.Engine, faults ...fault) *wire {
	t.Helper()
	w := &wire{faults: faults}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: e.Addr})
	transport := &http.Transport{}
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.mu.Lock()
		for k, v := range w.query {
			q[k] = v
		}
		do := pass
		if strings.HasPrefix(q.Get("query"), "INSERT") {
			if w.inserts < len(w.faults) {
				do = w.faults[w.inserts]
			}
			w.inserts++
		}
		w.mu.Unlock()
		r.URL.RawQuery = q.Encode()
		refuse := func(code int) {
			rw.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
			rw.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(rw, "Code: %d. DB::Exception: as the test wants it", code)
		}
		switch do {
		case loseInsert:
			panic(http.ErrAbortHandler)
		case loseAnswer:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case tooBusy:
			refuse(202)
		case noMemory:
			refuse(241)
		case badGateway:
			rw.WriteHeader(http.StatusBadGateway)
		case hangUp:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			c, _, err := rw.(http.Hijacker).Hijack()
			if err == nil {
				fmt.Fprint(c, "HTTP/1.1 200 OK\r\nConte")
				c.Close()
			}
		default:
			proxy.ServeHTTP(rw, r)
		}
	}))
	w.addr = strings.TrimPrefix(server.URL, "http://")
	t.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return w
}

// through opens the engine's database over the wire, with its tables.
func (w *wire) through(t testing.TB, e *testkit.Engine) *DB {
	t.Helper()
	cfg := connConfig(e)
	cfg.Addr = w.addr
	db := openAt(t, cfg)
	if _, err := Migrate(t.Context(), db, db.log); err != nil {
		t.Fatal(err)
	}
	return db
}

// The story: answers are lost, proxies fail, the server is busy. A row may be sent
// many times; it is stored once, also before anything is deduplicated on reading.
func TestRowsAreStoredOnceWhateverHappensToTheirInserts(t *testing.T) {
	storedOnce(t, "", loseAnswer, tooBusy, loseInsert, pass, hangUp, pass, badGateway, loseAnswer)
}

// A block that was stored without an answer and is then too large for the server's
// memory goes out again in halves, under new tokens: readers still see each row once.
func TestRowsAreSeenOnceWhenAStoredBlockIsSentAgainInHalves(t *testing.T) {
	storedOnce(t, "FINAL", loseAnswer, noMemory, noMemory, pass, hangUp, noMemory)
}

// storedOnce writes to every table over a wire with faults and counts the rows.
func storedOnce(t *testing.T, final string, faults ...fault) {
	t.Helper()
	e := testkit.ClickHouse(t)
	net := newWire(t, e, faults...)
	db := net.through(t, e)
	exec(t, db, "SYSTEM STOP MERGES {{db}}.evaluations") // they would put together what is stored twice
	cfg := defaults()
	cfg.BatchAge, cfg.BatchRows = 20*time.Millisecond, 500
	w := runWriter(t, db, cfg)
	o := &outcomes{}
	const n = 2000
	o.add(t, w, numbers(n)...)
	more := &outcomes{}
	if err := w.AddTexts(t.Context(), []Text{{Time: noon, InteractionID: "t", Store: "none"}}, more.of("text")); err != nil {
		t.Fatal(err)
	}
	if err := w.AddDeadLetters(t.Context(), []DeadLetter{{Topic: "chat", LogTime: noon}}, more.of("dead letter")); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.InsertPopulation(t.Context(), []Population{{Topic: "chat", Minute: noon, Decision: "interaction", N: n}}); err != nil {
		t.Fatal(err)
	}
	for id, told := range o.told {
		if len(told) != 1 || told[0] != nil {
			t.Errorf("%s was told %v, want once that it is durable", id, told)
		}
	}
	if raw := number(t, db, "SELECT count() AS x FROM {{db}}.evaluations "+final); raw != n || len(o.told) != n {
		t.Errorf("%v rows in the table, %d told, want %d", raw, len(o.told), n)
	}
	if others := number(t, db, "SELECT (SELECT count() FROM {{db}}.interactions) + (SELECT count() FROM {{db}}.dead_letters) + (SELECT count() FROM {{db}}.population) AS x"); others != 3 || more.soFar() != 2 {
		t.Errorf("%v rows of the other tables and %d told, want 3 and 2", others, more.soFar())
	}
	if net.inserts < len(net.faults) {
		t.Errorf("only %d inserts, so not every fault came up", net.inserts)
	}
}

// The engine refuses what our own check lets through.
func TestARowTheServerRefusesIsFoundAmongItsNeighbours(t *testing.T) {
	db := migratedDB(t)
	exec(t, db, "ALTER TABLE {{db}}.evaluations ADD CONSTRAINT short CHECK latency_ms < 1000")
	cfg := defaults()
	cfg.BatchAge = 20 * time.Millisecond
	w := runWriter(t, db, cfg)
	o := &outcomes{}
	for i := range 200 {
		row := evaluation(i)
		if i == 137 {
			row.LatencyMS = 5000
		}
		if err := w.AddEvaluations(t.Context(), []Evaluation{row}, o.of(row.InteractionID)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := number(t, db, "SELECT count() AS x FROM {{db}}.evaluations"); got != 199 {
		t.Errorf("%v rows stored, want 199", got)
	}
	told := o.told["int-000137"]
	if len(told) != 1 || told[0] == nil || !strings.Contains(told[0].Error(), "int-000137") || serverCode(told[0]) != codeConstraint {
		t.Errorf("the refused row was told %v, want its name and code 469", told)
	}
}

// An engine that is killed in the middle comes back with every row that was told to be
// durable, and the writer goes on by itself.
func TestAKilledEngineLosesNoDurableRow(t *testing.T) {
	e := testkit.ClickHouse(t)
	db := openAt(t, connConfig(e))
	if _, err := Migrate(t.Context(), db, db.log); err != nil {
		t.Fatal(err)
	}
	cfg := defaults()
	cfg.BatchAge, cfg.BatchRows = 10*time.Millisecond, 200
	w := runWriter(t, db, cfg)
	o := &outcomes{}
	for round := range 6 {
		for i := range 500 {
			o.add(t, w, round*500+i)
		}
		if round == 2 {
			e.Kill(t)
		}
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := number(t, db, "SELECT count() AS x FROM {{db}}.evaluations FINAL"); got != 3000 || len(o.told) != 3000 {
		t.Errorf("%v rows, %d told, want 3000", got, len(o.told))
	}
	for id, told := range o.told {
		if len(told) != 1 || told[0] != nil {
			t.Errorf("%s was told %v", id, told)
		}
	}
}

// A server that lives in another zone shows the same moments.
func TestTheServersTimeZoneChangesNothing(t *testing.T) {
	answers := func(zone string) string {
		e := testkit.ClickHouse(t)
		net := newWire(t, e)
		if zone != "" {
			net.query = url.Values{"session_timezone": {zone}}
		}
		db := net.through(t, e)
		ctx := t.Context()
		var rows []Evaluation
		for i := range 300 {
			row := evaluation(i * 300) // over a day and across midnight
			if i%9 == 4 {
				row = failure(row, "error", "timeout")
			}
			rows = append(rows, row)
		}
		insertAll(t, db, evaluationsTable(), rows)
		insertAll(t, db, interactionsTable(), []Text{{Time: noon, InteractionID: "int-000300", Store: "full"}})
		insertAll(t, db, populationTable(), []Population{{Topic: "chat", Minute: noon, Decision: "interaction", N: 3, LogTime: noon}})
		insertAll(t, db, deadLettersTable(), []DeadLetter{{Topic: "chat", LogTime: noon, FirstFailure: noon}})
		insertLabels(t, db, label{id: "int-000300", ts: noon, rater: "r", revision: 1, passed: true, pi2: 1})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(db.PutAlarms(ctx, []Alarm{{ID: "a", State: "open", OpenedAt: noon, UpdatedAt: noon}}))
		must(db.PutDetectorStates(ctx, []DetectorState{{Check: "refunds", CheckVersion: "v1", Detector: "esr", Minute: noon, ComputedAt: noon}}))
		must(db.PutCheckVersions(ctx, []CheckVersion{{Check: "refunds", Version: "v1", QuestionKind: "none", FirstSeen: noon}}))
		rollAll(t, db, noon.Add(48*time.Hour))

		var b strings.Builder
		day := noon.Add(24 * time.Hour)
		show := func(v any, err error) {
			t.Helper()
			must(err)
			fmt.Fprintf(&b, "%+v\n", v)
		}
		now, err := db.Now(ctx)
		must(err)
		if d := time.Since(now).Abs(); d > time.Minute {
			t.Errorf("zone %q: the server's clock is %v off", zone, d)
		}
		quality, err := db.Quality(ctx, "refunds", nil, noon, day)
		show(quality, err)
		buckets, err := db.QualityBuckets(ctx, "refunds", "v1", nil, noon, day, 6*time.Hour)
		show(buckets, err)
		judged, err := db.JudgedRows(ctx, "refunds", "v1", noon, day)
		show(judged, err)
		selected, err := db.SelectedWeights(ctx, "refunds", noon, day, now.Add(time.Minute))
		show(selected, err)
		worst, err := db.WorstItems(ctx, "refunds", "v1", nil, noon, day, 5)
		show(worst, err)
		population, err := db.PopulationSums(ctx, "", noon, day)
		show(population, err)
		dirty, err := db.DirtyQuality(ctx, now.Add(-time.Minute))
		show(dirty, err)
		dirty, err = db.DirtyPopulation(ctx, now.Add(-time.Minute))
		show(dirty, err)
		answered, err := db.Answered(ctx, "chat", 0, 0, now.Add(-time.Minute))
		show(len(answered), err)
		states, err := db.DetectorStates(ctx, "refunds", "v1")
		show(states, err)
		alarms, err := db.Alarms(ctx, noon)
		show(alarms, err)
		versions, err := db.CheckVersions(ctx)
		show(len(versions), err)
		letters, err := db.DeadLettersAt(ctx, "chat", 0, 0)
		show(letters, err)
		cells, err := db.LedgerCell(ctx, "chat", 0, 0)
		show(cells, err)
		why, err := db.EvaluationsOf(ctx, "int-000300")
		must(err)
		show(why[0].Time, nil)
		text, err := db.TextOf(ctx, "int-000300")
		show(text.Time, err)
		rollup, err := db.LastRollup(ctx)
		show(rollup, err)
		times, err := db.LogTimes(ctx)
		must(err)
		show(times[0].LogTime, nil)
		if strings.Contains(b.String(), "[]\n") {
			t.Errorf("a reader found nothing:\n%s", b.String())
		}
		return b.String()
	}
	utc, kolkata := strings.Split(answers(""), "\n"), strings.Split(answers("Asia/Kolkata"), "\n")
	for i := range utc {
		if utc[i] != kolkata[i] {
			t.Errorf("answer %d in UTC\n%.300s\nin Kolkata\n%.300s", i+1, utc[i], kolkata[i])
		}
	}
}

// A reader that takes too long or too much is ended by its caps, not by the server.
func TestAReaderIsEndedByItsCaps(t *testing.T) {
	db := migratedDB(t)
	small := caps{memory: 1 << 20, time: 10 * time.Second, threads: 1}
	run := func(c caps, sql string) error {
		_, err := read(context.WithoutCancel(t.Context()), db, query{"test", c, sql}, func(scan func(...any) error) (n uint64, err error) { return n, scan(&n) })
		return err
	}
	if err := run(small, "SELECT length(groupArray(number)) AS n FROM numbers(50000000)"); serverCode(err) != codeMemoryLimit {
		t.Errorf("a query over its memory gave %v", err)
	}
	if err := run(page, "SELECT 1; DROP TABLE {{db}}.alarms"); err == nil {
		t.Error("a second statement ran")
	}
	if err := run(page, "ALTER TABLE {{db}}.alarms DELETE WHERE 1"); serverCode(err) != codeReadonly {
		t.Errorf("a reader that writes gave %v, want code 164", err)
	}
}
