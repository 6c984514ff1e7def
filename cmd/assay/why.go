package main

import (
	"context"
	"fmt"
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
ID is the interaction's id, or topic/partition/offset[#element] when the log carried none.`,
		Example: `  assay why conv-77-turn-3
  assay why llm.interactions/3/1148 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := readEnvironment(cmd.Context(), a.environ)
			if err != nil {
				return err
			}
			log, err := a.logger(env)
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
	if why.Text != nil {
		fmt.Fprintf(&b, "  at      %s, %s/%d offset %d\n", why.Text.Time.Format(time.RFC3339), why.Text.Topic, why.Text.Partition, why.Text.Offset)
		fmt.Fprintf(&b, "  input   %s\n  output  %s\n", oneLine(why.Text.Input), oneLine(why.Text.Output))
	}
	for _, c := range why.Checks {
		fmt.Fprintf(&b, "\n%s: %s\n", c.Check, c.Outcome)
		if c.Because != "" {
			fmt.Fprintf(&b, "  %s\n", c.Because)
		}
		for _, r := range c.Rows {
			fmt.Fprintf(&b, "  %s\n", describeRow(r))
		}
	}
	for _, n := range why.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// oneLine is a text in one line of a terminal.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 160 {
		s = string(r[:159]) + "…"
	}
	return s
}
