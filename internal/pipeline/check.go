package pipeline

import (
	"runtime"

	"assay/evaluators"
	"assay/internal/checks"
)

// newEvaluator builds the evaluator of a check.
func newEvaluator(c checks.Check) (evaluators.Evaluator, error) {
	return evaluators.New(c.Evaluator, c.Settings())
}

// needsJudge reports whether the check's evaluator asks a judge.
func needsJudge(c checks.Check) bool {
	spec, err := evaluators.Lookup(c.Evaluator)
	return err != nil || spec.NeedsJudge()
}

// slotsFor is how many judgements may run for a judge that takes inFlight questions at
// once: twice as many, so that the judge stays busy while some of them pause between
// tries. A judge that only computes gets one for each core.
func slotsFor(inFlight int) int {
	if inFlight <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return 2 * inFlight
}
