package evaluators

// citationPrecision is the share of an output's citations that are worth something:
// those of a supported sentence that support it alone, or without which it would not be
// supported. Citations of documents that do not exist cost recall and not precision;
// an output without any scores 0.
func citationPrecision() Spec {
	return overCitations(Spec{
		Name:    "citation_precision",
		Summary: "What share of the output's citations does its sentence need?",
		Use:     "answers that must cite: whether each citation is needed",
		NotFor:  "whether sentences without a citation should have one: citation_recall",
	}, func(list []cited) (float64, string) {
		credits, refs := 0, 0
		for _, c := range list {
			if !c.unknown {
				credits += c.credits
				refs += len(c.refs)
			}
		}
		if refs == 0 {
			return 0, citedLabel(0, 0)
		}
		return float64(credits) / float64(refs), citedLabel(credits, refs)
	}, true)
}
