package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestWilsonHoldsTheRateAndStaysInsideTheUnit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		n := math.Exp(rng.Float64()*18 - 4)
		x := n * rng.Float64()
		lo, hi, err := Wilson(x, n, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if p := x / n; !(0 <= lo && lo <= p && p <= hi && hi <= 1) {
			t.Fatalf("x %v of n %v: [%v, %v] does not hold %v", x, n, lo, hi, p)
		}
		wider, higher, _ := Wilson(x, n, 0.999)
		if wider > lo || higher < hi {
			t.Fatalf("x %v of n %v: more confidence gave less width", x, n)
		}
	}
}

func TestWilsonRefusesWhatCannotBe(t *testing.T) {
	f := func(x, n, conf float64) {
		t.Helper()
		if lo, hi, err := Wilson(x, n, conf); err == nil {
			t.Errorf("x %v of n %v at %v: [%v, %v], want an error", x, n, conf, lo, hi)
		}
	}
	f(2, 1, 0.95)
	f(-1, 1, 0.95)
	f(0, -1, 0.95)
	f(math.NaN(), 1, 0.95)
	f(1, math.Inf(1), 0.95)
	f(1, 2, 0)
	f(1, 2, 1)
	f(1, 2, math.NaN())
}

func TestSumsRefuseRowsThatCannotBeAndNameThem(t *testing.T) {
	f := func(y, pi []float64, want string) {
		t.Helper()
		_, err := NewSums(y, pi)
		if err == nil || err.Error() != want {
			t.Errorf("values %v, pi %v: error %v, want %q", y, pi, err, want)
		}
	}
	f([]float64{1, 2}, []float64{1, 1}, "value 1 is 2: want 0 to 1")
	f([]float64{math.NaN()}, []float64{1}, "value 0 is NaN: want 0 to 1")
	f([]float64{1, 1, 1}, []float64{1, .5, 0}, "inclusion probability 2 is 0: want above 0, at most 1")
	f([]float64{1}, []float64{1.5}, "inclusion probability 0 is 1.5: want above 0, at most 1")
	f([]float64{1}, nil, "1 values, 0 inclusion probabilities: columns of unequal length")
}

// randomRows are weighted verdicts; weights are powers of two, so that sums are exact
// and merging can be compared bit for bit.
func randomRows(rng *rand.Rand, n int) (y, pi []float64) {
	for range n {
		v := 0.0
		if rng.Float64() < 0.8 {
			v = 1
		}
		y, pi = append(y, v), append(pi, 1/float64(int(1)<<rng.IntN(6)))
	}
	return y, pi
}

func TestSumsMergeInAnyGrouping(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		y, pi := randomRows(rng, 3+rng.IntN(60))
		whole, err := NewSums(y, pi)
		if err != nil {
			t.Fatal(err)
		}
		i := 1 + rng.IntN(len(y)-2)
		j := i + 1 + rng.IntN(len(y)-i-1)
		a, _ := NewSums(y[:i], pi[:i])
		b, _ := NewSums(y[i:j], pi[i:j])
		c, _ := NewSums(y[j:], pi[j:])
		if left, right := a.Merge(b).Merge(c), c.Merge(b.Merge(a)); left != whole || right != whole {
			t.Fatalf("merged %+v and %+v, want %+v", left, right, whole)
		}
	}
}

func TestEffectiveNIsNeverAboveTheRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		y, pi := randomRows(rng, 1+rng.IntN(80))
		s, _ := NewSums(y, pi)
		e, err := s.PassRate(0.95)
		if err != nil {
			t.Fatal(err)
		}
		if e.NEff > float64(s.N)*(1+1e-12) || e.NEff <= 0 || e.Lo > *e.Mean || e.Hi < *e.Mean {
			t.Fatalf("%d rows: %+v", s.N, e)
		}
	}
}

// An interval that knows the weights holds the truth where one that ignores them, here
// a bad tenth sampled ten times as often, does not: the negative control.
func TestIntervalsOfWeightedRatesCoverTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const runs, rows = 3000, 300
	weighted, unweighted := 0, 0
	for range runs {
		var y, pi []float64
		for len(y) < rows {
			p, rate := 0.96, 0.05
			if rng.Float64() < 0.1 {
				p, rate = 0.69, 0.5
			}
			if rng.Float64() >= rate {
				continue
			}
			v := 0.0
			if rng.Float64() < p {
				v = 1
			}
			y, pi = append(y, v), append(pi, rate)
		}
		const truth = 0.9*0.96 + 0.1*0.69
		s, _ := NewSums(y, pi)
		e, err := s.PassRate(0.95)
		if err != nil {
			t.Fatal(err)
		}
		if e.Lo <= truth && truth <= e.Hi {
			weighted++
		}
		x := 0.0
		for _, v := range y {
			x += v
		}
		if lo, hi, _ := Wilson(x, rows, 0.95); lo <= truth && truth <= hi {
			unweighted++
		}
	}
	// statistics.md, 1.4: .990 by the default, .000 without weights
	if c := float64(weighted) / runs; c < 0.97 || c > 1 {
		t.Errorf("coverage %.3f, want .97 to 1", c)
	}
	if c := float64(unweighted) / runs; c > 0.1 {
		t.Errorf("control: coverage without weights is %.3f, it should fail", c)
	}
}

func TestMissingJudgementsWidenTheBoundsAndNotTheRate(t *testing.T) {
	s, err := NewSums([]float64{1, 1, 1, 0}, []float64{.5, .5, .5, .5})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.MissingBounds(2, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if b.Share != 0.2 || b.Lo != 0.6 || b.Hi != 0.8 {
		t.Errorf("bounds %+v, want share .2, .6 to .8", *b)
	}
	e, _ := s.PassRate(0.95)
	if b.LimitLo >= e.Lo || b.LimitHi <= e.Hi || b.LimitLo >= b.Lo || b.LimitHi <= b.Hi {
		t.Errorf("limits of %+v must lie outside the interval of %+v", *b, e)
	}

	// nothing was missing: the bounds are the rate
	if b, err = s.MissingBounds(0, 0.95); err != nil || b.Share != 0 || b.Lo != 0.75 || b.Hi != 0.75 {
		t.Errorf("bounds %+v, %v, want .75 on both sides", b, err)
	}
	// everything was missing: anything may have been
	if b, err = (Sums{}).MissingBounds(7, 0.95); err != nil || *b != (Bounds{Share: 1, Hi: 1, LimitHi: 1}) {
		t.Errorf("bounds %+v, %v, want 0 to 1", b, err)
	}
	// nothing was selected: there is nothing to bound
	if b, err = (Sums{}).MissingBounds(0, 0.95); err != nil || b != nil {
		t.Errorf("bounds %+v, %v, want none", b, err)
	}
}

func TestScoresKeepKishNUntilBothEndsAreKnown(t *testing.T) {
	ones := func(n int) []float64 {
		pi := make([]float64, n)
		for i := range pi {
			pi[i] = 1
		}
		return pi
	}
	few, _ := NewSums([]float64{.5, .52, .48, .5}, ones(4))
	e, err := few.MeanScore(0.95)
	if err != nil || e.NEff != 4 {
		t.Errorf("effective n of four scores %v, %v, want 4", e.NEff, err)
	}
	scores := make([]float64, 100)
	for i := range scores {
		scores[i] = .4 + .2*float64(i%2)
	}
	many, _ := NewSums(scores, ones(100))
	if e, err = many.MeanScore(0.95); err != nil || e.NEff < 1000 {
		t.Errorf("effective n of a hundred close scores %v, %v, want the variance's, above 1000", e.NEff, err)
	}
}

func TestSamplingZIsSmallForASampleAndLargeForAWrongWeight(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const population, runs = 4000, 300
	worst, wrong := 0.0, math.Inf(1)
	for range runs {
		var sw, v, swWrong, vWrong float64
		for range population {
			if rng.Float64() < 0.05 {
				sw, v = sw+20, v+(1-.05)*400
				swWrong, vWrong = swWrong+10, vWrong+(1-.1)*100 // pi written as .1
			}
		}
		z, err := SamplingZ(sw, v, population)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, math.Abs(z))
		z, _ = SamplingZ(swWrong, vWrong, population)
		wrong = min(wrong, math.Abs(z))
	}
	if worst > 5 || worst < 1 {
		t.Errorf("largest |Z| of %d honest days %.2f, want 1 to 5", runs, worst)
	}
	if wrong < 5 {
		t.Errorf("control: smallest |Z| with a doubled pi is %.2f, it should be above 5", wrong)
	}
	if z, err := SamplingZ(994, 0, 1000); err != nil || z != -6 {
		t.Errorf("six of a thousand rows lost at pi 1: Z %v, %v, want -6", z, err)
	}
	if z, err := SamplingZ(0, 0, 0); err != nil || z != 0 {
		t.Errorf("nothing selected of nothing: Z %v, %v", z, err)
	}
}
