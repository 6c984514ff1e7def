package aggregate

import "unicode/utf8"

// firstRune and lastRune are 0 for an empty text, which is neither letter nor digit.
func firstRune(s string) (rune, int) {
	if s == "" {
		return 0, 0
	}
	return utf8.DecodeRuneInString(s)
}

func lastRune(s string) (rune, int) {
	if s == "" {
		return 0, 0
	}
	return utf8.DecodeLastRuneInString(s)
}
