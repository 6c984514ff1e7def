package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sync/errgroup"

	"assay/evaluators"
)

// fileRun is a run of evaluators over the items of a file.
type fileRun struct {
	judge       stack
	evaluators  []evaluators.Evaluator
	items       []fileItem
	out         *resultsFile
	concurrency int
}

// fileJudged is what came of a run.
type fileJudged struct {
	results [][]evaluators.Result // by item, then by evaluator
	lines   []lineResult          // the same, in one row
	found   int                   // of an earlier run, not asked again
}

// judgeFile judges what no earlier run has. An interruption leaves what is done in the file of
// --out.
func (a *app) judgeFile(ctx context.Context, env environment, r fileRun) (fileJudged, error) {
	total := len(r.items) * len(r.evaluators)
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(a.err), progressbar.OptionSetVisibility(isTerminal(a.err)),
		progressbar.OptionSetDescription("judging"), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	defer bar.Close()
	done := fileJudged{results: make([][]evaluators.Result, len(r.items)), lines: make([]lineResult, total)}
	// What is the same for every item is worked out once.
	keys, options := make([]resultKey, len(r.evaluators)), make([][]string, len(r.evaluators))
	for e, ev := range r.evaluators {
		keys[e], options[e] = r.key(ev), ev.Definition().Keys()
	}
	var kept atomic.Int64
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(r.concurrency)
	for i, item := range r.items {
		done.results[i] = make([]evaluators.Result, len(r.evaluators))
		for e, ev := range r.evaluators {
			if running.Err() != nil {
				break
			}
			line, at := &done.lines[i*len(r.evaluators)+e], &done.results[i][e]
			key := keys[e]
			key.id, key.item = item.id, item.hash
			if earlier, ok := r.out.find(key); ok {
				earlier.Line = item.line
				*line, *at = earlier, earlier.result(options[e])
				done.found++
				kept.Add(1)
				_ = bar.Add(1) // of a bar that is not there for want of a terminal
				continue
			}
			g.Go(func() error {
				defer bar.Add(1)
				ctx, cancel := context.WithTimeout(running, env.Judge.Deadline)
				defer cancel()
				res, err := ev.Evaluate(ctx, r.judge, item.item)
				if err != nil {
					return fmt.Errorf("line %d: %w", item.line, err)
				}
				*at, *line = res, newLineResult(item, res, key.judge)
				if err := r.out.add(*line); err != nil {
					return fmt.Errorf("--out: %w", err)
				}
				kept.Add(1)
				return nil
			})
		}
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return fileJudged{}, a.interrupted(r, int(kept.Load()), total)
	}
	if err != nil {
		return fileJudged{}, err
	}
	return done, r.out.finish(done.lines)
}

// key is that of the evaluator's judgements, without an item.
func (r fileRun) key(ev evaluators.Evaluator) resultKey {
	return resultKey{evaluator: ev.Name(), version: ev.Definition().Hash(), judge: r.fingerprint(ev)}
}

// fingerprint is of the judge that the evaluator asks, if it asks one.
func (r fileRun) fingerprint(ev evaluators.Evaluator) string {
	if spec, err := evaluators.Lookup(ev.Name()); err != nil || !spec.NeedsJudge() {
		return ""
	}
	return r.judge.fingerprint
}

// interrupted says what is kept and how to go on.
func (a *app) interrupted(r fileRun, kept, total int) error {
	if r.out == nil {
		return fmt.Errorf("interrupted after %d of %d judgements; none is kept: with --out FILE the next run goes on where this one stopped", kept, total)
	}
	if !r.out.regular {
		return errors.New("interrupted; nothing is written")
	}
	return fmt.Errorf("interrupted: %d of %d judgements are in %s; the same command goes on from there:\n  %s", kept, total, r.out.path, commandLine(a.args))
}

// commandLine is a command as a shell takes it.
func commandLine(args []string) string {
	plain := regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)
	words := []string{"assay"}
	for _, arg := range args {
		if !plain.MatchString(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
