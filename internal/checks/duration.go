package checks

import (
	"time"

	"github.com/goccy/go-yaml/ast"
)

// duration reads a text such as 90s or 10m, within bounds.
func (r *reader) duration(n ast.Node, where string, lo, hi time.Duration) (time.Duration, bool) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		r.fault(n, "%s: %s has no unit; want a duration such as 90s or 10m", where, describe(n))
		return 0, false
	}
	text, ok := r.text(n, where)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.fault(n, "%s: %q is no duration; want a number with a unit, such as 90s or 10m", where, text)
		return 0, false
	}
	if d < lo || d > hi {
		r.fault(n, "%s: %s; want %s to %s", where, text, lo, hi)
		return 0, false
	}
	return d, true
}

// The bounds of join_wait. A restart reads several times as much of the log again, and
// what waits is an offset that is not committed.
const (
	minJoinWait = time.Second
	maxJoinWait = 24 * time.Hour
)
