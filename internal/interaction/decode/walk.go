package decode

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// What follows reads bytes that scan has passed.

// A value is one JSON value's bytes; nil is absent.
type value []byte

func (v value) isString() bool { return len(v) > 0 && v[0] == '"' }
func (v value) isObject() bool { return len(v) > 0 && v[0] == '{' }
func (v value) isArray() bool  { return len(v) > 0 && v[0] == '[' }
func (v value) isNumber() bool {
	return len(v) > 0 && (v[0] >= '0' && v[0] <= '9' || v[0] == '-' && len(v) > 1 && v[1] != 'I')
}

// absent reports whether the value says nothing: missing, null, or no finite number.
func (v value) absent() bool {
	return len(v) == 0 || v[0] == 'n' || v[0] == 'N' || v[0] == 'I' || (v[0] == '-' && v[1] == 'I')
}

// A walker goes over the members of an object or the elements of an array.
type walker struct {
	b   []byte
	i   int
	obj bool
	raw []byte // the member's key as written, without its quotes
	val value
}

// walk starts over v; a value that is no container has no members.
func walk(v value) walker {
	if !v.isObject() && !v.isArray() {
		return walker{}
	}
	return walker{b: v, i: 1, obj: v[0] == '{'}
}

func (w *walker) next() bool {
	i := skipSpace(w.b, w.i)
	if i < len(w.b) && w.b[i] == ',' {
		i = skipSpace(w.b, i+1)
	}
	if i >= len(w.b) || w.b[i] == '}' || w.b[i] == ']' {
		return false
	}
	if w.obj {
		end := stringEnd(w.b, i)
		w.raw = w.b[i+1 : end-1]
		i = skipSpace(w.b, end)
		i = skipSpace(w.b, i+1) // the colon
	}
	end := valueEnd(w.b, i)
	w.val, w.i = w.b[i:end:end], end
	return true
}

// key is the member's name; escapes in it are read.
func (w *walker) key() []byte {
	if bytes.IndexByte(w.raw, '\\') < 0 {
		return w.raw
	}
	s, _ := unescape(w.raw)
	return []byte(s)
}

// member returns the value of the last member of v with that name.
func (v value) member(name string) value {
	var found value
	if !v.isObject() {
		return nil
	}
	for w := walk(v); w.next(); {
		if string(w.key()) == name {
			found = w.val
		}
	}
	return found
}

func stringEnd(b []byte, i int) int {
	i++
	// Most strings are names and other short words; a search costs more than they do.
	for range 2 {
		if i+8 > len(b) {
			break
		}
		stop := stringStops(binary.LittleEndian.Uint64(b[i:]))
		if stop == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(stop) / 8
		if b[i] == '"' {
			return i + 1
		}
		i += 2 // an escape
		break
	}
	for {
		n := bytes.IndexByte(b[i:], '"')
		i += n + 1
		back := 0
		for b[i-2-back] == '\\' {
			back++
		}
		if back%2 == 0 {
			return i
		}
	}
}

// stringStops has the high bit set of the first byte of w that is a quote or a backslash.
func stringStops(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, back := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote | (back-ones)&^back) & high
}

func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		for depth := 0; ; {
			switch b[i] {
			case '"':
				i = stringEnd(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return i
}

// text reads a JSON string. lossy reports that bytes were no UTF-8, or a surrogate
// stood alone: they became U+FFFD.
func (v value) text() (s string, lossy bool) { return unescape(v[1 : len(v)-1]) }

func unescape(b []byte) (string, bool) {
	if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		return string(b), false
	}
	var out strings.Builder
	out.Grow(len(b))
	lossy := false
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			plain := b[i:]
			if n := bytes.IndexByte(plain, '\\'); n >= 0 {
				plain = plain[:n]
			}
			lossy = writeUTF8(&out, plain) || lossy
			i += len(plain)
			continue
		}
		switch c := b[i+1]; c {
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case 'u':
			r := hex4(b[i+2:])
			i += 6
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if i+6 <= len(b) && b[i] == '\\' && b[i+1] == 'u' {
					pair = utf16.DecodeRune(r, hex4(b[i+2:]))
				}
				if pair == utf8.RuneError {
					lossy = true
				} else {
					i += 6
				}
				r = pair
			}
			out.WriteRune(r)
			continue
		default: // quote, backslash, slash
			out.WriteByte(c)
		}
		i += 2
	}
	return out.String(), lossy
}

// writeUTF8 writes text, with U+FFFD for every byte that is no UTF-8, and reports whether
// there was one.
func writeUTF8(out *strings.Builder, text []byte) (lossy bool) {
	if utf8.Valid(text) {
		out.Write(text)
		return false
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		lossy = lossy || r == utf8.RuneError && n == 1
		out.WriteRune(r)
		i += n
	}
	return lossy
}

func hex4(b []byte) rune {
	r := rune(0)
	for _, c := range b[:4] {
		r = r<<4 | rune(hexDigit(c))
	}
	return r
}

// compact is the value as text: its own key order, digits and escapes, without the
// white space between tokens.
func (v value) compact() (s string, lossy bool) {
	var out strings.Builder
	out.Grow(len(v))
	for i := 0; i < len(v); {
		switch v[i] {
		case ' ', '\n', '\r', '\t':
			i++
		case '"':
			end := stringEnd(v, i)
			out.Write(v[i:end])
			i = end
		default:
			out.WriteByte(v[i])
			i++
		}
	}
	s = out.String()
	if !utf8.ValidString(s) {
		return strings.ToValidUTF8(s, string(utf8.RuneError)), true
	}
	return s, false
}
