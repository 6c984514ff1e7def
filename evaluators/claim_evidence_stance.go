package evaluators

import "assay/evaluators/judge"

// claimEvidenceStance asks what a piece of evidence says about a claim.
func claimEvidenceStance() Spec {
	return Spec{
		Name:     "claim_evidence_stance",
		Summary:  "Does the evidence support the claim, in whole or in part, refute it, or say nothing about it?",
		Use:      "what a source says about a statement",
		NotFor:   "whether the source is right",
		Required: []string{fieldClaim, fieldEvidence},
		Kind:     judge.Choice,
		Settings: append([]Setting{
			{Name: "pass", Type: "list", Values: []string{"completely-support", "partially-support", "refute", "irrelevant"},
				Default: []string{"completely-support"}, Help: "options that pass"},
		}, claimSettings()...),
		variants: []variant{{
			template: "claim_evidence_stance/1",
			text: "What does the text in the block \"evidence\" say about the statement in the block \"claim\"? " +
				"Go by what the evidence says and by nothing you know besides. A title, a list of sources or a subject that the two have in common says nothing yet; " +
				"evidence that says nothing is irrelevant, and that is an answer.",
			options: []OptionDefinition{
				{Key: "completely-support", Text: "The evidence bears out all of the claim.", Score: 1},
				{Key: "partially-support", Text: "The evidence bears out a part of the claim and speaks against none of it.", Score: .5},
				{Key: "refute", Text: "The evidence speaks against the claim, or against a part of it.", Score: 0},
				{Key: "irrelevant", Text: "The evidence does not bear on the claim.", Score: 0},
			},
			pass: []string{"completely-support"},
		}},
	}
}
