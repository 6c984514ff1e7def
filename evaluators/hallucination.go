package evaluators

import "assay/evaluators/judge"

// hallucination asks whether an output makes facts up, with nothing but the request to
// go by. Where the material is at hand, faithfulness is the better question.
func hallucination() Spec {
	return Spec{
		Name:     "hallucination",
		Summary:  "Does the output state facts that are invented or cannot be known from the input? Less is better.",
		Use:      "a first look where no documents are at hand",
		NotFor:   "outputs whose documents are logged: faithfulness",
		Required: []string{fieldInput, fieldOutput},
		Kind:     judge.Boolean,
		PassLine: new(.5),
		Passes:   Below,
		Settings: append([]Setting{passBelow()}, commonSettings()...),
		variants: []variant{{
			template: "hallucination/1",
			text: "Does the text in the block \"output\" state anything as fact that is invented: false by common knowledge, made up, " +
				"or particular (a figure, a name, a source, an event) without any way to know it from the block \"input\" or from common knowledge? " +
				"What is well known and true, what the input says, and what is plainly marked as an example, a guess or fiction is not invented. " +
				"One invented fact is enough.",
			options: []OptionDefinition{
				{Key: "yes", Text: "Yes, at least one fact in it is invented.", Score: 1},
				{Key: "no", Text: "No, nothing in it is invented.", Score: 0},
			},
		}},
	}
}
