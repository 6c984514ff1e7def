package demo

import (
	"fmt"
	"math"
	"time"
)

// Shares is how often an answer is of each class. They sum to 1.
type Shares struct{ Good, Partial, Wrong float64 }

func (s Shares) validate() error {
	if s.Good < 0 || s.Partial < 0 || s.Wrong < 0 || math.Abs(s.Good+s.Partial+s.Wrong-1) > 1e-9 {
		return fmt.Errorf("shares %g good, %g partial, %g wrong: want a sum of 1", s.Good, s.Partial, s.Wrong)
	}
	return nil
}

// class turns a uniform draw into a class.
func (s Shares) class(u float64) Class {
	switch {
	case u < s.Good:
		return Good
	case u < s.Good+s.Partial:
		return Partial
	}
	return Wrong
}

// Of what a drop takes off the good share, this part becomes partial and the rest wrong.
const lossToPartial = 0.35

func (s Shares) less(loss float64) Shares {
	return Shares{s.Good - loss, s.Partial + loss*lossToPartial, s.Wrong + loss*(1-lossToPartial)}
}

// Quality is one line of the table of class probabilities. An empty PromptVersion is
// every version.
type Quality struct {
	App           string
	PromptVersion string
	From, To      time.Duration // since the start of the window; [From, To)
	Shares
}

// quality is the whole table of how good the answers are; the first line that fits
// an answer counts.
func (o Options) quality() []Quality {
	var table []Quality
	all := o.End.Sub(o.Start)
	for _, a := range o.Apps {
		if d := o.Drop; d.Loss > 0 && d.App == a.Name {
			table = append(table, Quality{a.Name, d.PromptVersion, d.From, d.To, a.Shares.less(d.Loss)})
		}
		table = append(table, Quality{App: a.Name, To: all, Shares: a.Shares})
	}
	return table
}

func (q Quality) fits(app, version string, after time.Duration) bool {
	return q.App == app && (q.PromptVersion == "" || q.PromptVersion == version) && after >= q.From && after < q.To
}
