package evaluators

import "assay/evaluators/judge"

// answerSimilarity asks how near two texts are in what they mean. It knows no right
// and wrong: an extra detail counts as much as a lost one.
func answerSimilarity() Spec {
	return Spec{
		Name:     "answer_similarity",
		Summary:  "How near is the output to the expected answer in what it means, wording and language left aside?",
		Use:      "the same meaning in other words or another language",
		NotFor:   "facts that differ in one word: factuality",
		Required: []string{fieldOutput, fieldExpected},
		Kind:     judge.Score,
		PassLine: new(.75),
		calls:    "1; by embeddings none, and 1 vector for the output and for each expected answer",
		Settings: append([]Setting{
			passLevel(.75),
			{Name: "dialect", Type: "text", Values: []string{dialectLevels, dialectEmbeddings}, Default: dialectLevels,
				Help: "levels asks the judge; embeddings is the cosine of the two texts' vectors, for which the judge needs embedding_model"},
		}, commonSettings()...),
		build: func(spec Spec, v variant, s Settings) Evaluator {
			if v.dialect == dialectEmbeddings {
				return newByVectors(spec, v, s)
			}
			s.Dialect = "" // checks older than the other keep their version
			return newJudged(spec, v, s)
		},
		variants: []variant{{
			template: "answer_similarity/1",
			dialect:  dialectLevels,
			text: "How near is the text in the block \"output\" to the text in the block \"expected\"" + alternatives + " in what it means? " +
				"Compare meaning only: other words, another language, another order of sentences or another style change nothing. " +
				"A negation, another number, name or date does change the meaning, however alike the two texts look. " +
				"Whether either of them is true does not matter.",
			options: levels(
				"The meaning is different.",
				"They speak of the same subject but say different things about it.",
				"They mean largely the same; a detail is missing, added or less exact.",
				"They mean the same; one could stand for the other.",
			),
		}, {
			template: vectorTemplate, dialect: dialectEmbeddings,
		}},
	}
}

// passLevel is the setting of evaluators whose score has a line.
func passLevel(line float64) Setting {
	return Setting{Name: "pass", Type: "number", Default: line, Help: "least score that passes; above 0, up to 1"}
}

// levels are the options of a scale, lowest first.
func levels(texts ...string) []OptionDefinition {
	options := make([]OptionDefinition, len(texts))
	for i, text := range texts {
		options[i] = OptionDefinition{Key: string(rune('0' + i)), Text: text, Score: float64(i) / float64(len(texts)-1)}
	}
	return options
}
