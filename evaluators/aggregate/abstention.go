package aggregate

import (
	"errors"
	"fmt"
	"slices"
)

type abstentionArgs struct {
	Should    []truth `json:"should_abstain"`
	Abstained []truth `json:"abstained"`
	Correct   []truth `json:"correct"`
	Measure   string  `json:"measure"`
}

func abstentionMetrics() []Metric {
	return []Metric{metric("abstention_accuracy",
		"whether questions without an answer were left unanswered: accuracy, precision, recall, abstention_rate, coverage, answered_accuracy", nil,
		func(_ string, a abstentionArgs) (Value, error) {
			if len(a.Should) == 0 {
				return Value{}, errors.New("should_abstain: is empty")
			}
			lengths := []int{len(a.Should), len(a.Abstained)}
			if a.Correct != nil {
				lengths = append(lengths, len(a.Correct))
			}
			if err := sameLength("should_abstain, abstained and correct", lengths...); err != nil {
				return Value{}, err
			}
			return pick(abstention(a), or(a.Measure, "accuracy"))
		})}
}

// abstention computes the measures; what is a ratio of nothing has no value.
func abstention(a abstentionArgs) map[string]Value {
	n := len(a.Should)
	var equal, both, should, abstained, answeredRight int
	for i := range n {
		s, did := bool(a.Should[i]), bool(a.Abstained[i])
		equal += int(number(s == did))
		both += int(number(s && did))
		should += int(number(s))
		abstained += int(number(did))
		if a.Correct != nil && !did && bool(a.Correct[i]) {
			answeredRight++
		}
	}
	measures := map[string]Value{
		"accuracy":        of(equal, n),
		"precision":       of(both, abstained),
		"recall":          of(both, should),
		"abstention_rate": of(abstained, n),
		"coverage":        of(n-abstained, n),
	}
	if a.Correct != nil {
		measures["answered_accuracy"] = of(answeredRight, n-abstained)
	}
	return measures
}

// of is a share with its interval.
func of(x, n int) Value {
	if n == 0 {
		return Value{}
	}
	return within(float64(x)/float64(n), n)
}

// pick returns one of several measures, with the others beside it.
func pick(measures map[string]Value, name string) (Value, error) {
	v, ok := measures[name]
	if !ok {
		var known []string
		for k := range measures {
			known = append(known, k)
		}
		slices.Sort(known)
		return Value{}, fmt.Errorf("measure: %q: with these arguments want one of %v", name, known)
	}
	v.Detail = make(map[string]any, len(measures))
	for k, m := range measures {
		v.Detail[k] = m.V
	}
	return v, nil
}
