package evaluators

import "assay/evaluators/judge"

// The options of claim_verification.
const (
	claimTrue      = "true"
	claimFalse     = "false"
	claimUndecided = "not_enough_evidence"
)

// claimVerification asks whether a claim is true, by the context where there is one
// and by common knowledge where there is none.
func claimVerification() Spec {
	return Spec{
		Name:     "claim_verification",
		Summary:  "Is the claim true, false, or is there not enough to tell?",
		Use:      "a statement by what is known, with documents or without",
		NotFor:   "statements about private or recent matters without documents: no judge knows them",
		Required: []string{fieldClaim},
		Optional: []string{fieldContext},
		Kind:     judge.Choice,
		Settings: append([]Setting{
			{Name: "pass", Type: "list", Values: []string{claimTrue, claimFalse, claimUndecided}, Default: []string{claimTrue},
				Help: "options that pass"},
		}, claimSettings()...),
		variants: []variant{{
			template: "claim_verification/1",
			text: "Is the statement in the block \"claim\" true? Where there is a block \"context\", it alone decides, also against what you know. " +
				"Where there is none, what is generally known decides. The whole statement must hold, each number, name, date and superlative in it. " +
				"That the evidence does not suffice is an answer, and no reason to give none.",
			options: []OptionDefinition{
				{Key: claimTrue, Text: "True: all of the statement holds.", Score: 1},
				{Key: claimFalse, Text: "False: some of the statement does not hold.", Score: 0},
				{Key: claimUndecided, Text: "There is not enough evidence to say either.", Score: 0},
			},
			pass: []string{claimTrue},
		}},
	}
}
