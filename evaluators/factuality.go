package evaluators

import "assay/evaluators/judge"

// factuality asks how the facts of an output relate to those of an expert's answer.
// B scores above A on purpose: what the expert said is all there, and more is
// consistent; whether the more is true the question cannot tell.
func factuality() Spec {
	return Spec{
		Name:     "factuality",
		Summary:  "How do the facts of the output relate to those of the expected answer, style left aside?",
		Use:      "answers that an expert has answered too",
		NotFor:   "long references, which make A likely; whether what is added is true: put faithfulness beside it",
		Required: []string{fieldOutput, fieldExpected},
		Optional: []string{fieldInput},
		Kind:     judge.Choice,
		Settings: append([]Setting{
			{Name: "pass", Type: "list", Values: []string{"A", "B", "C", "D", "E"}, Default: []string{"B", "C", "E"},
				Help: "options that pass; with coarse: agree, disagree"},
			{Name: "coarse", Type: "boolean", Default: false,
				Help: "ask only whether the output agrees with the expected answer (options agree, disagree)"},
		}, commonSettings()...),
		variants: []variant{{
			template: "factuality/1",
			text: "Compare the facts stated in the block \"output\" with the facts in the expert's answer in the block \"expected\"" + alternatives + ". " +
				compared + "Which description is right?",
			options: []OptionDefinition{
				{Key: "A", Text: "The output states only a part of the expert's facts, and nothing in it conflicts with them.", Score: .4},
				{Key: "B", Text: "The output states all of the expert's facts and further ones, and nothing in it conflicts with them.", Score: .6},
				{Key: "C", Text: "The output states the same facts as the expert, no fewer and no more.", Score: 1},
				{Key: "D", Text: "The output conflicts with the expert's answer in at least one fact.", Score: 0},
				{Key: "E", Text: "The two differ, but only in ways that carry no factual weight for the question.", Score: 1},
			},
			pass: []string{"B", "C", "E"},
		}, {
			template: "factuality_coarse/1",
			text: "Does the block \"output\" agree in its facts with the expert's answer in the block \"expected\"" + alternatives + "? " +
				compared + "Further facts that conflict with nothing do no harm; a missing or different answer is no agreement.",
			options: []OptionDefinition{
				{Key: "agree", Text: "The output gives the expert's answer and conflicts with it nowhere.", Score: 1},
				{Key: "disagree", Text: "The output gives another answer, none, or conflicts with the expert's.", Score: 0},
			},
			pass: []string{"agree"},
		}},
	}
}

const (
	alternatives = " (where several are given, each is right by itself: compare with the one that the output is nearest to)"
	compared     = "Look at what is stated as fact and at nothing else: wording, language, style, order, spelling and units that name " +
		"the same quantity make no difference. Negations, numbers, names and dates do. " +
		"What the output says about itself or about this comparison is no fact. "
)
