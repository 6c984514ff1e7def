package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay/internal/checks"
)

// doctorWait bounds each look.
const doctorWait = 15 * time.Second

// A check shows so many series of each declared slice: eleven of each of five windows,
// and those of drift and calibration.
const (
	seriesPerSlice = 90
	manySeries     = 50_000 // what one target of a Prometheus should not exceed
)

// The states of a finding.
const (
	stateOK   = "ok"
	stateWarn = "warn"
	stateFail = "fail"
)

// finding is one line of the doctor's.
type finding struct {
	What  string `json:"what"`
	State string `json:"state"` // ok, warn, fail
	Says  string `json:"says"`
	Fix   string `json:"fix,omitempty"`
}

// A doctor looks at one thing after the other; what depends on a failed look is left out.
type doctor struct {
	app  *app
	env  environment
	file *checks.File // nil when it cannot be used

	found  []finding
	loads  []topicLoad
	probed map[string]time.Duration // how long judges took to answer the doctor
	stored map[string]time.Duration // and 99 of 100 of yesterday's judgements
}

func (d *doctor) ok(what, says string) { d.found = append(d.found, finding{what, stateOK, says, ""}) }

func (d *doctor) warn(what, says, fix string) {
	d.found = append(d.found, finding{what, stateWarn, says, fix})
}

func (d *doctor) fail(what string, err error, fix string) {
	d.found = append(d.found, finding{what, stateFail, err.Error(), fix})
}

// sections are what may be looked at by itself.
func sections() []string { return []string{"kafka", "clickhouse", "judges"} }

func (a *app) doctorCommand() *cobra.Command {
	var (
		records int
		topic   string
	)
	cmd := &cobra.Command{
		Use:   "doctor [SECTION...]",
		Short: "Check the environment, Kafka, ClickHouse and the judges; each failure with its fix",
		Long: `Look at everything that assay run needs, one line each: ok, warn or fail, and every
failure with its fix. Nothing is written, joined or committed; a judge is asked one
question. SECTION is ` + strings.Join(sections(), ", ") + `; all of them when none is named.

With --sample it looks at the records instead: the newest ones of each source's topic,
what formats they are, how many carry text, what each check could do with them, which
paths of fields: found nothing, and three of them as they are read. Texts are cut and
redacted as the checks file's privacy says.
Exit 1 when a look failed.`,
		Example: `  assay doctor
  assay doctor kafka
  assay doctor --sample 200 --topic llm.interactions
  assay doctor --json | jq '.[] | select(.state == "fail")'`,
		ValidArgs: sections(),
		Args: func(_ *cobra.Command, args []string) error {
			for _, section := range args {
				if !slices.Contains(sections(), section) {
					return fmt.Errorf("no section %q; want %s", section, strings.Join(sections(), ", "))
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("sample") {
				return a.doctorSample(cmd.Context(), records, topic, args)
			}
			if topic != "" {
				return errUsage{errors.New("--topic goes with --sample N")}
			}
			d := a.newDoctor(cmd.Context())
			d.examine(cmd.Context(), args)
			return d.report()
		},
	}
	cmd.Flags().IntVar(&records, "sample", 0, "look at so many of the newest records of each source's topic, 1 to 100000")
	cmd.Flags().StringVar(&topic, "topic", "", "with --sample: of this topic only")
	return cmd
}

func (a *app) doctorSample(ctx context.Context, records int, topic string, sections []string) error {
	if records < 1 || records > 100_000 {
		return errUsage{fmt.Errorf("--sample %d: want 1 to 100000", records)}
	}
	if len(sections) > 0 {
		return errUsage{errors.New("--sample looks at records: want no section beside it")}
	}
	d := a.newDoctor(ctx)
	if d.file == nil {
		return d.report()
	}
	samples, err := d.sample(ctx, records, topic)
	if len(samples) > 0 {
		err = errors.Join(a.printSamples(samples), err)
	}
	return err
}

// newDoctor reads the environment and the checks file, which everything else needs.
func (a *app) newDoctor(ctx context.Context) *doctor {
	d := &doctor{app: a, probed: make(map[string]time.Duration)}
	env, err := readEnvironment(ctx, a.environ)
	if err != nil {
		d.fail("environment", err, "correct the variable; assay config lists all of them")
		return d
	}
	d.env = env
	d.ok("environment", "every ASSAY_ variable is known and valid")
	file, err := loadChecks(env.Checks)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s is not there", env.Checks)
	}
	if err != nil {
		d.fail("checks file", err, "set ASSAY_CHECKS to your checks file; the README has a first one")
		return d
	}
	d.file = file
	series := int64(len(file.Checks) * (1 + len(file.Slices)) * seriesPerSlice)
	says := fmt.Sprintf("%s: %d checks on %s, %d exported slices: up to %s series on /metrics", file.Path, len(file.Checks), strings.Join(file.Topics(), ", "), 1+len(file.Slices), grouped(series))
	if series > manySeries {
		d.warn("checks file", says, "declare fewer slices: each check shows every one of them, and older versions of it for a while")
	} else {
		d.ok("checks file", says)
	}
	for _, n := range file.Notes() {
		d.warn("checks file", n, "")
	}
	return d
}

// examine looks at the sections; none named are all.
func (d *doctor) examine(ctx context.Context, named []string) {
	if d.found[0].State == stateFail {
		return // nothing is known of where to look
	}
	for _, s := range []struct {
		name string
		look func(context.Context)
	}{{"kafka", d.kafka}, {"clickhouse", d.clickhouse}, {"judges", d.judges}} {
		if len(named) == 0 || slices.Contains(named, s.name) {
			s.look(ctx)
		}
	}
	d.load()
}

// report prints what was found; the error counts the failures.
func (d *doctor) report() error {
	if d.app.json {
		if err := d.app.printJSON(d.found); err != nil {
			return err
		}
		return d.verdict()
	}
	if err := d.print(); err != nil {
		return err
	}
	return d.verdict()
}

func (d *doctor) print() error {
	width := 0
	for _, f := range d.found {
		width = max(width, len(f.What))
	}
	for _, f := range d.found {
		// an error of several lines stays in its column
		says := strings.ReplaceAll(f.Says, "\n", "\n"+strings.Repeat(" ", width+7))
		line := fmt.Sprintf("%-5s %-*s %s", f.State, width, f.What, says)
		if f.Fix != "" {
			line += "\n" + strings.Repeat(" ", width+7) + "fix: " + f.Fix
		}
		if _, err := fmt.Fprintln(d.app.out, line); err != nil {
			return err
		}
	}
	return nil
}

func (d *doctor) verdict() error {
	failed := 0
	for _, f := range d.found {
		if f.State == stateFail {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d looks failed", failed, len(d.found))
	}
	return nil
}
