package evaluators

import (
	"slices"

	"assay/evaluators/judge"
)

// A verdict is a judge's answer about a claim.
type verdict struct {
	claim    string
	option   string
	p        []float64 // S, C, N, X
	largest  float64
	outside  float64
	method   judge.Method
	model    string
	gap      float64 // between the two orders of options
	failed   *Result // the status and reason of a claim without an answer
	canceled error
}

// supported is p(S) of what can be supported at all.
func (v verdict) supported() float64 { return v.p[0] / (v.p[0] + v.p[1] + v.p[2]) }

// answered returns the verdicts where each of them has an answer. Otherwise r becomes
// the result of the first that has none.
func (r *Result) answered(verdicts []verdict) ([]verdict, bool, error) {
	for i, v := range verdicts {
		switch {
		case v.canceled != nil:
			return nil, false, v.canceled
		case v.failed != nil:
			r.Status, r.Reason, r.Method, r.Model, r.Outside = v.failed.Status, v.failed.Reason, v.failed.Method, v.failed.Model, v.failed.Outside
			for key, value := range v.failed.Detail {
				r.Detail[key] = value
			}
			r.Detail["failed_claim"] = i + 1
			return nil, false, nil
		}
	}
	return verdicts, true, nil
}

// counted are the verdicts about claims that state a fact.
func counted(verdicts []verdict) []verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v verdict) bool { return v.option == claimNone })
}

func count(verdicts []verdict, option string) int {
	n := 0
	for _, v := range verdicts {
		if v.option == option {
			n++
		}
	}
	return n
}

// fillClaims puts a score over claims into r.
func (r *Result) fillClaims(d Definition, score float64, label string, verdicts []verdict) {
	confidence, outside, gap := 0.0, 0.0, 0.0
	for _, v := range verdicts {
		confidence += v.largest / float64(len(verdicts))
		outside += v.outside / float64(len(verdicts))
		gap = max(gap, v.gap)
	}
	score = min(max(score, 0), 1)
	confidence = min(confidence, 1)
	passed := d.Passes.passed(score, *d.PassLine)
	r.Status = OK
	r.Score, r.Confidence, r.Passed, r.Label = &score, &confidence, &passed, label
	r.Outside, r.Method, r.Model = outside, verdicts[0].method, verdicts[0].model
	if gap > 0 {
		r.Detail["order_gap"] = gap
	}
	if r.Attempts == 0 && r.Method != judge.None {
		r.Detail["cached"] = true // every answer was
	}
}

// ruleClaims is the worst answer without a judge.
func (e *asking) ruleClaims(r *Result, name string) {
	score, confidence, passed := 0.0, 1.0, false
	if e.definition.Passes.lessIsBetter() {
		score = 1
	}
	r.Status = OK
	r.Score, r.Confidence, r.Passed, r.Label = &score, &confidence, &passed, "no claims"
	r.Method = judge.None
	r.Detail["rule"] = name
}

// claimDetail is what a row keeps of the verdicts.
func claimDetail(verdicts []verdict) []any {
	list := make([]any, len(verdicts))
	for i, v := range verdicts {
		p := make(map[string]any, len(v.p))
		for k, o := range claimOptions() {
			p[o.Key] = v.p[k]
		}
		list[i] = map[string]any{"text": v.claim, "verdict": v.option, "probabilities": p}
	}
	return list
}
