package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"assay/internal/checks"
)

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a checks file; every fault with file:line:column and what would be right",
		Long: `Check a checks file without any network: keys, types, filters, evaluators, judges,
budgets. FILE is ASSAY_CHECKS, or assay.yaml, when not given. Exit 2 when it has faults.`,
		Example: `  assay validate
  assay validate staging.yaml --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, err := readEnvironment(cmd.Context(), a.environ)
			if err != nil {
				return err
			}
			path := env.Checks
			if len(args) == 1 {
				path = args[0]
			}
			file, err := loadChecks(path)
			if err != nil {
				return err
			}
			return a.printChecks(file)
		},
	}
}

// loadChecks reads a checks file; a faulty one is a wrong configuration.
func loadChecks(path string) (*checks.File, error) {
	file, err := checks.Load(path)
	if err != nil {
		return nil, errUsage{err}
	}
	return file, nil
}

func (a *app) printChecks(file *checks.File) error {
	type row struct {
		Check     string   `json:"check"`
		Version   string   `json:"version"`
		Evaluator string   `json:"evaluator"`
		Judge     string   `json:"judge"`
		Rate      float64  `json:"rate"`
		Target    *float64 `json:"target"`
		Alarm     string   `json:"alarm"`
	}
	var rows []row
	for _, c := range file.Checks {
		r := row{Check: c.Name, Version: c.Version, Evaluator: c.Evaluator, Judge: c.Judge, Rate: c.Sample.Rate}
		switch {
		case c.Alert.Off:
			r.Alarm = "off"
		case c.Alert.Target == 0:
			r.Alarm = "off: no target"
		default:
			r.Target = &c.Alert.Target
			r.Alarm = "below " + percent(c.Alert.Target)
			if c.Alert.Tolerance != nil {
				r.Alarm += fmt.Sprintf(" less %.1f points", 100**c.Alert.Tolerance)
			}
		}
		rows = append(rows, r)
	}
	if a.json {
		suites := make(map[string][]string, len(file.Suites))
		for _, s := range file.Suites {
			suites[s.Name] = s.Evaluators
		}
		return a.printJSON(map[string]any{"path": file.Path, "hash": file.Hash, "checks": rows, "suites": suites, "notes": file.Notes()})
	}
	t := newTable(a.out, "check", "version", "evaluator", "judge", "rate", "alarm")
	for _, r := range rows {
		t.AppendRow([]any{r.Check, r.Version, r.Evaluator, cmp.Or(r.Judge, "-"), percent(r.Rate), r.Alarm})
	}
	t.Render()
	slices := []string{"all"}
	for _, s := range file.Slices {
		slices = append(slices, s.String())
	}
	for _, s := range file.Suites {
		if _, err := fmt.Fprintf(a.out, "suite %s: %s\n", s.Name, strings.Join(s.Evaluators, ", ")); err != nil {
			return err
		}
	}
	for _, n := range file.Notes() {
		if _, err := fmt.Fprintln(a.out, "note:", n); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.out, "%s is valid: %d checks, topics %s, exported slices %s, at most %g false alarms a year\n",
		file.Path, len(file.Checks), strings.Join(file.Topics(), ", "), strings.Join(slices, "; "), file.Alerts.MaxFalseAlarmsPerYear)
	return err
}
