package simulated

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"assay/evaluators/judge"
)

// Config says what the judge knows and how it errs. It is set in code: the checks
// file names the kind, and what is true comes from whoever simulates the traffic.
type Config struct {
	// Truth returns the right option's key. It is false for a question it cannot
	// answer. It must be pure and safe for concurrent use.
	Truth func(q judge.Question) (option string, ok bool)

	// Accuracy is the probability that the right option is chosen; else each other
	// option is as likely as the next. It holds for right options without a row in
	// Confusion.
	Accuracy float64

	// Confusion gives, for a right option, the probability of each option to be
	// chosen. A row sums to 1.
	Confusion map[string]map[string]float64

	// Noise, below 0.5, is how much probability goes to other options than the chosen
	// one, at most; the amount is uniform from 0.
	Noise float64

	// Latency is the mean time to an answer; single answers take half to one and a
	// half of it.
	Latency time.Duration

	Seed uint64
}

// Validate reports everything that is wrong with the settings.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("simulated judge: "+format, args...)) }
	if c.Truth == nil {
		bad("no truth")
	}
	if !(c.Accuracy >= 0 && c.Accuracy <= 1) {
		bad("accuracy %g: want 0 to 1", c.Accuracy)
	}
	for _, right := range slices.Sorted(maps.Keys(c.Confusion)) {
		sum := 0.0
		for _, p := range c.Confusion[right] {
			if !(p >= 0) {
				bad("confusion of %q holds %g: want 0 to 1", right, p)
			}
			sum += p
		}
		if !(math.Abs(sum-1) <= 1e-9) {
			bad("confusion of %q sums to %g: want 1", right, sum)
		}
	}
	if !(c.Noise >= 0 && c.Noise < 0.5) {
		bad("noise %g: want 0 to less than 0.5", c.Noise)
	}
	if c.Latency < 0 {
		bad("latency %s: want 0 or more", c.Latency)
	}
	return errors.Join(errs...)
}
