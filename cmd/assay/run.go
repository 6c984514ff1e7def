package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay/consumer"
	"assay/evaluators"
	"assay/internal/checks"
	"assay/internal/interaction/decode"
	"assay/sink"
)

func (a *app) runCommand() *cobra.Command {
	var roles, poison []string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Read, judge, store, monitor and serve",
		Long: `Run the roles of this process until it is told to stop. SIGTERM or Ctrl-C drains: running
judgements get ASSAY_CONSUMER_DRAIN_JUDGE, rows are stored, offsets committed. A second
signal ends at once; nothing is lost, some work is done again.

Workers scale by adding processes, up to the topics' partitions. One monitor is enough.`,
		Example: `  ASSAY_KAFKA_BROKERS=kafka:9092 ASSAY_CLICKHOUSE_ADDR=clickhouse:9000 assay run
  assay run --roles worker
  ASSAY_EMBEDDED=true ASSAY_KAFKA_BROKERS=kafka:9092 assay run    # no ClickHouse server yet`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, r := range roles {
				if !slices.Contains([]string{roleWorker, roleMonitor, roleServer}, r) {
					return errUsage{fmt.Errorf("--roles %s: want worker, monitor or server, separated by commas", r)}
				}
			}
			return a.run(cmd.Context(), roles, poison)
		},
	}
	cmd.Flags().StringSliceVar(&roles, "roles", []string{roleWorker, roleMonitor, roleServer}, "what this process does")
	cmd.Flags().StringSliceVar(&poison, "accept-poison", nil, "topics whose partitions go on however many records are bad")
	return cmd
}

func (a *app) run(ctx context.Context, roles, poison []string) error {
	env, log, err := a.begin(ctx)
	if err != nil {
		return err
	}
	file, err := loadChecks(env.Checks)
	if err != nil {
		return err
	}
	if slices.Contains(roles, roleWorker) {
		if err := env.Kafka.Validate(); err != nil {
			return errUsage{err}
		}
		if err := env.Consumer.FitsIn(env.Kafka); err != nil {
			return errUsage{err}
		}
	}
	return withStore(ctx, &env, log, env.Embedded, func(ctx context.Context, store store) error {
		db := store.db
		if env.ClickHouse.Migrate || store.embedded {
			if _, err := sink.Migrate(ctx, db, log); err != nil {
				return err
			}
		} else if err := sink.Verify(ctx, db); err != nil {
			return errUsage{err}
		}
		sys, err := newSystem(ctx, wiring{
			env: env, environ: a.environ, file: file, db: db, roles: roles, log: log, poison: poison,
			mode: fmt.Sprintf("Kafka %s, ClickHouse %s", strings.Join(env.Kafka.Brokers, ","), store.chosen),
		})
		if err != nil {
			return err
		}
		log.Info("started", "version", version, "roles", strings.Join(roles, ","), "checks", file.Path,
			"topics", strings.Join(file.Topics(), ","), "clickhouse", store.chosen, "monitor_clock", env.Monitor.Clock)
		err = sys.run(ctx)
		log.Info("stopped")
		if errors.Is(err, consumer.ErrRefused) {
			return errUsage{err} // a name, password or certificate is wrong
		}
		return err
	})
}

// decodeSources are the checks file's sources as the decoder takes them.
func decodeSources(file *checks.File, environ []string) ([]decode.Source, error) {
	out := make([]decode.Source, 0, len(file.Sources))
	var errs []error
	for _, s := range file.Sources {
		registry := decode.SchemaRegistry{Address: s.SchemaRegistry.Address, Files: s.SchemaRegistry.Files}
		for _, v := range []struct {
			key, name string
			into      *string
		}{
			{"user_env", s.SchemaRegistry.UserEnv, &registry.User},
			{"password_env", s.SchemaRegistry.PasswordEnv, &registry.Password},
			{"token_env", s.SchemaRegistry.TokenEnv, &registry.Token},
		} {
			if v.name == "" {
				continue
			}
			secret, ok := lookup(environ)(v.name)
			if !ok || secret == "" {
				errs = append(errs, fmt.Errorf("source %s: schema_registry: %s names %s, which is not set", s.Topic, v.key, v.name))
			}
			*v.into = secret
		}
		out = append(out, decode.Source{Topic: s.Topic, Format: s.Format, Fields: s.Fields,
			Unit: s.Unit, ToolResults: s.ToolResults, Turn: s.Turn, Snapshots: s.Snapshots, Rejudge: s.Rejudge, JoinWait: s.JoinWait, SchemaRegistry: registry})
	}
	return out, errors.Join(errs...)
}

// processID begins the insert tokens of one life of a process.
func processID(worker string) string {
	return fmt.Sprintf("%s:%d:%d", worker, os.Getpid(), time.Now().UnixNano())
}

// recordVersions writes what every check's version means; the first time a version was
// seen stays.
func recordVersions(ctx context.Context, db *sink.DB, file *checks.File, stacks map[string]stack, now time.Time) error {
	known, err := db.CheckVersions(ctx)
	if err != nil {
		return err
	}
	var rows []sink.CheckVersion
	for _, c := range file.Checks {
		ev, err := evaluators.New(c.Evaluator, c.Settings())
		if err != nil {
			return fmt.Errorf("check %s: %w", c.Name, err)
		}
		def := ev.Definition()
		text, err := json.Marshal(def)
		if err != nil {
			return fmt.Errorf("check %s: its definition: %w", c.Name, err)
		}
		row := sink.CheckVersion{
			Check: c.Name, Version: c.Version, Evaluator: c.Evaluator, QuestionKind: cmp.Or(string(def.Kind), "none"),
			PassLine: def.PassLine, PassOptions: def.Pass, Judge: c.Judge, JudgeFingerprint: stacks[c.Judge].fingerprint,
			Definition: string(text), FirstSeen: now.UTC(),
		}
		for _, o := range def.Options {
			row.OptionNames = append(row.OptionNames, o.Key)
			row.OptionScores = append(row.OptionScores, new(float32(o.Score)))
		}
		if slices.ContainsFunc(known, func(k sink.CheckVersion) bool { return k.Check == row.Check && k.Version == row.Version }) {
			continue
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil
	}
	return db.PutCheckVersions(ctx, rows)
}

// store is the ClickHouse that was chosen.
type store struct {
	db       *sink.DB
	chosen   string // for people: what, and why
	embedded bool
}

// withStore opens the ClickHouse that the environment names, or the embedded one when
// that is allowed and no address is set, and closes it after use. An address that is set
// is never replaced by anything else.
func withStore(ctx context.Context, env *environment, log *slog.Logger, embedded bool, use func(context.Context, store) error) error {
	if env.ClickHouse.Addr == "" && embedded {
		return withEmbedded(ctx, env, log, use)
	}
	if env.ClickHouse.Addr == "" {
		return errUsage{fmt.Errorf("ASSAY_CLICKHOUSE_ADDR is not set: want host:port of a ClickHouse server, or ASSAY_EMBEDDED=true for the embedded engine")}
	}
	if err := env.ClickHouse.Validate(); err != nil {
		return errUsage{err}
	}
	db, err := sink.Open(ctx, env.ClickHouse, log)
	if refused, ok := errors.AsType[*sink.OpenError](err); ok && refused.Class == sink.Fatal {
		return errUsage{err} // a name, password, certificate, port or version is wrong
	}
	if err != nil {
		return err
	}
	defer db.Close()
	return use(ctx, store{db: db, chosen: fmt.Sprintf("%s (%s, ASSAY_CLICKHOUSE_ADDR)", env.ClickHouse.Addr, env.ClickHouse.Protocol)})
}
