package evaluators

import "slices"

// A Wording is a question that an evaluator asks, as its page and the API show it.
type Wording struct {
	Template string // name and number; another number is another question
	Dialect  string // that asks it; empty where there is one way only
	Coarse   bool   // asked where coarse is set
	Claims   string // the value of claims it is asked with; empty where that is single
	Text     string
	Options  []OptionDefinition // with the score of each
}

// Wordings lists the questions of an evaluator, the default one first; none where it
// computes. Those over claims ask their question about each claim, or about all of them
// in one, or have the claims listed first.
func (s Spec) Wordings() []Wording {
	if !s.NeedsJudge() {
		return nil
	}
	_, coarse := s.Coarse()
	list := make([]Wording, len(s.variants))
	for i, v := range s.variants {
		list[i] = Wording{Template: v.template, Dialect: v.dialect, Coarse: coarse && i == 1, Text: v.text, Options: slices.Clone(v.options)}
	}
	if s.takes("claims") {
		list = append(list,
			Wording{Template: claimsTemplate, Claims: claimsBatched, Text: claimsText, Options: claimOptions()},
			Wording{Template: extractTemplate, Claims: claimsExtracted, Text: extractText})
	}
	return list
}
