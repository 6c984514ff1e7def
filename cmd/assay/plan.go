package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"assay/internal/checks"
)

// planOptions are the flags of `assay plan`.
type planOptions struct {
	rate   string
	shares map[string]string
	sample string
	topic  string
	since  time.Duration
}

func (a *app) planCommand() *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan [FILE]",
		Short: "What the checks will cost, and how exact they will be",
		Long: `Say for each check of a checks file how many interactions a day it will judge, what that
costs in calls, tokens and USD, and how wide the 95% interval of a day's pass rate will be; and
for each judge what uses up its budget first. FILE is ASSAY_CHECKS, or assay.yaml.

Traffic is stated (--rate) or measured: without --rate the ledger of the last --since is read,
with what filters let through and what judgements used. --sample FILE (raw messages as on the
topic, one a line) measures filters, fields and text sizes from a file. What is neither measured
nor stated is assumed, and said to be.`,
		Example: `  assay plan --rate 50/s
  assay plan staging.yaml --rate 2000000/day --share refund_policy=0.15 --json
  assay plan --rate 50/s --sample messages.jsonl
  assay plan --since 168h`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.plan(cmd.Context(), args, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.rate, "rate", "", "interactions of all topics together, as in 50/s, 3000/min, 100000/h or 2000000/day; default: as the ledger counted them")
	f.StringToStringVar(&o.shares, "share", nil, "CHECK=SHARE: the share of interactions that the check's filter and fields let through, 0 to 1")
	f.StringVar(&o.sample, "sample", "", "raw messages, one a line: shares and sizes of texts are measured from them")
	f.StringVar(&o.topic, "topic", "", "with --sample: read them as messages of this topic; default: the file's first source")
	f.DurationVar(&o.since, "since", 24*time.Hour, "without --rate: the span of the ledger to go by, in which Assay ran throughout")
	return cmd
}

func (a *app) plan(ctx context.Context, args []string, o planOptions) error {
	env, log, err := a.begin(ctx)
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
	shares, err := o.statedShares(file)
	if err != nil {
		return errUsage{err}
	}
	traffic := assumedTraffic(file)
	if o.sample != "" {
		if err := sampledTraffic(env, file, o, traffic); err != nil {
			return err
		}
	}
	if o.rate != "" {
		perDay, err := parseRate(o.rate)
		if err != nil {
			return errUsage{err}
		}
		for i := range traffic {
			traffic[i].perDay = perDay
		}
	} else if env.ClickHouse.Addr == "" && !env.Embedded {
		return errUsage{errors.New("--rate is missing, as in --rate 50/s; without it the ledger is read, and ASSAY_CLICKHOUSE_ADDR is not set")}
	} else if err := withStore(ctx, &env, log, env.Embedded, func(ctx context.Context, s store) error {
		return measuredTraffic(ctx, s.db, file, time.Now().UTC(), o, traffic)
	}); err != nil {
		return err
	}
	for i, c := range file.Checks {
		if share, ok := shares[c.Name]; ok {
			traffic[i].share, traffic[i].shareFrom = share, "stated"
		}
	}
	p, err := makePlan(file, traffic)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(p)
	}
	return a.printPlan(p)
}

// parseRate reads a number per unit of time as one per day.
func parseRate(s string) (perDay float64, err error) {
	number, unit, ok := strings.Cut(s, "/")
	v, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	perUnit := map[string]float64{"s": 86400, "sec": 86400, "min": 1440, "m": 1440, "h": 24, "hour": 24, "d": 1, "day": 1}[unit]
	if !ok || err != nil || perUnit == 0 || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("--rate %s: want a number per unit of time, as in 50/s, 3000/min, 100000/h or 2000000/day", s)
	}
	return v * perUnit, nil
}

func (o planOptions) statedShares(file *checks.File) (map[string]float64, error) {
	var names []string
	for _, c := range file.Checks {
		names = append(names, c.Name)
	}
	shares := make(map[string]float64, len(o.shares))
	var errs []error
	for name, text := range o.shares {
		v, err := strconv.ParseFloat(text, 64)
		switch {
		case !slices.Contains(names, name):
			errs = append(errs, fmt.Errorf("--share %s: no such check; the nearest is %s", name, nearest(name, names)))
		case err != nil || !(v >= 0 && v <= 1):
			errs = append(errs, fmt.Errorf("--share %s=%s: want a share from 0 to 1", name, text))
		default:
			shares[name] = v
		}
	}
	if o.since < time.Minute {
		errs = append(errs, fmt.Errorf("--since %v: want at least 1m", o.since))
	}
	return shares, errors.Join(errs...)
}

func (a *app) printPlan(p planned) error {
	t := newTable(a.out, "check", "judge", "interactions/day", "let through", "rate", "judged/day", "calls each", "calls/day", "tokens/day", "USD/day", "24h interval")
	for _, c := range p.Checks {
		width := "-"
		if c.HalfWidth != nil {
			width = fmt.Sprintf("±%.2g points at %s", 100**c.HalfWidth, percent(c.AtPassRate))
		}
		t.AppendRow([]any{
			c.Check, cmp.Or(c.Judge, "-"), count(c.Interactions), percent(c.Share), percent(c.Rate), count(c.Judged), c.callsEach(),
			count(c.CallsPerDay), count(c.TokensPerDay), fmt.Sprintf("%.2f", c.USDPerDay), width,
		})
	}
	t.Render()
	var b strings.Builder
	for _, j := range p.Judges {
		fmt.Fprintf(&b, "\n%s: %s calls, %s tokens, $%.2f a day\n", j.Judge, count(j.CallsPerDay), count(j.TokensPerDay), j.USDPerDay)
		for _, l := range j.Limits {
			fmt.Fprintf(&b, "  %s %s: %s used%s\n", l.Limit, count(l.Allowed), percent(l.Used), l.when())
		}
		switch {
		case j.First != "" && j.Fits < 1:
			fmt.Fprintf(&b, "  %s is reached first: what comes after is shed until midnight UTC. Rates times %s would fit\n", j.First, factor(j.Fits))
		case j.First != "":
			fmt.Fprintf(&b, "  nearest to its end: %s\n", j.First)
		}
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "\nnote: %s", n)
	}
	if len(p.Notes) > 0 {
		b.WriteString("\n")
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

// factor writes a factor with two digits that say something, never above itself: what is
// multiplied by it has to fit.
func factor(v float64) string {
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return strconv.FormatFloat(math.Floor(v/unit)*unit, 'g', 2, 64)
}

// count writes a number of things for people: 3, 12,300, 4.5 million.
func count(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', 1, 64) + " million"
	case v >= 10_000:
		s := strconv.Itoa(int(math.Round(v)))
		return s[:len(s)-3] + "," + s[len(s)-3:]
	case v == math.Trunc(v) || v >= 100:
		return strconv.Itoa(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
