package demo

// Class is how good an answer of the simulated assistant really is.
type Class string

// The classes. They are the demo's truth: nothing has to estimate them.
const (
	Good    Class = "good"    // says the reference and meets the criteria
	Partial Class = "partial" // says the reference, and misses a part of the criteria
	Wrong   Class = "wrong"   // contradicts the reference
	None    Class = "none"    // no answer to judge: empty, or a tool call
)

// The checks of checks.yaml, by name.
const (
	CheckPolicy = "answers_policy" // closed_qa on the criteria
	CheckFacts  = "facts"          // coarse factuality against the reference
)

// Passes reports whether an answer of this class ought to pass the check of
// checks.yaml by that name. A partial answer is true as far as it goes: it passes
// facts, and fails answers_policy.
func (c Class) Passes(check string) bool {
	switch check {
	case CheckPolicy:
		return c == Good
	case CheckFacts:
		return c == Good || c == Partial
	}
	return false
}

// Option returns the option that a judge who knows the truth would choose among
// keys. It is false for a question the classes say nothing about.
func (c Class) Option(keys []string) (string, bool) {
	if c == None {
		return "", false
	}
	has := make(map[string]bool, len(keys))
	for _, k := range keys {
		has[k] = true
	}
	choose := func(passes bool, yes, no string) (string, bool) {
		if passes {
			return yes, true
		}
		return no, true
	}
	switch {
	case len(keys) == 2 && has["yes"] && has["no"]:
		return choose(c.Passes(CheckPolicy), "yes", "no")
	case len(keys) == 2 && has["agree"] && has["disagree"]:
		return choose(c.Passes(CheckFacts), "agree", "disagree")
	case len(keys) == 5 && has["A"] && has["B"] && has["C"] && has["D"] && has["E"]:
		// Every bank answer that is right says more than the short reference.
		return choose(c.Passes(CheckFacts), "B", "D")
	}
	return "", false
}
