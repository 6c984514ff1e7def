package evaluators

import (
	"context"
	"time"

	"assay/evaluators/judge"
)

// Status is the status of a judgement.
type Status string

// The statuses.
const (
	OK            Status = "ok"
	Unscored      Status = "unscored"       // judged, but the answer was unusable
	NotApplicable Status = "not_applicable" // nothing here that this evaluator judges
	Shed          Status = "shed"           // dropped on purpose: budget, load
	Error         Status = "error"          // after all retries
)

// Result is the judgement of one item. Score and Passed are nil and Option is empty
// unless Status is OK; Reason is a code and is empty exactly when it is.
type Result struct {
	Evaluator string
	Version   string // of the definition, without the judge
	Status    Status

	Score      *float64
	Option     string // the chosen key: yes, D
	Label      string // the same for people: 22% yes, D
	Confidence *float64
	Passed     *bool

	OptionNames   []string // as declared
	Probabilities []float64
	Outside       float64

	Method   judge.Method // None where a rule decided; empty where nothing answered
	Model    string
	Reason   string
	Detail   map[string]any
	Usage    judge.Usage
	Latency  time.Duration // of the whole evaluation, queueing and pauses included
	Attempts int
}

// Evaluator judges items of one kind. It is safe for concurrent use.
type Evaluator interface {
	Name() string

	// Definition is everything of the evaluator that can change a verdict.
	Definition() Definition

	// Applicable reports whether the item can be judged, else the reason why not.
	// It is a pure function of the item and the settings.
	Applicable(it Item) (reason string, ok bool)

	// Questions are what a judge would be asked about an applicable item, in order.
	// Some evaluators ask further ones, depending on the answers.
	Questions(it Item) ([]judge.Question, error)

	// Calls are how often the judge is asked about an item, under these settings.
	Calls() Calls

	// Evaluate judges. An item that is not applicable costs no call. The error is
	// not nil only when ctx was cancelled; a deadline that passed is a result.
	Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error)
}
