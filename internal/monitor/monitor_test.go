package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/sink"
)

// fallingDay is twelve good hours and two bad ones, the log of several tests here.
func fallingDay(hour int) batch {
	pass := 75
	if hour >= 12 {
		pass = 45
	}
	return batch{check: "refund", slice: sliceOf("app=support"), pi: .5, ok: 80, pass: pass, model: "judge-1"}
}

func TestARestartAtAnyMomentGivesTheSameNumbers(t *testing.T) {
	// what is stored in the end, but for when it was computed
	states := func(between func(w *world, hour int)) (map[string]sink.DetectorState, map[string]sink.Alarm) {
		store := newMemory()
		file := aFile(.90, .02, .5, 4, "app=support", "app=sales")
		file.Checks[0].Alert.Close = "manual"
		w := newWorld(t, store, file)
		for hour := range 14 {
			w.load(time.Hour, fallingDay(hour))
			between(w, hour)
		}
		w.round()
		for key, s := range store.states {
			s.ComputedAt = time.Time{}
			store.states[key] = s
		}
		return store.states, store.alarms
	}
	whole, alarms := states(func(w *world, hour int) { w.round() })
	if len(whole) != 3 || len(alarms) != 2 {
		t.Fatalf("%d states and %d alarms, want 3 and 2: the test needs the fall to be found", len(whole), len(alarms))
	}
	f := func(name string, between func(w *world, hour int)) {
		t.Helper()
		got, gotAlarms := states(between)
		for key, want := range whole {
			if !reflect.DeepEqual(got[key], want) {
				t.Errorf("%s: state\n%+v\nwant\n%+v", name, got[key], want)
			}
		}
		if !reflect.DeepEqual(gotAlarms, alarms) {
			t.Errorf("%s: alarms\n%+v\nwant\n%+v", name, gotAlarms, alarms)
		}
	}

	f("a new process every hour", func(w *world, hour int) { w.round(); w.restart() })
	f("two monitors in turn", func(w *world, hour int) {
		w.round()
		other := w.mon
		w.restart()
		w.round()
		w.mon = other
		w.round()
	})
	f("away for most of the day", func(w *world, hour int) {
		if hour == 0 || hour == 13 {
			w.round()
		}
	})
}

func TestARoundThatFailsAnywhereIsMadeAgain(t *testing.T) {
	day := func(refuse string) (Snapshot, int) {
		store := newMemory()
		w := newWorld(t, store, aFile(.90, .02, .5, 4, "app=support"))
		failed := 0
		for hour := range 14 {
			w.load(time.Hour, fallingDay(hour))
			if refuse != "" {
				store.refuse[refuse] = 1 + hour%2
			}
			for {
				before := w.mon.Snapshot()
				err := w.mon.Round(t.Context())
				if err == nil {
					break
				}
				failed++
				if !errors.Is(err, errRefused) {
					t.Fatalf("%s: %v", refuse, err)
				}
				if w.mon.Snapshot() != before {
					t.Fatalf("%s: a failed round changed the snapshot", refuse)
				}
			}
			delete(store.refuse, refuse)
		}
		return *w.mon.Snapshot(), failed
	}
	want, _ := day("")
	if len(want.Alarms) != 2 {
		t.Fatalf("%d alarms, want 2: the test needs the fall to be found", len(want.Alarms))
	}
	want.Partitions = nil // the server's clock runs on with every try
	for _, method := range []string{
		"Now", "LogTimes", "LastRollup", "DirtyQuality", "DirtyPopulation", "RollupQuality", "RollupPopulation", "JudgedRows", "DetectorStates",
		"Alarms", "Quality", "WorstItems", "PutAlarms", "PutDetectorStates", "PopulationSums", "SelectedWeights",
		"LabelCounts", "PlaceLabels", "LabelledRows", "LabelQueues",
	} {
		got, failed := day(method)
		got.Partitions = nil
		if failed == 0 {
			t.Errorf("%s was never refused", method)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s refused %d times: snapshot\n%+v\nwant\n%+v", method, failed, got, want)
		}
	}
}

func TestAnAlarmCarriesItsEvidence(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, .5, 4, "app=support", "app=sales"))
	good := batch{check: "refund", slice: sliceOf("app=sales"), pi: .5, ok: 80, pass: 75, failed: 4}
	for hour := range 14 {
		w.load(time.Hour, fallingDay(hour), good)
	}
	s := w.round()
	var found *Alarm
	for i, a := range s.Alarms {
		if len(a.Slice) == 0 {
			found = &s.Alarms[i]
		}
	}
	if found == nil || found.State != alarmOpen || found.Severity != "ticket" || found.Data != DataOK {
		t.Fatalf("alarms %+v, want an open one on the whole check", s.Alarms)
	}
	var ev Evidence
	if err := json.Unmarshal([]byte(found.Evidence), &ev); err != nil {
		t.Fatal(err)
	}
	if ev.EValue < ev.Threshold || ev.Threshold < 365*1000*3/4 || ev.Target != .90 || ev.Tolerance != .02 {
		t.Errorf("evidence %+v: want an e-value at its limit", ev)
	}
	if ev.Before.PassRate == nil || *ev.Before.PassRate < .9 || ev.After.PassRate == nil || *ev.After.PassRate > .85 || !ev.Before.To.Equal(ev.After.From) {
		t.Errorf("windows %+v and %+v: want the fall between them", ev.Before, ev.After)
	}
	if ev.Moved == nil || ev.Moved.Slice["app"] != "support" || ev.Moved.Points > -.05 {
		t.Errorf("moved most: %+v, want app=support", ev.Moved)
	}
	if len(ev.Worst) != worstItems || ev.Worst[0].Score != .25 {
		t.Errorf("worst items %+v, want %d failed ones", ev.Worst, worstItems)
	}
	for _, part := range []string{"refund on all: pass rate ", "95% interval ", "target 90.0% less a tolerance of 2.0%", "app=support moved most"} {
		if !strings.Contains(found.Summary, part) {
			t.Errorf("summary %q, want %q in it", found.Summary, part)
		}
	}
}

func TestAnAlarmSaysWhenMissingJudgementsCouldExplainIt(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, 1, 4))
	for range 14 {
		w.load(time.Hour, batch{check: "refund", pi: 1, ok: 100, pass: 70, failed: 250})
	}
	s := w.round()
	if len(s.Alarms) != 1 || !strings.Contains(s.Alarms[0].Summary, " of the judgements are missing: had they all passed") {
		t.Errorf("alarms %+v, want one that says what is missing", s.Alarms)
	}
}

func TestAnAlarmThatAPersonClosedDoesNotComeBackFromOldEvidence(t *testing.T) {
	store := newMemory()
	w := newWorld(t, store, aFile(.90, .02, .5, 4))
	for hour := range 14 {
		w.load(time.Hour, fallingDay(hour))
	}
	open := w.round().Alarms
	if len(open) != 1 || w.state("all").Detector.State != DetectorAlarm {
		t.Fatalf("alarms %+v, want one", open)
	}
	a := store.alarms[open[0].ID]
	at := w.now
	a.Revision, a.State, a.ClosedAt, a.By = a.Revision+1, alarmClosed, &at, "maria"
	store.alarms[a.ID] = a
	w.load(5*time.Minute, batch{check: "refund", pi: .5, ok: 5, pass: 5})
	s := w.round()
	d := w.state("all").Detector
	if s.Alarms[0].State != alarmClosed || s.Alarms[0].By != "maria" || d.State != DetectorWatching || d.Samples > 10 {
		t.Errorf("alarm %+v, detector %+v: want it closed by maria and the evidence begun anew", s.Alarms[0], d)
	}
}

// Under a lowered target, what was gathered against the old one must not ring.
func TestANewTargetBeginsTheEvidenceAnew(t *testing.T) {
	store := newMemory()
	file := aFile(.99, .001, 1, 4)
	w := newWorld(t, store, file)
	w.load(3*time.Hour, batch{check: "refund", pi: 1, ok: 200, pass: 191})
	w.round()
	before := w.state("all").Detector
	if before.EValue < 2000 || before.State != DetectorWatching {
		t.Fatalf("detector %+v: the test needs much evidence and no alarm yet", before)
	}
	next := *file
	next.Checks = []checks.Check{file.Checks[0]}
	next.Checks[0].Alert.Target = .90
	next.Alerts.MaxFalseAlarmsPerYear = 400 // and a limit below the old evidence
	w.file = &next
	w.restart()
	w.load(10*time.Minute, batch{check: "refund", pi: 1, ok: 10, pass: 10})
	w.round()
	after := w.state("all").Detector
	if after.State != DetectorWatching || after.EValue > 100 || after.LastRestart == nil || !strings.Contains(after.RestartedFor, "target or tolerance changed") {
		t.Errorf("detector %+v: want evidence that begins anew, and why", after)
	}
}

func TestCloseManualLeavesTheAlarmToPeople(t *testing.T) {
	file := aFile(.90, .02, .5, 4)
	file.Checks[0].Alert.Close = "manual"
	w := newWorld(t, newMemory(), file)
	for hour := range 14 {
		w.load(time.Hour, fallingDay(hour))
	}
	for range 20 {
		w.load(time.Hour, fallingDay(0))
		w.round()
	}
	if a := w.mon.Snapshot().Alarms; len(a) != 1 || a[0].State != alarmOpen {
		t.Errorf("alarms %+v, want one that is still open", a)
	}
}

func TestANewVersionEndsTheOldOnesAlarmOnceItIsJudged(t *testing.T) {
	store := newMemory()
	file := aFile(.90, .02, .5, 4)
	w := newWorld(t, store, file)
	for hour := range 14 {
		w.load(time.Hour, fallingDay(hour))
	}
	if a := w.round().Alarms; len(a) != 1 || a[0].State != alarmOpen {
		t.Fatalf("alarms %+v, want an open one", a)
	}
	next := *file
	next.Checks = []checks.Check{file.Checks[0]}
	next.Checks[0].Version = "v2"
	w.file = &next
	w.restart()
	if a := w.round().Alarms; a[0].State != alarmOpen {
		t.Errorf("alarm %+v closed before the new version has a row", a[0])
	}
	w.load(time.Hour, fallingDay(0))
	s := w.round()
	if a := s.Alarms[0]; a.State != alarmClosed || !strings.Contains(a.Note, "version v2") {
		t.Errorf("alarm %+v, want it closed for the new version", a)
	}
	// both versions have their own series, and they are not mixed
	if len(s.Checks) != 2 || s.Checks[0].Version != "v1" || s.Checks[0].Current || !s.Checks[1].Current {
		t.Fatalf("checks %+v, want v1 and then the current v2", s.Checks)
	}
	if n := w.window("all", "24h").N; n != 80 {
		t.Errorf("v2 has %d rows in 24h, want its own 80", n)
	}
	if old, _ := s.Checks[0].Slices[0].Window("24h"); old.N != 14*80 {
		t.Errorf("v1 has %d rows in 24h, want its own %d", old.N, 14*80)
	}
}

func TestACheckThatIsNewInTheFileIsNoHole(t *testing.T) {
	store := newMemory()
	file := aFile(.90, .02, 1, 4)
	w := newWorld(t, store, file)
	// three hours of traffic that the check did not exist for, then six with it
	w.load(3*time.Hour, batch{check: "refund", pi: 1, undecided: 500})
	for range 6 {
		w.load(time.Hour, batch{check: "refund", pi: 1, ok: 100, pass: 95})
	}
	w.round()
	c, _ := w.mon.Snapshot().Check("refund")
	if c.Integrity == nil || c.Integrity.Gap != 0 || c.Integrity.Decided == 0 {
		t.Fatalf("integrity %+v, want no gap since the check's first decision", c.Integrity)
	}
	// a hole after its beginning is one
	w.load(time.Hour, batch{check: "refund", pi: 1, ok: 100, pass: 95, undecided: 4})
	w.load(time.Hour, batch{check: "refund", pi: 1, ok: 100, pass: 95})
	w.round()
	if c, _ = w.mon.Snapshot().Check("refund"); c.Integrity.Gap != 4 {
		t.Errorf("integrity %+v, want a gap of 4", c.Integrity)
	}
}

func TestWithoutALogThereIsASnapshotWithoutNumbers(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, 1, 4))
	s := w.round()
	if len(s.Checks) != 1 || !s.Now.IsZero() || !s.ClosedUntil.IsZero() || s.Checks[0].Integrity != nil {
		t.Errorf("snapshot %+v", s)
	}
	if state := w.state("all"); len(state.Windows) != 0 || state.Detector != nil {
		t.Errorf("slice %+v, want no windows and no detector yet", state)
	}
}

func TestBetweenIsTheRateOfItsMinutesAndOfItsVersion(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, .5, 4))
	w.load(time.Hour, batch{check: "refund", pi: .5, ok: 60, pass: 60})
	w.load(time.Hour, batch{check: "refund", pi: .5, ok: 60, pass: 30})
	w.round()
	from := morning.Add(time.Hour)
	e, err := Between(t.Context(), w.store, "refund", "v1", nil, from, from.Add(time.Hour))
	if err != nil || e.N != 60 || e.PassRate.Value == nil || *e.PassRate.Value != .5 {
		t.Errorf("second hour %+v, %v, want 30 of 60", e, err)
	}
	if e, err = Between(t.Context(), w.store, "refund", "v2", nil, from, from.Add(time.Hour)); err != nil || e.N != 0 || e.PassRate.Value != nil {
		t.Errorf("a version without rows: %+v, %v", e, err)
	}
}

// Seven minutes divide no hour: the store's buckets and the points must still begin at
// the same moments.
func TestPointsAndBucketsBeginTogetherAtAnyStep(t *testing.T) {
	store := newEngine(t)
	w := newWorld(t, store, aFile(.90, .02, 1, 4))
	w.load(time.Hour, batch{check: "refund", pi: 1, ok: 60, pass: 30})
	w.round()
	points, err := Series(t.Context(), store, "refund", "v1", nil, morning, morning.Add(time.Hour), 7*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var n, full uint64
	for _, p := range points {
		n += p.N
		if p.N == 7 {
			full++
		}
	}
	if n != 60 || full < 7 || points[0].From.After(morning) || points[0].To.Before(morning) {
		t.Errorf("%d rows in %d points, %d of them with their 7: want all 60, and whole points", n, len(points), full)
	}
}

func TestSeriesKeepsGapsAsGaps(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, .5, 4))
	w.load(time.Hour, batch{check: "refund", pi: .5, ok: 40, pass: 30, failed: 10})
	w.pass(time.Hour)
	w.load(time.Hour, batch{check: "refund", pi: .5, ok: 40, pass: 40})
	w.round()
	store := w.store.(bucketReader)
	points, err := Series(t.Context(), store, "refund", "v1", nil, morning, morning.Add(3*time.Hour), time.Hour)
	if err != nil || len(points) != 3 {
		t.Fatalf("%d points, %v", len(points), err)
	}
	if p := points[0]; p.PassRate.Value == nil || *p.PassRate.Value != .75 || p.N != 40 || *p.MissingShare != .2 || p.PassRate.Lower > .75 || p.PassRate.Upper < .75 {
		t.Errorf("first hour %+v", p)
	}
	if p := points[1]; p.PassRate.Value != nil || p.N != 0 || !p.From.Equal(morning.Add(time.Hour)) {
		t.Errorf("the empty hour %+v, want no rate", p)
	}
	if p := points[2]; p.PassRate.Value == nil || *p.PassRate.Value != 1 || p.PassRate.Upper != 1 || p.PassRate.Lower > .95 {
		t.Errorf("last hour %+v", p)
	}
	for _, step := range []time.Duration{0, 90 * time.Second, time.Nanosecond} {
		if _, err := Series(t.Context(), store, "refund", "v1", nil, morning, morning.Add(time.Hour), step); err == nil {
			t.Errorf("a step of %v was taken", step)
		}
	}
	if _, err := Series(t.Context(), store, "refund", "v1", nil, morning, morning.Add(3000*time.Hour), time.Minute); err == nil {
		t.Error("a chart of 180,000 points was made")
	}
}

// countingStore counts rounds by their first question.
type countingStore struct {
	*memory
	rounds atomic.Int64
}

func (c *countingStore) Now(ctx context.Context) (time.Time, error) {
	c.rounds.Add(1)
	return c.memory.Now(ctx)
}

func TestRunMakesARoundAtOnceAndThenEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{memory: newMemory()}
		store.refuse["LogTimes"] = 3 // a failed round is only late
		cfg := Config{Every: 15 * time.Second, Grace: 5 * time.Minute, Idle: 10 * time.Minute, Clock: ClockWall, Lookback: 5 * time.Minute, Stale: 5 * time.Minute}
		m, err := New(cfg, Deps{Store: store, Checks: aFile(.9, .02, 1, 4), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Reg: prometheus.NewRegistry(), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- m.Run(t.Context()) }() // ends with the bubble's context
		synctest.Wait()
		if rounds := store.rounds.Load(); rounds != 1 || m.Snapshot() == nil {
			t.Errorf("%d rounds at the start, want 1", rounds)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if rounds := store.rounds.Load(); rounds != 5 {
			t.Errorf("%d rounds after a minute, want 5", rounds)
		}
		if age := time.Since(m.Snapshot().At); age > time.Second {
			t.Errorf("the snapshot is %v old after a round that failed and one that did not", age)
		}
		t.Cleanup(func() {
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	})
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	err := Config{Every: time.Nanosecond, Grace: -1, Idle: 0, Clock: "sun", Lookback: 0, Stale: 0}.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, name := range []string{"EVERY", "GRACE", "IDLE", "CLOCK", "LOOKBACK", "STALE"} {
		if !strings.Contains(err.Error(), "ASSAY_MONITOR_"+name+"=") {
			t.Errorf("%v does not name ASSAY_MONITOR_%s", err, name)
		}
	}
	ok := Config{Every: 15 * time.Second, Grace: 5 * time.Minute, Idle: 10 * time.Minute, Clock: ClockWall, Lookback: 5 * time.Minute, Stale: 5 * time.Minute}
	deps := Deps{Store: newMemory(), Checks: aFile(.9, .02, 1, 0), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Reg: prometheus.NewRegistry(), Now: time.Now}
	if _, err := New(ok, deps); err == nil || !strings.Contains(err.Error(), "max_false_alarms_per_year") {
		t.Errorf("detectors without a budget: %v", err)
	}
	deps.Checks = aFile(0, .02, 1, 0)
	if _, err := New(ok, deps); err != nil {
		t.Errorf("a file without detectors needs no budget: %v", err)
	}
	if _, err := New(ok, Deps{}); err == nil {
		t.Error("missing parts were accepted")
	}
}

func TestAlarmIDsDifferInEveryPartOfTheirKey(t *testing.T) {
	base := alarmID("a", "v1", interaction.Slice{}, morning)
	if base != alarmID("a", "v1", nil, morning) {
		t.Error("the empty slice and no slice are the same")
	}
	for _, other := range []string{
		alarmID("b", "v1", nil, morning), alarmID("a", "v2", nil, morning),
		alarmID("a", "v1", sliceOf("app=x"), morning), alarmID("a", "v1", nil, morning.Add(time.Minute)),
	} {
		if other == base {
			t.Errorf("two alarms share the id %s", base)
		}
	}
}
