package evaluators

import "assay/evaluators/judge"

// The dialects of answer_correctness.
const (
	dialectLevels     = "levels"
	dialectStatements = "statements"
	dialectEmbeddings = "embeddings" // statements, with similarity by embeddings
)

// answerCorrectness asks how right an output is, measured by a right answer. In dialect
// statements the two are compared sentence by sentence: see statements.go.
func answerCorrectness() Spec {
	levelled := variant{
		template: "answer_correctness/1",
		dialect:  dialectLevels,
		text: "How right is the answer in the block \"output\", measured by the right answer in the block \"expected\"" + alternatives + "? " +
			"Facts alone count, not style, length, language or order. A true fact beyond those in \"expected\" that conflicts with none of them " +
			"lowers nothing. A key fact is one that the question in the block \"input\", or else the right answer itself, is about. " +
			"A number, name or date that differs is wrong unless it names the same thing.",
		options: levels(
			"It contradicts the right answer or misses the point.",
			"It is partly right, but a key fact is wrong or missing.",
			"It is right but for a minor gap.",
			"It is right.",
		),
	}
	byStatements := variant{
		template: claimTemplate, dialect: dialectStatements, text: claimText, options: claimOptions(),
	}
	byEmbeddings := byStatements
	byEmbeddings.dialect = dialectEmbeddings
	return Spec{
		Name:     "answer_correctness",
		Summary:  "How right is the output, measured by the expected answer?",
		Use:      "how much of the right answer is there",
		NotFor:   "style and completeness beyond the expected answer",
		Required: []string{fieldOutput, fieldExpected},
		Optional: []string{fieldInput},
		calls:    "1; by statements 1 for each claim of the output and of each expected answer, up to max_claims each (1 for each text where claims are batched), and 1 for similarity (2 vectors where it is by embeddings)",
		Kind:     judge.Score,
		PassLine: new(.75),
		Settings: append([]Setting{
			passLevel(.75),
			{Name: "dialect", Type: "text", Values: []string{dialectLevels, dialectStatements, dialectEmbeddings}, Default: dialectLevels,
				Help: "levels asks once; statements compares sentence by sentence, both ways, and gives F1; embeddings does the same and blends in the cosine of the two texts, for which the judge needs embedding_model"},
			claimsSetting(),
			maxClaimsSetting(),
			{Name: "similarity", Type: "boolean", Default: false, Help: "statements: blend in answer_similarity; embeddings always does"},
			{Name: "weights", Type: "numbers", Default: []float64{.75, .25}, Help: "of statements and similarity, where it is blended in"},
		}, commonSettings()...),
		variants: []variant{levelled, byStatements, byEmbeddings},
		build: func(spec Spec, v variant, s Settings) Evaluator {
			if v.dialect == dialectLevels {
				return newJudged(spec, v, s)
			}
			return newStatements(spec, v, s)
		},
	}
}
