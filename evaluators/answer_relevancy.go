package evaluators

import "assay/evaluators/judge"

// answerRelevancy asks whether an output is about what was asked. A false answer to
// the question is relevant.
func answerRelevancy() Spec {
	return Spec{
		Name:     "answer_relevancy",
		Aliases:  []string{"answer_relevance"},
		Summary:  "Does the output address what was asked, true or not?",
		Required: []string{fieldInput, fieldOutput},
		Kind:     judge.Score,
		PassLine: new(.75),
		Settings: append([]Setting{passLevel(.75)}, commonSettings()...),
		variants: []variant{{
			template: "answer_relevancy/1",
			text: "How well does the text in the block \"output\" address what the block \"input\" asks? " +
				"Whether it is true does not matter: a wrong answer to the question is still an answer to it. " +
				"Evasion, a part of the question that goes unanswered, talk about something else, repetition and padding lower the grade. " +
				"A short answer that says what was asked for is fully to the point.",
			options: levels(
				"It does not address what was asked.",
				"It touches on what was asked but does not answer it.",
				"It answers, but leaves a part open or is padded with what nobody asked for.",
				"It answers all of what was asked and stays with it.",
			),
		}},
	}
}
