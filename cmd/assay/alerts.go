package main

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"assay/internal/monitor"
)

func (a *app) alertsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "Prometheus's alerts on quality, from the checks file",
		Long: `Assay's alarms become alerts through Prometheus. The alerts on Assay itself are a file of
its own, deploy/prometheus/assay.rules.yml; docs/alerts.md says what each alert means.`,
		Example: "  assay alerts export > assay-quality.rules.yml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.alertsExportCommand())
	return cmd
}

func (a *app) alertsExportCommand() *cobra.Command {
	var o monitor.RuleOptions
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Print the Prometheus rules for the checks of a checks file",
		Long: `Print the alerts on quality of every check with an alert, for each declared slice, with the
check's severity and labels. FILE is ASSAY_CHECKS, or assay.yaml, when not given. Export
again when the checks file changes; Prometheus reads rules on SIGHUP.`,
		Example: `  assay alerts export > /etc/prometheus/assay-quality.rules.yml
  assay alerts export staging.yaml --runbooks https://wiki.example/assay-alerts --json
  assay alerts export --grafana-url https://grafana.example > assay-quality.rules.yml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(cmd, args); err != nil {
				return errUsage{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if u, err := url.Parse(o.Grafana); err != nil || o.Grafana != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
				return errUsage{fmt.Errorf("--grafana-url %q: want where Grafana is, such as https://grafana.example", o.Grafana)}
			}
			env, err := readEnvironment(cmd.Context(), a.environ)
			if err != nil {
				return err
			}
			path := env.Checks
			if len(args) == 1 {
				path = args[0]
			}
			return a.exportAlerts(path, o)
		},
	}
	cmd.Flags().StringVar(&o.Runbooks, "runbooks", "docs/alerts.md", "page that runbook_url leads to, with an anchor for each alert")
	cmd.Flags().StringVar(&o.Grafana, "grafana-url", "", "where Grafana is, for the annotation dashboard; without it that is a path, /d/assay-overview?...")
	return cmd
}

func (a *app) exportAlerts(path string, o monitor.RuleOptions) error {
	file, err := loadChecks(path)
	if err != nil {
		return err
	}
	rules, err := monitor.Rules(file, o)
	if err != nil {
		return errUsage{fmt.Errorf("%s: %w", path, err)}
	}
	if len(rules.Groups) == 0 {
		fmt.Fprintf(a.err, "assay: no check of %s has an alert with a target, so there is nothing to export\n", path)
	}
	if a.json {
		return a.printJSON(rules)
	}
	text, err := rules.YAML()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "# Alerts on quality for %s. Made by assay alerts export; docs/alerts.md explains each.\n%s", path, text)
	return err
}
