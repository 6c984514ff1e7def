package embedded

import (
	"math"
	"strings"
)

// A Pair is what the judge compares: an answer with one or more references, beside
// the question if there is one.
type Pair struct {
	Question   string
	Answer     string
	References []string
}

// A view is a pair made ready once, before the references are tried.
type view struct {
	lex      *lexicon
	idf      IDF
	question *document // or nil
	answer   *document
}

// best lays every reference over the answer and returns the one that fits best.
// References are alternatives, so agreement with any is agreement; which one it is
// gets decided by plain overlap, because the weights are made for the chosen one.
func (v *view) best(references []*document) (int, *match) {
	var chosen *match
	index, top := 0, -1.0
	for i, ref := range references {
		m := lay(ref, v.answer, v.question)
		fit := v.idfRecall(m, m.exact, nil) + share(m.fuzzy) + share(m.exact) + m.trigram
		if m.whole {
			fit++
		}
		if fit > top {
			index, chosen, top = i, m, fit
		}
	}
	return index, chosen
}

// idfRecall is the weight of the reference words with a true flag, as a share of
// all of them, or of those that only holds.
func (v *view) idfRecall(m *match, flags, only []bool) float64 {
	var hit, all float64
	for i, w := range m.words {
		if only != nil && !only[i] {
			continue
		}
		weight := v.idf.Of(m.ref.tokens[w].stem)
		all += weight
		if flags[i] {
			hit += weight
		}
	}
	if all == 0 {
		return share(flags)
	}
	return hit / all
}

// A vector collects features in the order in which they are named. The order is the
// model's: names go into the weights file and are compared when it is read.
type vector struct {
	names  []string // nil when only values are wanted
	values []float64
	wanted bool
}

func (f *vector) add(name string, value float64) {
	if f.wanted {
		f.names = append(f.names, name)
	}
	f.values = append(f.values, value)
}

func (f *vector) flag(name string, set bool) {
	if set {
		f.add(name, 1)
		return
	}
	f.add(name, 0)
}

func log1p(n int) float64 { return math.Log1p(float64(n)) }

// longReference is from how many words a reference is a sentence and not a name. Above
// it words are missed for their wording, below for their fact, so some features
// count twice: once for all, once more for these.
const longReference = 8

// describe turns a match into the model's features: agreement first, then
// contradiction, then the form of the three texts.
func (v *view) describe(f *vector, m *match, references []*document) {
	answer, ref := v.answer, m.ref
	recall, fuzzy := share(m.exact), share(m.fuzzy)

	// Agreement: how much of the reference stands in the answer, in several coins.
	hits := 0
	for _, i := range answer.content {
		if ref.has(answer.tokens[i].stem) {
			hits++
		}
	}
	precision := ratio(hits, len(answer.content))
	f.flag("exact", ref.folded == answer.folded)
	f.flag("contained", m.whole)
	f.flag("contained_without_spaces", m.joined)
	f.add("recall", recall)
	f.add("precision", precision)
	f.add("f1", harmonic(precision, recall))
	f.add("idf_recall", v.idfRecall(m, m.exact, nil))
	f.add("fuzzy_recall", fuzzy)

	// What the question already said is no evidence: anyone can repeat it.
	novelExact, novelFuzzy, novel := v.novelRecall(m)
	f.add("novel_recall", novelExact)
	f.add("novel_fuzzy_recall", novelFuzzy)
	f.add("novel_idf_recall", v.idfRecall(m, m.fuzzy, m.novel))
	f.flag("novel_all", novelFuzzy == 1)
	f.flag("novel_none", novelFuzzy == 0)
	f.flag("all_in_question", novel == 0)

	f.add("lcs", ratio(lcs(ref, m.words, answer), len(m.words)))
	f.add("trigrams", m.trigram)
	f.add("tightness", v.tightness(m))
	f.add("first_match_position", v.firstMatch(m))
	f.flag("head_present", len(m.fuzzy) > 0 && m.fuzzy[0])
	f.flag("last_present", len(m.fuzzy) > 0 && m.fuzzy[len(m.fuzzy)-1])
	f.add("sentence_f1", v.sentenceF1(m))
	f.add("first_sentence_recall", v.firstSentence(m))
	f.add("references_contained", v.contained(references))

	v.describeNumbers(f, m, references)
	v.describeContradiction(f, m)

	// Form.
	content := len(answer.content)
	f.add("log_reference_length", log1p(len(m.words)))
	f.add("log_answer_length", log1p(len(answer.tokens)))
	questionLength, unasked := 0, 0
	if v.question != nil {
		questionLength = len(v.question.tokens)
	}
	for _, i := range answer.content {
		if stem := answer.tokens[i].stem; !ref.has(stem) && (v.question == nil || !v.question.has(stem)) {
			unasked++
		}
	}
	f.add("log_question_length", log1p(questionLength))
	f.add("log_novel_answer_words", log1p(unasked))
	f.flag("short_answer", content <= 5)
	f.add("log_references", math.Log(float64(len(references))))

	long := 0.0
	if len(m.words) >= longReference {
		long = 1
	}
	f.add("long", long)
	f.add("long_recall", long*recall)
	f.add("long_fuzzy_recall", long*fuzzy)
	f.add("long_novel_recall", long*novelExact)
	f.add("long_novel_idf_recall", long*v.idfRecall(m, m.fuzzy, m.novel))
	f.add("long_precision", long*precision)
	f.add("long_f1", long*harmonic(precision, recall))
	f.add("long_trigrams", long*m.trigram)
}

// novelRecall is the share of reference words beyond the question that the answer
// has, exactly and nearly. If the question holds them all, all of them count.
func (v *view) novelRecall(m *match) (exact, fuzzy float64, novel int) {
	e, f := 0, 0
	for i, is := range m.novel {
		if !is {
			continue
		}
		novel++
		if m.exact[i] {
			e++
		}
		if m.fuzzy[i] {
			f++
		}
	}
	if novel == 0 {
		return share(m.exact), share(m.fuzzy), 0
	}
	return ratio(e, novel), ratio(f, novel), novel
}

// tightness is how close together the matched words stand: 1 is side by side.
func (v *view) tightness(m *match) float64 {
	if len(m.spans) == 0 {
		return 0
	}
	matched := 0
	for _, e := range m.exact {
		if e {
			matched++
		}
	}
	s := m.spans[0]
	return math.Min(1, ratio(matched, s.end-s.start))
}

// firstMatch is where the first word of the reference that the question did not
// give stands, as a share of the answer: answers come early, asides late.
func (v *view) firstMatch(m *match) float64 {
	at := len(v.answer.tokens)
	for i, w := range m.words {
		if m.exact[i] && m.novel[i] {
			at = min(at, v.answer.positions[m.ref.tokens[w].stem][0])
		}
	}
	return ratio(at, len(v.answer.tokens))
}

// sentenceF1 is the overlap with the sentence that has the most of it: a long
// answer may state the fact in one sentence and explain in ten.
func (v *view) sentenceF1(m *match) float64 {
	best := 0.0
	forSentences(v.answer, func(words []int) {
		hits := 0
		for _, i := range words {
			if m.ref.has(v.answer.tokens[i].stem) {
				hits++
			}
		}
		best = math.Max(best, harmonic(ratio(hits, len(words)), math.Min(1, ratio(hits, len(m.words)))))
	})
	return best
}

// firstSentence is the share of the reference that stands in the first sentence.
func (v *view) firstSentence(m *match) float64 {
	hits := 0
	for i, w := range m.words {
		if m.exact[i] && v.answer.tokens[v.answer.positions[m.ref.tokens[w].stem][0]].sentence == 0 {
			hits++
		}
	}
	return ratio(hits, len(m.words))
}

// contained is the share of the references that stand whole in the answer.
func (v *view) contained(references []*document) float64 {
	n := 0
	for _, ref := range references {
		if strings.Contains(v.answer.joined, ref.joined) {
			n++
		}
	}
	return ratio(n, len(references))
}

// forSentences calls do with the content words of each sentence that has any.
func forSentences(d *document, do func(words []int)) {
	start := 0
	for start < len(d.content) {
		end := start + 1
		for end < len(d.content) && d.tokens[d.content[end]].sentence == d.tokens[d.content[start]].sentence {
			end++
		}
		do(d.content[start:end])
		start = end
	}
}

func ratio(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func harmonic(a, b float64) float64 {
	if a+b == 0 {
		return 0
	}
	return 2 * a * b / (a + b)
}
