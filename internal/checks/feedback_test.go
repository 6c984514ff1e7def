package checks

import "testing"

func TestFeedbackSaysWhatAScoreMeans(t *testing.T) {
	const file = `
version: 1
sources:
  - topic: t
    feedback:
      thumbs: c
      stars: { check: c, pass: 4 }
      verdict: { check: c, pass: [good, fine] }
judges: { m: { kind: simulated } }
checks: [{ name: c, evaluator: closed_qa, criteria: { text: Polite. }, judge: m, sample: { rate: 0.1 } }]
`
	loaded := parse(t, file, AllowSimulated())
	f := func(name string, value any, label string, passed, ok bool) {
		t.Helper()
		fb := loaded.Sources[0].Feedback[name]
		if fb.Check != "c" {
			t.Fatalf("%s: %+v", name, fb)
		}
		var v *float64
		if n, is := value.(float64); is {
			v = &n
		}
		if gotPassed, gotOK := fb.Passes(v, label); gotPassed != passed || gotOK != ok {
			t.Errorf("%s %v %q: %t %t, want %t %t", name, value, label, gotPassed, gotOK, passed, ok)
		}
	}
	f("thumbs", 1.0, "", true, true)
	f("thumbs", 0.0, "", false, true)
	f("thumbs", -1.0, "", false, true)
	f("thumbs", 0.7, "", false, false) // whether that is good is nobody's to guess
	f("thumbs", 5.0, "", false, false)
	f("thumbs", nil, "up", false, false)
	f("stars", 4.0, "", true, true)
	f("stars", 3.9, "", false, true)
	f("stars", nil, "great", false, false)
	f("verdict", nil, "good", true, true)
	f("verdict", 1.0, "bad", false, true)
	f("verdict", 1.0, "", false, false)

	// it decides nothing, so no count starts again because of it
	other := parse(t, file[:len(file)-1], AllowSimulated())
	other.Sources[0].Feedback = nil
	if other.hash() != loaded.Hash {
		t.Error("the file's hash depends on feedback")
	}
}
