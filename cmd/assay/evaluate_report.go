package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"assay/evaluators"
	"assay/evaluators/aggregate"
)

// confidence is the level of all intervals of the command.
const confidence = 0.95

func summaries(names []string, results [][]evaluators.Result) ([]aggregate.Summary, error) {
	sums := make([]aggregate.Summary, len(names))
	for e := range names {
		column := make([]evaluators.Result, len(results))
		for i := range results {
			column[i] = results[i][e]
		}
		var err error
		if sums[e], err = aggregate.Summarise(column, confidence); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// printSummaries writes a row for each evaluator, and what is not in it below.
func (a *app) printSummaries(names []string, sums []aggregate.Summary, done fileJudged, bad int, out string) error {
	t := newTable(a.out, "evaluator", "items", "judged", "pass rate (95%)", "mean score (95%)", "missing", "chosen", "cost")
	for e, s := range sums {
		pass, mean := "-", "-"
		if s.PassRate != nil {
			pass = rate(s.PassRate.Value, s.PassRate.Lower, s.PassRate.Upper)
		}
		if s.MeanScore != nil {
			mean = fmt.Sprintf("%.3f (%.3f to %.3f)", *s.MeanScore, s.MeanRate.Lower, s.MeanRate.Upper)
		}
		t.AppendRow([]any{names[e], s.Items, s.Statuses[evaluators.OK], pass, mean, percent(s.Missing), countsOf(s.Options), fmt.Sprintf("$%.4f", s.Usage.USD)})
	}
	t.Render()
	for e, s := range sums {
		if len(s.Reasons) > 0 {
			fmt.Fprintf(a.out, "%s without an answer: %s\n", names[e], countsOf(s.Reasons))
		}
	}
	if bad > 0 {
		fmt.Fprintf(a.out, "%d lines could not be read (named above), %d items could\n", bad, len(done.results))
	}
	if done.found > 0 {
		fmt.Fprintf(a.out, "%d of %d judgements were in %s already and not asked again\n", done.found, len(done.lines), out)
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
