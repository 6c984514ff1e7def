package server

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/sink"
)

// WriteLabels keeps changes in order; an interaction called new-... is not judged yet.
func (m *memory) WriteLabels(_ context.Context, changes []sink.LabelChange, _ time.Time) ([]sink.LabelOutcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	outcomes := make([]sink.LabelOutcome, len(changes))
	for i, c := range changes {
		same := func(o sink.LabelChange) bool {
			return o.Check == c.Check && o.InteractionID == c.InteractionID && o.Rater == c.Rater
		}
		outcomes[i] = sink.LabelOutcome{Outcome: sink.LabelStored, Waits: strings.HasPrefix(c.InteractionID, "new-")}
		if slices.ContainsFunc(m.labels, same) {
			outcomes[i].Outcome = sink.LabelCorrected
		}
		if c.Removed {
			outcomes[i].Outcome = sink.LabelRemoved
		}
		m.labels = append(m.labels, c)
	}
	return outcomes, nil
}

func (w *world) label(body string) answer {
	w.t.Helper()
	return w.do("POST", "/api/v1/labels", body, "Content-Type", "application/json")
}

func TestEveryLabelOfARequestHasItsOutcome(t *testing.T) {
	w := start(t)
	a := w.label(`{"labels":[
		{"check":"refunds","interaction_id":"i1","rater":"ana","passed":true,"comment":"says when"},
		{"check":"refunds","interaction_id":"new-1","rater":"ana","option":"no"},
		{"check":"refund","interaction_id":"i2","rater":"ana","passed":true},
		{"check":"facts","interaction_id":"i1","rater":"ana","option":"disagree","origin":"sampled","pi2":0.2},
		{"check":"refunds","interaction_id":"i1","rater":"ana","passed":false},
		{"check":"refunds","interaction_id":"i3","rater":"bob","removed":true}]}`)
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var got labelsBody
	a.into(t, &got)
	var said []string
	for _, l := range got.Labels {
		said = append(said, fmt.Sprintf("%s %s %s %t", l.Check, l.InteractionID, l.Outcome, l.Waits))
	}
	want := []string{"refunds i1 stored false", "refunds new-1 stored true", "refund i2 refused false", "facts i1 stored false", "refunds i1 corrected false", "refunds i3 removed false"}
	if !reflect.DeepEqual(said, want) {
		t.Errorf("outcomes %q, want %q", said, want)
	}
	if f := got.Labels[2].Faults; len(f) != 1 || !strings.Contains(f[0], "did you mean refunds?") {
		t.Errorf("faults %q", f)
	}
	got.Labels = nil
	if !reflect.DeepEqual(got, labelsBody{Stored: 3, Corrected: 1, Removed: 1, Refused: 1, Waiting: 1}) {
		t.Errorf("counts %+v", got)
	}
	yes, no, zero := true, false, float32(0)
	stored := []sink.LabelChange{
		{Check: "refunds", InteractionID: "i1", Rater: "ana", Passed: &yes, Pi2: 1, Origin: "volunteered", Comment: "says when"},
		{Check: "refunds", InteractionID: "new-1", Rater: "ana", Option: "no", Value: &zero, Passed: &no, Pi2: 1, Origin: "volunteered"},
		{Check: "facts", InteractionID: "i1", Rater: "ana", Option: "disagree", Value: &zero, Passed: &no, Pi2: .2, Origin: "sampled"},
		{Check: "refunds", InteractionID: "i1", Rater: "ana", Passed: &no, Pi2: 1, Origin: "volunteered"},
		{Check: "refunds", InteractionID: "i3", Rater: "bob", Pi2: 1, Origin: "volunteered", Removed: true},
	}
	if !reflect.DeepEqual(w.store.labels, stored) {
		t.Errorf("stored\n%+v\nwant\n%+v", w.store.labels, stored)
	}
}

func TestALabelRequestWithNothingUsableIsRefused(t *testing.T) {
	w := start(t)
	f := func(body string, want ...string) {
		t.Helper()
		a := w.label(body)
		if a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
		for _, s := range want {
			if !strings.Contains(string(a.body), s) {
				t.Errorf("%s: %s does not say %q", body, a.body, s)
			}
		}
	}
	one := func(fields string) string { return `{"labels":[{` + fields + `}]}` }
	const whose = `"check":"refunds","interaction_id":"i1","rater":"ana"`
	f(`[]`, "want an object")
	f(`{}`, "labels", "missing")
	f(`{"labels":[]}`, "0 labels")
	f(`{"labels":{}}`, "want a list of labels, not an object")
	f(`{"label":[]}`, "did you mean labels?")
	f(`{"labels":[3]}`, "labels[0]", "want an object, not a number")
	f(one(``), "interaction_id", "rater", "check", "want one of refunds, facts")
	f(one(whose), "labels[0].passed", "or option")
	f(one(whose+`,"option":"yess"`), "no option", "did you mean yes?")
	f(one(whose+`,"option":"yes","passed":false`), "makes it true")
	f(one(whose+`,"passed":"true"`), "want true or false, not a string")
	f(one(whose+`,"passed":true,"origin":"sampled"`), "pi2", "missing")
	f(one(whose+`,"passed":true,"pi2":0.5`), "is for sampled labels")
	f(one(whose+`,"passed":true,"origin":"sampled","pi2":0`), "above 0")
	f(one(whose+`,"passed":true,"origin":"guess"`), "want one of sampled")
	f(one(whose+`,"passed":true,"removed":true`), "a removal has neither")
	f(one(whose+`,"verdict":true`), "unknown field")
	f(one(whose+`,"passed":true,"comment":"`+strings.Repeat("x", sink.MaxLabelComment+1)+`"`), "at most 8192")
	if len(w.store.labels) != 0 {
		t.Errorf("stored %+v", w.store.labels)
	}
}

func TestLabelsThatCannotBeStoredAreA503(t *testing.T) {
	w := start(t)
	w.store.fail(errDown)
	if a := w.label(`{"labels":[{"check":"refunds","interaction_id":"i1","rater":"ana","passed":true}]}`); a.status != 503 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
