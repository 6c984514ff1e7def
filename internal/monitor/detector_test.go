package monitor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/stats"
	"assay/sink"
)

// simulation feeds a detector rows at their minutes, without a store.
type simulation struct {
	rng    *rand.Rand
	d      detector
	minute time.Time
	n      int
}

// watchedCheck has one detector with a budget of its own.
func watchedCheck(target, tolerance, rate float64) checks.Check {
	return checks.Check{Name: "refund", Version: "v1", Sample: checks.Sample{Rate: rate}, Alert: checks.Alert{Target: target, Tolerance: &tolerance}}
}

func simulate(t *testing.T, seed uint64, c checks.Check, alarmsPerYear float64) *simulation {
	t.Helper()
	l, off := limitsOf(c, 1, alarmsPerYear)
	if off != "" {
		t.Fatal(off)
	}
	return &simulation{rng: rand.New(rand.NewPCG(seed, 1)), d: newDetector(c, interaction.Slice{}, l, morning), minute: morning}
}

// row reads one row; it reports an alarm and is ready for the next one at once.
func (s *simulation) row(failRate, pi float64) bool {
	s.n++
	r := sink.JudgedRow{Minute: s.minute, InteractionID: fmt.Sprint(s.n), Pi: pi, Passed: s.rng.Float64() >= failRate}
	s.d.read(orderedRow{r, s.rng.Uint64()})
	if s.d.opened == nil {
		return false
	}
	s.d.opened = nil
	s.d.release()
	return true
}

// days reads perDay rows on each day and returns the alarms.
func (s *simulation) days(days, perDay int, row func() (failRate, pi float64)) int {
	alarms := 0
	for range days * perDay {
		if s.row(row()) {
			alarms++
		}
		s.minute = morning.Add(time.Duration(s.n) * 24 * time.Hour / time.Duration(perDay)).Truncate(time.Minute)
	}
	s.d.finish(s.minute)
	return alarms
}

// The budget is ten a year, so that three simulated years can tell. Failures run at
// exactly the tolerated rate, the worst that promises anything.
func TestFalseAlarmsStayInsideTheBudget(t *testing.T) {
	const years, budget = 3, 10
	f := func(name string, seed uint64, perDay, low, high int, row func(rng *rand.Rand) (failRate, pi float64)) {
		t.Helper()
		s := simulate(t, seed, watchedCheck(.90, 0, .05), budget)
		if n := s.days(365*years, perDay, func() (float64, float64) { return row(s.rng) }); n < low || n > high {
			t.Errorf("%s: %d alarms in %d years, want %d to %d", name, n, years, low, high)
		}
	}

	// statistics.md, 5.2 measured .67 to .80 of the budget; four standard errors around
	f("equal weights", 1, 200, 5, 38, func(*rand.Rand) (float64, float64) { return .10, .05 })
	// a bad tenth is judged ten times as often: the weighted rate is .10 all the same
	oversampled := func(rng *rand.Rand) (float64, float64) {
		if rng.Float64() < 1/1.9 {
			return .37, .5
		}
		return .07, .05
	}
	f("unequal weights", 2, 200, 0, 38, oversampled)
	// negative control: without the weights the same rows fail at .23
	f("weights ignored", 3, 200, 1000, math.MaxInt, func(rng *rand.Rand) (float64, float64) {
		fail, _ := oversampled(rng)
		return fail, .05
	})
}

// A wobble of a point around the target, with a memory of a day, harms nobody. With
// the tolerance it stays far inside the budget; without, it floods.
func TestAHarmlessWobbleNeedsATolerance(t *testing.T) {
	const days, perDay, budget = 365, 6000, 1
	alarms := func(tolerance float64) int {
		s := simulate(t, 4, watchedCheck(.90, tolerance, 1), budget)
		level, n := 0.0, 0
		return s.days(days, perDay, func() (float64, float64) {
			if n++; n%perDay == 0 {
				level = .5*level + math.Sqrt(1-.25)*s.rng.NormFloat64()
			}
			return .10 + .01*level, 1
		})
	}
	if n := alarms(.02); n > 3 {
		t.Errorf("%d alarms in %d days with a tolerance of 2 points, want at most 3", n, days)
	}
	if n := alarms(0); n < 10 {
		t.Errorf("control: %d alarms in %d days without a tolerance, it should flood", n, days)
	}
}

func TestAFallOfTenPointsIsFoundInThePredictedRows(t *testing.T) {
	const runs, perDay = 60, 1000
	c := watchedCheck(.90, .01, 1)
	var delays []int
	var limit float64
	for run := range uint64(runs) {
		s := simulate(t, 100+run, c, 1)
		if n := s.days(3, perDay, func() (float64, float64) { return .10, 1 }); n > 0 {
			t.Fatalf("run %d: %d alarms before the fall", run, n)
		}
		start := s.n
		limit = s.d.threshold()
		for !s.row(.20, 1) {
			if s.n-start > 5000 {
				t.Fatalf("run %d: not found in 5,000 rows", run)
			}
			s.minute = s.minute.Add(time.Minute)
		}
		delays = append(delays, s.n-start)
	}
	slices.Sort(delays)
	predicted, ok := stats.DetectionDelay(.20, .11, limit)
	if median := float64(delays[runs/2]); !ok || median > predicted*1.1 || median < predicted*.5 {
		t.Errorf("median delay %v rows, predicted %.0f", median, predicted)
	}
}

func TestTheLimitGrowsWithTheTrafficBeforeItIsRead(t *testing.T) {
	s := simulate(t, 5, watchedCheck(.90, .02, 1), 4)
	limit := func() float64 { return math.Round(s.d.threshold()*4/365*1000) / 1000 } // rows a day

	if limit() != 1000 {
		t.Errorf("before the first row the day is taken to hold %v rows, want 1000", limit())
	}
	s.days(1, 3000, func() (float64, float64) { return .05, 1 })
	if limit() != 3000 {
		t.Errorf("after 3,000 rows of the first day the limit reckons with %v a day", limit())
	}
	// a launch: the fifth day is ten times the four before it
	s = simulate(t, 6, watchedCheck(.90, .02, 1), 4)
	s.days(4, 300, func() (float64, float64) { return .05, 1 })
	s.row(.05, 1)
	if limit() != 300 {
		t.Errorf("after four days of 300 the limit reckons with %v a day", limit())
	}
	for range 2999 {
		s.row(.05, 1)
	}
	if limit() != 3000 {
		t.Errorf("after a day of 3,000 so far the limit reckons with %v a day", limit())
	}
}

func TestAboveTenThousandRowsADayAShareIsRead(t *testing.T) {
	s := simulate(t, 7, watchedCheck(.90, .02, 1), 4)
	s.days(1, 40_000, func() (float64, float64) { return .05, 1 })
	if s.d.note.Share != 1 || s.d.note.Today != 40_000 {
		t.Fatalf("on the first day %d rows at a share of %v, want all", s.d.note.Today, s.d.note.Share)
	}
	s.days(1, 40_000, func() (float64, float64) { return .05, 1 })
	if s.d.note.Share != .25 || s.d.note.Today < 9500 || s.d.note.Today > 10_500 {
		t.Errorf("on the second day %d rows at a share of %v, want about 10,000 at .25", s.d.note.Today, s.d.note.Share)
	}
}

func TestANewJudgeRestartsTheEvidenceOnce(t *testing.T) {
	s := simulate(t, 8, watchedCheck(.90, .02, 1), 4)
	read := func(model string) uint64 {
		s.n++
		s.d.read(orderedRow{sink.JudgedRow{Minute: morning, InteractionID: fmt.Sprint(s.n), Pi: 1, JudgeModel: model}, s.rng.Uint64()})
		return s.d.samples
	}
	read("m-08-01")
	if n := read("m-08-01"); n != 2 {
		t.Fatalf("%d samples after two rows of one judge", n)
	}
	if n := read("m-08-09"); n != 1 || len(s.d.note.Restarts) != 1 {
		t.Errorf("%d samples and %d restarts after a row of a new judge, want 1 and 1", n, len(s.d.note.Restarts))
	}
	// a balancer between the two: neither is new
	read("m-08-01")
	if n := read("m-08-09"); n != 3 || len(s.d.note.Restarts) != 1 {
		t.Errorf("%d samples and %d restarts while two judges alternate, want 3 and 1", n, len(s.d.note.Restarts))
	}
}

func TestACheckWithoutATargetHasNoDetectorAndSaysSo(t *testing.T) {
	f := func(c checks.Check, off bool) {
		t.Helper()
		if _, reason := limitsOf(c, 1, 1); (reason != "") != off {
			t.Errorf("%+v: reason %q", c.Alert, reason)
		}
	}
	f(checks.Check{}, true)
	f(checks.Check{Alert: checks.Alert{Target: .9}}, false)
	f(checks.Check{Alert: checks.Alert{Target: .9, Off: true}}, true)
}

func TestAutoToleranceIsAHundredthOrHalfOfWhatFails(t *testing.T) {
	f := func(target, want float64) {
		t.Helper()
		l, _ := limitsOf(checks.Check{Alert: checks.Alert{Target: target}}, 1, 1)
		if math.Abs(l.tolerance-want) > 1e-12 {
			t.Errorf("target %v: tolerance %v, want %v", target, l.tolerance, want)
		}
	}
	f(.90, .01)
	f(.99, .005)
	f(.995, .0025)
}

func TestRowsOfAMinuteAreReadInAnOrderThatNobodyChose(t *testing.T) {
	var rows []sink.JudgedRow
	for i := range 200 {
		rows = append(rows, sink.JudgedRow{Minute: morning.Add(time.Duration(1-i/100) * time.Minute), InteractionID: fmt.Sprintf("%04d", i)})
	}
	first := order(rows)
	slices.Reverse(rows)
	second := order(rows)
	inIDOrder := 0
	for i := range first {
		if first[i].InteractionID != second[i].InteractionID {
			t.Fatalf("row %d depends on the order of the input", i)
		}
		if i > 0 && first[i].Minute.Before(first[i-1].Minute) {
			t.Fatalf("row %d: minutes are out of order", i)
		}
		if i > 0 && first[i].InteractionID > first[i-1].InteractionID {
			inIDOrder++
		}
	}
	if inIDOrder < 70 || inIDOrder > 130 {
		t.Errorf("%d of 199 neighbours are in the order of their ids, want about half", inIDOrder)
	}
}
