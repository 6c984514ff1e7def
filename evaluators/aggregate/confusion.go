package aggregate

import (
	"fmt"
	"maps"
	"slices"

	"assay/evaluators"
	"assay/internal/stats"
)

// Confusion compares results with people's labels, option by option.
type Confusion struct {
	Options  []string                  // in order: of the evaluator first, labels it does not have after
	Counts   map[string]map[string]int // label -> chosen option -> how many
	Accuracy *Rate                     // nil when nothing could be compared
	Skipped  int                       // without an answer or without a label
}

// Confuse compares result i with label i; an empty label says that there is none. A
// label that is no option of the evaluator is an option nobody could choose.
func Confuse(results []evaluators.Result, labels []string, confidence float64) (Confusion, error) {
	if len(results) != len(labels) {
		return Confusion{}, fmt.Errorf("%d results and %d labels", len(results), len(labels))
	}
	c := Confusion{Counts: make(map[string]map[string]int)}
	unknown := make(map[string]bool)
	right, n := 0, 0
	for i, r := range results {
		for _, name := range r.OptionNames {
			if !slices.Contains(c.Options, name) {
				c.Options = append(c.Options, name)
			}
		}
		label := labels[i]
		if r.Status != evaluators.OK || label == "" {
			c.Skipped++
			continue
		}
		if !slices.Contains(r.OptionNames, label) {
			unknown[label] = true
		}
		if c.Counts[label] == nil {
			c.Counts[label] = make(map[string]int)
		}
		c.Counts[label][r.Option]++
		n++
		if label == r.Option {
			right++
		}
	}
	for _, label := range slices.Sorted(maps.Keys(unknown)) {
		if !slices.Contains(c.Options, label) {
			c.Options = append(c.Options, label)
		}
	}
	if n > 0 {
		lower, upper, err := stats.Wilson(float64(right), float64(n), confidence)
		if err != nil {
			return Confusion{}, err
		}
		c.Accuracy = &Rate{Value: float64(right) / float64(n), Lower: lower, Upper: upper, N: n}
	}
	return c, nil
}
