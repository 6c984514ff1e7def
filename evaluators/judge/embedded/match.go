package embedded

import (
	"math/bits"
	"strings"
)

// fuzzyDice is the share of character bigrams two words must have in common to be
// read as one: it joins Tchaikovsky and Tchaikovskij, not Austria and Australia.
const fuzzyDice = 0.6

// A match is one reference laid over the answer.
type match struct {
	ref     *document
	words   []int  // indices of the reference tokens that are looked for
	exact   []bool // the word stands in the answer
	fuzzy   []bool // it stands there or nearly
	novel   []bool // it is not in the question, so the answer had to find it
	spans   []span // where the whole reference stands, or the tightest place where most of it does
	whole   bool   // spans hold the whole reference, in order
	joined  bool   // the whole reference stands there but for spaces
	trigram float64
}

// A span is a range of answer tokens, end excluded.
type span struct{ start, end int }

// maxSpans bounds how many mentions of the reference are looked at.
const maxSpans = 6

// lay matches a reference with an answer. question may be nil.
func lay(ref, answer, question *document) *match {
	ref = spelling(ref, answer)
	m := &match{ref: ref, words: ref.content}
	if len(m.words) == 0 {
		// "The Who": there is nothing but function words, so they are the content.
		m.words = make([]int, len(ref.tokens))
		for i := range m.words {
			m.words[i] = i
		}
	}
	n := len(m.words)
	flags := make([]bool, 3*n)
	m.exact, m.fuzzy, m.novel = flags[:n:n], flags[n:2*n:2*n], flags[2*n:]
	for i, w := range m.words {
		t := ref.tokens[w]
		m.exact[i] = answer.has(t.stem)
		m.novel[i] = question == nil || !question.has(t.stem)
		m.fuzzy[i] = m.exact[i] || !t.isNumber && near(t.stem, answer)
	}
	m.spans = wholeSpans(ref, m.words, answer)
	m.whole = len(m.spans) > 0
	m.joined = m.whole || len(ref.joined) >= 5 && strings.Contains(answer.joined, ref.joined)
	if !m.whole {
		if s, ok := tightest(ref, m.words, m.exact, answer); ok {
			m.spans = []span{s}
		}
	}
	m.trigram = trigramRecall(ref.folded, answer.folded)
	return m
}

// wholeSpans finds the places where the reference's words follow each other; words
// without content in between do not count.
func wholeSpans(ref *document, words []int, answer *document) []span {
	if len(words) == 0 {
		return nil
	}
	loose := len(ref.content) > 0
	var spans []span
next:
	for _, start := range answer.positions[ref.tokens[words[0]].stem] {
		at := start
		for _, w := range words[1:] {
			at++
			for loose && at < len(answer.tokens) && !answer.tokens[at].content() {
				at++
			}
			if at >= len(answer.tokens) || answer.tokens[at].stem != ref.tokens[w].stem {
				continue next
			}
		}
		spans = append(spans, span{start, at + 1})
		if len(spans) == maxSpans {
			break
		}
	}
	return spans
}

// tightest is the shortest stretch of the answer that holds every reference word
// that stands in it at all.
func tightest(ref *document, words []int, exact []bool, answer *document) (span, bool) {
	want := map[string]int{}
	for i, w := range words {
		if exact[i] {
			want[ref.tokens[w].stem] = 0
		}
	}
	if len(want) == 0 {
		return span{}, false
	}
	best, held, start := span{0, len(answer.tokens)}, 0, 0
	for end, t := range answer.tokens {
		n, ok := want[t.stem]
		if !ok {
			continue
		}
		want[t.stem] = n + 1
		if n == 0 {
			held++
		}
		for held == len(want) {
			if end+1-start < best.end-best.start {
				best = span{start, end + 1}
			}
			s := answer.tokens[start].stem
			if n, ok := want[s]; ok {
				want[s] = n - 1
				if n == 1 {
					held--
				}
			}
			start++
		}
	}
	return best, true
}

// A shape is a word's set of bigrams, hashed to 64 bits: it settles most questions
// of likeness without comparing a letter.
type shape struct {
	stem    string
	mask    uint64
	bigrams int
	again   int // bigrams that share their bit with an earlier one
}

func shapeOf(stem string) shape {
	s := shape{stem: stem, bigrams: len(stem) - 1}
	for i := range s.bigrams {
		s.mask |= 1 << ((uint(stem[i])*7 + uint(stem[i+1])*29) & 63)
	}
	s.again = s.bigrams - bits.OnesCount64(s.mask)
	return s
}

// atMost bounds how many bigrams two words have in common.
func (s shape) atMost(o shape) int {
	return bits.OnesCount64(s.mask&o.mask) + min(s.again, o.again)
}

// near reports whether the answer holds a word that is nearly this one.
func near(stem string, answer *document) bool {
	if len(stem) < 4 {
		return false
	}
	want := shapeOf(stem)
	for _, s := range answer.wordShapes() {
		if 2*float64(want.atMost(s)) > fuzzyDice*float64(want.bigrams+s.bigrams) && dice(stem, s.stem) > fuzzyDice {
			return true
		}
	}
	return false
}

// wordShapes are the shapes of the text's content words. They are made when first
// wanted: a reference that stands there word by word needs none.
func (d *document) wordShapes() []shape {
	if d.shapes == nil {
		d.shapes = make([]shape, 0, len(d.content))
		for _, i := range d.content {
			if t := &d.tokens[i]; !t.isNumber && len(t.stem) >= 3 {
				d.shapes = append(d.shapes, shapeOf(t.stem))
			}
		}
	}
	return d.shapes
}

// dice is the share of bigrams two words have in common.
func dice(a, b string) float64 {
	if a == b {
		return 1
	}
	na, nb := len(a)-1, len(b)-1
	if na < 1 || nb < 1 {
		return 0
	}
	var used [64]bool
	if nb > len(used) {
		return 0
	}
	common := 0
	for i := range na {
		for j := range nb {
			if !used[j] && a[i] == b[j] && a[i+1] == b[j+1] {
				used[j] = true
				common++
				break
			}
		}
	}
	return 2 * float64(common) / float64(na+nb)
}

// spelling returns the reference in the form in which the answer has it: a name as
// its acronym, an acronym written out. Otherwise it returns ref.
func spelling(ref, answer *document) *document {
	if acronym := acronymOf(ref); acronym != "" && answer.shouts(acronym) {
		return respelled(ref, []token{{text: acronym, stem: acronym, capital: true, shouted: true}})
	}
	if len(ref.tokens) == 1 && ref.tokens[0].shouted && !answer.has(ref.tokens[0].stem) {
		if name := writtenOut(ref.tokens[0].text, answer); name != nil {
			return respelled(ref, name)
		}
	}
	return ref
}

// shouts reports whether the text holds a word in capitals: WHO is not who.
func (d *document) shouts(word string) bool {
	for _, i := range d.positions[word] {
		if d.tokens[i].shouted {
			return true
		}
	}
	return false
}

// respelled is a document of the given words, in place of ref.
func respelled(ref *document, tokens []token) *document {
	d := &document{tokens: tokens, commas: ref.commas, positions: map[string][]int{}}
	texts := make([]string, len(tokens))
	for i, t := range tokens {
		texts[i] = t.text
		if t.content() {
			d.content = append(d.content, i)
		}
		d.positions[t.stem] = append(d.positions[t.stem], i)
	}
	d.folded, d.joined = strings.Join(texts, " "), strings.Join(texts, "")
	return d
}

// acronymOf is what the capitals of a name of three or more words spell.
func acronymOf(d *document) string {
	var letters [8]byte
	n := 0
	for _, t := range d.tokens {
		if t.isNumber || !t.capital {
			if t.class&stop == 0 {
				return ""
			}
			continue
		}
		if t.class&stop != 0 {
			continue // The National Football League
		}
		if n == len(letters) {
			return ""
		}
		letters[n] = t.text[0]
		n++
	}
	if n < 3 {
		return ""
	}
	return string(letters[:n])
}

// writtenOut returns the neighbouring capitalised words of the answer that spell the
// acronym, or nil; small words between them are passed over and left out.
func writtenOut(acronym string, answer *document) []token {
	if len(acronym) < 3 || len(acronym) > 8 {
		return nil
	}
	var name []token
	for _, t := range answer.tokens {
		switch {
		case t.capital && !t.shouted && !t.isNumber && t.text[0] == acronym[len(name)]:
			name = append(name, t)
			if len(name) == len(acronym) {
				return name
			}
		case t.class&stop != 0 && !t.capital:
		case t.capital && t.text[0] == acronym[0]:
			name = append(name[:0], t)
		default:
			name = name[:0]
		}
	}
	return nil
}

// trigramRecall is the share of the reference's character trigrams that stand in the answer.
func trigramRecall(ref, answer string) float64 {
	if len(ref) < 3 {
		if strings.Contains(" "+answer+" ", " "+ref+" ") {
			return 1
		}
		return 0
	}
	hits := 0
	for i := 0; i+3 <= len(ref); i++ {
		if strings.Contains(answer, ref[i:i+3]) {
			hits++
		}
	}
	return float64(hits) / float64(len(ref)-2)
}

// share is the part of the words with a true flag; 0 of 0 is none.
func share(flags []bool) float64 {
	if len(flags) == 0 {
		return 0
	}
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return float64(n) / float64(len(flags))
}

// lcs is the length of the longest common subsequence of content stems.
func lcs(ref *document, words []int, answer *document) int {
	row := make([]int, len(words)+1)
	for _, i := range answer.content {
		stem := answer.tokens[i].stem
		diagonal := 0
		for j, w := range words {
			above := row[j+1]
			if ref.tokens[w].stem == stem {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(words)]
}
