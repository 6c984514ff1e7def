package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// labelled draws rows with weights; shift moves the truth away from what is said.
func labelled(n int, shift float64, seed uint64) (p, y, w []float64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for range n {
		said := math.Round(random.Float64()*50) / 50 // heaped, as judges' scores are
		truth := min(1, max(0, said+shift))
		p, w = append(p, said), append(w, []float64{1, 2, 4}[random.IntN(3)])
		if random.Float64() < truth {
			y = append(y, 1)
		} else {
			y = append(y, 0)
		}
	}
	return p, y, w
}

// Another route to the debiased error: the weighted rows of a bin, one bin at a time.
func TestTheDebiasedErrorEqualsItsDefinition(t *testing.T) {
	p, y, w := labelled(700, .1, 5)
	edges, err := EqualMass(p, 10)
	if err != nil {
		t.Fatal(err)
	}
	r, err := EdgesReliability(p, y, w, edges)
	if err != nil {
		t.Fatal(err)
	}
	want, total := 0.0, 0.0
	for b := range edges {
		var rows []int
		for i := range p {
			if p[i] <= edges[b] && (b == 0 || p[i] > edges[b-1]) {
				rows = append(rows, i)
			}
		}
		var weight, squares, said, came float64
		for _, i := range rows {
			weight += w[i]
			squares += w[i] * w[i]
			said += w[i] * p[i]
			came += w[i] * y[i]
		}
		total += weight
		kish, gap, share := weight*weight/squares, (said-came)/weight, came/weight
		want += weight * (gap*gap - share*(1-share)/(kish-1))
	}
	want /= total
	if got := r.Debiased(); got == nil || math.Abs(*got-want) > 1e-12 {
		t.Errorf("debiased error %v, want %v", got, want)
	}
}

func TestAPerfectJudgesDebiasedErrorIsZeroOnAverageAndItsECEIsNot(t *testing.T) {
	var debiased, ece float64
	const worlds = 400
	for seed := range uint64(worlds) {
		p, y, _ := labelled(100, 0, seed)
		edges, err := EqualMass(p, 10)
		if err != nil {
			t.Fatal(err)
		}
		r, err := EdgesReliability(p, y, nil, edges)
		if err != nil {
			t.Fatal(err)
		}
		d := r.Debiased()
		e, _ := r.ECE()
		debiased += *d / worlds
		ece += *e / worlds
	}
	if math.Abs(debiased) > .0015 {
		t.Errorf("a perfect judge's debiased squared error is %v on average, want 0", debiased)
	}
	if ece < .04 {
		t.Errorf("a perfect judge's ECE is %v on average: the test shows nothing", ece)
	}
}

// Of perfect judges a share of q has a p value of at most q; of shifted ones nearly all.
func TestTheCalibrationPValueIsOneOfAPerfectJudge(t *testing.T) {
	below := func(shift float64) (tenth, thousandth float64) {
		const worlds = 300
		for seed := range uint64(worlds) {
			p, y, w := labelled(200, shift, seed+1000)
			edges, err := EqualMass(p, 10)
			if err != nil {
				t.Fatal(err)
			}
			r, err := EdgesReliability(p, y, w, edges)
			if err != nil {
				t.Fatal(err)
			}
			v, err := r.CalibrationP(p, w, 99, seed)
			if err != nil {
				t.Fatal(err)
			}
			if *v <= .1 {
				tenth += 1. / worlds
			}
			if *v <= .01 {
				thousandth += 1. / worlds
			}
		}
		return tenth, thousandth
	}
	if tenth, _ := below(0); tenth < .05 || tenth > .16 {
		t.Errorf("%.3f of perfect judges have p at most .1", tenth)
	}
	if _, small := below(.25); small < .95 {
		t.Errorf("only %.3f of judges that are 25 points off have p at most .01", small)
	}
}

func TestTheSameSeedGivesTheSamePValue(t *testing.T) {
	p, y, w := labelled(300, .05, 9)
	r, err := EqualWidthReliability(p, y, w, 10)
	if err != nil {
		t.Fatal(err)
	}
	f := func(seed uint64) float64 {
		v, err := r.CalibrationP(p, w, 1000, seed)
		if err != nil || v == nil {
			t.Fatalf("p value %v (%v)", v, err)
		}
		return *v
	}
	if a, b := f(7), f(7); a != b {
		t.Errorf("%v and %v under one seed", a, b)
	}
	if a, b := f(7), f(8); a == b && a != 1./1001 {
		t.Errorf("%v under two seeds: is the seed used?", a)
	}
}

func TestWhatIsNotThereIsNil(t *testing.T) {
	f := func(name string, v *float64, err error) {
		t.Helper()
		if v != nil || err != nil {
			t.Errorf("%s is %v (%v), want nothing", name, v, err)
		}
	}
	one := []float64{1}
	v, err := Brier(nil, nil, nil)
	f("the Brier score of no rows", v, err)
	v, err = LogLoss(nil, nil, nil, 1e-6)
	f("the log loss of no rows", v, err)
	v, err = BrierSkill([]float64{.9, .8}, []float64{1, 1}, nil)
	f("the skill where every outcome is the same", v, err)
	v, err = Confusion{}.Kappa()
	f("kappa of no rows", v, err)
	v, err = Confusion{TP: 3}.Kappa()
	f("kappa where both always pass", v, err)
	r, err := EqualWidthReliability([]float64{.9}, one, nil, 10)
	f("the debiased error of one row", r.Debiased(), err)
	v, err = r.CalibrationP([]float64{.9}, nil, 10, 1)
	f("the p value of one row", v, err)
	r, err = EqualWidthReliability(nil, nil, nil, 10)
	ece, _ := r.ECE()
	f("the ECE of no rows", ece, err)
	if edges, err := EqualMass(nil, 10); err != nil || !slices.Equal(edges, one) {
		t.Errorf("edges of no rows %v (%v), want one bin", edges, err)
	}
}

func TestKappaIsAgreementBeyondChance(t *testing.T) {
	f := func(c Confusion, want float64) {
		t.Helper()
		if got, err := c.Kappa(); err != nil || got == nil || math.Abs(*got-want) > 1e-15 {
			t.Errorf("kappa of %+v is %v (%v), want %v", c, got, err, want)
		}
	}
	f(Confusion{TP: 20, FP: 5, FN: 10, TN: 15}, .4) // agreement .7, by chance .5
	f(Confusion{TP: 1, TN: 1}, 1)
	f(Confusion{TP: 9, FP: 3, FN: 3, TN: 1}, 0) // independent
	f(Confusion{FP: 1, FN: 1}, -1)
}

func TestImpossibleColumnsAreErrors(t *testing.T) {
	f := func(p, y, w []float64) {
		t.Helper()
		if v, err := Brier(p, y, w); err == nil {
			t.Errorf("Brier of %v, %v, %v is %v", p, y, w, v)
		}
		if _, err := EqualWidthReliability(p, y, w, 10); err == nil {
			t.Errorf("bins of %v, %v, %v", p, y, w)
		}
	}
	f([]float64{.5}, nil, nil)
	f([]float64{1.5}, []float64{1}, nil)
	f([]float64{math.NaN()}, []float64{1}, nil)
	f([]float64{.5}, []float64{2}, nil)
	f([]float64{.5}, []float64{1}, []float64{0})
	f([]float64{.5}, []float64{1}, []float64{1, 1})
	if _, err := EqualMass([]float64{2}, 3); err == nil {
		t.Error("edges of a probability of 2")
	}
	if _, err := EdgesReliability([]float64{.5}, []float64{1}, nil, []float64{.5, .9}); err == nil {
		t.Error("edges that end before 1")
	}
	if _, err := (Confusion{TP: -1}).Kappa(); err == nil {
		t.Error("kappa of a negative count")
	}
}
