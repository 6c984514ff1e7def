package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"assay/internal/checks"
	"assay/internal/server"
	"assay/sink"
)

// labelOptions are the flags of `assay labels import`.
type labelOptions struct {
	check   string
	rater   string
	origin  string
	pi2     float64
	drawn   bool // pi2 was given
	format  string
	skipBad bool
}

func (a *app) labelsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "labels",
		Short:   "What people say of judged interactions",
		Example: "  assay labels import verdicts.csv --check refund_policy --rater ana",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.labelsImportCommand())
	return cmd
}

func (a *app) labelsImportCommand() *cobra.Command {
	var o labelOptions
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Store people's labels from a file and hold the judge against them",
		Long: `Store labels from a file (- is standard input): JSONL, or CSV whose first line names the
columns. A label has the fields check, interaction_id, rater, and option or passed; and, if
you like, comment, removed, origin and pi2.

One rater has one answer per check and interaction. A later one replaces it, the same one
again changes nothing: importing a file twice, or again after an interruption, is harmless.
Labels may come before their interaction is judged; they are looked for for 7 days. With
one faulty line nothing is stored, unless --skip-bad is given.

The monitor compares the judge with labels of origin imported (taken as a fair choice of the
judged interactions) and sampled (drawn from them with the known probability pi2), each by
itself; volunteered ones are stored and compared with nothing.

The embedded ClickHouse belongs to one process: beside one that runs, post the labels to its
/api/v1/labels instead.`,
		Example: `  assay labels import verdicts.jsonl
  assay labels import verdicts.csv --check refund_policy --rater ana
  assay labels import drawn.csv --origin sampled --pi2 0.1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return errUsage{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.drawn = cmd.Flags().Changed("pi2")
			return a.importLabels(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.check, "check", "", "the check of lines that name none")
	f.StringVar(&o.rater, "rater", "", "who answered, for lines that do not say")
	f.StringVar(&o.origin, "origin", server.LabelImported, "how the interactions were chosen, for lines that do not say: imported, sampled or volunteered")
	f.Float64Var(&o.pi2, "pi2", 0, "of sampled labels: the probability with which a judged interaction was drawn")
	f.StringVar(&o.format, "format", "", "jsonl or csv; default: by the file's name")
	f.BoolVar(&o.skipBad, "skip-bad", false, "leave faulty lines out instead of refusing the file")
	return cmd
}

// A labelImport is what an import did.
type labelImport struct {
	File      string `json:"file"`
	Labels    int    `json:"labels"`
	Stored    int    `json:"stored"`
	Corrected int    `json:"corrected"`
	Removed   int    `json:"removed"`
	Unchanged int    `json:"unchanged"`
	Waiting   int    `json:"waiting"`
	Refused   int    `json:"refused"`
}

func (a *app) importLabels(ctx context.Context, path string, o labelOptions) error {
	env, log, err := a.begin(ctx)
	if err != nil {
		return err
	}
	file, err := loadChecks(env.Checks)
	if err != nil {
		return err
	}
	in, err := openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	changes, bad, err := readLabels(in, path, file, o)
	if err != nil {
		return errUsage{err}
	}
	if len(bad) > 0 && !o.skipBad {
		return errUsage{fmt.Errorf("%w\nnothing was stored: %d of %d lines are at fault (--skip-bad leaves them out)",
			errors.Join(firstFaults(bad)...), len(bad), len(bad)+len(changes))}
	}
	for _, f := range firstFaults(bad) {
		fmt.Fprintln(a.err, "assay: left out:", f)
	}
	return withStore(ctx, &env, log, env.Embedded, func(ctx context.Context, s store) error {
		if s.embedded {
			if _, err := sink.Migrate(ctx, s.db, log); err != nil {
				return err
			}
		} else if err := sink.Verify(ctx, s.db); err != nil {
			return errUsage{err}
		}
		done, err := a.storeLabels(ctx, s.db, changes)
		done.File, done.Refused = path, len(bad)
		if err != nil {
			n := done.Stored + done.Corrected + done.Removed + done.Unchanged
			return fmt.Errorf("after %d of %d labels: %w; importing the file again goes on from there", n, len(changes), err)
		}
		return a.printImport(done)
	})
}

// labelsAtOnce is one step of the progress: a lookup and an insert.
const labelsAtOnce = 1000

// A labelWriter is where labels go; *sink.DB is one.
type labelWriter interface {
	WriteLabels(ctx context.Context, changes []sink.LabelChange, now time.Time) ([]sink.LabelOutcome, error)
}

func (a *app) storeLabels(ctx context.Context, to labelWriter, changes []sink.LabelChange) (labelImport, error) {
	bar := progressbar.NewOptions(len(changes),
		progressbar.OptionSetWriter(a.err), progressbar.OptionSetVisibility(isTerminal(a.err)),
		progressbar.OptionSetDescription("storing labels"), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	defer bar.Close()
	done := labelImport{Labels: len(changes)}
	by := map[string]*int{sink.LabelStored: &done.Stored, sink.LabelCorrected: &done.Corrected, sink.LabelRemoved: &done.Removed, sink.LabelUnchanged: &done.Unchanged}
	for part := range slices.Chunk(changes, labelsAtOnce) {
		outcomes, err := to.WriteLabels(ctx, part, time.Now())
		for _, o := range outcomes {
			*by[o.Outcome]++
			if o.Waits {
				done.Waiting++
			}
		}
		if err != nil {
			return done, err
		}
		_ = bar.Add(len(part)) // a terminal that takes no more stops no import
	}
	return done, nil
}

func (a *app) printImport(done labelImport) error {
	if a.json {
		return a.printJSON(done)
	}
	t := newTable(a.out, "labels", "stored", "corrected", "removed", "unchanged", "refused")
	t.AppendRow([]any{done.Labels, done.Stored, done.Corrected, done.Removed, done.Unchanged, done.Refused})
	t.Render()
	if done.Waiting > 0 {
		_, err := fmt.Fprintf(a.out, "%d of them belong to interactions without a judgement of the check: they count once there is one, and are looked for for 7 days\n", done.Waiting)
		return err
	}
	return nil
}

// mostFaults are listed; the rest are counted.
const mostFaults = 20

func firstFaults(bad []error) []error {
	if len(bad) <= mostFaults {
		return bad
	}
	return append(slices.Clone(bad[:mostFaults]), fmt.Errorf("and %d more", len(bad)-mostFaults))
}

// readLabels reads the whole file, so that its faults are known before anything is
// stored. bad has one error a faulty line; err is a file that cannot be read at all.
func readLabels(in io.Reader, path string, file *checks.File, o labelOptions) (changes []sink.LabelChange, bad []error, err error) {
	format := o.format
	if format == "" {
		format = strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	}
	read := labelLines
	switch format {
	case "jsonl", "ndjson":
	case "csv":
		read = labelTable
	default:
		return nil, nil, fmt.Errorf("%s: want --format jsonl or csv", path)
	}
	n := 0
	err = read(in, func(line int, l server.Label, faults []server.LabelFault) {
		n++
		o.complete(&l)
		change, more := l.Change(file)
		if len(faults) == 0 {
			faults = more
		}
		if len(faults) == 0 {
			changes = append(changes, change)
			return
		}
		texts := make([]string, len(faults))
		for i, f := range faults {
			texts[i] = f.Error()
		}
		bad = append(bad, fmt.Errorf("%s:%d: %s", path, line, strings.Join(texts, "; ")))
	})
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case n == 0:
		err = fmt.Errorf("%s: no labels in it", path)
	}
	return changes, bad, err
}

// complete fills in what a line does not say.
func (o labelOptions) complete(l *server.Label) {
	if l.Check == "" {
		l.Check = o.check
	}
	if l.Rater == "" {
		l.Rater = o.rater
	}
	if l.Origin == "" {
		l.Origin = o.origin
		if o.drawn && l.Pi2 == nil && !l.Removed {
			l.Pi2 = &o.pi2
		}
	}
}

// maxLabelLine bounds a line; the longest label has a comment of 8 kB.
const maxLabelLine = 1 << 20

func labelLines(in io.Reader, each func(line int, l server.Label, faults []server.LabelFault)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLabelLine)
	n := 0
	for lines.Scan() {
		n++
		raw := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(raw) == 0 {
			continue
		}
		l, faults := server.ReadLabel(raw)
		each(n, l, faults)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

func labelTable(in io.Reader, each func(line int, l server.Label, faults []server.LabelFault)) error {
	start := bufio.NewReader(in)
	if mark, err := start.Peek(3); err == nil && string(mark) == "\ufeff" { // as spreadsheets write it
		if _, err := start.Discard(3); err != nil {
			return err
		}
	}
	rows := csv.NewReader(start)
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("want a first line with the names of the columns")
	}
	if err != nil {
		return err
	}
	for i, name := range header {
		header[i] = strings.TrimSpace(name)
		if !slices.Contains(server.LabelFields, header[i]) {
			return fmt.Errorf("line 1: no label has a column %q; the nearest is %s", name, nearest(name, server.LabelFields))
		}
		if slices.Contains(header[:i], header[i]) {
			return fmt.Errorf("line 1: column %s twice", header[i])
		}
	}
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		line, _ := rows.FieldPos(0)
		if errors.Is(err, csv.ErrFieldCount) {
			each(line, server.Label{}, []server.LabelFault{{Message: fmt.Sprintf("%d columns: want %d, as in the first line", len(cells), len(header))}})
			continue
		}
		if err != nil {
			return err
		}
		l, faults := labelOfCells(header, cells)
		each(line, l, faults)
	}
}

// labelOfCells reads one row; an empty cell is not given.
func labelOfCells(header, cells []string) (l server.Label, faults []server.LabelFault) {
	for i, name := range header {
		cell := strings.TrimSpace(cells[i])
		if cell == "" {
			continue
		}
		switch name {
		case "check":
			l.Check = cell
		case "interaction_id":
			l.InteractionID = cells[i] // an id is what it is, blanks included
		case "rater":
			l.Rater = cell
		case "option":
			l.Option = cell
		case "comment":
			l.Comment = cell
		case "origin":
			l.Origin = cell
		case "pi2":
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				faults = append(faults, server.LabelFault{Field: name, Message: fmt.Sprintf("%q: want a number", cell)})
			}
			l.Pi2 = &v
		case "passed", "removed":
			v, err := strconv.ParseBool(strings.ToLower(cell))
			if err != nil {
				faults = append(faults, server.LabelFault{Field: name, Message: fmt.Sprintf("%q: want true or false", cell)})
			}
			if name == "removed" {
				l.Removed = v
			} else {
				l.Passed = &v
			}
		}
	}
	return l, faults
}
