package demo

import (
	"sync"
	"testing"
	"time"

	"assay/internal/interaction"
)

func tallied(t *testing.T) (*Tally, []Truth) {
	t.Helper()
	tally := NewTally()
	var all []Truth
	for e := range simulate(t, dayOptions()).Events() {
		tally.Add(e)
		all = append(all, e.Truths...)
	}
	return tally, all
}

func TestTallyAgreesWithACountOfTheTruths(t *testing.T) {
	tally, all := tallied(t)
	from, to := dayStart.Add(10*time.Hour), dayStart.Add(13*time.Hour)
	f := func(slice interaction.Slice) {
		t.Helper()
		var want, between Counts
		for _, tr := range all {
			if (slice["app"] == "" || slice["app"] == tr.App) && (slice["prompt_version"] == "" || slice["prompt_version"] == tr.PromptVersion) {
				want = want.plus(one(tr.Class))
				if m := tr.Time.Truncate(time.Minute); !m.Before(from) && m.Before(to) {
					between = between.plus(one(tr.Class))
				}
			}
		}
		if got := tally.Counts(slice); got != want || got.Total() == 0 {
			t.Errorf("%s: %+v, want %+v", slice, got, want)
		}
		if got := tally.CountsBetween(slice, from, to); got != between || got.Total() == 0 {
			t.Errorf("%s between: %+v, want %+v", slice, got, between)
		}
		var minutes Counts
		last := time.Time{}
		for _, m := range tally.Minutes(slice) {
			if !m.Time.After(last) || m.Time != m.Time.Truncate(time.Minute) {
				t.Fatalf("%s: minute %s after %s", slice, m.Time, last)
			}
			last = m.Time
			minutes = minutes.plus(m.Counts)
		}
		if minutes != want {
			t.Errorf("%s: minutes sum to %+v, want %+v", slice, minutes, want)
		}
	}
	f(nil)
	f(interaction.Slice{"app": "support"})
	f(interaction.Slice{"prompt_version": NewPrompt})
	f(interaction.Slice{"app": "support", "prompt_version": OldPrompt})
	if got := tally.Counts(interaction.Slice{"app": "nobody"}); got.Total() != 0 {
		t.Errorf("an unknown app has %+v", got)
	}
	if got := tally.Slices(); len(got) != 3 {
		t.Errorf("slices %v, want 3", got)
	}
	records, broken := tally.Records()
	if broken != dayOptions().Broken || records >= len(all) || records < len(all)*9/10 {
		t.Errorf("%d records, %d broken, for %d interactions", records, broken, len(all))
	}
}

func TestDistinctHoldsEveryAnswerOnce(t *testing.T) {
	tally, all := tallied(t)
	type asked struct{ question, output string }
	seen := map[asked]bool{}
	sum := map[string]int{}
	for _, d := range tally.Distinct() {
		if k := (asked{d.Question, d.Output}); seen[k] {
			t.Fatalf("%+v is there twice", k)
		} else {
			seen[k] = true
		}
		if d.Output == "" || d.Reference == "" || d.Criteria == "" || len(d.Seen) == 0 {
			t.Fatalf("incomplete: %+v", d)
		}
		for _, s := range d.Seen {
			sum[s.App+s.PromptVersion+s.Hour.String()+string(d.Class)] += s.N
		}
	}
	for _, tr := range all {
		if tr.Class != None {
			sum[tr.App+tr.PromptVersion+tr.Time.Truncate(time.Hour).String()+string(tr.Class)]--
		}
	}
	for k, n := range sum {
		if n != 0 {
			t.Errorf("%s is %d off", k, n)
		}
	}
	if len(seen) < 2000 {
		t.Errorf("only %d distinct answers: too little variety", len(seen))
	}
}

func TestTrueRates(t *testing.T) {
	c := Counts{Good: 6, Partial: 1, Wrong: 3, None: 5}
	if r, ok := c.Rate(CheckPolicy); !ok || r != 0.6 {
		t.Errorf("policy %g %t", r, ok)
	}
	if r, ok := c.Rate(CheckFacts); !ok || r != 0.7 {
		t.Errorf("facts %g %t", r, ok)
	}
	// nothing was answered, so there is no rate
	if r, ok := (Counts{None: 5}).Rate(CheckPolicy); ok {
		t.Errorf("rate %g of nothing", r)
	}
}

func TestTallyIsSafeForConcurrentUse(t *testing.T) {
	opts := dayOptions()
	opts.Interactions = 500
	s := simulate(t, opts)
	tally := NewTally()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for e := range s.Events() {
				tally.Add(e)
				tally.Counts(nil)
			}
		})
	}
	wg.Wait()
	if got := tally.Counts(nil).Total(); got != 4*500 {
		t.Errorf("%d counted, want %d", got, 4*500)
	}
}
