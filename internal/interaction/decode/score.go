package decode

import "time"

// A Score is feedback or an evaluation about an interaction that stands in another
// record, before or after this one. It names that interaction as far as its log does;
// what it refers to is found later, where all records are.
type Score struct {
	InteractionID string // the record's own id
	TraceID       string
	SpanID        string
	ResponseID    string // the provider's id of the answer

	Name     string
	Value    *float64 // nil where the rater gave a label only
	Label    string
	Comment  string
	Expected string // what the answer should have been, where the rater said it
	Source   string // who or what rated, as the log has it
	Time     time.Time
}

func (r *record) score(s Score) { r.res.Scores = append(r.res.Scores, s) }
