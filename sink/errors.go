package sink

import (
	"errors"
	"fmt"
)

// ErrStopped is why a row stays unresolved when the writer ends: it may or may not be
// in ClickHouse, and the record it came from has to be read again.
var ErrStopped = errors.New("the sink has stopped")

// A Class says what may be done about a failed insert. Only classify knows
// ClickHouse's codes.
type Class int

const (
	Transient Class = iota // same bytes, same token, after a pause
	Overload               // too many parts: a hot retry makes it worse; open the breaker
	ReadOnly               // read-only table or full disk: open the breaker, a person has to act
	Memory                 // the block is too large for the server now: halve it
	Poison                 // a row is at fault: bisect, refuse that row only
	Fatal                  // schema, rights or sign-in: every row would fail, so stop
	Unknown                // no rule for it: stop rather than guess
)

// classNames are the values of the metric label class; renaming one breaks alerts.
var classNames = [...]string{
	Transient: "transient", Overload: "overload", ReadOnly: "read_only", Memory: "memory",
	Poison: "data", Fatal: "fatal", Unknown: "unknown",
}

func (c Class) String() string { return classNames[c] }

// InsertError carries what a person needs to find the rows again.
type InsertError struct {
	Table string
	Token string // insert_deduplication_token, also in system.query_log
	Rows  int
	Class Class
	Err   error
}

func (e *InsertError) Error() string {
	return fmt.Sprintf("insert of %d rows into %s (token %s, %s): %v", e.Rows, e.Table, e.Token, e.Class, e.Err)
}

func (e *InsertError) Unwrap() error { return e.Err }

// PoisonError says that one row can never be stored. The other rows of its call are.
type PoisonError struct {
	Table string
	Row   string // its coordinates
	Err   error  // what is wrong with it, or what the server said
}

func (e *PoisonError) Error() string {
	return fmt.Sprintf("row %s can never be stored in %s: %v", e.Row, e.Table, e.Err)
}

func (e *PoisonError) Unwrap() error { return e.Err }
