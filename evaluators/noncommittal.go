package evaluators

import "assay/evaluators/judge"

// noncommittal asks whether an output avoids an answer. Its score is the probability
// that it does, so less is better.
func noncommittal() Spec {
	return Spec{
		Name:     "noncommittal",
		Summary:  "Does the output evade, or say that it does not know? Less is better.",
		Use:      "the many forms of \"I don't know\"",
		NotFor:   "refusals alone: refusal costs nothing",
		Required: []string{fieldOutput},
		Optional: []string{fieldInput},
		Kind:     judge.Boolean,
		PassLine: new(.5),
		Passes:   Below,
		Settings: append([]Setting{passBelow()}, commonSettings()...),
		variants: []variant{{
			template: "noncommittal/1",
			text: "Is the text in the block \"output\" noncommittal: does it evade the question, stay vague where something definite was asked, " +
				"or say that it does not know or cannot tell? A text that commits itself to an answer is not noncommittal, " +
				"whether the answer is right or wrong, and not because it adds a caution.",
			options: []OptionDefinition{
				{Key: "yes", Text: "Yes, it commits itself to no answer.", Score: 1},
				{Key: "no", Text: "No, it gives a definite answer.", Score: 0},
			},
		}},
	}
}

// passBelow is the setting of questions whose yes is bad.
func passBelow() Setting {
	return Setting{Name: "pass", Type: "number", Default: .5, Help: "an item passes whose probability of yes is below this; above 0, up to 1"}
}
