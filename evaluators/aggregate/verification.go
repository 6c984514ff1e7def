package aggregate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// firstEvidence is how many predicted sentences count: naming all of a page is no evidence.
const firstEvidence = 5

const notEnoughInfo = "NOT ENOUGH INFO"

// An Instance is a checked claim with the evidence that belongs to it, as FEVER has it.
type Instance struct {
	Label     string            `json:"label"`
	Predicted string            `json:"predicted_label"`
	Evidence  [][]evidence      `json:"evidence"` // groups, each sufficient if whole
	Found     []json.RawMessage `json:"predicted_evidence"`
}

// evidence is a sentence by page and line. FEVER's own rows have two numbers before them.
type evidence struct {
	page, line string
	none       bool // a row without a line stands for no evidence
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *evidence) UnmarshalJSON(data []byte) error {
	var row []json.RawMessage
	if err := json.Unmarshal(data, &row); err != nil || len(row) != 4 && len(row) != 2 {
		return fmt.Errorf("evidence %.60s: want [annotation, evidence, page, line] or [page, line]", data)
	}
	row = row[len(row)-2:]
	*e = evidence{page: string(row[0]), line: string(row[1]), none: string(row[1]) == "null"}
	return nil
}

func verificationMetrics() []Metric {
	type claims struct {
		Gold      []Verdict  `json:"gold"`
		Predicted []Verdict  `json:"pred"`
		Instances []Instance `json:"instances"`
		Measure   string     `json:"measure"`
	}
	type labels struct {
		Gold      string `json:"gold"`
		Predicted string `json:"pred"`
	}
	return []Metric{
		metric("claim_verification", "verdicts on claims against the right ones: accuracy and macro_f1, or with evidence accuracy, strict, precision, recall and f1",
			nil, func(_ string, a claims) (Value, error) {
				measures, err := claimVerdicts(a.Gold, a.Predicted)
				if a.Instances != nil {
					measures, err = claimEvidence(a.Instances)
				}
				if err != nil {
					return Value{}, err
				}
				return pick(measures, or(a.Measure, "accuracy"))
			}),
		metric("claim_label_equal", "whether two labels are the same, case aside", nil, func(_ string, a labels) (Value, error) {
			return Value{V: ClaimLabelEqual(a.Gold, a.Predicted)}, nil
		}),
		metric("claim_strict", "whether the label is right and a whole group of evidence was found", nil, func(_ string, a Instance) (Value, error) {
			strict, err := ClaimStrict(a)
			return plainly(strict, err)
		}),
	}
}

// claimVerdicts is the accuracy, and the mean F1 over the verdicts that occur.
func claimVerdicts(gold, predicted []Verdict) (map[string]Value, error) {
	if err := sameLength("gold and pred", len(gold), len(predicted)); err != nil {
		return nil, err
	}
	if len(gold) == 0 {
		return nil, errors.New("gold and pred, or instances: want at least one claim")
	}
	right := 0
	f1, classes := 0.0, 0
	for i := range gold {
		right += int(number(gold[i] == predicted[i]))
	}
	for _, class := range []Verdict{Supported, Contradicted, Unsupported} {
		var both, either int
		for i := range gold {
			g, p := gold[i] == class, predicted[i] == class
			both += int(number(g && p))
			either += int(number(g) + number(p))
		}
		if either > 0 {
			f1 += 2 * float64(both) / float64(either)
			classes++
		}
	}
	return map[string]Value{"accuracy": of(right, len(gold)), "macro_f1": {V: f1 / float64(classes)}}, nil
}

// claimEvidence holds labels and evidence against FEVER's.
func claimEvidence(instances []Instance) (map[string]Value, error) {
	if len(instances) == 0 {
		return nil, errors.New("instances: want at least one claim")
	}
	var right, strict, withEvidence int
	var precision, recall float64
	for _, in := range instances {
		right += int(number(ClaimLabelEqual(in.Label, in.Predicted)))
		ok, err := ClaimStrict(in)
		if err != nil {
			return nil, err
		}
		strict += int(number(ok))
		if ClaimLabelEqual(in.Label, notEnoughInfo) {
			continue
		}
		found, err := in.found()
		if err != nil {
			return nil, err
		}
		withEvidence++
		hits := 0
		for _, f := range found {
			hits += int(number(slices.ContainsFunc(in.Evidence, func(group []evidence) bool { return contains(group, f) })))
		}
		if len(found) > 0 {
			precision += float64(hits) / float64(len(found))
		} else {
			precision++
		}
		recall += number(in.wholeGroup(found))
	}
	measures := map[string]Value{"accuracy": of(right, len(instances)), "strict": of(strict, len(instances))}
	if withEvidence > 0 {
		p, r := precision/float64(withEvidence), recall/float64(withEvidence)
		f1 := 0.0
		if p+r > 0 {
			f1 = 2 * p * r / (p + r)
		}
		measures["precision"], measures["recall"], measures["f1"] = within(p, withEvidence), within(r, withEvidence), Value{V: f1}
	} else {
		measures["precision"], measures["recall"], measures["f1"] = Value{}, Value{}, Value{}
	}
	return measures, nil
}

// found are the first predicted sentences.
func (in Instance) found() ([]evidence, error) {
	list := make([]evidence, 0, firstEvidence)
	for _, raw := range in.Found[:min(firstEvidence, len(in.Found))] {
		var e evidence
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// wholeGroup reports whether all of any group was found. Where nothing is asked for,
// nothing is missing.
func (in Instance) wholeGroup(found []evidence) bool {
	asked := false
	for _, group := range in.Evidence {
		if len(group) == 0 {
			continue
		}
		asked = true
		if !slices.ContainsFunc(group, func(e evidence) bool { return !contains(found, e) }) {
			return true
		}
	}
	return !asked
}

func contains(list []evidence, e evidence) bool {
	return !e.none && slices.ContainsFunc(list, func(o evidence) bool { return o.page == e.page && o.line == e.line })
}

// ClaimLabelEqual compares two labels, case aside.
func ClaimLabelEqual(gold, predicted string) bool { return strings.EqualFold(gold, predicted) }

// ClaimStrict reports whether the label is right and, unless there is not enough
// information, a whole group of evidence is among the first predicted sentences.
func ClaimStrict(in Instance) (bool, error) {
	if !ClaimLabelEqual(in.Label, in.Predicted) {
		return false, nil
	}
	if ClaimLabelEqual(in.Label, notEnoughInfo) {
		return true, nil
	}
	found, err := in.found()
	return err == nil && in.wholeGroup(found), err
}
