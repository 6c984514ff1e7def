package decode

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A tape is a JSON document's values in the order in which they begin, each with where
// it ends: one pass over the bytes checks them, and whoever then looks for a member
// steps from one value to the next without reading what is inside.
type tape struct {
	b     []byte
	nodes []node
	twice bool // a name that was asked for stood twice in its object
}

type node struct {
	name, nameEnd uint32 // of a member, without the quotes
	at, end       uint32
	next          ref // the first node behind it and all it holds
	escaped       bool
}

// A ref is a node's place on the tape.
type ref uint16

const (
	none     ref = 0 // what is not there; nothing is inside it
	document ref = 1

	fastDepth = 64
	fastNodes = 1 << 15
	fastSpare = 1 << 12 // nodes kept between records
)

// read checks a document as scan does, and more strictly: what is no UTF-8, an escape in
// a name, a bare NaN, a second document and anything unusually deep or large is refused.
func (t *tape) read(b []byte, maxDepth int) bool {
	if cap(t.nodes) > fastSpare {
		t.nodes = nil // no giant that one record made
	}
	t.b, t.nodes, t.twice = b, append(t.nodes[:0], node{}), false
	var open [fastDepth]ref
	depth, i := 0, 0
	var name, nameEnd int
	for {
		// A value begins here.
		if i >= len(b) || len(t.nodes) == fastNodes {
			return false
		}
		n := len(t.nodes)
		t.nodes = append(t.nodes, node{name: uint32(name), nameEnd: uint32(nameEnd), at: uint32(i)})
		closed := true
		switch c := b[i]; c {
		case '{', '[':
			if depth == maxDepth {
				return false
			}
			i = skipSpace(b, i+1)
			if i >= len(b) {
				return false
			}
			if b[i] == c+2 { // its closing bracket
				i++
				break
			}
			open[depth] = ref(n)
			depth++
			closed = false
		case '"':
			end, escaped := t.text(i)
			if end == 0 {
				return false
			}
			i = end
			t.nodes[n].escaped = escaped
		default:
			size, bare := scanWord(b[i:])
			if size == 0 || bare {
				return false
			}
			i += size
		}
		if closed {
			t.nodes[n].end, t.nodes[n].next = uint32(i), ref(n+1)
		}
		for closed {
			if depth == 0 {
				return skipSpace(b, i) == len(b)
			}
			if i = skipSpace(b, i); i >= len(b) {
				return false
			}
			around := &t.nodes[open[depth-1]]
			switch b[i] {
			case ',':
				i = skipSpace(b, i+1)
				closed = false
			case b[around.at] + 2:
				i++
				around.end, around.next = uint32(i), ref(len(t.nodes))
				depth--
			default:
				return false
			}
		}
		if b[t.nodes[open[depth-1]].at] == '[' {
			name, nameEnd = 0, 0
			continue
		}
		if i >= len(b) || b[i] != '"' {
			return false
		}
		end, escaped := t.text(i)
		if end == 0 || escaped {
			return false
		}
		name, nameEnd = i+1, end-1
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return false
		}
		i = skipSpace(b, i+1)
	}
}

// text returns the index after the closing quote of the string at i, 0 if it is none.
func (t *tape) text(i int) (end int, escaped bool) {
	b, start := t.b, i+1
	wide := uint64(0)
	for i++; i < len(b); {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			if stop := stops(w); stop != 0 {
				n := bits.TrailingZeros64(stop) / 8
				wide |= w & (1<<(8*n) - 1)
				i += n
				break
			}
			wide |= w
			i += 8
		}
		if i >= len(b) {
			return 0, false
		}
		switch c := b[i]; {
		case c == '"':
			if wide&0x8080808080808080 != 0 && !utf8.Valid(b[start:i]) {
				return 0, false
			}
			return i + 1, escaped
		case c < 0x20:
			return 0, false
		case c != '\\':
			wide |= uint64(c)
			i++
		case i+1 >= len(b):
			return 0, false
		default:
			n := escape(b[i+1:])
			if n == 0 {
				return 0, false
			}
			escaped = true
			i += 1 + n
		}
	}
	return 0, false
}

// value is the node's bytes; none for what is not there.
func (t *tape) value(n ref) value {
	if n == none {
		return nil
	}
	return t.b[t.nodes[n].at:t.nodes[n].end:t.nodes[n].end]
}

// kind is the first byte of the value, 0 for what is not there.
func (t *tape) kind(n ref) byte {
	if n == none {
		return 0
	}
	return t.b[t.nodes[n].at]
}

func (t *tape) escaped(n ref) bool  { return t.nodes[n].escaped }
func (t *tape) name(n ref) []byte   { return t.b[t.nodes[n].name:t.nodes[n].nameEnd] }
func (t *tape) next(n ref) ref      { return t.nodes[n].next }
func (t *tape) isObject(n ref) bool { return t.kind(n) == '{' }
func (t *tape) isArray(n ref) bool  { return t.kind(n) == '[' }
func (t *tape) isString(n ref) bool { return t.kind(n) == '"' }

// absent is value.absent; the only bare word without a value here is null.
func (t *tape) absent(n ref) bool { return n == none || t.kind(n) == 'n' }

// inside is the first node inside a container, and where they end. Nothing is inside
// anything else.
func (t *tape) inside(n ref) (first, end ref) {
	if k := t.kind(n); k != '{' && k != '[' {
		return none, none
	}
	return n + 1, t.nodes[n].next
}

// head is the first element of a list.
func (t *tape) head(n ref) ref {
	if first, end := t.inside(n); t.isArray(n) && first < end {
		return first
	}
	return none
}

// member is the member of that name. Of two only Decode may say which one counts.
func (t *tape) member(n ref, name string) ref {
	if !t.isObject(n) {
		return none
	}
	found := none
	for c, end := t.inside(n); c < end; c = t.next(c) {
		if string(t.name(c)) == name {
			t.twice = t.twice || found != none
			found = c
		}
	}
	return found
}

// is compares as isText does, without reading escapes.
func (t *tape) is(n ref, text string) bool { return isText(t.value(n), text) }
