package evaluators

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// wordings are the committed texts by template. A check version, a cached answer and a
// golden run all say the template's name and mean the text: whoever changes a word
// raises the number at the end of the name, and then the line here.
var wordings = map[string]string{
	"answer_correctness/1":        "f9d52de72700",
	"answer_relevancy/1":          "9527b054b279",
	"answer_relevancy_question/1": "ca36b64b7fc6",
	"answer_similarity/1":         "385daf3942e1",
	"claim_evidence_stance/1":     "63439c04a678",
	"claim_supported/1":           "5ab4e94c5602",
	"claim_verification/1":        "2a9f5e63e3c3",
	"claims_extracted/1":          "2466f8ef2b25",
	"claims_supported/1":          "7dd2128e2c89",
	"closed_qa/1":                 "b7de4fc9dd65",
	"cosine/1":                    "211fed8594ae", // no words: how vectors are compared
	"factuality/1":                "c76a86ad7576",
	"factuality_coarse/1":         "214f1c1ac1b6",
	"hallucination/1":             "bee1681e0a1e",
	"llm_judge/1":                 "357885442ef9",
	"math_equivalent/1":           "aaf0812fcc0d",
	"noncommittal/1":              "25b19fcba56c",
	"short_answer/1":              "af76651efd54",
}

func TestAWordingChangesWithItsNumber(t *testing.T) {
	got := make(map[string]string)
	add := func(template, text string, options []OptionDefinition) {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %+v", text, options))
		got[template] = hex.EncodeToString(sum[:6])
	}
	for _, spec := range Table() {
		if !spec.NeedsJudge() {
			continue
		}
		for _, v := range spec.variants {
			add(v.template, v.text, v.options)
		}
	}
	add(claimsTemplate, claimsText, claimOptions())
	add(extractTemplate, extractText, nil)
	for _, template := range slices.Sorted(maps.Keys(got)) {
		if wordings[template] != got[template] {
			t.Errorf("%q: %q, // committed: %q", template, got[template], wordings[template])
		}
	}
	if len(got) != len(wordings) {
		t.Errorf("%d templates, %d committed", len(got), len(wordings))
	}
}
