package checks_test

import (
	"testing"

	"assay/internal/checks"
	"assay/internal/interaction"
)

func TestTheItemOfACheckTakesItsTextsFromWhereTheFileSays(t *testing.T) {
	f, err := checks.Parse("assay.yaml", []byte(`
version: 1
sources: [{ topic: t }]
judges: { a: { kind: openai, base_url: "https://llm.example/v1", model: m, method: logprobs, budget: { calls_per_day: 1 } } }
checks:
  - { name: fixed, evaluator: closed_qa, criteria: { text: "Greets." }, judge: a, sample: { rate: 1 } }
  - { name: own, evaluator: closed_qa, criteria: { field: criteria }, judge: a, sample: { rate: 1 } }
  - { name: attribute, evaluator: factuality, reference: { field: attributes.answer }, judge: a, sample: { rate: 1 } }
`))
	if err != nil {
		t.Fatal(err)
	}
	logged := "Thanks the customer."
	it := &interaction.Interaction{Criteria: &logged, Expected: []string{"Monday"}, Attributes: map[string]string{"answer": "Tuesday"}}
	bare := &interaction.Interaction{Expected: []string{"Monday"}}
	if got := f.Checks[0].Item(it).Criteria; got == nil || *got != "Greets." {
		t.Errorf("fixed criteria %v", got)
	}
	if got := f.Checks[1].Item(it).Criteria; got == nil || *got != logged {
		t.Errorf("the record's criteria %v", got)
	}
	if got := f.Checks[1].Item(bare).Criteria; got != nil {
		t.Errorf("criteria of a record without: %q", *got)
	}
	if got := f.Checks[2].Item(it).Expected; len(got) != 1 || got[0] != "Tuesday" {
		t.Errorf("reference %q, want the attribute", got)
	}
	if got := f.Checks[2].Item(bare).Expected; got != nil {
		t.Errorf("reference %q where the attribute is missing", got)
	}
}
