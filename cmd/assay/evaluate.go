package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"assay/evaluators"
	"assay/evaluators/aggregate"
	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
)

// evaluateOptions are the flags of `assay evaluate`.
type evaluateOptions struct {
	evaluators  []string
	suite       string
	judge       string
	url, model  string
	method      string
	keyEnv      string
	criteria    string
	coarse      bool
	sets        []string
	fields      map[string]string
	out         string
	failUnder   string
	concurrency int
}

func (a *app) evaluateCommand() *cobra.Command {
	var o evaluateOptions
	cmd := &cobra.Command{
		Use:   "evaluate FILE",
		Short: "Judge a JSONL file: a table of results, and JSONL out",
		Long: `Judge every line of a JSONL file (- is standard input) with the evaluators that the stream
uses. A line is an object with input, output, expected, criteria, context, or an OpenAI chat
log; --map reads other names. Lines that cannot be read are reported and counted, never
scored. Failures stand beside the rates, never inside.`,
		Example: `  assay evaluate answers.jsonl --evaluator factuality --coarse
  assay evaluate answers.jsonl --evaluator closed_qa --criteria "Names the day of delivery." \
      --judge-url http://127.0.0.1:8000/v1 --judge-model llama-3 --method logprobs
  assay evaluate golden.jsonl --evaluator closed_qa,factuality --judge main --map expected=gold \
      --out results.jsonl --fail-under pass_rate=0.9
  assay evaluate answers.jsonl --evaluator exact_match,length --set length.max=500`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.evaluate(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.evaluators, "evaluator", nil, "evaluators to run: "+strings.Join(evaluatorNames(), ", "))
	f.StringVar(&o.suite, "suite", "", "in place of --evaluator: "+suiteList())
	f.StringVar(&o.judge, "judge", "embedded", "a judge of the checks file, or embedded; evaluators that compute ask none")
	f.StringVar(&o.url, "judge-url", "", "an OpenAI-compatible endpoint, in place of --judge")
	f.StringVar(&o.model, "judge-model", "", "the model at --judge-url")
	f.StringVar(&o.method, "method", "logprobs", "logprobs or structured, with --judge-url")
	f.StringVar(&o.keyEnv, "judge-key-env", "", "the variable that holds the key for --judge-url")
	f.StringVar(&o.criteria, "criteria", "", "criteria for every line, in place of the lines' own")
	f.BoolVar(&o.coarse, "coarse", false, "factuality as agree or disagree (all that the embedded judge can say)")
	f.StringArrayVar(&o.sets, "set", nil, "EVALUATOR.SETTING=VALUE, as in length.max=500 or regex.pattern=^OK; may be repeated")
	f.StringToStringVar(&o.fields, "map", nil, "field=path: where a field stands in a line, as in expected=metadata.gold")
	f.StringVar(&o.out, "out", "", "write one JSON result a line to this file")
	f.StringVar(&o.failUnder, "fail-under", "", "exit 3 when not met: pass_rate=0.9 or mean_score=0.8")
	f.IntVar(&o.concurrency, "concurrency", 16, "lines judged at the same time")
	return cmd
}

func evaluatorNames() []string {
	var names []string
	for _, s := range evaluators.Table() {
		names = append(names, s.Name)
	}
	return names
}

// lineResult is one line of the results file.
type lineResult struct {
	Line          int                `json:"line"`
	ID            string             `json:"id"`
	Evaluator     string             `json:"evaluator"`
	Version       string             `json:"version"`
	Status        evaluators.Status  `json:"status"`
	Score         *float64           `json:"score"`
	Option        string             `json:"option,omitempty"`
	Label         string             `json:"label,omitempty"`
	Confidence    *float64           `json:"confidence"`
	Passed        *bool              `json:"passed"`
	Probabilities map[string]float64 `json:"probabilities,omitempty"`
	Outside       float64            `json:"outside"`
	Method        judge.Method       `json:"method,omitempty"`
	Model         string             `json:"model,omitempty"`
	Reason        string             `json:"reason,omitempty"`
	Detail        map[string]any     `json:"detail,omitempty"`
}

func (a *app) evaluate(ctx context.Context, path string, o evaluateOptions) error {
	env, err := readEnvironment(ctx, a.environ)
	if err != nil {
		return err
	}
	gate, err := parseGate(o.failUnder)
	if err != nil {
		return errUsage{err}
	}
	if err := o.chosen(); err != nil {
		return errUsage{err}
	}
	if o.concurrency < 1 {
		return errUsage{fmt.Errorf("--concurrency %d: want at least 1", o.concurrency)}
	}
	evs, asking, err := o.make()
	if err != nil {
		return errUsage{err}
	}
	var j stack // nobody asks it where all evaluators compute
	if asking {
		if j, err = a.judgeFor(env, o); err != nil {
			return err
		}
	}
	items, bad, err := readItems(env, path, o)
	if err != nil {
		return err
	}
	for _, b := range bad {
		fmt.Fprintf(a.err, "%s:%d: %s: %s\n", path, b.Element+1, b.Reason, b.Error)
	}
	if len(items) == 0 {
		return errGate{fmt.Errorf("%s: no line could be read", path), exitTooFew}
	}
	results, err := a.judgeAll(ctx, env, j, evs, items, o.concurrency)
	if err != nil {
		return err
	}
	if o.out != "" {
		if err := writeResults(o.out, items, results); err != nil {
			return err
		}
	}
	return a.report(o, evs, results, len(bad), gate)
}

// judgeFor is the judge that the flags name.
func (a *app) judgeFor(env environment, o evaluateOptions) (stack, error) {
	log, err := a.logger(env)
	if err != nil {
		return stack{}, err
	}
	maker := newStacker(env, a.environ, prometheus.NewRegistry(), log)
	c := checks.Judge{Name: o.judge, Kind: "embedded"}
	switch {
	case o.url != "":
		if o.model == "" {
			return stack{}, errUsage{errors.New("--judge-url needs --judge-model")}
		}
		c = checks.Judge{
			Name: "judge-url", Kind: "openai", BaseURL: o.url, Model: o.model, Method: o.method,
			APIKeyEnv: o.keyEnv, MaxInFlight: o.concurrency,
		}
	case o.judge != "embedded":
		file, err := loadChecks(env.Checks)
		if err != nil {
			return stack{}, err
		}
		var ok bool
		if c, ok = file.Judge(o.judge); !ok {
			return stack{}, errUsage{fmt.Errorf("--judge %s: %s declares no such judge", o.judge, env.Checks)}
		}
	}
	st, err := maker.stack(c)
	if err != nil {
		return st, errUsage{fmt.Errorf("judge %s: %w", c.Name, err)}
	}
	return st, nil
}

// fileItem is a line that can be judged.
type fileItem struct {
	line int
	it   *interaction.Interaction
}

// readItems reads the file with the stream's decoder, so that a line means here what it
// means on a topic.
func readItems(env environment, path string, o evaluateOptions) (items []fileItem, bad []decode.Bad, err error) {
	in, err := openInput(path)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	const topic = "file"
	d, err := decode.New(env.Decode, []decode.Source{{Topic: topic, Format: "auto", Fields: o.fields}})
	if err != nil {
		return nil, nil, errUsage{fmt.Errorf("--map: %w", err)}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), int(env.Decode.MaxRecord))
	now := time.Now().UTC()
	n := 0
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if strings.TrimSpace(string(line)) == "" {
			continue
		}
		res := d.Decode(interaction.Record{Topic: topic, Offset: int64(n), Time: now, Value: append([]byte(nil), line...)})
		for i := range res.Interactions {
			it := &res.Interactions[i]
			if o.criteria != "" {
				it.Criteria = &o.criteria
			}
			items = append(items, fileItem{n, it})
		}
		for _, b := range res.Bad {
			bad = append(bad, decode.Bad{Element: n - 1, Reason: b.Reason, Error: b.Error})
		}
		for _, reason := range res.Skips {
			bad = append(bad, decode.Bad{Element: n - 1, Reason: reason, Error: "nothing to judge in this line"})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
	}
	return items, bad, nil
}

// judgeAll returns the results by item, then by evaluator.
func (a *app) judgeAll(ctx context.Context, env environment, j stack, evs []evaluators.Evaluator, items []fileItem, concurrency int) ([][]evaluators.Result, error) {
	bar := progressbar.NewOptions(len(items)*len(evs),
		progressbar.OptionSetWriter(a.err), progressbar.OptionSetVisibility(isTerminal(a.err)),
		progressbar.OptionSetDescription("judging"), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	defer bar.Close()
	results := make([][]evaluators.Result, len(items))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	for i, item := range items {
		results[i] = make([]evaluators.Result, len(evs))
		for e, ev := range evs {
			g.Go(func() error {
				defer bar.Add(1)
				ctx, cancel := context.WithTimeout(ctx, env.Judge.Deadline)
				defer cancel()
				res, err := ev.Evaluate(ctx, j, evaluators.ItemOf(item.it))
				if err != nil {
					return fmt.Errorf("line %d: %w", item.line, err)
				}
				results[i][e] = res
				return nil
			})
		}
	}
	return results, g.Wait()
}

func writeResults(path string, items []fileItem, results [][]evaluators.Result) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i, item := range items {
		for _, r := range results[i] {
			line := lineResult{
				Line: item.line, ID: item.it.ID, Evaluator: r.Evaluator, Version: r.Version, Status: r.Status,
				Score: r.Score, Option: r.Option, Label: r.Label, Confidence: r.Confidence, Passed: r.Passed,
				Outside: r.Outside, Method: r.Method, Model: r.Model, Reason: r.Reason, Detail: r.Detail,
			}
			if len(r.Probabilities) > 0 {
				line.Probabilities = make(map[string]float64, len(r.Probabilities))
				for k, name := range r.OptionNames {
					line.Probabilities[name] = r.Probabilities[k]
				}
			}
			if err := enc.Encode(line); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// gate is a --fail-under condition.
type gate struct {
	measure string
	least   float64
}

func parseGate(s string) (gate, error) {
	if s == "" {
		return gate{}, nil
	}
	measure, value, ok := strings.Cut(s, "=")
	least, err := strconv.ParseFloat(value, 64)
	if !ok || err != nil || least < 0 || least > 1 || (measure != "pass_rate" && measure != "mean_score") {
		return gate{}, fmt.Errorf("--fail-under %s: want pass_rate=P or mean_score=P with P from 0 to 1", s)
	}
	return gate{measure, least}, nil
}

// maxMissing is the share of failed judgements above which a gate says nothing: a judge
// that is down must not let a build pass on the few answers it gave.
const maxMissing = 0.2

// report prints the aggregates and holds them against the gate.
func (a *app) report(o evaluateOptions, evs []evaluators.Evaluator, results [][]evaluators.Result, bad int, g gate) error {
	sums := make([]aggregate.Summary, len(evs))
	for e := range evs {
		column := make([]evaluators.Result, len(results))
		for i := range results {
			column[i] = results[i][e]
		}
		var err error
		if sums[e], err = aggregate.Summarise(column, 0.95); err != nil {
			return err
		}
	}
	if a.json {
		if err := a.printJSON(map[string]any{"lines": len(results), "unreadable": bad, "evaluators": sums}); err != nil {
			return err
		}
	} else if err := a.printSummaries(evs, sums, len(results), bad, o.out); err != nil {
		return err
	}
	if g.measure == "" {
		return nil
	}
	for e, s := range sums {
		if s.PassRate == nil || s.MeanScore == nil {
			return errGate{fmt.Errorf("%s: no %s: nothing was judged", evs[e].Name(), g.measure), exitTooFew}
		}
		if s.Missing > maxMissing {
			return errGate{fmt.Errorf("%s: %s of the judgements are missing: too little to hold %s against", evs[e].Name(), percent(s.Missing), g.measure), exitTooFew}
		}
		value := s.PassRate.Value
		if g.measure == "mean_score" {
			value = *s.MeanScore
		}
		if value < g.least {
			return errGate{fmt.Errorf("%s: %s %.4f is under %.4f", evs[e].Name(), g.measure, value, g.least), exitGate}
		}
	}
	return nil
}

// printSummaries writes a block for each evaluator.
func (a *app) printSummaries(evs []evaluators.Evaluator, sums []aggregate.Summary, items, bad int, out string) error {
	t := newTable(a.out, "evaluator", "items", "judged", "pass rate (95%)", "mean score (95%)", "missing", "chosen", "cost")
	for e, s := range sums {
		pass, mean := "-", "-"
		if s.PassRate != nil {
			pass = rate(s.PassRate.Value, s.PassRate.Lower, s.PassRate.Upper)
		}
		if s.MeanScore != nil {
			mean = fmt.Sprintf("%.3f (%.3f to %.3f)", *s.MeanScore, s.MeanRate.Lower, s.MeanRate.Upper)
		}
		t.AppendRow([]any{evs[e].Name(), s.Items, s.Statuses[evaluators.OK], pass, mean, percent(s.Missing), countsOf(s.Options), fmt.Sprintf("$%.4f", s.Usage.USD)})
	}
	t.Render()
	for e, s := range sums {
		if len(s.Reasons) > 0 {
			fmt.Fprintf(a.out, "%s without an answer: %s\n", evs[e].Name(), countsOf(s.Reasons))
		}
	}
	if bad > 0 {
		fmt.Fprintf(a.out, "%d lines could not be read (named above), %d items could\n", bad, items)
	}
	if out != "" {
		fmt.Fprintf(a.out, "results: %s\n", out)
	}
	return nil
}

// countsOf writes counts in the order of their names: A 3, B 12.
func countsOf(counts map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
	}
	return strings.Join(parts, ", ")
}

func isTerminal(w io.Writer) bool { return terminalWidth(w) > 0 }

// terminalWidth is the columns of the terminal that w is, else 0.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
