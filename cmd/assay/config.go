package main

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "List every ASSAY_ variable: default, value in force, meaning",
		Example: `  assay config
  assay config --json | jq '.[] | select(.value != .default)'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			set := environMap(a.environ)
			type row struct {
				variable
				Value string `json:"value"`
			}
			var rows []row
			for _, v := range variables() {
				value, ok := set[v.Name]
				switch {
				case !ok:
					value = v.Default
				case v.Secret:
					value = "(set)"
				}
				rows = append(rows, row{v, value})
			}
			if a.json {
				if err := a.printJSON(rows); err != nil {
					return err
				}
				return usageError(unknownVariables(a.environ))
			}
			t := newTable(a.out, "variable", "value", "meaning")
			t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: 70, WidthMaxEnforcer: text.WrapSoft}})
			for _, r := range rows {
				value := r.Value
				if value != r.Default {
					value += " *"
				}
				t.AppendRow(table.Row{r.Name, value, r.Help})
			}
			t.Render()
			if _, err := fmt.Fprintln(a.out, "* differs from its default. NAME_FILE variables hold the path of a file with the secret."); err != nil {
				return err
			}
			return usageError(unknownVariables(a.environ))
		},
	}
}
