package embedded

import "math"

// reach is how many words before a mention a negator still governs it: "was not,
// as many think, Rome" is four. nearby is how close a contrast must follow to be about the
// mention; further on it starts another thought.
const (
	reach  = 4
	nearby = 2
)

// briefAnswer is up to how many words an answer is one statement. In a longer one a
// "not" beside the reference is mostly about something else.
const briefAnswer = 25

// A mention is what stands around one place where the answer states the reference.
type mention struct {
	negated   bool // a negator just before, or "rather than", "instead of"
	refuted   bool // called wrong just after
	rejected  bool // a contrast just after: "X, but in fact Y"
	doubted   bool // a contrast later in this sentence or the next
	resolved  bool // a contrast before, in the sentence: "not Y but X", "however, it is X"
	preferred bool // another candidate is denied just after: "X, not Y", "X rather than Y"
	hedged    bool // a hedge just before
	offered   bool // one of several: "X or Y"
}

func (v *view) look(s span) mention {
	var m mention
	v.lookBack(s, &m)
	v.lookAhead(s, &m)
	tokens := v.answer.tokens
	m.offered = s.start > 0 && tokens[s.start-1].text == "or" || s.end < len(tokens) && tokens[s.end].text == "or"
	return m
}

func (v *view) lookBack(s span, m *mention) {
	tokens := v.answer.tokens
	sentence := tokens[s.start].sentence
	for i := s.start - 1; i >= 0 && tokens[i].sentence == sentence; i-- {
		t := tokens[i]
		if i == s.start-2 && passesOver(t.text, tokens[i+1].text) {
			m.negated = true
			return
		}
		if t.class&contrast != 0 {
			m.resolved = true // what was denied before "but" is not this
			return
		}
		if i < s.start-reach {
			continue
		}
		if t.class&negator != 0 && t.text != "without" {
			m.negated = true
		}
		if t.class&hedge != 0 {
			m.hedged = true
		}
	}
}

func (v *view) lookAhead(s span, m *mention) {
	tokens := v.answer.tokens
	sentence := tokens[s.start].sentence
	for i := s.end; i < len(tokens) && tokens[i].sentence <= sentence+1; i++ {
		t := tokens[i]
		same := t.sentence == sentence
		switch {
		case i == s.end && i+1 < len(tokens) && passesOver(t.text, tokens[i+1].text):
			m.preferred = true
			return
		case t.class&contrast != 0:
			m.rejected = same && i <= s.end+nearby
			m.doubted = true
			return
		case !same || i > s.end+reach:
		case i == s.end && t.comma && t.class&negator != 0:
			m.preferred = true
			return
		case t.class&wrongCue != 0, t.class&negator != 0 && i <= s.end+nearby:
			m.refuted = true
		}
	}
}

// passesOver tells the pairs of words that set aside what follows them.
func passesOver(first, second string) bool {
	return first == "rather" && second == "than" || first == "instead" && second == "of" || first == "other" && second == "than"
}

// harm counts the signs against a mention.
func (m mention) harm() int {
	n := 0
	for _, bad := range []bool{m.negated, m.refuted, m.rejected, m.hedged, m.offered} {
		if bad {
			n++
		}
	}
	return n
}

// mention returns the kindest of the places where the reference is stated: an
// answer may first deny a rumour of it and then affirm it.
func (v *view) mention(m *match) mention {
	var kindest mention
	least := math.MaxInt
	for _, s := range m.spans {
		if s.start >= s.end {
			continue
		}
		look := v.look(s)
		harm := look.harm()
		if harm < least {
			kindest, least = look, harm
		}
	}
	return kindest
}
