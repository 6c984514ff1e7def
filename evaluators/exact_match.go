package evaluators

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// The dialects of exact_match.
const (
	ExactAssay      = "assay"       // white space and case aside
	ExactAutoevals  = "autoevals"   // as they stand; JSON by its compact text
	ExactSQuAD      = "squad"       // after NormalizeAnswer
	ExactHFEvaluate = "hf_evaluate" // after what a Folding leaves out
)

// exactMatch asks whether the output is the expected text.
func exactMatch() Spec {
	spec := Spec{
		Name:     "exact_match",
		Summary:  "Is the output the expected text, white space and case aside?",
		Use:      "answers with one right spelling: labels, codes, multiple choice",
		NotFor:   "answers that can be said in several ways: token_f1, short_answer",
		Required: []string{fieldOutput, fieldExpected},
		Settings: append([]Setting{
			{Name: "dialect", Type: "text", Values: []string{ExactAssay, ExactAutoevals, ExactSQuAD, ExactHFEvaluate}, Default: ExactAssay,
				Help: "what counts as the same: assay ignores case and runs of white space, autoevals nothing, squad also punctuation and articles, hf_evaluate what its options name"},
			{Name: "regexes_to_ignore", Type: "list", Help: "hf_evaluate: patterns (RE2) that are removed first, before case is looked at"},
			{Name: "ignore_case", Type: "boolean", Default: false, Help: "hf_evaluate: fold case"},
			{Name: "ignore_punctuation", Type: "boolean", Default: false, Help: "hf_evaluate: remove ASCII punctuation"},
			{Name: "ignore_numbers", Type: "boolean", Default: false, Help: "hf_evaluate: remove ASCII digits"},
		}, ruleSettings()...),
	}
	for _, dialect := range []string{ExactAssay, ExactAutoevals, ExactSQuAD, ExactHFEvaluate} {
		spec.variants = append(spec.variants, variant{template: "exact_match/1", dialect: dialect})
	}
	return yesNo(spec, func(o *ruleOptions) rule {
		folding := Folding{
			IgnoreCase: o.boolean("ignore_case"), IgnorePunctuation: o.boolean("ignore_punctuation"), IgnoreNumbers: o.boolean("ignore_numbers"),
		}
		for _, p := range o.list("regexes_to_ignore") {
			if re := o.pattern("regexes_to_ignore", p); re != nil {
				folding.Remove = append(folding.Remove, re)
			}
		}
		if o.dialect != ExactHFEvaluate {
			o.onlyWith("dialect: hf_evaluate", "regexes_to_ignore", "ignore_case", "ignore_punctuation", "ignore_numbers")
		}
		same := map[string]func(a, b string) bool{
			ExactAssay:      ExactMatch,
			ExactAutoevals:  func(a, b string) bool { return a == b },
			ExactSQuAD:      func(a, b string) bool { return NormalizeAnswer(a) == NormalizeAnswer(b) },
			ExactHFEvaluate: folding.Equal,
		}[o.dialect]
		return rule{measure: bestReference(func(output, expected string) (float64, error) { return one(same(output, expected)), nil })}
	})
}

// ExactMatch compares two texts without regard to case and runs of white space.
// Punctuation counts.
func ExactMatch(output, expected string) bool {
	return lower(oneSpace(output)) == lower(oneSpace(expected))
}

// A Folding is what Hugging Face's exact_match leaves out of both texts.
type Folding struct {
	Remove            []*regexp.Regexp // first, so they see upper case
	IgnoreCase        bool
	IgnorePunctuation bool
	IgnoreNumbers     bool
}

// Equal compares what is left of two texts.
func (f Folding) Equal(a, b string) bool { return f.fold(a) == f.fold(b) }

func (f Folding) fold(s string) string {
	for _, re := range f.Remove {
		s = re.ReplaceAllString(s, "")
	}
	if f.IgnoreCase {
		s = lower(s)
	}
	return strings.Map(func(r rune) rune {
		if f.IgnorePunctuation && strings.ContainsRune(asciiPunctuation, r) || f.IgnoreNumbers && r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// ExactMatchJSON compares two JSON values by autoevals' rules. If either is an object or
// array, texts are read as JSON where they are it, and the compact forms are compared:
// the order of keys counts. Otherwise both are compared as texts: 123 is "123".
func ExactMatchJSON(output, expected json.RawMessage) (bool, error) {
	if !json.Valid(output) || !json.Valid(expected) {
		return false, errors.New("not JSON")
	}
	unpack := isContainer(output) || isContainer(expected)
	a, err := plain(output, unpack)
	if err != nil {
		return false, err
	}
	b, err := plain(expected, unpack)
	return a == b, err
}

func isContainer(raw json.RawMessage) bool {
	return strings.ContainsAny(firstByte(strings.TrimSpace(string(raw))), "{[")
}

// plain is the text by which autoevals compares a value. The zero byte keeps null from
// being the text "null".
func plain(raw json.RawMessage, unpack bool) (string, error) {
	if strings.TrimSpace(string(raw)) == "null" {
		return "\x00null", nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return compactOrdered(raw)
	}
	if unpack && json.Valid([]byte(text)) {
		return compactOrdered([]byte(text))
	}
	return text, nil
}

// compactOrdered writes JSON without spaces and with one spelling of every text, and
// keeps the order of the keys, which a Go map would lose.
func compactOrdered(raw []byte) (string, error) {
	var b bytes.Buffer
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	type frame struct {
		object bool
		n      int // tokens so far
	}
	var open []frame
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			open = open[:len(open)-1]
			b.WriteRune(rune(d))
			continue
		}
		if len(open) > 0 {
			top := &open[len(open)-1]
			switch {
			case top.object && top.n%2 == 1:
				b.WriteByte(':')
			case top.n > 0:
				b.WriteByte(',')
			}
			top.n++
		}
		switch v := token.(type) {
		case json.Delim:
			open = append(open, frame{object: v == '{'})
			b.WriteRune(rune(v))
		case nil:
			b.WriteString("null")
		case bool:
			fmt.Fprint(&b, v)
		case json.Number:
			b.WriteString(string(v))
		default:
			b.WriteString(compactJSON(v))
		}
	}
}
