package aggregate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// A Statement of an answer with what was found about its citations.
type Statement struct {
	Supported *Verdict `json:"supported"` // by what it cites, together
	Citations []truth  `json:"citations"` // each: whether it supports the statement
}

// A CitedSentence has the numbers of the documents it cites, from 0, and the sets of
// documents that entail it.
type CitedSentence struct {
	Refs   []int   `json:"refs"`
	Entail [][]int `json:"entail"`
}

type citationArgs struct {
	Answers   [][]Statement   `json:"answers"`
	Average   string          `json:"average"`
	Sentences []CitedSentence `json:"sentences"` // dialect alce
	Documents int             `json:"n_docs"`
	AtMost    *int            `json:"at_most_citations"`
}

func citationMetrics() []Metric {
	dialects := []string{"evalsuite", "alce"}
	type text struct {
		Text string `json:"text"`
	}
	return []Metric{
		metric("citation_recall", "the share of statements that are supported and cited", dialects, func(dialect string, a citationArgs) (Value, error) {
			if dialect == "alce" {
				s, err := alce(a)
				return Value{V: s.recall}, err
			}
			items := make([]parts, len(a.Answers))
			for i, statements := range a.Answers {
				items[i].n = float64(len(statements))
				for k, s := range statements {
					if s.Supported == nil {
						return Value{}, fmt.Errorf("answers[%d][%d]: supported is missing", i, k)
					}
					items[i].x += number(*s.Supported == Supported && len(s.Citations) > 0)
				}
			}
			return averaged(items, or(a.Average, macro))
		}),
		metric("citation_precision", "the share of citations that support what cites them; answers without citations are left out", dialects,
			func(dialect string, a citationArgs) (Value, error) {
				if dialect == "alce" {
					s, err := alce(a)
					return Value{V: s.precision}, err
				}
				items := make([]parts, len(a.Answers))
				for i, statements := range a.Answers {
					for _, s := range statements {
						items[i].n += float64(len(s.Citations))
						for _, supports := range s.Citations {
							items[i].x += number(bool(supports))
						}
					}
				}
				return averaged(items, or(a.Average, macro))
			}),
		metric("remove_citations", "a text without its marks of the form [1]", nil, func(_ string, a text) (Value, error) {
			return Value{V: RemoveCitations(a.Text)}, nil
		}),
		metric("parse_citations", "the numbers in a text's marks of the form [1] or [1, 2]", []string{"assay", "alce"}, func(dialect string, a text) (Value, error) {
			ids, err := parseCitations(a.Text, dialect == "alce")
			return plainly(ids, err)
		}),
	}
}

type alceScores struct{ recall, precision float64 }

// alce scores the citations of one answer by ALCE's rules. A sentence that cites a
// document that is not there scores 0 and takes its citations out of the precision.
func alce(a citationArgs) (alceScores, error) {
	most := 3
	if a.AtMost != nil {
		most = *a.AtMost
	}
	if len(a.Sentences) == 0 || most < 1 || a.Documents < 0 {
		return alceScores{}, errors.New("sentences, n_docs, at_most_citations: want at least one sentence and citation")
	}
	var recalled, credits, cited int
	for i, s := range a.Sentences {
		if slices.ContainsFunc(s.Refs, func(r int) bool { return r < 0 }) {
			return alceScores{}, fmt.Errorf("sentences[%d]: refs count from 0", i)
		}
		if len(s.Refs) == 0 || slices.ContainsFunc(s.Refs, func(r int) bool { return r >= a.Documents }) {
			continue
		}
		refs := s.Refs[:min(most, len(s.Refs))]
		cited += len(refs)
		if !s.entailedBy(refs) {
			continue
		}
		recalled++
		for k := range refs {
			others := slices.Delete(slices.Clone(refs), k, k+1)
			if len(refs) == 1 || s.entailedBy(refs[k:k+1]) || !s.entailedBy(others) {
				credits++
			}
		}
	}
	scores := alceScores{recall: float64(recalled) / float64(len(a.Sentences))}
	if cited > 0 {
		scores.precision = float64(credits) / float64(cited)
	}
	return scores, nil
}

// entailedBy compares sets: the order and repeated numbers do not matter.
func (s CitedSentence) entailedBy(refs []int) bool {
	want := setOf(refs)
	return slices.ContainsFunc(s.Entail, func(documents []int) bool { return maps.Equal(setOf(documents), want) })
}

func setOf(numbers []int) map[int]bool {
	set := make(map[int]bool, len(numbers))
	for _, n := range numbers {
		set[n] = true
	}
	return set
}

// RemoveCitations takes marks of the form [1] or [1, 2] out of a text, each with the one
// space before it.
func RemoveCitations(text string) string {
	return regexp.MustCompile(` ?\[\d+(?:\s*,\s*\d+)*\]`).ReplaceAllString(text, "")
}

// ParseCitations returns the numbers in the marks of a text, in its order. A number too
// large for any list of documents is an error.
func ParseCitations(text string) ([]int, error) { return parseCitations(text, false) }

// parseCitations with firstOnly takes, as ALCE does, the first number after each bracket.
func parseCitations(text string, firstOnly bool) ([]int, error) {
	mark := regexp.MustCompile(`\[\d+(?:\s*,\s*\d+)*\]`)
	if firstOnly {
		mark = regexp.MustCompile(`\[\d+`)
	}
	ids := []int{}
	for _, m := range mark.FindAllString(text, -1) {
		for _, digits := range regexp.MustCompile(`\d+`).FindAllString(m, -1) {
			id, err := strconv.Atoi(digits)
			if err != nil {
				return nil, fmt.Errorf("citation %.20s: %w", digits, strconv.ErrRange)
			}
			ids = append(ids, id)
		}
	}
	return ids, nil
}
