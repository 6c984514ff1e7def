package evaluators

import (
	"strconv"
	"strings"
)

// citationsIn returns the documents, counted from 0, that the marks of a text name:
// [2], or several in one pair of brackets.
func citationsIn(text string) []int {
	var refs []int
	eachMark(text, func(_, _ int, ids []int) {
		for _, id := range ids {
			refs = append(refs, id-1)
		}
	})
	return refs
}

// withoutMarks takes the marks out, each with one space before it.
func withoutMarks(text string) string {
	var b strings.Builder
	written := 0
	eachMark(text, func(start, end int, _ []int) {
		if start > written && text[start-1] == ' ' {
			start--
		}
		b.WriteString(text[written:start])
		written = end
	})
	b.WriteString(text[written:])
	return b.String()
}

// eachMark calls f with the place of every mark and the numbers in it.
func eachMark(text string, f func(start, end int, ids []int)) {
	for i := 0; i < len(text); i++ {
		if text[i] != '[' {
			continue
		}
		inner, _, ok := strings.Cut(text[i+1:], "]")
		if !ok {
			return
		}
		var ids []int
		for _, part := range strings.Split(inner, ",") {
			id, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || id < 0 {
				ids = nil
				break
			}
			ids = append(ids, id)
		}
		if ids == nil {
			continue // the bracket of something else; a mark may stand inside
		}
		f(i, i+len(inner)+2, ids)
		i += len(inner) + 1
	}
}
