package aggregate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"assay/evaluators/aggregate"
)

// Every solution of the set ends in its mark and its number. Whatever stands in a
// solution, that number comes out; and a solution told without the mark, but with the
// number said last, gives the same.
func TestEveryGoldAnswerOfGSM8KIsExtracted(t *testing.T) {
	n := 0
	var references, outputs []string
	eachLine(t, bank(t, "ASSAY_DATA", "data", "GSM8K", "test.jsonl"), func(line []byte) {
		var row struct{ Answer string }
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		n++
		mark := strings.LastIndex(row.Answer, "#### ")
		want := strings.ReplaceAll(strings.TrimSpace(row.Answer[mark+len("#### "):]), ",", "")
		solution := strings.TrimSpace(row.Answer[:mark])
		for name, text := range map[string]string{
			"the solution":     row.Answer,
			"without the mark": solution + "\nSo the final answer is $" + want + ".",
			"a mark in it":     "I write #### before the answer.\n" + row.Answer,
		} {
			for _, dialect := range []string{"evalsuite", "openai_strict", "lm_eval_flexible"} {
				if dialect == "openai_strict" && name != "the solution" {
					continue // takes the first mark
				}
				got, ok, err := aggregate.ExtractAnswer(text, "gsm8k", dialect)
				if err != nil || !ok || got != want {
					t.Errorf("row %d, %s by %s: %q, %t, %v, want %q", n, name, dialect, got, ok, err, want)
				}
			}
		}
		references = append(references, row.Answer)
		outputs = append(outputs, "The answer is "+want)
	})
	t.Logf("GSM8K: %d solutions", n)
	if n != 1319 {
		t.Errorf("%d rows, want 1319", n)
	}
	args, err := json.Marshal(map[string]any{"references": references, "outputs": outputs, "style": "gsm8k"})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := aggregate.Lookup("benchmark_accuracy")
	if v, err := m.Compute("", args); err != nil || v.V != 1.0 || v.Detail["no_answer_found"] != 0 {
		t.Errorf("%v, %v", v, err)
	}
}
