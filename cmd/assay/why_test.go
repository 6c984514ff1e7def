package main

import (
	"bytes"
	"testing"
	"time"

	"assay/internal/server"
)

func TestWhyPrintsLabelsAndMarksForeignScores(t *testing.T) {
	var out bytes.Buffer
	a := &app{out: &out, err: &out}
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	err := a.printWhy(server.Explanation{ID: "call-1", Labels: []server.StoredLabel{
		{Foreign: true, Name: "tone", Rater: "feedback:tone", Origin: "volunteered", Option: "warm\nand kind", Value: new(3.), LabelledAt: at},
		{Check: "polite", Rater: "ann", Origin: "sampled", Passed: new(false), Comment: "Rude.", LabelledAt: at},
	}})
	const want = `interaction call-1

foreign score tone: warm and kind, value 3, volunteered, by feedback:tone, at 2026-08-01T12:00:00Z

label of polite: failed, sampled, by ann, at 2026-08-01T12:00:00Z, comment: Rude.
`
	if err != nil || out.String() != want {
		t.Errorf("printed (%v)\n%s\nwant\n%s", err, &out, want)
	}
}
