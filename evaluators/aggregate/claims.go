package aggregate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Verdict is what became of a claim.
type Verdict string

// The verdicts.
const (
	Supported    Verdict = "supported"
	Contradicted Verdict = "contradicted"
	Unsupported  Verdict = "unsupported" // nothing supports it and nothing contradicts it
)

// VerdictOf reads the words in use for verdicts, case and space aside. The text "false"
// says that the claim is false; the value false says only that it is not supported.
func VerdictOf(text string) (Verdict, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "supported", "support", "entailed", "entailment", "true", "yes":
		return Supported, nil
	case "contradicted", "contradiction", "refuted", "false":
		return Contradicted, nil
	case "unsupported", "not enough info", "nei", "neutral", "unknown", "no":
		return Unsupported, nil
	}
	return "", fmt.Errorf("%q is no verdict: want supported, contradicted or unsupported", text)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Verdict) UnmarshalJSON(data []byte) error {
	var supported *bool
	if json.Unmarshal(data, &supported) == nil && supported != nil {
		*v = Unsupported
		if *supported {
			*v = Supported
		}
		return nil
	}
	var text *string
	if json.Unmarshal(data, &text) != nil || text == nil {
		return fmt.Errorf("%s is no verdict: want true, false or a word", data)
	}
	verdict, err := VerdictOf(*text)
	*v = verdict
	return err
}

// share is what part of each list are verdicts that counts takes, as parts per list.
func share(claims [][]Verdict, counts func(Verdict) bool) []parts {
	items := make([]parts, len(claims))
	for i, list := range claims {
		items[i].n = float64(len(list))
		for _, v := range list {
			items[i].x += number(counts(v))
		}
	}
	return items
}

func claimMetrics() []Metric {
	type verdict struct {
		Value Verdict `json:"value"`
	}
	type claims struct {
		Claims  [][]Verdict `json:"claims"`
		Average string      `json:"average"`
	}
	type counted struct {
		Claims  [][]Verdict `json:"claims"`
		Average string      `json:"average"`
		Count   string      `json:"count"`
	}
	type scores struct {
		Scores  [][]float64 `json:"scores"`
		Average string      `json:"average"`
	}
	type facts struct {
		Facts []list `json:"facts"`
		KB    list   `json:"kb"`
	}
	type factscore struct {
		Supported float64 `json:"supported"`
		Facts     float64 `json:"facts"`
		Gamma     float64 `json:"gamma"`
	}
	return []Metric{
		metric("verdict_label", "a verdict by one of its three names", nil, func(_ string, a verdict) (Value, error) {
			if a.Value == "" {
				return Value{}, errors.New("value: want a verdict")
			}
			return Value{V: string(a.Value)}, nil
		}),
		metric("faithfulness", "the share of claims that their context supports; by default the mean over answers", []string{"assay", "ragas"},
			func(dialect string, a claims) (Value, error) {
				v, err := averaged(share(a.Claims, func(v Verdict) bool { return v == Supported }), or(a.Average, macro))
				if errors.Is(err, errNothing) && dialect == "ragas" {
					return Value{}, nil
				}
				return v, err
			}),
		metric("hallucination_rate", "the share of claims that are not supported; by default of all claims together", nil, func(_ string, a counted) (Value, error) {
			counts := func(v Verdict) bool { return v != Supported }
			switch a.Count {
			case "", "unsupported":
			case "contradicted":
				counts = func(v Verdict) bool { return v == Contradicted }
			default:
				return Value{}, fmt.Errorf("count: %q: want unsupported or contradicted", a.Count)
			}
			return averaged(share(a.Claims, counts), or(a.Average, micro))
		}),
		metric("groundedness", "the mean support of claims, as scores from 0 to 1; by default the mean over answers", nil, func(_ string, a scores) (Value, error) {
			items := make([]parts, len(a.Scores))
			for i, list := range a.Scores {
				for _, s := range list {
					if !(s >= 0 && s <= 1) {
						return Value{}, fmt.Errorf("scores: %g: want 0 to 1", s)
					}
				}
				items[i] = parts{sum(list), float64(len(list))}
			}
			return averaged(items, or(a.Average, macro))
		}),
		metric("knowledge_consistency", "the share of stated facts that stand in a knowledge base, compared as given", nil, func(_ string, a facts) (Value, error) {
			if len(a.KB) == 0 {
				return Value{}, errors.New("kb: is empty")
			}
			items := make([]parts, len(a.Facts))
			for i, list := range a.Facts {
				items[i].n = float64(len(list))
				for _, f := range list {
					items[i].x += number(slices.Contains(a.KB, f))
				}
			}
			return averaged(items, micro)
		}),
		metric("factscore", "supported facts over facts, less where an answer has fewer than gamma", nil, func(_ string, a factscore) (Value, error) {
			switch {
			case !(a.Facts > 0) || !(a.Supported >= 0) || a.Supported > a.Facts || a.Gamma < 0:
				return Value{}, fmt.Errorf("supported %g of facts %g with gamma %g: want 0 or more of at least one", a.Supported, a.Facts, a.Gamma)
			case a.Gamma > 0 && a.Facts <= a.Gamma:
				return Value{V: a.Supported / a.Facts * math.Exp(1-a.Gamma/a.Facts)}, nil
			}
			return Value{V: a.Supported / a.Facts}, nil
		}),
	}
}

// or is the default of a text that was not given.
func or(given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	return given
}
