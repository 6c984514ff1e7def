package evaluators

import "assay/evaluators/judge"

// The options of short_answer; the abstention metrics count notAttempted.
const (
	gradedCorrect   = "CORRECT"
	gradedIncorrect = "INCORRECT"
	notAttempted    = "NOT_ATTEMPTED"
)

// shortAnswer grades the answer to a question of fact, and tells a wrong answer from
// one that was not given.
func shortAnswer() Spec {
	return Spec{
		Name:     "short_answer",
		Summary:  "Is the answer to a question of fact correct, incorrect or not attempted?",
		Use:      "questions of fact with a short answer, where not answering is told apart from a wrong answer",
		NotFor:   "essays, and questions with many right answers",
		Required: []string{fieldInput, fieldOutput, fieldExpected},
		Kind:     judge.Choice,
		Settings: append([]Setting{
			{Name: "pass", Type: "list", Values: []string{gradedCorrect, gradedIncorrect, notAttempted}, Default: []string{gradedCorrect},
				Help: "options that pass"},
		}, commonSettings()...),
		variants: []variant{{
			template: "short_answer/1",
			text: "The block \"input\" asks a question of fact, and the block \"expected\" holds the right answer" + alternatives + ". " +
				"Grade the answer in the block \"output\". " +
				"Hedging does no harm as long as one answer is given and it is the right one; several rival answers are a wrong one, even if the right one is among them. " +
				"A number is right if it agrees with the expected one when rounded to the last significant figure of the expected one; " +
				"a vague figure (about, around) that does not agree is no attempt. " +
				"What the question already says or takes for granted (a first name, a country, a unit) may be left out. " +
				"Spelling, language, case and word order make no difference as long as it is clear what is meant. " +
				"An answer that gives a part of the facts, and nothing against the rest, did not attempt the whole.",
			options: []OptionDefinition{
				{Key: gradedCorrect, Text: "Correct: it states all of the right answer, and nothing in it conflicts with that.", Score: 1},
				{Key: gradedIncorrect, Text: "Incorrect: something in it conflicts with the right answer, hedged or not.", Score: 0},
				{Key: notAttempted, Text: "Not attempted: the right answer is not wholly there, and nothing conflicts with it.", Score: 0},
			},
			pass: []string{gradedCorrect},
		}},
	}
}
