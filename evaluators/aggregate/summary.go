package aggregate

import (
	"fmt"

	"assay/evaluators"
	"assay/internal/stats"
)

// Rate is a share with its interval.
type Rate struct {
	Value float64 `json:"value"`
	Lower float64 `json:"lower"`
	Upper float64 `json:"upper"`
	N     int     `json:"n"` // what it is a share of
}

// Summary is what a set of results of one evaluator says.
type Summary struct {
	Evaluator string `json:"evaluator"`
	Items     int    `json:"items"`

	PassRate  *Rate    `json:"pass_rate"`  // of the results with an answer; nil when none has one
	MeanScore *float64 `json:"mean_score"` // of the same
	// MeanRate is MeanScore with its interval, which is too wide for scores that lie
	// between 0 and 1 and never too narrow.
	MeanRate *Rate `json:"mean_score_interval"`

	Options  map[string]int            `json:"options"`  // chosen, by key; every option is there
	Statuses map[evaluators.Status]int `json:"statuses"` // every status is there
	Reasons  map[string]int            `json:"reasons"`  // of the results without an answer

	// Missing is the share of results that should have had an answer and have
	// none. What was not applicable should not.
	Missing float64 `json:"missing_share"`

	Usage  Usage `json:"usage"`
	Cached int   `json:"cached"` // answers that cost nothing
}

// Usage is what the results cost together.
type Usage struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
	Estimated    bool    `json:"estimated"` // some of it is reserves of usage that nobody stated
}

var statuses = []evaluators.Status{evaluators.OK, evaluators.Unscored, evaluators.NotApplicable, evaluators.Shed, evaluators.Error}

// Summarise sums up results of one evaluator. The interval of the pass rate is
// Wilson's at that confidence: it is right for few results and near 0 and 1.
func Summarise(results []evaluators.Result, confidence float64) (Summary, error) {
	s := Summary{
		Items:    len(results),
		Options:  make(map[string]int),
		Statuses: make(map[evaluators.Status]int),
		Reasons:  make(map[string]int),
	}
	for _, status := range statuses {
		s.Statuses[status] = 0
	}
	passed, sum := 0, 0.0
	for i, r := range results {
		if s.Evaluator == "" {
			s.Evaluator = r.Evaluator
		}
		if r.Evaluator != s.Evaluator {
			return Summary{}, fmt.Errorf("result %d is of %s, the first is of %s: they have no common rate", i, r.Evaluator, s.Evaluator)
		}
		for _, name := range r.OptionNames {
			s.Options[name] += 0
		}
		s.Statuses[r.Status]++
		s.Usage.InputTokens += r.Usage.InputTokens
		s.Usage.OutputTokens += r.Usage.OutputTokens
		s.Usage.USD += r.Usage.USD
		s.Usage.Estimated = s.Usage.Estimated || r.Usage.Estimated
		if r.Detail["cached"] == true {
			s.Cached++
		}
		if r.Status != evaluators.OK {
			s.Reasons[r.Reason]++
			continue
		}
		if r.Option != "" { // a computed score, or one over many claims, has none
			s.Options[r.Option]++
		}
		sum += *r.Score
		if *r.Passed {
			passed++
		}
	}

	n := s.Statuses[evaluators.OK]
	if n > 0 {
		lower, upper, err := stats.Wilson(float64(passed), float64(n), confidence)
		if err != nil {
			return Summary{}, err
		}
		mean := sum / float64(n)
		s.PassRate = &Rate{Value: float64(passed) / float64(n), Lower: lower, Upper: upper, N: n}
		s.MeanScore = &mean
		if lower, upper, err = stats.Wilson(min(max(sum, 0), float64(n)), float64(n), confidence); err != nil {
			return Summary{}, err
		}
		s.MeanRate = &Rate{Value: mean, Lower: lower, Upper: upper, N: n}
	}
	if due := len(results) - s.Statuses[evaluators.NotApplicable]; due > 0 {
		s.Missing = float64(due-n) / float64(due)
	}
	return s, nil
}
