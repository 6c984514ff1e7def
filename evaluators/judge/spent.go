package judge

import "errors"

// A paidError is a failure whose kind costs nothing, after tries or votes that did.
type paidError struct {
	error
	Spent
}

func (e *paidError) Unwrap() error { return e.error }

// SpentOf returns what a failed question cost, as far as its error knows.
func SpentOf(err error) Spent {
	var paid *paidError
	var unusable *UnusableError
	var transient *TransientError
	switch {
	case errors.As(err, &paid):
		return paid.Spent
	case errors.As(err, &unusable):
		return unusable.Spent
	case errors.As(err, &transient):
		return transient.Spent
	}
	return Spent{}
}

// withSpent returns err as a copy that states another cost. Errors are shared
// between goroutines by the cache, so none is ever changed in place.
func withSpent(err error, s Spent) error {
	var paid *paidError
	var unusable *UnusableError
	var transient *TransientError
	switch {
	case errors.As(err, &paid):
		return &paidError{paid.error, s}
	case errors.As(err, &unusable):
		e := *unusable
		e.Spent = s
		return &e
	case errors.As(err, &transient):
		e := *transient
		e.Spent = s
		return &e
	case s != Spent{}:
		return &paidError{err, s}
	}
	return err
}

// plus returns the cost of both. The later model is kept: it is the one that
// answered last.
func (s Spent) plus(t Spent) Spent {
	sum := Spent{Usage: s.Usage.Add(t.Usage), Attempts: s.Attempts + t.Attempts, Model: t.Model}
	if sum.Model == "" {
		sum.Model = s.Model
	}
	return sum
}
