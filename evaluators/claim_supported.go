package evaluators

import "assay/evaluators/judge"

// The options of a claim against a context.
const (
	claimSupports    = "S"
	claimContradicts = "C"
	claimNotFound    = "N"
	claimNone        = "X" // no statement of fact: it leaves every denominator
)

// The one question of all evaluators over claims: those that share texts share
// answers in the cache.
const (
	claimTemplate = "claim_supported/1"
	claimText     = "Hold the statement in the block \"claim\" against the block \"context\", which alone decides, also against what you know. " +
		"Several blocks of context are one body of material. " + supportRule +
		"The blocks \"input\", \"before\" and \"after\", where there are any, show where the claim stood: they tell what its pronouns and fragments mean " +
		"and support nothing. " + factRule

	supportRule = "Supported means that a careful reader of the context would agree with all of the claim: " +
		"other words, another language and plain inference are fine; another number, unit, name, date or degree is not. " +
		"Percent and percentage points differ. " +
		"Where the context is silent, the claim is not to be found there: that is an answer, and no reason to give none. "
	factRule = "A question, a greeting, an offer, a heading, an opinion or a remark about the text itself states no fact about its subject; " +
		"a sentence that asserts anything about the subject, or about what the context supports, does."
)

// The same about all claims of a text, in one call.
const (
	claimsTemplate = "claims_supported/1"
	claimsText     = "Hold each of the statements in the blocks \"claim\", one by one, against the block \"context\", which alone decides, also against what you know. " +
		"Several blocks of context are one body of material. One claim says nothing about another. " + supportRule +
		"The block \"output\" is the text that the claims stand in; it and the block \"input\", where there is one, tell what their pronouns and fragments mean " +
		"and support nothing. " + factRule
)

func claimOptions() []OptionDefinition {
	return []OptionDefinition{
		{Key: claimSupports, Text: "The context supports all of the claim.", Score: 1},
		{Key: claimContradicts, Text: "The context contradicts the claim, or a part of it.", Score: 0},
		{Key: claimNotFound, Text: "The context does not say so: the claim, or a part of it, is not to be found there.", Score: 0},
		{Key: claimNone, Text: "The claim states no fact that could be held against a context.", Score: 0},
	}
}

// claimSupported asks whether a context supports one claim.
func claimSupported() Spec {
	return Spec{
		Name:     "claim_supported",
		Summary:  "Does the context support the claim, contradict it, or not say?",
		Use:      "a statement by itself against documents",
		NotFor:   "whole answers: faithfulness takes them apart",
		Required: []string{fieldClaim, fieldContext},
		Kind:     judge.Choice,
		Settings: append([]Setting{
			{Name: "pass", Type: "list", Values: []string{claimSupports, claimContradicts, claimNotFound, claimNone},
				Default: []string{claimSupports}, Help: "options that pass"},
		}, claimSettings()...),
		variants: []variant{{template: claimTemplate, text: claimText, options: claimOptions(), pass: []string{claimSupports}}},
	}
}
