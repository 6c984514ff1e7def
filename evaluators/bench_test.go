package evaluators_test

import (
	"strings"
	"testing"

	"assay/evaluators"
)

// Applicable is asked for every interaction of the stream, judged or not.
func BenchmarkApplicable(b *testing.B) {
	e, err := evaluators.New("factuality", evaluators.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	it := complete()
	it.Output = text(strings.Repeat("An answer of two kilobytes. ", 75))
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := e.Applicable(it); !ok {
			b.Fatal("not applicable")
		}
	}
}
