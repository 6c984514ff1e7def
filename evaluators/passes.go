package evaluators

// Passes says which scores pass a line. The zero Passes is AtLeast, so that the
// definitions of evaluators for which more is better do not name it.
type Passes string

// The sides of a line.
const (
	AtLeast Passes = ""        // more is better, and the line itself passes
	Below   Passes = "below"   // less is better, and the line itself fails
	AtMost  Passes = "at_most" // less is better, and the line itself passes
)

// passed holds a score against the line. A sum of floats may miss the line by a hair
// that the text it is shown as does not have.
func (p Passes) passed(score, line float64) bool {
	switch p {
	case Below:
		return score < line-tie
	case AtMost:
		return score <= line+tie
	}
	return score >= line-tie
}

// lessIsBetter reports whether a low score is a good one.
func (p Passes) lessIsBetter() bool { return p != AtLeast }

// lineFits refuses lines that everything or nothing passes.
func (p Passes) lineFits(line float64) bool {
	if p == AtMost {
		return line >= 0 && line < 1
	}
	return line > 0 && line <= 1
}

func (p Passes) lineWanted() string {
	if p == AtMost {
		return "from 0, below 1"
	}
	return "above 0, up to 1"
}
