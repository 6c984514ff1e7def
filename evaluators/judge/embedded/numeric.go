package embedded

import "slices"

// describeNumbers adds what the numbers say. Words can be replaced by other words;
// a number that differs is a fact that differs.
func (v *view) describeNumbers(f *vector, m *match, references []*document) {
	inReference, missing, years, yearsMissing := 0, 0, 0, 0
	for _, t := range m.ref.tokens {
		if !t.isNumber || t.weak {
			continue
		}
		inReference++
		if isYear(t.number) {
			years++
		}
		if !v.answer.has(t.stem) {
			missing++
			if isYear(t.number) {
				yearsMissing++
			}
		}
	}
	extra, extraYears := 0, 0
	for _, t := range v.answer.tokens {
		if t.isNumber && !t.weak && !m.ref.has(t.stem) && (v.question == nil || !v.question.has(t.stem)) {
			extra++
			if isYear(t.number) {
				extraYears++
			}
		}
	}
	recall := 1.0
	if inReference > 0 {
		recall = ratio(inReference-missing, inReference)
	}
	f.flag("has_numbers", inReference > 0)
	f.add("number_recall", recall)
	f.flag("number_conflict", missing > 0 && extra > 0)
	f.flag("number_absent", missing > 0 && extra == 0)
	f.flag("year_conflict", yearsMissing > 0 && extraYears > 0)
	f.flag("year_missing", yearsMissing > 0)
	f.flag("all_years_present", years > 0 && yearsMissing == 0)
	f.add("log_reference_numbers", log1p(inReference))
	f.add("log_extra_numbers", log1p(extra))
	f.flag("date_conflict", v.datesConflict(references))
	f.flag("count_conflict", v.countsConflict(m))
	f.flag("no_numbers_but_new", inReference == 0 && extra > 0)
	reference, answer := v.lex.quantities(m.ref), v.lex.quantities(v.answer)
	f.flag("unit_mismatch", unitsDiffer(reference, answer))
}

// A date is a day of a month; the year counts as a number of its own.
type date struct {
	month string
	day   float64
}

// dates lists the days of a text: a month with a small number beside it.
func dates(d *document) []date {
	var found []date
	for i, t := range d.tokens {
		if t.class&month == 0 {
			continue
		}
		for _, k := range []int{i - 1, i + 1} {
			if k < 0 || k >= len(d.tokens) {
				continue
			}
			if n := d.tokens[k]; n.isNumber && n.number >= 1 && n.number <= 31 {
				found = append(found, date{t.text, n.number})
			}
		}
	}
	return found
}

// datesConflict reports whether references and answer both name days and share none.
func (v *view) datesConflict(references []*document) bool {
	answered := dates(v.answer)
	if len(answered) == 0 {
		return false
	}
	conflict := false
	for _, ref := range references {
		for _, d := range dates(ref) {
			if slices.Contains(answered, d) {
				return false
			}
			conflict = true
		}
	}
	return conflict
}

// counts lists how many of what a text names: "nine seasons", "15 dollars".
func counts(d *document, do func(of string, n float64)) {
	for i := 0; i+1 < len(d.tokens); i++ {
		if t, next := d.tokens[i], d.tokens[i+1]; t.isNumber && !next.isNumber && next.content() && next.class&month == 0 {
			do(next.stem, t.number)
		}
	}
}

// countsConflict reports whether reference and answer count the same thing and never
// to the same number.
func (v *view) countsConflict(m *match) bool {
	conflict, same := false, false
	counts(m.ref, func(of string, n float64) {
		counts(v.answer, func(answered string, k float64) {
			switch {
			case of != answered:
			case n == k:
				same = true
			default:
				conflict = true
			}
		})
	})
	return conflict && !same
}
