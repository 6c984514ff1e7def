package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// app is what every command gets: the raw environment and where to write.
type app struct {
	environ []string
	args    []string // as the command was called, to tell how to go on
	out     io.Writer
	err     io.Writer
	json    bool
}

// newRoot builds the command tree.
func newRoot(environ []string) *cobra.Command {
	a := &app{environ: environ, args: os.Args[1:], out: os.Stdout, err: os.Stderr}
	root := &cobra.Command{
		Use:   "assay",
		Short: "Watch deployed AI assistants: judge a sample, keep honest pass rates, alarm on drift",
		Long: `Assay reads logged interactions from Kafka, judges a statistical sample of them,
keeps every judgement as a probability distribution in ClickHouse, and turns them into
rolling pass rates with honest intervals and drift alarms.

Start with:   assay demo            everything embedded, nothing to set up
Then:         assay validate        check your assay.yaml
              assay doctor          check Kafka, ClickHouse and the judges
              assay run             do the work

Settings come from the environment (assay config lists them), what to judge from the
checks file (ASSAY_CHECKS, default assay.yaml).

Exit: 0 done, 1 failed, 2 wrong usage or configuration, 3 a stated gate was not met,
4 too little data to say.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			err := fmt.Errorf("no command %q (see assay --help)", args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				err = fmt.Errorf("no command %q; did you mean %s?", args[0], near[0])
			}
			return errUsage{err}
		},
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON for programs instead of a table for people")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return errUsage{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.AddCommand(
		a.demoCommand(), a.runCommand(), a.evaluateCommand(), a.aggregateCommand(), a.decodeCommand(), a.whyCommand(),
		a.planCommand(), a.validateCommand(), a.migrateCommand(), a.doctorCommand(), a.configCommand(), a.versionCommand(),
		a.alertsCommand(), a.dashboardsCommand(), a.labelsCommand(),
	)
	root.SuggestionsMinimumDistance = 2
	for _, c := range root.Commands() {
		if c.Args != nil {
			args := c.Args
			c.Args = func(cmd *cobra.Command, given []string) error {
				if err := args(cmd, given); err != nil {
					return errUsage{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
				}
				return nil
			}
		}
	}
	return root
}

// begin reads the environment and makes the logger: how every command starts that
// works with servers.
func (a *app) begin(ctx context.Context) (environment, *slog.Logger, error) {
	env, err := readEnvironment(ctx, a.environ)
	if err != nil {
		return env, nil, err
	}
	log, err := a.logger(env)
	return env, log, err
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (a *app) logger(env environment) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(env.LogLevel)); err != nil {
		return nil, errUsage{fmt.Errorf("ASSAY_LOG_LEVEL=%s: want debug, info, warn or error", env.LogLevel)}
	}
	opts := &slog.HandlerOptions{Level: level}
	if env.LogJSON {
		return slog.New(slog.NewJSONHandler(a.err, opts)), nil
	}
	return slog.New(slog.NewTextHandler(a.err, opts)), nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  assay version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version, "revision": revision(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			if a.json {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "assay %s (%s, %s, %s)\n", v["version"], v["revision"], v["go"], v["platform"])
			return err
		},
	}
}

// revision is the commit that the binary was built from, when the build knew it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "unknown"
}
