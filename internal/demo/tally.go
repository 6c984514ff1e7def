package demo

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"assay/internal/interaction"
)

// Tally is what was really true about the events it was given. Add each event once,
// when it is in the log. It is safe for concurrent use.
type Tally struct {
	mu       sync.Mutex // guards the fields below; stands alone
	records  int
	broken   int
	cells    map[cell]Counts
	distinct map[pair]*Distinct
}

type cell struct {
	app, version string
	minute       int64 // Unix time
}

type pair struct{ item, question, output string }

// Counts is a number of interactions by class.
type Counts struct{ Good, Partial, Wrong, None int }

// Total is how many interactions there were.
func (c Counts) Total() int { return c.Good + c.Partial + c.Wrong + c.None }

// Judgeable is how many of them had an answer.
func (c Counts) Judgeable() int { return c.Good + c.Partial + c.Wrong }

// Rate is the true pass rate of a check of checks.yaml. It is false when there is
// nothing to judge.
func (c Counts) Rate(check string) (float64, bool) {
	passed := 0
	for class, n := range map[Class]int{Good: c.Good, Partial: c.Partial, Wrong: c.Wrong} {
		if class.Passes(check) {
			passed += n
		}
	}
	if c.Judgeable() == 0 {
		return 0, false
	}
	return float64(passed) / float64(c.Judgeable()), true
}

func (c Counts) plus(d Counts) Counts {
	return Counts{c.Good + d.Good, c.Partial + d.Partial, c.Wrong + d.Wrong, c.None + d.None}
}

func one(class Class) Counts {
	switch class {
	case Good:
		return Counts{Good: 1}
	case Partial:
		return Counts{Partial: 1}
	case Wrong:
		return Counts{Wrong: 1}
	}
	return Counts{None: 1}
}

// Distinct is one answer to one question, with where and when it was given. A judge
// needs to be asked once about each to know its verdict on all of the traffic.
type Distinct struct {
	ItemID    string
	Question  string
	Reference string
	Criteria  string
	Output    string
	Class     Class
	Seen      []Seen // in order of hour, app, version
}

// Seen is how often an answer was given in one full slice and hour.
type Seen struct {
	App           string
	PromptVersion string
	Hour          time.Time
	N             int
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{cells: map[cell]Counts{}, distinct: map[pair]*Distinct{}}
}

// Add counts an event.
func (t *Tally) Add(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records++
	if len(e.Truths) == 0 {
		t.broken++
	}
	for _, tr := range e.Truths {
		at := cell{tr.App, tr.PromptVersion, tr.Time.Truncate(time.Minute).Unix()}
		t.cells[at] = t.cells[at].plus(one(tr.Class))
		if tr.Class != None {
			t.addDistinct(tr)
		}
	}
}

func (t *Tally) addDistinct(tr Truth) {
	key := pair{tr.ItemID, tr.Question, tr.Output}
	d, ok := t.distinct[key]
	if !ok {
		d = &Distinct{ItemID: tr.ItemID, Question: tr.Question, Reference: tr.Reference, Criteria: tr.Criteria, Output: tr.Output, Class: tr.Class}
		t.distinct[key] = d
	}
	hour := tr.Time.Truncate(time.Hour)
	for i := range d.Seen {
		if s := &d.Seen[i]; s.App == tr.App && s.PromptVersion == tr.PromptVersion && s.Hour.Equal(hour) {
			s.N++
			return
		}
	}
	d.Seen = append(d.Seen, Seen{tr.App, tr.PromptVersion, hour, 1})
}

// Records returns how many records were added, and how many of them were broken.
func (t *Tally) Records() (all, broken int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records, t.broken
}

// Counts returns the classes within a slice over the dimensions app and
// prompt_version; the empty slice is all of the traffic.
func (t *Tally) Counts(slice interaction.Slice) Counts {
	return t.CountsBetween(slice, time.Time{}, time.Time{})
}

// CountsBetween is Counts over the minutes that begin in [from, to). A zero time is no
// bound.
func (t *Tally) CountsBetween(slice interaction.Slice, from, to time.Time) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum Counts
	for at, n := range t.cells {
		minute := time.Unix(at.minute, 0)
		if at.in(slice) && (from.IsZero() || !minute.Before(from)) && (to.IsZero() || minute.Before(to)) {
			sum = sum.plus(n)
		}
	}
	return sum
}

// Minute is the classes of one minute.
type Minute struct {
	Time time.Time
	Counts
}

// Minutes returns a slice's minutes that had traffic, in order.
func (t *Tally) Minutes(slice interaction.Slice) []Minute {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums := map[int64]Counts{}
	for at, n := range t.cells {
		if at.in(slice) {
			sums[at.minute] = sums[at.minute].plus(n)
		}
	}
	minutes := make([]Minute, 0, len(sums))
	for _, m := range slices.Sorted(maps.Keys(sums)) {
		minutes = append(minutes, Minute{time.Unix(m, 0).UTC(), sums[m]})
	}
	return minutes
}

// Slices returns the full slices that had traffic, by name.
func (t *Tally) Slices() []interaction.Slice {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[string]interaction.Slice{}
	for at := range t.cells {
		s := at.slice()
		found[s.String()] = s
	}
	all := make([]interaction.Slice, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[name])
	}
	return all
}

// Distinct returns every answer that was given to every question, in a fixed order.
// Questions without an answer are left out.
func (t *Tally) Distinct() []Distinct {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Distinct, 0, len(t.distinct))
	for _, d := range t.distinct {
		c := *d
		c.Seen = slices.SortedFunc(slices.Values(d.Seen), func(a, b Seen) int {
			return cmp.Or(a.Hour.Compare(b.Hour), cmp.Compare(a.App, b.App), cmp.Compare(a.PromptVersion, b.PromptVersion))
		})
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Distinct) int {
		return cmp.Or(cmp.Compare(a.ItemID, b.ItemID), cmp.Compare(a.Question, b.Question), cmp.Compare(a.Output, b.Output))
	})
	return all
}

func (c cell) slice() interaction.Slice {
	return interaction.Slice{"app": c.app, "prompt_version": c.version}
}

func (c cell) in(slice interaction.Slice) bool { return slice.Contains(c.slice()) }
