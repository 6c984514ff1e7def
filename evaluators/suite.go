package evaluators

import (
	"fmt"
	"strings"
)

// A Suite is evaluators that are usually wanted together.
type Suite struct {
	Name       string
	Summary    string // one sentence
	Evaluators []string
}

// Suites lists the suites.
func Suites() []Suite {
	everything := Suite{Name: "everything", Summary: "All evaluators that need no settings of their own."}
	for _, spec := range Table() {
		if !spec.NeedsSettings() {
			everything.Evaluators = append(everything.Evaluators, spec.Name)
		}
	}
	return []Suite{
		{Name: "correctness", Summary: "Is the answer right, by a reference, by criteria and by its words?", Evaluators: []string{
			"factuality", "closed_qa", "answer_correctness", "answer_similarity", "exact_match", "levenshtein", "token_f1"}},
		{Name: "rag", Summary: "Does the answer rest on its documents, and does it address what was asked?", Evaluators: []string{
			"faithfulness", "groundedness", "hallucination_rate", "answer_relevancy", "answer_similarity", "citation_recall", "citation_precision"}},
		everything,
	}
}

// LookupSuite returns the suite of that name; the error names the nearest.
func LookupSuite(name string) (Suite, error) {
	var known []string
	for _, s := range Suites() {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Suite{}, fmt.Errorf("unknown suite %q: want %s%s", name, strings.Join(known, " or "), didYouMean(name, known))
}
