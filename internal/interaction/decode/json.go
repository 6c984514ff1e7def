package decode

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// The scanner decides whether bytes are JSON, in one pass without recursion and
// without memory of its own, before anything is read from them. Everything else in
// this package walks bytes that it has passed and checks nothing again.
//
// It is RFC 8259 with one relaxation: the bare words NaN, Infinity and -Infinity
// are values, since Python's json writes them by default. They read as null.

var (
	errTooDeep = errors.New("nested too deep")
	errSyntax  = errors.New("not valid JSON")
	errCutOff  = errors.New("JSON ends early")
)

// scan checks the value that starts at or after pos. It returns where the value
// ends, and whether a bare NaN or Infinity stands in it.
func scan(b []byte, pos, maxDepth int) (end int, nonfinite bool, err error) {
	var objects [depthCap / 64]uint64 // bit d: the container at depth d is an object
	depth := 0
	i := skipSpace(b, pos)
	for {
		// A value starts here.
		if i >= len(b) {
			return i, nonfinite, errCutOff
		}
		opened := false
		switch c := b[i]; c {
		case '{', '[':
			if depth == maxDepth || depth == depthCap {
				return i, nonfinite, errTooDeep
			}
			if c == '{' {
				objects[depth/64] |= 1 << (depth % 64)
			} else {
				objects[depth/64] &^= 1 << (depth % 64)
			}
			depth++
			opened = true
			i = skipSpace(b, i+1)
		case '"':
			if i, err = scanString(b, i); err != nil {
				return i, nonfinite, err
			}
		default:
			n, bare := scanWord(b[i:])
			if n == 0 {
				return i, nonfinite, errSyntax
			}
			nonfinite = nonfinite || bare
			i += n
		}
		// A value has ended, or a container has just opened: close what closes.
		for {
			if depth == 0 {
				return i, nonfinite, nil
			}
			if !opened {
				i = skipSpace(b, i)
			}
			if i >= len(b) {
				return i, nonfinite, errCutOff
			}
			inObject := objects[(depth-1)/64]>>((depth-1)%64)&1 == 1
			if (inObject && b[i] == '}') || (!inObject && b[i] == ']') {
				depth--
				opened = false
				i++
				continue
			}
			if !opened {
				if b[i] != ',' {
					return i, nonfinite, errSyntax
				}
				i = skipSpace(b, i+1)
			}
			if inObject {
				if i, err = scanKey(b, i); err != nil {
					return i, nonfinite, err
				}
			}
			break
		}
	}
}

func scanKey(b []byte, i int) (int, error) {
	if i >= len(b) {
		return i, errCutOff
	}
	if b[i] != '"' {
		return i, errSyntax
	}
	i, err := scanString(b, i)
	if err != nil {
		return i, err
	}
	i = skipSpace(b, i)
	if i >= len(b) {
		return i, errCutOff
	}
	if b[i] != ':' {
		return i, errSyntax
	}
	return skipSpace(b, i+1), nil
}

// scanString returns the index after the closing quote of the string at i. Bad UTF-8
// passes: reading the text replaces and flags it.
func scanString(b []byte, i int) (int, error) {
	for i++; i < len(b); {
		// Eight bytes at once: most of a log is text without quotes, escapes or
		// control bytes.
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			if stop := stops(w); stop != 0 {
				i += bits.TrailingZeros64(stop) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			break
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < 0x20:
			return i, errSyntax
		case c != '\\':
			i++
		case i+1 >= len(b):
			return i, errCutOff
		default:
			n := escape(b[i+1:])
			if n == 0 {
				return i, errSyntax
			}
			i += 1 + n
		}
	}
	return i, errCutOff
}

// stops has the high bit set of every byte of w that is a quote, a backslash or a
// control byte. Bits above the lowest set one may be wrong; only that one is used.
func stops(w uint64) uint64 {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, back := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote | (back-ones)&^back | (w-ones*0x20)&^w) & high
}

// escape returns the length of the escape after a backslash, 0 if it is none.
func escape(b []byte) int {
	switch b[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(b) < 5 {
			return 0
		}
		for _, c := range b[1:5] {
			if hexDigit(c) < 0 {
				return 0
			}
		}
		return 5
	}
	return 0
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// scanWord returns the length of the number or bare word that b starts with, 0 for
// none, and whether it is NaN or an infinity.
func scanWord(b []byte) (n int, nonfinite bool) {
	for _, w := range [...]string{"true", "false", "null"} {
		if hasPrefix(b, w) {
			return len(w), false
		}
	}
	for _, w := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if hasPrefix(b, w) {
			return len(w), true
		}
	}
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := digits(b[i:])
	if whole == 0 || (whole > 1 && b[i] == '0') {
		return 0, false
	}
	i += whole
	if i < len(b) && b[i] == '.' {
		fraction := digits(b[i+1:])
		if fraction == 0 {
			return 0, false
		}
		i += 1 + fraction
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := digits(b[i:])
		if exponent == 0 {
			return 0, false
		}
		i += exponent
	}
	return i, false
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}

func hasPrefix(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}
