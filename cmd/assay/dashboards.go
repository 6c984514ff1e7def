package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"assay/dashboards"
)

func (a *app) dashboardsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dashboards",
		Short: "Grafana's dashboards, and the files that provision them",
		Long: `Assay brings dashboards for Grafana, over Prometheus and ClickHouse. The built-in page
needs none of this. docs/dashboards.md says what each panel shows.`,
		Example: "  assay dashboards export --dir grafana",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.dashboardsExportCommand())
	return cmd
}

func (a *app) dashboardsExportCommand() *cobra.Command {
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the dashboards and their provisioning files to a folder",
		Long: `Write the dashboards (JSON, ready for Grafana's import page) and below provisioning the
files that make Grafana load them by itself with their data sources. Where a file is there
already and differs, nothing is written and it is named, unless --force is given.`,
		Example: `  assay dashboards export --dir grafana
  assay dashboards export --dir /var/lib/grafana/dashboards/assay --force`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return errUsage{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			written, err := exportDashboards(dir, force)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(map[string]any{"dir": dir, "files": written})
			}
			for _, name := range written {
				fmt.Fprintln(a.out, filepath.Join(dir, filepath.FromSlash(name)))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "grafana", "folder to write to; it is made when it is missing")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that are there and differ")
	return cmd
}

// exportDashboards writes Grafana's files below dir and returns their names there. It
// writes nothing when a file would be replaced that somebody may have changed.
func exportDashboards(dir string, force bool) ([]string, error) {
	files := dashboards.Grafana()
	var names, differ []string
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		names = append(names, name)
		ours, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		theirs, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil && !bytes.Equal(ours, theirs) {
			differ = append(differ, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dashboards in %s: %w", dir, err)
	}
	if len(differ) > 0 && !force {
		return nil, fmt.Errorf("%s has other versions of %s: nothing was written; --force replaces them, --dir names another folder", dir, strings.Join(differ, ", "))
	}
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("folder for %s: %w", name, err)
		}
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			return nil, fmt.Errorf("dashboard file: %w", err)
		}
	}
	return names, nil
}
