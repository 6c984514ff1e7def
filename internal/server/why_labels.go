package server

import (
	"time"

	"assay/sink"
)

// StoredLabel is what a person, or a log, says about the interaction.
type StoredLabel struct {
	Check      string    `json:"check,omitempty" doc:"The check whose question it answers; absent of a foreign score"`
	Foreign    bool      `json:"foreign" doc:"A score of a log that answers no check's question: it is kept, and nothing is computed from it"`
	Name       string    `json:"name,omitempty" doc:"Of a foreign score"`
	Rater      string    `json:"rater"`
	Origin     string    `json:"origin" doc:"sampled, imported, or volunteered: those are never averaged"`
	Passed     *bool     `json:"passed"`
	Option     string    `json:"option,omitempty"`
	Value      *float64  `json:"value"`
	Comment    string    `json:"comment,omitempty"`
	LabelledAt time.Time `json:"labelled_at"`
}

func labelsFrom(stored []sink.Label) []StoredLabel {
	out := make([]StoredLabel, 0, len(stored))
	for _, l := range stored {
		out = append(out, StoredLabel{
			Check: l.Check, Foreign: l.Check == "", Name: l.Question, Rater: l.Rater, Origin: l.Origin,
			Passed: l.Passed, Option: l.Option, Value: widen(l.Value), Comment: l.Comment, LabelledAt: l.LabelledAt,
		})
	}
	return out
}
