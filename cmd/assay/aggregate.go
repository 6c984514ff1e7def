package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"assay/evaluators/aggregate"
)

// aggregateOptions are the flags of `assay aggregate`.
type aggregateOptions struct {
	dialect    string
	fields     map[string]string
	sets       []string
	provenance string
	failUnder  float64
	gated      bool
}

func (a *app) aggregateCommand() *cobra.Command {
	var o aggregateOptions
	cmd := &cobra.Command{
		Use:   "aggregate [METRIC FILE]",
		Short: "Compute a metric over verdicts, labels or texts that you have",
		Long: `Compute a metric over what somebody has judged already; nothing is judged here. FILE (- is
standard input) is one JSON object with the metric's arguments, or JSONL with one item a line,
whose fields become the arguments. Without arguments it lists the metrics.`,
		Example: `  assay aggregate
  assay aggregate faithfulness verdicts.jsonl --made-by "sentences, two annotators"
  assay aggregate pass_at_k samples.jsonl --map n=n_samples --map c=n_correct --set k=5
  assay aggregate citation_recall answers.jsonl --map answers=statements   # [{"supported":true,"citations":[true]}]
  assay aggregate answer_correctness counts.jsonl --map tp=right --map fp=wrong --map fn=missing --json
  assay aggregate exact_match answers.jsonl --dialect squad --map predictions=output --map references=expected`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.gated = cmd.Flags().Changed("fail-under")
			switch len(args) {
			case 0:
				return a.listMetrics()
			case 1:
				return errUsage{errors.New("want METRIC and FILE")}
			}
			return a.aggregate(args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.dialect, "dialect", "", "where known implementations disagree: which one's rule")
	f.StringToStringVar(&o.fields, "map", nil, "argument=field: what an argument is called in the lines")
	f.StringArrayVar(&o.sets, "set", nil, "argument=JSON: an argument of the whole set, as in k=5; may be repeated")
	f.StringVar(&o.provenance, "made-by", aggregate.UnknownProvenance, "how claims and verdicts came about; printed beside the value")
	f.Float64Var(&o.failUnder, "fail-under", 0, "exit 3 when the value is below")
	return cmd
}

func (a *app) listMetrics() error {
	all := aggregate.Metrics()
	if a.json {
		list := make([]map[string]any, len(all))
		for i, m := range all {
			list[i] = map[string]any{"name": m.Name, "summary": m.Summary, "args": m.Args, "dialects": namedDialects(m)}
		}
		return a.printJSON(list)
	}
	t := newTable(a.out, "metric", "arguments", "dialects", "what it is")
	for _, m := range all {
		t.AppendRow([]any{m.Name, strings.Join(m.Args, " "), strings.Join(namedDialects(m), " "), m.Summary})
	}
	t.Render()
	return nil
}

func namedDialects(m aggregate.Metric) []string {
	return slices.DeleteFunc(slices.Clone(m.Dialects), func(d string) bool { return d == "" })
}

func (a *app) aggregate(name, path string, o aggregateOptions) error {
	m, ok := aggregate.Lookup(name)
	if !ok {
		var names []string
		for _, m := range aggregate.Metrics() {
			names = append(names, m.Name)
		}
		return errUsage{fmt.Errorf("no metric %q; the nearest is %s (assay aggregate lists all)", name, nearest(name, names))}
	}
	fixed := make(map[string]json.RawMessage, len(o.sets))
	for _, set := range o.sets {
		key, value, ok := strings.Cut(set, "=")
		if !ok || !slices.Contains(m.Args, key) {
			return errUsage{fmt.Errorf("--set %s: want ARGUMENT=JSON with one of %s", set, strings.Join(m.Args, ", "))}
		}
		if fixed[key] = json.RawMessage(value); !json.Valid(fixed[key]) {
			quoted, err := json.Marshal(value) // a word is a text
			if err != nil {
				return err
			}
			fixed[key] = quoted
		}
	}
	in, err := openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	asItems := len(o.fields) > 0 || filepath.Ext(path) == ".jsonl"
	args, items, err := m.ReadArgs(in, o.fields, fixed, asItems)
	if err != nil {
		return errUsage{fmt.Errorf("%s: %w", path, err)}
	}
	v, err := m.Compute(o.dialect, args)
	if err != nil {
		return errUsage{fmt.Errorf("%s: %w", path, err)}
	}
	if err := a.printValue(m, o, v, items, asItems); err != nil {
		return err
	}
	return o.hold(m, v)
}

// hold holds the value against the gate.
func (o aggregateOptions) hold(m aggregate.Metric, v aggregate.Value) error {
	if !o.gated {
		return nil
	}
	number, ok := v.V.(float64)
	switch {
	case !ok:
		return errGate{fmt.Errorf("%s: no number to hold against --fail-under", m.Name), exitTooFew}
	case !(number >= o.failUnder): // NaN meets nothing
		return errGate{fmt.Errorf("%s: %.4f is under %.4f", m.Name, number, o.failUnder), exitGate}
	}
	return nil
}

func (a *app) printValue(m aggregate.Metric, o aggregateOptions, v aggregate.Value, items int, asItems bool) error {
	if a.json {
		return a.printJSON(map[string]any{
			"metric": m.Name, "dialect": o.dialect, "value": v.V, "interval": v.Interval, "detail": v.Detail, "provenance": o.provenance,
		})
	}
	var err error
	say := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(a.out, format, args...)
		}
	}
	switch x := v.V.(type) {
	case nil:
		say("%s: nothing to say (a ratio of nothing)", m.Name)
	case float64:
		say("%s: %.4f", m.Name, x)
	case string:
		say("%s: %s", m.Name, x)
	default:
		raw, failed := json.Marshal(x)
		if failed != nil {
			return failed
		}
		say("%s: %s", m.Name, raw)
	}
	if r := v.Interval; r != nil {
		say(" (95%%: %.4f to %.4f, n = %d)", r.Lower, r.Upper, r.N)
	}
	say("\n")
	if asItems || items > 1 {
		say("items: %d\n", items)
	}
	for _, k := range slices.Sorted(maps.Keys(v.Detail)) {
		say("%s: %v\n", strings.ReplaceAll(k, "_", " "), v.Detail[k])
	}
	say("made by: %s\n", o.provenance)
	return err
}
