package evaluators

import (
	"strings"
	"testing"
)

// Whatever a model writes: no panic, and what is read is what was asked for or an error.
func FuzzDrafts(f *testing.F) {
	for _, seed := range []string{
		"What is it?\nnoncommittal: no", "noncommittal: yes\nnoncommittal: yes", "\n\n", "1: a\n2: b", "None.", "- 3) x\n*", "99999: x", "1:\u00a0", "\xff: \xfe\n1: \xff", "1: 1: 1", "1: **none**", "2: None.",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := readAsked(text); err == nil && (a.text == "" || strings.ContainsAny(a.text, "\n")) {
			t.Fatalf("question %q", a.text)
		}
		list, err := readClaimLines(text, 3)
		if err != nil && list != nil {
			t.Fatalf("%v beside %v", list, err)
		}
		for _, line := range list {
			if line.sentence < 1 || line.sentence > 3 || line.text != "" && strings.TrimSpace(line.text) == "" {
				t.Fatalf("claim %+v", line)
			}
		}
	})
}
