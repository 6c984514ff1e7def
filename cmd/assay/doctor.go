package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"assay/consumer"
	"assay/internal/checks"
	"assay/sink"
	"assay/sink/chdb"
)

// doctorWait bounds each look.
const doctorWait = 15 * time.Second

// finding is one line of the doctor's.
type finding struct {
	What  string `json:"what"`
	State string `json:"state"` // ok, warn, fail
	Says  string `json:"says"`
	Fix   string `json:"fix,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the environment, Kafka, ClickHouse and the judges; each failure with its fix",
		Example: `  assay doctor
  assay doctor --json | jq '.[] | select(.state == "fail")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := a.examine(cmd.Context())
			if a.json {
				if err := a.printJSON(found); err != nil {
					return err
				}
			} else {
				for _, f := range found {
					line := fmt.Sprintf("%-5s %-22s %s", f.State, f.What, f.Says)
					if f.Fix != "" {
						line += "\n      " + strings.Repeat(" ", 23) + "fix: " + f.Fix
					}
					if _, err := fmt.Fprintln(a.out, line); err != nil {
						return err
					}
				}
			}
			failed := 0
			for _, f := range found {
				if f.State == "fail" {
					failed++
				}
			}
			if failed > 0 {
				return fmt.Errorf("%d of %d looks failed", failed, len(found))
			}
			return nil
		},
	}
}

// examine looks at one thing after the other; what depends on a failed look is left out.
func (a *app) examine(ctx context.Context) []finding {
	var out []finding
	add := func(what string, err error, says, fix string) bool {
		if err != nil {
			out = append(out, finding{what, "fail", err.Error(), fix})
			return false
		}
		out = append(out, finding{what, "ok", says, ""})
		return true
	}
	env, err := readEnvironment(ctx, a.environ)
	if !add("environment", err, "every ASSAY_ variable is known and valid", "correct the variable; assay config lists all of them") {
		return out
	}
	file, err := loadChecks(env.Checks)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s is not there", env.Checks)
	}
	if add("checks file", err, describeChecks(file), "set ASSAY_CHECKS to your checks file; the README has a first one") {
		for _, n := range file.Notes() {
			out = append(out, finding{"checks file", "warn", n, ""})
		}
	}
	out = append(out, a.examineKafka(ctx, env, file)...)
	out = append(out, a.examineClickHouse(ctx, env)...)
	if file != nil {
		out = append(out, a.examineJudges(ctx, env, file)...)
	}
	return out
}

func describeChecks(file *checks.File) string {
	if file == nil {
		return ""
	}
	return fmt.Sprintf("%s: %d checks on %s", file.Path, len(file.Checks), strings.Join(file.Topics(), ", "))
}

func (a *app) examineKafka(ctx context.Context, env environment, file *checks.File) []finding {
	if err := errors.Join(env.Kafka.Validate(), env.Consumer.FitsIn(env.Kafka)); err != nil {
		return []finding{{"kafka", "fail", err.Error(), "set ASSAY_KAFKA_BROKERS and correct what is named"}}
	}
	var topics []string
	if file != nil {
		topics = file.Topics()
	}
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	partitions, err := consumer.Inspect(ctx, env.Kafka, topics)
	if err != nil {
		return []finding{{"kafka", "fail", err.Error(), "check address, listener, TLS and SASL settings (ASSAY_KAFKA_…)"}}
	}
	out := []finding{{"kafka", "ok", strings.Join(env.Kafka.Brokers, ",") + " answers, group " + env.Kafka.Group, ""}}
	for _, t := range topics {
		if partitions[t] == 0 {
			out = append(out, finding{"topic " + t, "fail", "does not exist, or this client may not see it",
				"create it, or grant READ and DESCRIBE; assay run waits for it"})
			continue
		}
		out = append(out, finding{"topic " + t, "ok", fmt.Sprintf("%d partitions, so at most that many workers", partitions[t]), ""})
	}
	return out
}

func (a *app) examineClickHouse(ctx context.Context, env environment) []finding {
	if env.ClickHouse.Addr == "" {
		library, err := chdb.FindLibrary(env.Chdb.Library, env.DataDir)
		switch {
		case !env.Embedded:
			return []finding{{"clickhouse", "fail", "ASSAY_CLICKHOUSE_ADDR is not set",
				"set it to host:port, or ASSAY_EMBEDDED=true for the embedded engine"}}
		case err != nil:
			return []finding{{"clickhouse", "fail", err.Error(), "assay demo --install-engine"}}
		}
		return []finding{{"clickhouse", "ok", "embedded engine " + chdb.LibraryVersion + " at " + library, ""}}
	}
	if err := env.ClickHouse.Validate(); err != nil {
		return []finding{{"clickhouse", "fail", err.Error(), "correct the variable"}}
	}
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	db, err := sink.Open(ctx, env.ClickHouse, slog.New(slog.DiscardHandler))
	if err != nil {
		return []finding{{"clickhouse", "fail", err.Error(), "check address, protocol (native 9000, http 8123), TLS, user and password"}}
	}
	defer db.Close()
	out := []finding{{"clickhouse", "ok", env.ClickHouse.Addr + " answers over " + env.ClickHouse.Protocol, ""}}
	if err := sink.Verify(ctx, db); err != nil {
		return append(out, finding{"tables", "fail", err.Error(), "assay migrate"})
	}
	return append(out, finding{"tables", "ok", "all migrations are applied", ""})
}

func (a *app) examineJudges(ctx context.Context, env environment, file *checks.File) []finding {
	var out []finding
	maker := newStacker(env, a.environ, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	for _, c := range file.Judges {
		what := "judge " + c.Name
		st, err := maker.stack(c)
		if err != nil {
			out = append(out, finding{what, "fail", err.Error(), "correct the judge in " + file.Path})
			continue
		}
		if st.probe == nil {
			out = append(out, finding{what, "ok", c.Kind + ": nothing to ask", ""})
			continue
		}
		probing, cancel := context.WithTimeout(ctx, doctorWait)
		err = st.probe(probing)
		cancel()
		if err != nil {
			out = append(out, finding{what, "fail", err.Error(),
				fmt.Sprintf("check base_url, model, key and that the server can do method: %s", c.Method)})
			continue
		}
		out = append(out, finding{what, "ok", fmt.Sprintf("%s at %s answers a question of known answer by %s", c.Model, c.BaseURL, c.Method), ""})
	}
	return slices.Clip(out)
}
