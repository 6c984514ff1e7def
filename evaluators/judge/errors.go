package judge

import (
	"fmt"
	"time"
)

// The errors of a judge, by what may be done about them:
//
//	*TransientError  ask again after a pause (Retry does), then status error
//	*UnusableError   an answer came and cannot be used: status unscored
//	*RefusedError    this question is not for this judge: unscored, never sent
//	*TooLongError    over the judge's limit: status not_applicable
//	*RejectedError   the request is wrong for this judge: status error, no retry
//	*ShedError       dropped on purpose (budget, load): status shed
//	*FatalError      no question can be answered (key, model, settings): the breaker opens
//
// A cancelled context comes back as itself: the question is unresolved, not failed.

// Usable spending travels with an error too: a refused or garbled answer was paid for.
type Spent struct {
	Usage    Usage
	Attempts int
	Model    string
}

// TransientError may be gone at the next try.
type TransientError struct {
	Reason     string        // throttled, timeout, unavailable, garbage
	RetryAfter time.Duration // 0 when the judge named none
	Err        error
	Spent
}

func (e *TransientError) Error() string { return fmt.Sprintf("judge %s: %v", e.Reason, e.Err) }
func (e *TransientError) Unwrap() error { return e.Err }

// UnusableError is an answer that cannot be used, or none of several. Reason is one of
// those in reasons.go, or a code of an abstaining model.
type UnusableError struct {
	Reason string
	Raw    string         // the answer's first 200 characters
	Detail map[string]any // kept with the row
	Method Method
	Reask  bool // one more try may be usable (Retry asks once)
	Spent
}

func (e *UnusableError) Error() string { return "unusable answer: " + e.Reason }

// RefusedError is a question this judge declares it cannot answer. No call was made.
type RefusedError struct {
	Reason string // needs_language_model, coarse_only, ...
}

func (e *RefusedError) Error() string { return "question refused: " + e.Reason }

// TooLongError is a question over the judge's context length.
type TooLongError struct{ Err error }

func (e *TooLongError) Error() string { return fmt.Sprintf("question too long: %v", e.Err) }
func (e *TooLongError) Unwrap() error { return e.Err }

// RejectedError is a request that this judge will never take.
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string { return fmt.Sprintf("judge rejected the request: %v", e.Err) }
func (e *RejectedError) Unwrap() error { return e.Err }

// ShedError is work dropped on purpose and counted.
type ShedError struct {
	Reason     string        // budget, breaker
	RetryAfter time.Duration // when it may be worth asking again; 0 unknown
}

func (e *ShedError) Error() string { return "shed: " + e.Reason }

// FatalError means that no question can be answered until a person acts.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return fmt.Sprintf("judge unusable: %v", e.Err) }
func (e *FatalError) Unwrap() error { return e.Err }
