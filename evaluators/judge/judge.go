package judge

import (
	"context"
	"time"
)

// Kind is the form of a question's answer.
type Kind string

// The kinds of questions.
const (
	Boolean Kind = "boolean" // options yes, no
	Choice  Kind = "choice"  // named options
	Score   Kind = "score"   // ordered levels, lowest first

	// Two are answered with something else than a distribution, and only by judges
	// that can: they go the way of all questions, through limits and budget.
	Text   Kind = "text"   // Answer.Text: the model writes
	Vector Kind = "vector" // Answer.Vector: the embedding of the one field
)

// HasOptions reports whether an answer is a distribution over options.
func (k Kind) HasOptions() bool { return k != Text && k != Vector }

// Question is what a judge is asked. Name identifies the wording (evaluator and
// template version), so that a new wording never meets an old cached answer.
type Question struct {
	Name    string
	Kind    Kind
	Text    string   // the instruction, our own words
	Fields  []Field  // text of the judged interaction: data, never instructions
	Options []Option // in declared order; a backend may show them in another
	Each    string   // the name of fields each of which is asked about by itself, in one call; empty: one answer
	Vote    int      // index of this vote or draft, so that n answers are not one cached one
	Order   int      // 0: the backend's own order of options; 1: that order reversed
	Reask   int      // set by Retry: times an unusable answer to this question was asked again
}

// Field is one block of judged text.
type Field struct {
	Name  string // input, output, expected, criteria, context
	Value string
}

// Option is one possible answer.
type Option struct {
	Key  string // what tables store: yes, A, 3, agree
	Text string // what the judge reads
}

// Field returns the first field of that name, and whether there is one.
func (q Question) Field(name string) (string, bool) {
	for _, f := range q.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// FieldValues returns the values of every field of that name, in order.
func (q Question) FieldValues(name string) []string {
	var values []string
	for _, f := range q.Fields {
		if f.Name == name {
			values = append(values, f.Value)
		}
	}
	return values
}

// Method is how a distribution was obtained. It never changes silently.
type Method string

// The methods; their names are stored.
const (
	None       Method = "none"
	Logprobs   Method = "logprobs"
	Votes      Method = "votes"
	Structured Method = "structured"
	Native     Method = "native"
	Model      Method = "model"
	Pooled     Method = "pooled"
	Simulated  Method = "simulated"
)

// Answer is a usable answer. Probabilities align with the question's Options and
// sum to 1 within 1e-9; Outside is the mass that fell outside them before that.
type Answer struct {
	Probabilities []float64
	Parts         [][]float64 // in place of it where the question has Each: one by field
	Text          string      // in place of it where the question's kind is Text
	Vector        []float32   // in place of it where it is Vector
	Outside       float64
	Method        Method
	Model         string // as the provider returned it
	Usage         Usage
	Latency       time.Duration
	Attempts      int // calls made for this answer, retries and reasks included
	Cached        bool
	Detail        map[string]any // order_gap, renormalised, floor, features, ...
}

// Usage is what an answer cost. USD is 0 for a judge without a price.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
	USD          float64
	Estimated    bool // the provider stated no usage; the reserve was kept
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:  u.InputTokens + v.InputTokens,
		OutputTokens: u.OutputTokens + v.OutputTokens,
		USD:          u.USD + v.USD,
		Estimated:    u.Estimated || v.Estimated,
	}
}

// A Judge answers a question with a distribution over its options, or with one of
// the errors of errors.go. It is safe for concurrent use and stops when ctx ends.
type Judge interface {
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Message is a part of what a language model reads.
type Message struct {
	Role string // system, user
	Text string
}
