package embedded

import (
	"math"
	"strings"
)

// copyF1 is the overlap from which a sentence repeats the reference, so that the one
// word in which it differs is likely the point.
const copyF1 = 0.7

// numbersDiffer reports whether the answer lacks a number of the reference and has
// one that neither reference nor question has.
func (v *view) numbersDiffer(m *match) bool {
	missing, extra := false, false
	for _, t := range m.ref.tokens {
		missing = missing || t.isNumber && !t.weak && !v.answer.has(t.stem)
	}
	for _, t := range v.answer.tokens {
		extra = extra || t.isNumber && !t.weak && !m.ref.has(t.stem) && (v.question == nil || !v.question.has(t.stem))
	}
	return missing && extra
}

// missesOnlyNumbers reports whether every word of the reference that the answer
// lacks is a number.
func (m *match) missesOnlyNumbers() bool {
	for i, w := range m.words {
		if !m.fuzzy[i] && !m.ref.tokens[w].isNumber {
			return false
		}
	}
	return true
}

// describeContradiction adds the signs that the answer says the words and means the
// opposite, or says something else besides.
func (v *view) describeContradiction(f *vector, m *match) {
	nearCopy := v.sentenceF1(m) >= copyF1
	inAnswer, inReference := v.count(v.answer, negator), v.count(m.ref, negator)
	f.flag("refusal", v.refuses())
	f.add("log_negations", log1p(inAnswer))
	f.flag("negation_mismatch", (inAnswer > 0) != (inReference > 0))
	f.add("negation_difference", math.Min(3, math.Abs(float64(inAnswer-inReference))))
	f.flag("near_copy_negation", nearCopy && (inAnswer > 0) != (inReference > 0))
	f.flag("near_copy_numbers", nearCopy && v.numbersDiffer(m))
	f.flag("only_numbers_differ", share(m.exact) >= 0.5 && m.missesOnlyNumbers() && v.numbersDiffer(m))
	f.flag("hedge", v.count(v.answer, hedge) > v.count(m.ref, hedge))

	found := v.mention(m)
	f.flag("negated_mention", found.negated)
	f.flag("refuted_mention", found.refuted)
	f.flag("rejected_mention", found.rejected)
	f.flag("doubted_mention", found.doubted)
	f.flag("resolved_mention", found.resolved)
	f.flag("preferred_mention", found.preferred)
	f.flag("hedged_mention", found.hedged)
	f.flag("offered_mention", found.offered)
	clean := found.harm() == 0
	brief := len(v.answer.tokens) <= briefAnswer
	f.flag("stated", m.joined && clean)
	f.flag("denied", m.whole && (found.negated || found.refuted || found.rejected))
	f.flag("brief_stated", m.joined && clean && brief)
	f.flag("brief_denied", m.whole && !clean && brief)
	f.flag("brief_resolved", m.whole && (found.resolved || found.preferred) && brief)
	f.flag("contrast", v.count(v.answer, contrast) > 0)

	yesNo, agrees := v.polarity(m.ref)
	f.flag("yes_no", yesNo)
	f.add("yes_no_agrees", agrees)

	extra := 0
	for _, i := range v.answer.content {
		if t := v.answer.tokens[i]; t.capital && !t.isNumber && !m.ref.has(t.stem) && (v.question == nil || !v.question.has(t.stem)) {
			extra++
		}
	}
	f.add("log_extra_names", log1p(extra))
	f.flag("names_instead", extra > 0 && share(m.fuzzy) < 0.5)
	f.add("list_difference", math.Min(2, math.Abs(math.Log(float64(listLength(v.answer))/float64(listLength(m.ref))))))
}

func (v *view) count(d *document, c class) int {
	n := 0
	for _, t := range d.tokens {
		if t.class&c != 0 {
			n++
		}
	}
	return n
}

// refuses reports whether the answer says that it gives none.
func (v *view) refuses() bool {
	for _, phrase := range v.lex.refusals {
		if strings.Contains(v.answer.folded, phrase) {
			return true
		}
	}
	return false
}

// polarity tells whether the reference is a yes or a no, and then whether the answer
// goes the same way (1), the other (-1) or neither (0).
func (v *view) polarity(ref *document) (yesNo bool, agrees float64) {
	if len(ref.tokens) == 0 || len(ref.tokens) > 3 || len(v.answer.tokens) == 0 {
		return false, 0
	}
	first := ref.tokens[0].text
	if first != "yes" && first != "no" {
		return false, 0
	}
	start := v.answer.tokens[0].class
	says := 0.0
	switch {
	case start&affirm != 0:
		says = 1
	case start&deny != 0:
		says = -1
	case v.count(v.answer, negator) > 0:
		says = -1
	default:
		says = 0.5
	}
	if first == "no" {
		says = -says
	}
	return true, says
}

// listLength is about how many items a text enumerates.
func listLength(d *document) int {
	n := 1 + d.commas
	for _, t := range d.tokens {
		if t.text == "and" {
			n++
		}
	}
	return n
}
