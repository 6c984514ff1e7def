package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"assay/sink"
)

func (m *memory) LabelsOf(_ context.Context, id string) (found []sink.Label, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.said {
		if l.InteractionID == id {
			found = append(found, l)
		}
	}
	return found, m.err
}

func TestWhyTellsWhatWasSaidAboutAnInteraction(t *testing.T) {
	file := parseChecks(t, checksFile)
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	m := &memory{said: []sink.Label{
		{InteractionID: "a", Question: "stars", Rater: "feedback:stars", Origin: "volunteered", Value: new(float32(.3)), Option: "meh", LabelledAt: at},
		{InteractionID: "a", Check: file.Checks[0].Name, Rater: "ann", Origin: "sampled", Passed: new(false), Comment: "Rude.", LabelledAt: at},
		{InteractionID: "b", Check: file.Checks[0].Name, Rater: "ann", Origin: "sampled", Passed: new(true), LabelledAt: at},
	}}
	got := explain(t, m, file, "a").Labels
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	if l := got[0]; !l.Foreign || l.Check != "" || l.Name != "stars" || *l.Value != .3 || l.Option != "meh" || l.Origin != "volunteered" || l.Passed != nil {
		t.Errorf("foreign score %+v", l)
	}
	if l := got[1]; l.Foreign || l.Check != file.Checks[0].Name || l.Rater != "ann" || *l.Passed || l.Comment != "Rude." || !l.LabelledAt.Equal(at) {
		t.Errorf("label %+v", l)
	}
	b, err := json.Marshal(explain(t, m, file, "nobody rated it"))
	if err != nil || !strings.Contains(string(b), `"labels":[]`) {
		t.Errorf("%s (%v)", b, err)
	}
}
