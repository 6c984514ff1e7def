package evaluators

import "assay/evaluators/judge"

// mathEquivalent asks whether two expressions are the same. It is for answers that no
// extraction and no normalising brings to one form.
func mathEquivalent() Spec {
	return Spec{
		Name:     "math_equivalent",
		Summary:  "Is the output the same mathematical expression as the expected one?",
		Use:      "expressions that may be written in several ways",
		NotFor:   "plain numbers: numeric_diff, or the metric math_equiv, which cost nothing",
		Required: []string{fieldOutput, fieldExpected},
		Kind:     judge.Boolean,
		PassLine: new(.5),
		Settings: append([]Setting{
			{Name: "pass", Type: "number", Default: .5, Help: "least probability of yes that passes; above 0, up to 1"},
		}, commonSettings()...),
		variants: []variant{{
			template: "math_equivalent/1",
			text: "Is the expression in the block \"output\" the same as the one in the block \"expected\"" + alternatives + ", " +
				"after trivial simplification at most? Reordering terms or factors, multiplying out or factoring, and other notation are trivial. " +
				"Arithmetic that is left to be worked out is not: 10/4 is not the same as 2.5. Variables keep their names: f(x) is not f(y). " +
				"A unit may be left off on either side. Do not solve the task that the expressions answer.",
			options: []OptionDefinition{
				{Key: "yes", Text: "Yes, the two expressions are the same.", Score: 1},
				{Key: "no", Text: "No, the two expressions are different.", Score: 0},
			},
		}},
	}
}
