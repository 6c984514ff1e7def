package main

import (
	"fmt"
	"slices"
	"strings"

	"assay/evaluators"
	"assay/internal/stats"
)

// comparison holds one evaluator's results against those of an earlier run, item by item.
type comparison struct {
	Evaluator string `json:"evaluator"`
	Pairs     int    `json:"pairs"`    // items with an answer in both runs
	Unpaired  int    `json:"unpaired"` // items of this run without one in both
	Lost      int    `json:"lost"`     // those of them that had an answer before

	Before     float64    `json:"pass_rate_before"` // over the pairs, as all that follows
	After      float64    `json:"pass_rate_after"`
	OnlyBefore int        `json:"passed_only_before"`
	OnlyAfter  int        `json:"passed_only_after"`
	Change     *between   `json:"pass_rate_change"`
	P          *float64   `json:"p_value"` // McNemar, exact, mid-p
	MeanChange *between   `json:"mean_score_change"`
	MeanP      *float64   `json:"mean_score_p_value"` // paired t
	Worse      []worsened `json:"worse"`              // passed before, not now; the first of them
	Caution    string     `json:"caution,omitempty"`
}

// between is a difference with its 95% interval; without one where nothing shows how far
// it may be off.
type between struct {
	Value float64  `json:"value"`
	Lower *float64 `json:"lower"`
	Upper *float64 `json:"upper"`
}

type worsened struct {
	ID   string `json:"id"`
	Line int    `json:"line"`
}

// listedWorse is how many items are named; the files have all.
const listedWorse = 10

// compareRuns pairs the lines of two runs by evaluator and item id. Where an id stands
// several times, the first of one run goes with the first of the other.
func compareRuns(names []string, before, after []lineResult) ([]comparison, error) {
	var all []comparison
	for _, name := range names {
		c, err := compareEvaluator(name, resultsOf(name, before), resultsOf(name, after))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func resultsOf(evaluator string, lines []lineResult) (found []lineResult) {
	for _, l := range lines {
		if l.Evaluator == evaluator {
			found = append(found, l)
		}
	}
	return found
}

func compareEvaluator(name string, before, after []lineResult) (comparison, error) {
	c := comparison{Evaluator: name, Worse: []worsened{}}
	earlier := make(map[string][]lineResult)
	for _, l := range settled(before) {
		earlier[l.ID] = append(earlier[l.ID], l)
	}
	var table stats.PairedRates
	var differences []float64
	var cautions []string
	caution := func(text string) {
		if !slices.Contains(cautions, text) {
			cautions = append(cautions, text)
		}
	}
	for _, now := range after {
		rest := earlier[now.ID]
		if len(rest) == 0 {
			c.Unpaired++
			continue
		}
		was := rest[0]
		earlier[now.ID] = rest[1:]
		if !scored(was) || !scored(now) {
			c.Unpaired++
			if scored(was) {
				c.Lost++
			}
			continue
		}
		if was.Version != now.Version {
			caution("the evaluator had other settings or another wording then")
		}
		if was.Judge != now.Judge || was.Model != now.Model {
			caution("another judge or model answered then")
		}
		switch {
		case *was.Passed && *now.Passed:
			table.Both++
		case *was.Passed:
			table.OnlyFirst++
			if len(c.Worse) < listedWorse {
				c.Worse = append(c.Worse, worsened{now.ID, now.Line})
			}
		case *now.Passed:
			table.OnlySecond++
		default:
			table.Neither++
		}
		differences = append(differences, *now.Score-*was.Score)
	}
	if c.Pairs = table.N(); c.Pairs == 0 {
		return c, nil
	}
	if len(cautions) > 0 {
		c.Caution = strings.Join(cautions, "; ") + ": the change may be theirs"
	}
	n := float64(c.Pairs)
	c.Before, c.After = float64(table.Both+table.OnlyFirst)/n, float64(table.Both+table.OnlySecond)/n
	c.OnlyBefore, c.OnlyAfter = table.OnlyFirst, table.OnlySecond
	d, err := table.Difference(confidence)
	if err != nil {
		return c, err
	}
	c.Change = &between{d.Value, &d.Lower, &d.Upper}
	_, p, err := stats.McNemar(table.OnlyFirst, table.OnlySecond)
	if err != nil {
		return c, err
	}
	c.P = &p
	mean, interval, meanP, err := stats.PairedMeans(differences, confidence)
	if err != nil {
		return c, err
	}
	c.MeanChange, c.MeanP = &between{Value: mean}, meanP
	if interval != nil {
		c.MeanChange.Lower, c.MeanChange.Upper = &interval.Lower, &interval.Upper
	}
	return c, nil
}

func scored(l lineResult) bool {
	return l.Status == evaluators.OK && l.Score != nil && l.Passed != nil
}

// printComparison writes what changed against the earlier run.
func (a *app) printComparison(path string, all []comparison) error {
	fmt.Fprintf(a.out, "\nagainst %s, by item id:\n", path)
	t := newTable(a.out, "evaluator", "pairs", "pass rate", "change (95%)", "passed only before/now", "p", "mean score (95%)", "p")
	for _, c := range all {
		if c.Pairs == 0 {
			t.AppendRow([]any{c.Evaluator, 0, "-", "-", "-", "-", "-", "-"})
			continue
		}
		t.AppendRow([]any{
			c.Evaluator, c.Pairs, percent(c.Before) + " to " + percent(c.After), c.Change.points(),
			fmt.Sprintf("%d/%d", c.OnlyBefore, c.OnlyAfter), pValue(c.P), c.MeanChange.plain(), pValue(c.MeanP),
		})
	}
	t.Render()
	for _, c := range all {
		if c.Caution != "" {
			fmt.Fprintf(a.out, "%s: caution: %s\n", c.Evaluator, c.Caution)
		}
		if len(c.Worse) > 0 {
			ids := make([]string, len(c.Worse))
			for i, w := range c.Worse {
				ids[i] = fmt.Sprintf("%s (line %d)", w.ID, w.Line)
			}
			more := ""
			if c.OnlyBefore > len(ids) {
				more = fmt.Sprintf(", and %d more", c.OnlyBefore-len(ids))
			}
			fmt.Fprintf(a.out, "%s passed before and not now: %s%s\n", c.Evaluator, strings.Join(ids, ", "), more)
		}
		if c.Unpaired > 0 {
			fmt.Fprintf(a.out, "%s: %d items have no answer in both runs and are left out\n", c.Evaluator, c.Unpaired)
		}
	}
	_, err := fmt.Fprintln(a.out, "tests: verdicts by McNemar (exact, mid-p), scores by paired t; intervals by Newcombe's paired method and by t")
	return err
}

func (b between) points() string {
	return fmt.Sprintf("%+.1f (%+.1f to %+.1f) points", 100*b.Value, 100**b.Lower, 100**b.Upper)
}

func (b between) plain() string {
	if b.Lower == nil {
		return fmt.Sprintf("%+.3f", b.Value)
	}
	return fmt.Sprintf("%+.3f (%+.3f to %+.3f)", b.Value, *b.Lower, *b.Upper)
}

func pValue(p *float64) string {
	switch {
	case p == nil:
		return "-"
	case *p < .0001:
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", *p)
}

// holdWorse is the gate of --fail-worse: a pass rate that fell by more than chance.
func holdWorse(all []comparison, level float64) []heldGate {
	if level == 0 {
		return nil
	}
	var held []heldGate
	for _, c := range all {
		h := heldGate{evaluator: c.Evaluator, condition: fmt.Sprintf("no fall of the pass rate with p under %g", level)}
		switch {
		case c.Pairs == 0:
			h.err = errGate{fmt.Errorf("%s: no item has an answer in both runs", c.Evaluator), exitTooFew}
		case float64(c.Lost) > maxMissing*float64(c.Lost+c.Pairs):
			h.err = errGate{fmt.Errorf("%s: %d of %d items with an answer then have none now: too little to compare", c.Evaluator, c.Lost, c.Lost+c.Pairs), exitTooFew}
		case c.Change.Value < 0 && *c.P < level:
			h.err = errGate{fmt.Errorf("%s: pass rate fell from %s to %s over %d items, p %s", c.Evaluator, percent(c.Before), percent(c.After), c.Pairs, pValue(c.P)), exitGate}
		}
		held = append(held, h)
	}
	return held
}
