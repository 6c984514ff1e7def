package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"assay/evaluators/judge/embedded"
)

// A verdict is the model's answer to a row beside the people's.
type verdict struct {
	row       row
	p         float64
	raw       float64 // before clipping
	abstained embedded.Reason
}

// judged puts rows to a model, through the judge that users get.
func judged(m *embedded.Model, rows []row) []verdict {
	j := embedded.FromModel(m, embedded.Config{})
	out := make([]verdict, len(rows))
	parallel(len(rows), func(i int) {
		p, reason := j.Compare(rows[i].pair)
		out[i] = verdict{row: rows[i], p: p, abstained: reason}
		if values, reason := j.Features(rows[i].pair); reason == "" {
			out[i].raw = m.Probability(values)
		}
	})
	return out
}

func (v verdict) right() bool { return (v.p >= 0.5) == v.row.agree }

// resamples is how often the bootstrap draws; the interval's ends move by less than
// .001 between seeds from here on.
const resamples = 4000

// figure sums verdicts up. Answers to one question are alike, so the interval draws
// questions and not rows.
func figure(verdicts []verdict) embedded.Figure {
	type tally struct{ right, n int }
	byQuestion := map[int]*tally{}
	var order []int
	var f embedded.Figure
	right, sure, sureRight := 0, 0, 0
	for _, v := range verdicts {
		if v.abstained != "" {
			f.Abstained++
			continue
		}
		t := byQuestion[v.row.question]
		if t == nil {
			t = &tally{}
			byQuestion[v.row.question] = t
			order = append(order, v.row.question)
		}
		t.n++
		f.Rows++
		isSure := v.p >= 0.8 || v.p <= 0.2
		if isSure {
			sure++
		}
		if v.right() {
			right++
			t.right++
			if isSure {
				sureRight++
			}
		}
	}
	if f.Rows == 0 {
		return f
	}
	f.Questions = len(order)
	rng := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, resamples)
	for i := range means {
		r, n := 0, 0
		for range order {
			t := byQuestion[order[rng.IntN(len(order))]]
			r, n = r+t.right, n+t.n
		}
		means[i] = float64(r) / float64(n)
	}
	slices.Sort(means)
	f.Agreement = places(float64(right) / float64(f.Rows))
	f.Low = places(means[resamples*25/1000])
	f.High = places(means[resamples*975/1000-1])
	f.ECE = places(calibrationError(verdicts, func(v verdict) float64 { return v.p }))
	f.RawECE = places(calibrationError(verdicts, func(v verdict) float64 { return v.raw }))
	f.Sure = places(float64(sure) / float64(f.Rows))
	if sure > 0 {
		f.SureRight = places(float64(sureRight) / float64(sure))
	}
	return f
}

// calibrationBins hold equally many rows each, so that none is too thin to count.
const calibrationBins = 10

// calibrationError is the mean distance between what was predicted and what came
// true, over bins of equal size.
func calibrationError(verdicts []verdict, predict func(verdict) float64) float64 {
	var kept []verdict
	for _, v := range verdicts {
		if v.abstained == "" {
			kept = append(kept, v)
		}
	}
	slices.SortStableFunc(kept, func(a, b verdict) int { return cmp.Compare(a.raw, b.raw) })
	sum := 0.0
	for b := range calibrationBins {
		bin := kept[len(kept)*b/calibrationBins : len(kept)*(b+1)/calibrationBins]
		predicted, agreed := 0.0, 0.0
		for _, v := range bin {
			predicted += predict(v)
			if v.row.agree {
				agreed++
			}
		}
		sum += math.Abs(predicted - agreed)
	}
	return sum / float64(len(kept))
}

func places(x float64) float64 { return math.Round(x*1e4) / 1e4 }
