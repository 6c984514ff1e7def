package decode

import "unicode/utf8"

// Exporters cut long attributes at a length, in the middle of the JSON they hold. What
// stands before the cut is whole and was said; what is lost is lost. salvage closes
// the JSON where it was cut: all members and elements before the cut stay, a string
// that was cut keeps its text, anything else that was cut is dropped.
//
// depth is how many containers were open at the cut: from 2 on, the last element of
// the outermost list is cut itself. ok is false where b begins no container, or is
// whole.
func salvage(b []byte) (v value, depth int, ok bool) {
	var closers []byte
	keep := 0 // b[:keep] and the closers are JSON
	closed := func(head []byte, more ...byte) (value, int, bool) {
		out := make(value, 0, len(head)+len(more)+len(closers))
		out = append(append(out, head...), more...)
		for i := len(closers) - 1; i >= 0; i-- {
			out = append(out, closers[i])
		}
		return out, len(closers), len(closers) > 0
	}
	i := skipSpace(b, 0)
	for i < len(b) {
		opened := false
		switch c := b[i]; c {
		case '{', '[':
			if len(closers) == nestedDepth {
				return closed(b[:keep])
			}
			closers = append(closers, c+2) // the closing bracket, in ASCII
			opened = true
			i++
			keep = i
		case '"':
			end, err := scanString(b, i)
			if err != nil {
				return closed(cutString(b[:end]), '"')
			}
			i = end
		default:
			n, _ := scanWord(b[i:])
			if n == 0 || i+n == len(b) { // a number may go on behind the cut
				return closed(b[:keep])
			}
			i += n
		}
		if !opened {
			keep = i
		}
		for {
			if len(closers) == 0 {
				return nil, 0, false // whole
			}
			i = skipSpace(b, i)
			if i < len(b) && b[i] == closers[len(closers)-1] {
				closers = closers[:len(closers)-1]
				opened = false
				i++
				keep = i
				continue
			}
			if !opened {
				if i >= len(b) || b[i] != ',' {
					return closed(b[:keep])
				}
				i = skipSpace(b, i+1)
			}
			if closers[len(closers)-1] == '}' {
				var err error
				if i, err = scanKey(b, i); err != nil {
					return closed(b[:keep])
				}
			}
			break
		}
	}
	return closed(b[:keep])
}

// cutString drops from the end of an open string what is no whole character: the head
// of an escape or of a rune.
func cutString(b []byte) []byte {
	for back := 1; back <= 6 && back <= len(b); back++ {
		if b[len(b)-back] != '\\' {
			continue
		}
		slashes := 0
		for slashes < len(b)-back && b[len(b)-back-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 && (back == 1 || escape(b[len(b)-back+1:]) == 0) {
			return b[:len(b)-back]
		}
		break
	}
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if c := b[len(b)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-back:]) {
				return b[:len(b)-back]
			}
			break
		}
	}
	return b
}
