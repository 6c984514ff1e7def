package pipeline

import (
	"runtime"

	"assay/evaluators"
	"assay/internal/checks"
	"assay/internal/interaction"
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

// itemOf is the interaction as a check sees it: its criteria and references come from
// where the check says.
func itemOf(c checks.Check, it *interaction.Interaction) evaluators.Item {
	item := evaluators.ItemOf(it)
	if c.Criteria != (checks.Text{}) {
		item.Criteria = nil
		if texts := c.Criteria.Of(it); len(texts) > 0 {
			item.Criteria = &texts[0]
		}
	}
	if c.Reference != (checks.Text{}) {
		item.Expected = c.Reference.Of(it)
	}
	return item
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
