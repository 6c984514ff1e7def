package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge/embedded"
	"assay/evaluators/judge/simulated"
	"assay/internal/checks"
	"assay/internal/demo"
	"assay/internal/interaction"
	"assay/internal/monitor"
)

// span is a named part of the simulated day.
type span struct {
	name     string
	slice    interaction.Slice
	from, to time.Time
}

// spans are the parts of the day that the summary compares: the day by slice, and the
// version that got worse before, while and after it did.
func (d *demoRun) spans() []span {
	opts := d.sim.Options()
	var out []span
	for _, s := range d.file.DeclaredSlices() {
		out = append(out, span{"24 hours", s, opts.Start, opts.End})
	}
	bad := interaction.Slice{"prompt_version": opts.Drop.PromptVersion}
	from, to := opts.Start.Add(opts.Drop.From), opts.Start.Add(opts.Drop.To)
	return append(out,
		span{"before the fall", bad, opts.Start, from},
		span{"during the fall", bad, from, to},
		span{"after the repair", bad, to, opts.End})
}

// summary puts what was true beside what was estimated and says whether the demo
// showed what it promises.
func (d *demoRun) summary(ctx context.Context, alarms []monitor.Alarm) error {
	out := d.app.out
	fmt.Fprint(out, "\nWhat was estimated, beside what was true\n\n")
	t := newTable(out, "check", "slice", "when", "estimate (95%)", "judged", "of", "same judge on all", "held", "truly passing")
	held, intervals := 0, 0
	for _, c := range d.file.Checks {
		verdicts, err := d.verdicts(ctx, c)
		if err != nil {
			return err
		}
		for _, s := range d.spans() {
			w, err := monitor.Between(ctx, d.store.db, c.Name, c.Version, s.slice, s.from, s.to)
			if err != nil {
				return err
			}
			counts := d.tally.CountsBetween(s.slice, s.from, s.to)
			truly, _ := counts.Rate(c.Name)
			row := []any{c.Name, s.slice.String(), s.name, windowRate(w), w.N, counts.Judgeable(), "-", "-", percent(truly)}
			if all, ok := verdicts(s); ok && w.PassRate.Value != nil {
				inside := w.PassRate.Lower <= all && all <= w.PassRate.Upper
				intervals++
				row[6], row[7] = percent(all), "no"
				if inside {
					held++
					row[7] = "yes"
				}
			}
			t.AppendRow(row)
		}
	}
	t.Render()
	fmt.Fprintf(out, `
An interval is about sampling: it should hold what the same judge says of all answers, and held
%d of %d times (95%% is the promise). "truly passing" is what the simulator knows: a judge that
errs shifts every rate, which human labels correct and a sample cannot.
`, held, intervals)

	d.summarizeAlarms(alarms)
	return errors.Join(d.checkLedger(ctx), d.checkAlarms(alarms))
}

// verdicts judges every answer of the day with the judge of a check and returns the
// pass rate of a span. A judge that costs money is not asked.
func (d *demoRun) verdicts(ctx context.Context, c checks.Check) (func(span) (float64, bool), error) {
	j, _ := d.file.Judge(c.Judge)
	var b backend
	var err error
	switch j.Kind {
	case "embedded":
		b, err = embedded.NewWith(embedded.Config{AbstainLowConfidence: j.AbstainLow})
	case "simulated":
		b, err = simulated.New(simulatedJudge(d.truth, 0))
	default:
		return func(span) (float64, bool) { return 0, false }, nil
	}
	if err != nil {
		return nil, err
	}
	ev, err := evaluators.New(c.Evaluator, c.Settings())
	if err != nil {
		return nil, err
	}
	type answer struct{ question, output string }
	known := make(map[answer]evaluators.Result)
	for _, t := range d.events {
		key := answer{t.Question, t.Output}
		if _, ok := known[key]; ok || t.Class == demo.None {
			continue
		}
		res, err := ev.Evaluate(ctx, b, evaluators.Item{
			Input: &t.Question, Output: &t.Output, Expected: []string{t.Reference}, Criteria: &t.Criteria,
			Judgeable: true, Status: interaction.OK,
		})
		if err != nil {
			return nil, err
		}
		known[key] = res
	}
	return func(s span) (float64, bool) {
		n, passed := 0, 0
		for _, t := range d.events {
			full := interaction.Slice{"app": t.App, "prompt_version": t.PromptVersion}
			if !s.slice.Contains(full) || t.Time.Before(s.from) || !t.Time.Before(s.to) {
				continue
			}
			if res, ok := known[answer{t.Question, t.Output}]; ok && res.Passed != nil {
				n++
				if *res.Passed {
					passed++
				}
			}
		}
		if n == 0 {
			return 0, false
		}
		return float64(passed) / float64(n), true
	}, nil
}

func (d *demoRun) summarizeAlarms(alarms []monitor.Alarm) {
	out := d.app.out
	opts := d.sim.Options()
	from, to := opts.Start.Add(opts.Drop.From), opts.Start.Add(opts.Drop.To)
	fmt.Fprintf(out, "\nAlarms: %s of %s was worse from %s to %s\n\n", opts.Drop.PromptVersion, opts.Drop.App, from.Format("15:04"), to.Format("15:04"))
	slices.SortFunc(alarms, func(a, b monitor.Alarm) int { return a.OpenedAt.Compare(b.OpenedAt) })
	t := newTable(out, "check", "slice", "opened", "after", "closed", "after the repair")
	for _, al := range alarms {
		closed, after := "-", "-"
		if al.ClosedAt != nil {
			closed, after = al.ClosedAt.Format("15:04"), hoursMinutes(al.ClosedAt.Sub(to))
		}
		t.AppendRow([]any{al.Check, al.Slice.String(), al.OpenedAt.Format("15:04"), hoursMinutes(al.OpenedAt.Sub(from)), closed, after})
	}
	t.Render()
}

// hoursMinutes writes a duration as 1h05m.
func hoursMinutes(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	return fmt.Sprintf("%s%dh%02dm", sign, int(d.Hours()), int(d.Minutes())%60)
}

// checkAlarms is an error when no alarm followed the fall of the version that got worse
// from its opening to its closing. Which other slices ring, and when, is chance.
func (d *demoRun) checkAlarms(alarms []monitor.Alarm) error {
	fell := interaction.Slice{"prompt_version": d.sim.Options().Drop.PromptVersion}
	opened := false
	for _, al := range alarms {
		if al.Slice.ID() != fell.ID() {
			continue
		}
		opened = true
		if al.ClosedAt != nil {
			return nil
		}
	}
	if opened {
		return fmt.Errorf("the alarm on %s is still open at the day's end: run the demo again, or with another --seed", fell)
	}
	return fmt.Errorf("no alarm opened on %s: run the demo again, or with another --seed", fell)
}

// checkLedger holds the sums against what the simulator wrote.
func (d *demoRun) checkLedger(ctx context.Context) error {
	read, dead, err := d.counted(ctx)
	if err != nil {
		return err
	}
	records, broken := d.tally.Records()
	wrote := uint64(d.tally.Counts(nil).Total())
	out := d.app.out
	fmt.Fprintf(out, "\nLedger: %d interactions written in %d records, %d counted; %d broken records written, %d dead letters\n", wrote, records, read, broken, dead)
	if read != wrote || dead != uint64(broken) {
		return fmt.Errorf("the ledger counts %d interactions and %d dead letters, the simulator wrote %d and %d", read, dead, wrote, broken)
	}
	s := d.sys.monitor.Snapshot()
	for _, c := range s.Checks {
		if c.Current && c.Integrity != nil {
			i := c.Integrity
			z := "-"
			if i.SamplingZ != nil {
				z = fmt.Sprintf("%.1f", *i.SamplingZ)
			}
			fmt.Fprintf(out, "        %s: %d decisions for %d interactions, %d rows for %d selected, gap %d, sampling check z %s\n",
				c.Name, i.Decided, i.Interactions, i.Rows, i.Selected, i.Gap, z)
			if i.Gap != 0 {
				return fmt.Errorf("check %s: conservation gap %d", c.Name, i.Gap)
			}
		}
	}
	return nil
}
