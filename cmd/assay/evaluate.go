package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"assay/evaluators"
	"assay/internal/checks"
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
	fresh       bool
	against     string
	junit       string
	failUnder   []string
	failWorse   float64
	concurrency int
	dryRun      bool
}

func (a *app) evaluateCommand() *cobra.Command {
	var o evaluateOptions
	cmd := &cobra.Command{
		Use:   "evaluate FILE",
		Short: "Judge a JSONL file: a table of results, and JSONL out",
		Long: `Judge every line of a JSONL file (- is standard input) with the evaluators that the stream
uses. A line is an object with input, output, expected, criteria, context, or an OpenAI chat
log; --map reads other names. Lines that cannot be read are reported and counted, never
scored. Failures stand beside the rates, never inside.

With --out every judgement is kept as it is made. The same command after an interruption, or
after lines were added, asks only what is not there yet: an item that an evaluator of the same
version and the same judge have answered for is not asked again (what was shed or failed is).

--against holds the results against an earlier run's, item by item (by id), with a paired test.

Exit: 0 done, 1 failed or interrupted, 2 wrong usage, 3 a gate (--fail-under, --fail-worse) was
not met, 4 too little data to hold a gate against (more than 20% missing or unreadable).`,
		Example: `  assay evaluate answers.jsonl --evaluator factuality --coarse
  assay evaluate answers.jsonl --evaluator closed_qa --criteria "Names the day of delivery." \
      --judge-url http://127.0.0.1:8000/v1 --judge-model llama-3 --method logprobs
  assay evaluate golden.jsonl --suite correctness --judge main --map expected=gold \
      --out results.jsonl --fail-under pass_rate=0.9 --junit report.xml
  assay evaluate golden.jsonl --suite correctness --judge main --out new.jsonl \
      --against results.jsonl --fail-worse 0.05
  assay evaluate golden.jsonl --suite rag --judge main --dry-run
  assay evaluate answers.jsonl --evaluator exact_match,length --set length.max=500`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.evaluate(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.evaluators, "evaluator", nil, "evaluators to run: "+strings.Join(evaluatorNames(), ", "))
	f.StringVar(&o.suite, "suite", "", "in place of --evaluator: "+suiteList()+", or one of the checks file")
	f.StringVar(&o.judge, "judge", "embedded", "a judge of the checks file, or embedded; evaluators that compute ask none")
	f.StringVar(&o.url, "judge-url", "", "an OpenAI-compatible endpoint, in place of --judge")
	f.StringVar(&o.model, "judge-model", "", "the model at --judge-url")
	f.StringVar(&o.method, "method", "logprobs", "logprobs, structured or votes:N, with --judge-url")
	f.StringVar(&o.keyEnv, "judge-key-env", "", "the variable that holds the key for --judge-url")
	f.StringVar(&o.criteria, "criteria", "", "criteria for every line, in place of the lines' own")
	f.BoolVar(&o.coarse, "coarse", false, "factuality as agree or disagree (all that the embedded judge can say)")
	f.StringArrayVar(&o.sets, "set", nil, "EVALUATOR.SETTING=VALUE, as in length.max=500 or regex.pattern=^OK; may be repeated")
	f.StringToStringVar(&o.fields, "map", nil, "field=path: where a field stands in a line, as in expected=metadata.gold")
	f.StringVar(&o.out, "out", "", "keep one JSON result a line in this file, and go on from what it holds")
	f.BoolVar(&o.fresh, "fresh", false, "write --out anew and ask everything again")
	f.StringVar(&o.against, "against", "", "an earlier run's results: what changed, item by item")
	f.StringVar(&o.junit, "junit", "", "write a JUnit report for CI to this file")
	f.StringArrayVar(&o.failUnder, "fail-under", nil, "exit 3 when not met: pass_rate=0.9, mean_score=0.8, or of one evaluator: factuality.pass_rate=0.9; may be repeated")
	f.Float64Var(&o.failWorse, "fail-worse", 0, "with --against: exit 3 when a pass rate fell with a p value below this, such as 0.05")
	f.BoolVar(&o.dryRun, "dry-run", false, "ask nobody: how many questions there are, what they cost, and the first of each evaluator")
	f.IntVar(&o.concurrency, "concurrency", 16, "judgements at the same time")
	return cmd
}

func evaluatorNames() []string {
	var names []string
	for _, s := range evaluators.Table() {
		names = append(names, s.Name)
	}
	return names
}

func (a *app) evaluate(ctx context.Context, path string, o evaluateOptions) error {
	env, err := readEnvironment(ctx, a.environ)
	if err != nil {
		return err
	}
	if err := o.chosen(env.Checks); err != nil {
		return usageError(err)
	}
	if err := o.validate(); err != nil {
		return errUsage{err}
	}
	evs, asking, err := o.make()
	if err != nil {
		return errUsage{err}
	}
	names := make([]string, len(evs))
	for i, ev := range evs {
		names[i] = ev.Name()
	}
	gates, err := parseGates(o.failUnder, names)
	if err != nil {
		return errUsage{err}
	}
	var earlier []lineResult
	if o.against != "" {
		if _, earlier, err = readResults(o.against); err != nil {
			return errUsage{fmt.Errorf("--against: %w", err)}
		}
	}
	if sameFile(path, o.out) || sameFile(path, o.junit) {
		return errUsage{fmt.Errorf("%s is what is to be judged: name another file to write to", path)}
	}
	run := fileRun{evaluators: evs, concurrency: o.concurrency} // without a judge where all compute
	if asking {
		if run.judge, err = a.judgeFor(env, o); err != nil {
			return err
		}
	}
	if note := o.note(evs); note != "" {
		fmt.Fprintln(a.err, "note:", note)
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
	run.items = items
	if o.dryRun {
		if run.out, err = heldResults(o.out, o.fresh); err != nil {
			return err
		}
		return a.dryRun(ctx, run)
	}
	if run.out, err = openResults(o.out, o.fresh); err != nil {
		return err
	}
	done, err := a.judgeFile(ctx, env, run)
	if err = errors.Join(err, run.out.close()); err != nil {
		return err
	}
	return a.report(path, o, names, done, len(bad), earlier, gates)
}

// report prints the numbers, compares, and holds both against the gates.
func (a *app) report(path string, o evaluateOptions, names []string, done fileJudged, bad int, earlier []lineResult, gates []gate) error {
	sums, err := summaries(names, done.results)
	if err != nil {
		return err
	}
	var changes []comparison
	if o.against != "" {
		if changes, err = compareRuns(names, earlier, done.lines); err != nil {
			return err
		}
	}
	if a.json {
		body := map[string]any{"lines": len(done.results), "unreadable": bad, "found": done.found, "evaluators": sums}
		if o.against != "" {
			body["against"] = changes
		}
		err = a.printJSON(body)
	} else if err = a.printSummaries(names, sums, done, bad, o.out); err == nil && o.against != "" {
		err = a.printComparison(o.against, changes)
	}
	if err != nil {
		return err
	}
	held := append(holdAll(gates, sums, names), holdWorse(changes, o.failWorse)...)
	if len(held) > 0 {
		held = append(held, holdReadable(len(done.results), bad))
	}
	if o.junit != "" {
		if err := writeJUnit(o.junit, path, names, sums, done.lines, held); err != nil {
			return err
		}
	}
	return gatesError(held)
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
