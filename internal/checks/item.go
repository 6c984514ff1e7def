package checks

import (
	"assay/evaluators"
	"assay/internal/interaction"
)

// Item is the interaction as the check's evaluator sees it: its criteria and references
// come from where the check says.
func (c Check) Item(it *interaction.Interaction) evaluators.Item {
	item := evaluators.ItemOf(it)
	if c.Criteria != (Text{}) {
		item.Criteria = nil
		if texts := c.Criteria.Of(it); len(texts) > 0 {
			item.Criteria = &texts[0]
		}
	}
	if c.Reference != (Text{}) {
		item.Expected = c.Reference.Of(it)
	}
	return item
}
