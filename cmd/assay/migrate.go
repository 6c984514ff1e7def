package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"assay/sink"
)

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Create or update the tables in ClickHouse",
		Long: `Run the migrations that the database lacks, in order, one statement at a time. Running it
again, or twice at once, is harmless. assay run only checks that nothing is missing, unless
ASSAY_CLICKHOUSE_MIGRATE=true.`,
		Example: "  ASSAY_CLICKHOUSE_ADDR=clickhouse:9000 assay migrate",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			env, log, err := a.begin(cmd.Context())
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), &env, log, env.Embedded, func(ctx context.Context, s store) error {
				applied, err := sink.Migrate(ctx, s.db, log)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"clickhouse": s.chosen, "applied": applied})
				}
				what := fmt.Sprintf("%d migrations applied", applied)
				if applied == 0 {
					what = "nothing to do: all migrations are applied"
				}
				_, err = fmt.Fprintf(a.out, "%s: %s\n", s.chosen, what)
				return err
			})
		},
	}
}
