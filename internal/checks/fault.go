package checks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// A Fault is one thing that is wrong with a checks file, where it stands, and what
// would be right.
type Fault struct {
	Path    string `json:"path"`
	Line    int    `json:"line"` // from 1
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// Error is the fault as editors read it: path:line:column: message.
func (f Fault) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.Path, f.Line, f.Column, f.Message)
}

// Faults are all faults of a file, in its order.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

func (f Faults) sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return f
}

// nearest returns " (did you mean x?)" for the closest of the known names, if one is
// close enough to be a slip.
func nearest(name string, known []string) string {
	if len(name) > 64 { // too long for a name, and far from all of them
		return ""
	}
	best, distance := "", 1+len(name)/3
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k)); d < distance || d == distance && best == "" {
			best, distance = k, d
		}
	}
	if best == "" || best == name {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}
