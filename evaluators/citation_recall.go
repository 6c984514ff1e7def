package evaluators

// citationRecall is the share of an output's sentences that the documents they cite
// support. A sentence without a citation, or with one of a document that does not
// exist, is not supported.
func citationRecall() Spec {
	return overCitations(Spec{
		Name:    "citation_recall",
		Summary: "What share of the output's sentences do the documents they cite support?",
		Use:     "answers that must cite: whether what they cite supports each sentence",
		NotFor:  "answers whose marks are no numbers of documents",
	}, func(list []cited) (float64, string) {
		n := 0
		for _, c := range list {
			if c.supported {
				n++
			}
		}
		return float64(n) / float64(len(list)), citedLabel(n, len(list))
	}, false)
}
