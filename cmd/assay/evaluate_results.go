package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge"
)

// lineResult is one line of the results file: one evaluator on one item.
type lineResult struct {
	Line          int                `json:"line"`
	ID            string             `json:"id"`
	Item          string             `json:"item"` // hash of all that the evaluator saw
	Evaluator     string             `json:"evaluator"`
	Version       string             `json:"version"`
	Judge         string             `json:"judge,omitempty"` // fingerprint
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
	Usage         lineUsage          `json:"usage"`
	LatencyMS     int64              `json:"latency_ms"`
}

type lineUsage struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
	Estimated    bool    `json:"estimated,omitempty"`
}

func newLineResult(item fileItem, r evaluators.Result, judgeFingerprint string) lineResult {
	line := lineResult{
		Line: item.line, ID: item.id, Item: item.hash, Evaluator: r.Evaluator, Version: r.Version, Judge: judgeFingerprint, Status: r.Status,
		Score: r.Score, Option: r.Option, Label: r.Label, Confidence: r.Confidence, Passed: r.Passed,
		Outside: r.Outside, Method: r.Method, Model: r.Model, Reason: r.Reason, Detail: r.Detail,
		Usage: lineUsage(r.Usage), LatencyMS: r.Latency.Milliseconds(),
	}
	if len(r.Probabilities) > 0 {
		line.Probabilities = make(map[string]float64, len(r.Probabilities))
		for k, name := range r.OptionNames {
			line.Probabilities[name] = r.Probabilities[k]
		}
	}
	return line
}

// result is the line as its evaluator gave it.
func (l lineResult) result(options []string) evaluators.Result {
	r := evaluators.Result{
		Evaluator: l.Evaluator, Version: l.Version, Status: l.Status, Score: l.Score, Option: l.Option, Label: l.Label,
		Confidence: l.Confidence, Passed: l.Passed, Outside: l.Outside, Method: l.Method, Model: l.Model, Reason: l.Reason,
		Detail: l.Detail, Usage: judge.Usage(l.Usage), Latency: time.Duration(l.LatencyMS) * time.Millisecond,
	}
	if l.Probabilities != nil {
		r.OptionNames, r.Probabilities = options, make([]float64, len(options))
		for k, name := range options {
			r.Probabilities[k] = l.Probabilities[name]
		}
	}
	return r
}

// final reports whether asking again would be of no use. What was shed or failed may
// come out better.
func (l lineResult) final() bool {
	return l.Status != evaluators.Shed && l.Status != evaluators.Error
}

// a resultKey is the same for judgements that must come out the same.
type resultKey struct{ id, item, evaluator, version, judge string }

func (l lineResult) key() resultKey {
	return resultKey{l.ID, l.Item, l.Evaluator, l.Version, l.Judge}
}

// A resultsFile is the file of --out. While a run goes on each judgement is appended as
// it is made; at the end the file is written anew, in the order of the items. A nil one
// keeps nothing.
type resultsFile struct {
	path    string
	regular bool // else a pipe or a device: nothing to read, and nothing to replace
	held    map[resultKey]lineResult

	mu   sync.Mutex // guards file; held around one write
	file *os.File
}

// openResults reads what an earlier run left behind, unless fresh.
func openResults(path string, fresh bool) (r *resultsFile, err error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, errUsage{fmt.Errorf("--out: %w; want a file that can be written", err)}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r = &resultsFile{path: path, regular: info.Mode().IsRegular(), held: make(map[resultKey]lineResult), file: f}
	if !r.regular {
		return r, nil
	}
	// The end puts another file in its place: in that of what a link such as /dev/stdout
	// leads to, never in the link's.
	if r.path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	if fresh {
		return r, f.Truncate(0)
	}
	return r, r.read()
}

// heldResults is what openResults would find, for whoever only looks.
func heldResults(path string, fresh bool) (*resultsFile, error) {
	if path == "" || fresh {
		return nil, nil
	}
	_, lines, err := readResults(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errUsage{fmt.Errorf("--out %w", err)}
	}
	r := &resultsFile{path: path, held: make(map[resultKey]lineResult, len(lines))}
	for _, l := range lines {
		r.held[l.key()] = l
	}
	return r, nil
}

// read takes in an earlier run's lines. One that was cut while it was written is cut off.
func (r *resultsFile) read() error {
	whole, lines, err := readResults(r.path)
	if err != nil {
		return errUsage{fmt.Errorf("--out %w; name another file, or add --fresh to write it anew", err)}
	}
	for _, l := range lines {
		r.held[l.key()] = l
	}
	return r.file.Truncate(whole)
}

// readResults reads a results file. whole is how much of it is whole lines: the last one
// may be torn.
func readResults(path string) (whole int64, lines []lineResult, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		raw, err := in.ReadBytes('\n')
		switch {
		case err == io.EOF && tornResult(raw):
			return whole, lines, nil
		case err == io.EOF:
			return 0, nil, notResults(path, n)
		case err != nil:
			return 0, nil, fmt.Errorf("%s: %w", path, err)
		}
		whole += int64(len(raw))
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		var l lineResult
		if err := json.Unmarshal(raw, &l); err != nil || l.Evaluator == "" || l.Status == "" {
			return 0, nil, notResults(path, n)
		}
		lines = append(lines, l)
	}
}

func notResults(path string, line int) error {
	return fmt.Errorf("%s:%d: is no line of results of assay evaluate", path, line)
}

// tornResult reports whether that may be the beginning of a line of results. What it is
// not belongs to somebody else and is not to be written over.
func tornResult(raw []byte) bool {
	const start = `{"line":`
	n := min(len(raw), len(start))
	return string(raw[:n]) == start[:n]
}

// settled leaves out what was shed or failed and was asked again later: a file that an
// interrupted run left behind has both.
func settled(lines []lineResult) []lineResult {
	last := make(map[resultKey]int, len(lines))
	for i, l := range lines {
		last[l.key()] = i
	}
	var kept []lineResult
	for i, l := range lines {
		if l.final() || last[l.key()] == i {
			kept = append(kept, l)
		}
	}
	return kept
}

// find returns what an earlier run has to say about a judgement.
func (r *resultsFile) find(key resultKey) (lineResult, bool) {
	if r == nil {
		return lineResult{}, false
	}
	l, ok := r.held[key]
	return l, ok && l.final()
}

// add keeps a judgement: a run that is killed has lost what was in flight.
func (r *resultsFile) add(l lineResult) error {
	if r == nil || !r.regular {
		return nil
	}
	raw, err := resultJSON(l)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err = r.file.Write(raw)
	return err
}

// finish leaves the file with exactly these lines.
func (r *resultsFile) finish(lines []lineResult) (err error) {
	if r == nil {
		return nil
	}
	if !r.regular {
		return writeLines(r.file, lines)
	}
	next, err := os.CreateTemp(filepath.Dir(r.path), filepath.Base(r.path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(next.Name()))
		}
	}()
	info, err := r.file.Stat()
	if err == nil {
		err = errors.Join(writeLines(next, lines), next.Chmod(info.Mode().Perm()))
	}
	if err = errors.Join(err, next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), r.path)
}

func (r *resultsFile) close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}

func writeLines(f *os.File, lines []lineResult) error {
	w := bufio.NewWriter(f)
	for _, l := range lines {
		raw, err := resultJSON(l)
		if err != nil {
			return err
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	return w.Flush()
}

func resultJSON(l lineResult) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(l)
	return b.Bytes(), err
}
