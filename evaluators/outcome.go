package evaluators

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"assay/evaluators/judge"
)

// Reasons of a result with status error. A pipeline may treat ReasonJudgeMisconfigured
// as not judged at all: until a person acts, every question ends so.
const (
	ReasonTimeout            = "timeout"              // the deadline ended it
	ReasonJudgeUnavailable   = "judge_unavailable"    // all tries failed
	ReasonJudgeRejected      = "judge_rejected"       // the judge does not take such a request
	ReasonJudgeMisconfigured = "judge_misconfigured"  // key, model, method: the breaker is open
	reasonJudgeBroken        = "judge_internal_error" // a judge of ours failed in a way it has no name for
)

// settleError turns a judge's error into status, reason and cost. It is the only
// place that knows; it returns an error only for a cancelled context, whose item is
// unresolved.
func (r *Result) settleError(ctx context.Context, err error) error {
	var (
		unusable  *judge.UnusableError
		refused   *judge.RefusedError
		tooLong   *judge.TooLongError
		shed      *judge.ShedError
		rejected  *judge.RejectedError
		fatal     *judge.FatalError
		transient *judge.TransientError
	)
	r.spend(judge.SpentOf(err))
	switch {
	case errors.As(err, &unusable):
		r.Status, r.Reason = Unscored, unusable.Reason
		r.Method, r.Model = unusable.Method, unusable.Model
		maps.Copy(r.Detail, unusable.Detail)
		if outside, ok := unusable.Detail["outside"].(float64); ok {
			r.Outside = outside
		}
		if unusable.Raw != "" {
			r.Detail["raw"] = unusable.Raw
		}
		return nil
	case errors.As(err, &refused):
		r.Status, r.Reason = Unscored, refused.Reason
		return nil
	case errors.As(err, &tooLong):
		r.Status, r.Reason = NotApplicable, reasonTooLong
	case errors.Is(ctx.Err(), context.Canceled):
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			return fmt.Errorf("%w: %w", context.Canceled, cause)
		}
		return context.Canceled
	case errors.As(err, &shed):
		r.Status, r.Reason = Shed, shed.Reason
		if shed.RetryAfter > 0 {
			r.Detail["retry_after_ms"] = shed.RetryAfter.Milliseconds()
		}
		return nil
	case errors.As(err, &rejected):
		r.Status, r.Reason = Error, ReasonJudgeRejected
	case errors.As(err, &fatal):
		r.Status, r.Reason = Error, ReasonJudgeMisconfigured
	case errors.As(err, &transient):
		r.Status, r.Reason = Error, ReasonJudgeUnavailable
		if errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			r.Reason = ReasonTimeout
		}
		r.Model = transient.Model
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		r.Status, r.Reason = Error, ReasonTimeout
	default:
		r.Status, r.Reason = Error, reasonJudgeBroken
	}
	r.Detail["error"] = firstRunes(err.Error(), 200)
	return nil
}

// settleFirst does it for questions that were asked together: r becomes the result of the
// first that has no answer and has the cost of all of them. It returns false where one has
// none.
func (r *Result) settleFirst(ctx context.Context, errs []error) (bool, error) {
	settled := false
	for _, err := range errs {
		switch {
		case err == nil:
		case !settled:
			settled = true
			if err := r.settleError(ctx, err); err != nil {
				return false, err
			}
		default:
			other := Result{Detail: make(map[string]any)}
			if other.settleError(ctx, err) == nil {
				r.spend(judge.Spent{Usage: other.Usage, Attempts: other.Attempts})
			}
		}
	}
	return !settled, nil
}

func (r *Result) spend(s judge.Spent) {
	r.Usage = r.Usage.Add(s.Usage)
	r.Attempts += s.Attempts
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
