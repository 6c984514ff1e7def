package aggregate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"assay/internal/stats"
)

// A Metric is a number over a set of verdicts, labels or texts that somebody already
// has. It is computed from JSON arguments, so that files, requests and tests name it the
// same way.
type Metric struct {
	Name     string
	Summary  string   // one sentence
	Args     []string // the arguments it takes, by name; which are needed depends on the form
	Dialects []string // where known implementations disagree; the first is the default

	compute func(dialect string, args json.RawMessage) (Value, error)
}

// Value is what a metric says. V is a number, a text, a truth, a list, or nil where there
// is nothing to say (a ratio of nothing).
type Value struct {
	V any

	// Interval is set for means of parts between 0 and 1. It is Wilson's at the number of
	// items: parts of one item (claims of one answer) are not independent of one another.
	Interval *Rate
	Detail   map[string]any // what else came out: how many were skipped, not found
}

// Metrics lists the metrics by name.
func Metrics() []Metric {
	all := slices.Concat(textMetrics(), jsonMetrics(), extractionMetrics(), mathMetrics(), samplingMetrics(), claimMetrics(), citationMetrics(),
		abstentionMetrics(), verificationMetrics(), correctnessMetrics(), relevancyMetrics(), agreementMetrics())
	slices.SortFunc(all, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Lookup returns the metric of that name.
func Lookup(name string) (Metric, bool) {
	all := Metrics()
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}

// Compute computes a metric. An empty dialect is the default one. Arguments that make no
// sense are an error and never a number.
func (m Metric) Compute(dialect string, args json.RawMessage) (Value, error) {
	switch {
	case dialect == "" && len(m.Dialects) > 0:
		dialect = m.Dialects[0]
	case dialect != "" && len(m.Dialects) == 0:
		return Value{}, fmt.Errorf("%s: dialect %q: this metric has one way only", m.Name, dialect)
	case dialect != "" && !slices.Contains(m.Dialects, dialect):
		return Value{}, fmt.Errorf("%s: dialect %q: want %s", m.Name, dialect, strings.Join(m.Dialects, " or "))
	}
	v, err := m.compute(dialect, args)
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", m.Name, err)
	}
	if f, ok := v.V.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return Value{}, fmt.Errorf("%s: the arguments have no finite result", m.Name)
	}
	return v, nil
}

// metric makes a row of the table whose arguments are the fields of A, by their names.
func metric[A any](name, summary string, dialects []string, compute func(dialect string, a A) (Value, error)) Metric {
	return Metric{
		Name: name, Summary: summary, Dialects: dialects, Args: fieldNames[A](),
		compute: func(dialect string, raw json.RawMessage) (Value, error) {
			var a A
			dec := json.NewDecoder(bytes.NewReader(raw))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&a); err != nil {
				return Value{}, fmt.Errorf("arguments: %w", err)
			}
			if _, err := dec.Token(); !errors.Is(err, io.EOF) {
				return Value{}, errors.New("arguments: more than one value")
			}
			return compute(dialect, a)
		},
	}
}

// plainly is a value without an interval.
func plainly[T any](v T, err error) (Value, error) {
	if err != nil {
		return Value{}, err
	}
	return Value{V: v}, nil
}

const (
	macro = "macro" // the mean over items
	micro = "micro" // of all parts together
)

// parts is what one item has: so many of so many.
type parts struct{ x, n float64 }

// averaged is the mean of the items' shares or the share of all parts together. Items
// without parts are left out; without any part there is nothing to say.
func averaged(items []parts, average string) (Value, error) {
	var sum, pooled, of float64
	counted := 0
	for _, it := range items {
		if it.n == 0 {
			continue
		}
		counted++
		sum += it.x / it.n
		pooled += it.x
		of += it.n
	}
	if counted == 0 {
		return Value{}, errNothing
	}
	rate := sum / float64(counted)
	switch average {
	case macro:
	case micro:
		rate = pooled / of
	default:
		return Value{}, fmt.Errorf("average: %q: want %s or %s", average, macro, micro)
	}
	v := within(rate, counted)
	if skipped := len(items) - counted; skipped > 0 {
		v.Detail = map[string]any{"skipped_items": skipped}
	}
	return v, nil
}

var errNothing = errors.New("there is nothing to count")

const intervalConfidence = 0.95

// within is a mean of n independent parts between 0 and 1, with its interval. Wilson's
// is exact in kind for shares and too wide for means of what lies between.
func within(mean float64, n int) Value {
	v := Value{V: mean}
	if n > 0 && mean >= 0 && mean <= 1 {
		if lower, upper, err := stats.Wilson(mean*float64(n), float64(n), intervalConfidence); err == nil {
			v.Interval = &Rate{Value: mean, Lower: lower, Upper: upper, N: n}
		}
	}
	return v
}

// meanOf is the mean of scores between 0 and 1.
func meanOf(scores []float64) (Value, error) {
	if len(scores) == 0 {
		return Value{}, errNothing
	}
	return within(sum(scores)/float64(len(scores)), len(scores)), nil
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// ratio is nil where it would be of nothing.
func ratio(x, n float64) any {
	if n == 0 {
		return nil
	}
	return x / n
}

// sameLength refuses lists that belong together and do not fit.
func sameLength(names string, lengths ...int) error {
	for _, n := range lengths {
		if n != lengths[0] {
			return fmt.Errorf("%s: lists of %v: want equal lengths", names, lengths)
		}
	}
	return nil
}

// truth is a boolean, also as 0 or 1.
type truth bool

// UnmarshalJSON implements json.Unmarshaler.
func (t *truth) UnmarshalJSON(data []byte) error {
	switch string(bytes.TrimSpace(data)) {
	case "true", "1", "1.0":
		*t = true
	case "false", "0", "0.0":
		*t = false
	default:
		return fmt.Errorf("%s: want true or false, or 1 or 0", data)
	}
	return nil
}

// texts is one text or a list of them.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil && one != nil {
		*t = texts{*one}
		return nil
	}
	var many list
	if json.Unmarshal(data, &many) != nil || many == nil {
		return errors.New("want a text or a list of texts")
	}
	*t = texts(many)
	return nil
}

// list is a list of texts. encoding/json would take null for an empty one.
type list []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *list) UnmarshalJSON(data []byte) error {
	var given []*string
	if err := json.Unmarshal(data, &given); err != nil {
		return err
	}
	if given == nil {
		return nil
	}
	*l = make(list, len(given))
	for i, s := range given {
		if s == nil {
			return errors.New("want texts, not null")
		}
		(*l)[i] = *s
	}
	return nil
}
