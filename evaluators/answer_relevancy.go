package evaluators

import "assay/evaluators/judge"

// The dialects of answer_relevancy beside dialectLevels: see relevancy_by_questions.go.
const (
	dialectRagas     = "ragas"
	dialectAutoevals = "autoevals"
)

// answerRelevancy asks whether an output is about what was asked. A false answer to
// the question is relevant.
func answerRelevancy() Spec {
	return Spec{
		Name:     "answer_relevancy",
		Aliases:  []string{"answer_relevance"},
		Summary:  "Does the output address what was asked, true or not?",
		Use:      "evasion, padding and answers to another question",
		NotFor:   "truth: a wrong answer to the question is relevant",
		Required: []string{fieldInput, fieldOutput},
		Kind:     judge.Score,
		PassLine: new(.75),
		calls:    "1; by embeddings 1 for each of the questions that are written (3; 2 for one that comes in another form), and 1 vector more than questions",
		Settings: append([]Setting{
			passLevel(.75),
			{Name: "dialect", Type: "text", Values: []string{dialectLevels, dialectRagas, dialectAutoevals}, Default: dialectLevels,
				Help: "levels asks once; ragas and autoevals have the judge write questions that the output answers and compare them with the input by embeddings, for which the judge needs embedding_model; an output that all of the drafts (ragas) or any of them (autoevals) call noncommittal scores 0"},
			{Name: "questions", Type: "number", Default: defaultDrafts, Help: "ragas, autoevals: questions that are written, up to 10"},
		}, commonSettings()...),
		build: func(spec Spec, v variant, s Settings) Evaluator {
			if v.dialect == dialectLevels {
				s.Dialect = "" // checks older than the others keep their version
				return newJudged(spec, v, s)
			}
			return newByQuestions(spec, v, s)
		},
		variants: []variant{{
			template: "answer_relevancy/1",
			dialect:  dialectLevels,
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
		}, {
			template: draftTemplate, dialect: dialectRagas, text: draftText,
		}, {
			template: draftTemplate, dialect: dialectAutoevals, text: draftText,
		}},
	}
}
