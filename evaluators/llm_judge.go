package evaluators

import "assay/evaluators/judge"

// llmJudge asks how far an output meets criteria that are a matter of degree. Where
// they can only be met or missed, closed_qa is the sharper question.
func llmJudge() Spec {
	return Spec{
		Name:     "llm_judge",
		Summary:  "How far does the output meet the criteria?",
		Use:      "criteria that are met more or less",
		NotFor:   "criteria that are met or not: closed_qa, whose probability is easier to hold against people",
		Required: []string{fieldOutput, fieldCriteria},
		Optional: []string{fieldInput, fieldContext, fieldExpected},
		Kind:     judge.Score,
		PassLine: new(.75),
		Settings: append([]Setting{passLevel(.75)}, commonSettings()...),
		variants: []variant{{
			template: "llm_judge/1",
			text: "How far does the text in the block \"output\" meet what the block \"criteria\" asks for? " +
				"The criteria alone decide. Other blocks, where there are any, serve to apply them: \"input\" is what the output answers, " +
				"\"context\" is material it was written from, \"expected\" is an answer known to be good, from which a good output may differ. " +
				"Judge what the output says and not what it says about itself.",
			options: levels(
				"It does not meet the criteria at all.",
				"It meets little of the criteria.",
				"It meets about half of the criteria, or all of them only half.",
				"It meets the criteria for the most part, with a small failing.",
				"It fully meets the criteria.",
			),
		}},
	}
}
