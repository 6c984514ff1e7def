package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMcNemarByHand(t *testing.T) {
	f := func(b, c int, p, midP float64) {
		t.Helper()
		gotP, gotMid, err := McNemar(b, c)
		if err != nil || math.Abs(gotP-p) > 1e-12 || math.Abs(gotMid-midP) > 1e-12 {
			t.Errorf("McNemar(%d, %d) = %v, %v, %v, want %v, %v", b, c, gotP, gotMid, err, p, midP)
		}
	}
	f(0, 0, 1, 1)
	f(1, 0, 1, .5)
	f(0, 5, 2./32, 1./32)
	f(3, 3, 1, 1) // a tie: beyond it 22/64 on either side, at it 20/64
	f(4, 1, 12./32, 7./32)
	if p, mid, err := McNemar(700, 900); err != nil || !(p > 0 && p < 1e-6 && mid < p) {
		t.Errorf("%v, %v, %v", p, mid, err)
	}
	if _, _, err := McNemar(-1, 2); err == nil {
		t.Error("a negative count was taken")
	}
}

// The interval holds the true difference as often as it says, for verdicts that go along
// with each other and rates near the end.
func TestTheIntervalOfPairedRatesCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		both, first, second float64 // probabilities
		n                   int
	}{{.6, .1, .2, 40}, {.9, .02, .06, 100}, {.1, .05, .05, 60}, {.3, .25, .25, 30}} {
		const runs = 4000
		held, truth := 0, c.second-c.first
		for range runs {
			var s PairedRates
			for range c.n {
				switch u := r.Float64(); {
				case u < c.both:
					s.Both++
				case u < c.both+c.first:
					s.OnlyFirst++
				case u < c.both+c.first+c.second:
					s.OnlySecond++
				default:
					s.Neither++
				}
			}
			d, err := s.Difference(.95)
			if err != nil {
				t.Fatal(err)
			}
			if d.Lower <= truth && truth <= d.Upper {
				held++
			}
		}
		if share := float64(held) / runs; share < .935 || share > .985 {
			t.Errorf("%+v: holds the truth %.3f of the time", c, share)
		}
	}
}

func TestADifferenceTurnsRoundWithItsOrder(t *testing.T) {
	d, err := PairedRates{Both: 20, OnlyFirst: 9, OnlySecond: 2, Neither: 5}.Difference(.95)
	if err != nil {
		t.Fatal(err)
	}
	e, err := PairedRates{Both: 20, OnlyFirst: 2, OnlySecond: 9, Neither: 5}.Difference(.95)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(d.Value+7./36) > 1e-12 || math.Abs(d.Value+e.Value) > 1e-12 || math.Abs(d.Lower+e.Upper) > 1e-12 || math.Abs(d.Upper+e.Lower) > 1e-12 {
		t.Errorf("%+v, %+v", d, e)
	}
	if none, err := (PairedRates{}).Difference(.95); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
	if _, err := (PairedRates{Both: -1}).Difference(.95); err == nil {
		t.Error("a negative count was taken")
	}
}

func TestPairedMeansByHand(t *testing.T) {
	// t = 0.3/(0.2582/2) = 2.3238 on 3 degrees of freedom, whose 97.5% quantile is 3.1824.
	mean, in, p, err := PairedMeans([]float64{0, .2, .4, .6}, .95)
	if err != nil || math.Abs(mean-.3) > 1e-12 || in == nil || math.Abs(in.Upper-.3-3.182446*.1290994) > 1e-6 || math.Abs(in.Upper+in.Lower-.6) > 1e-12 {
		t.Fatalf("%v %+v %v", mean, in, err)
	}
	if p == nil || math.Abs(*p-.10275) > 2e-4 {
		t.Errorf("p %v", *p)
	}
	for _, same := range [][]float64{{.1}, {.1, .1, .1}, {0, 0}} {
		if mean, in, p, err := PairedMeans(same, .95); err != nil || in != nil || p != nil || math.Abs(mean-same[0]) > 1e-12 {
			t.Errorf("%v: %v %v %v %v", same, mean, in, p, err)
		}
	}
	for _, bad := range [][]float64{nil, {math.NaN(), 1}} {
		if _, _, _, err := PairedMeans(bad, .95); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}
