package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay/internal/server"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why ID",
		Short: "What happened to one interaction, per check",
		Long: `Say for every check of the checks file what became of an interaction: judged (with its
distribution), failed (with its reason), or not judged, and then what the sampling hash says.
Then the labels of people, and what logs say about it. ID is the interaction's id, or topic/partition/offset[#element] when the log carried none.`,
		Example: `  assay why conv-77-turn-3
  assay why llm.interactions/3/1148 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, log, err := a.begin(cmd.Context())
			if err != nil {
				return err
			}
			file, err := loadChecks(env.Checks)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), &env, log, env.Embedded, func(ctx context.Context, s store) error {
				why, err := server.Why(ctx, s.db, file, args[0])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(why)
				}
				return a.printWhy(why)
			})
		},
	}
}

func (a *app) printWhy(why server.Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "interaction %s\n", why.ID)
	if p := why.Position; p != nil {
		fmt.Fprintf(&b, "  log     %s/%d offset %d, element %d\n", p.Topic, p.Partition, p.Offset, p.Element)
	}
	if why.Text != nil {
		fmt.Fprintf(&b, "  input   %s\n  output  %s\n", oneLine(why.Text.Input), oneLine(why.Text.Output))
	}
	for _, c := range why.Checks {
		fmt.Fprintf(&b, "\n%s: %s\n", c.Check, c.Outcome)
		if c.Because != "" {
			fmt.Fprintf(&b, "  %s\n", c.Because)
		}
		for _, r := range c.Rows {
			fmt.Fprintf(&b, "  %s\n", describeJudgement(r))
		}
	}
	for _, l := range why.Labels {
		fmt.Fprintf(&b, "\n%s\n", describeLabel(l))
	}
	for _, d := range why.DeadLetters {
		fmt.Fprintf(&b, "\ndead letter: %s: %s\n", d.Reason, oneLine(d.Error))
	}
	for _, n := range why.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// describeJudgement is a stored judgement in one line.
func describeJudgement(r server.Judgement) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if r.Status == "ok" {
		passed := "failed"
		if r.Passed != nil && *r.Passed {
			passed = "passed"
		}
		if r.Option != "" { // computed, or a score over many claims
			passed += ": " + r.Option
		}
		say("%s", passed)
		if r.Score != nil {
			say("score %.3f", *r.Score)
		}
		for _, k := range slices.Sorted(maps.Keys(r.Probabilities)) {
			say("p(%s) %.3f", k, r.Probabilities[k])
		}
	} else {
		say("%s: %s", r.Status, r.Reason)
	}
	say("pi %g", r.Pi)
	if by := strings.TrimSpace(r.Judge + " " + r.JudgeModel); by != "" {
		say("by %s", by)
	}
	say("version %s", r.Version)
	if !r.Current {
		say("not the checks file's version")
	}
	return strings.Join(parts, ", ")
}

// describeLabel is what somebody said about the interaction, in one line.
func describeLabel(l server.StoredLabel) string {
	what := "label of " + l.Check
	if l.Foreign {
		what = "foreign score " + l.Name
	}
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if l.Passed != nil {
		passed := "failed"
		if *l.Passed {
			passed = "passed"
		}
		say("%s", passed)
	}
	if l.Option != "" {
		say("%s", oneLine(l.Option))
	}
	if l.Value != nil {
		say("value %g", *l.Value)
	}
	say("%s", l.Origin)
	say("by %s", l.Rater)
	say("at %s", l.LabelledAt.UTC().Format(time.RFC3339))
	if l.Comment != "" {
		say("comment: %s", oneLine(l.Comment))
	}
	return what + ": " + strings.Join(parts, ", ")
}

// oneLine is a text in one line of a terminal.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 160 {
		s = string(r[:159]) + "…"
	}
	return s
}
