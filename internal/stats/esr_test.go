package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// runLength is how many rows pass until M reaches c, at most limit.
func runLength(c, q0 float64, limit int, row func(i int) (x, w float64), wMax float64) int {
	var e ESR
	for i := range limit {
		x, w := row(i)
		e.Step(x, w, wMax, q0)
		if e.M() >= c {
			return i + 1
		}
	}
	return limit
}

func bernoulli(rng *rand.Rand, q float64) float64 {
	if rng.Float64() < q {
		return 1
	}
	return 0
}

func TestUnderTheNullTheMeanRunIsAtLeastTheLimit(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const c, runs, limit = 300, 400, 6000
	mean := func(row func(int) (float64, float64), wMax float64) float64 {
		sum := 0
		for range runs {
			sum += runLength(c, 0.1, limit, row, wMax)
		}
		return float64(sum) / runs
	}
	plain := mean(func(int) (float64, float64) { return bernoulli(rng, .1), 1 }, 1)
	// a detector that never fired would show 6000
	if plain < c || plain > 10*c {
		t.Errorf("mean run at the tolerated rate %.0f, want %d to %d", plain, c, 10*c)
	}
	// a bad tenth is sampled ten times as often; the weighted rate is .1 all the same
	mixed := func(int) (float64, float64) {
		if rng.Float64() < 1/1.9 {
			return bernoulli(rng, .37), 2
		}
		return bernoulli(rng, .07), 20
	}
	if m := mean(mixed, 20); m < c || m > 18*c {
		t.Errorf("mean run with weights %.0f, want %d to %d", m, c, 18*c)
	}
	// control: the same rows without their weights fail .23 of the time
	ignored := mean(func(i int) (float64, float64) { x, _ := mixed(i); return x, 1 }, 1)
	if ignored > c/2 {
		t.Errorf("control: mean run without weights %.0f, it should be far below %d", ignored, c)
	}
}

func TestTheDelayFormulaIsOnTheSafeSide(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	f := func(drop float64) {
		t.Helper()
		const c, q0, runs = 365_000, 0.11, 200
		q1 := 0.10 + drop
		predicted, ok := DetectionDelay(q1, q0, c)
		if !ok {
			t.Fatalf("drop %v: no prediction", drop)
		}
		delays := make([]int, runs)
		for i := range delays {
			delays[i] = runLength(c, q0, 100_000, func(int) (float64, float64) { return bernoulli(rng, q1), 1 }, 1)
		}
		slices.Sort(delays)
		if m := float64(delays[runs/2]); m > predicted*1.1 || m < predicted*0.6 {
			t.Errorf("drop of %v: median delay %v rows, predicted %.0f, want .6 to 1.1 of it", drop, m, predicted)
		}
	}
	f(.10)
	f(.20)
}

func TestSmallestDropIsFoundInTheRowsThereAre(t *testing.T) {
	drop, ok := SmallestDrop(1100, 365*1100, .10, .11)
	if !ok || drop < .045 || drop > .055 {
		t.Errorf("smallest drop at 1,100 rows a day %v %v, want about 5 points (statistics.md, 5.1)", drop, ok)
	}
	last := 1.0
	for _, rows := range []float64{50, 200, 1000, 5000, 50_000} {
		d, ok := SmallestDrop(rows, 365_000, .10, .11)
		if !ok || d >= last || d < .01 {
			t.Errorf("%v rows: smallest drop %v %v after %v, want less and not under the tolerance", rows, d, ok, last)
		}
		last = d
	}
	if d, ok := SmallestDrop(2, 365_000, .10, .11); ok {
		t.Errorf("two rows found a drop of %v", d)
	}
}

func TestTheStateStaysFinite(t *testing.T) {
	var e ESR
	for range 20_000 {
		e.Step(1, 1, 1, MinNullRate)
	}
	if m := e.M(); math.IsInf(m, 0) || math.IsNaN(m) || m > 1e300*(1+1e-12) {
		t.Errorf("M after 20,000 failures is %v", m)
	}
}

func TestAWeightAboveTheLargestIsClippedAndSaid(t *testing.T) {
	var clipped, whole ESR
	if !clipped.Step(1, 50, 20, .1) || whole.Step(1, 20, 20, .1) {
		t.Error("clipping must be reported for the larger weight, and only there")
	}
	if clipped != whole {
		t.Errorf("clipped state %v, want that of the largest weight %v", clipped, whole)
	}
}
