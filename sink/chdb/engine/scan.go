package engine

import "strings"

// A token is a word, a quoted thing or a single sign of SQL text.
type token struct {
	text       string
	start, end int
	depth      int // open brackets around it
	word       bool
}

func (t token) upper() string { return strings.ToUpper(t.text) }

// ending tells how the text stopped.
type ending struct {
	open  bool // inside a quote or comment
	start int  // where that began
}

// scan cuts sql into tokens and drops comments. It knows just enough of
// ClickHouse's lexer that no keyword is seen inside a quote, a comment or a
// heredoc. What follows VALUES or an INSERT's FORMAT is data; scanning it does
// no harm because nobody looks at tokens behind those words.
func scan(sql string) ([]token, ending) {
	var tokens []token
	depth := 0
	for i := 0; i < len(sql); {
		start, c := i, sql[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
			i++
			continue
		case strings.HasPrefix(sql[i:], "--"), strings.HasPrefix(sql[i:], "#!"), strings.HasPrefix(sql[i:], "# "):
			if n := strings.IndexByte(sql[i:], '\n'); n >= 0 {
				i += n + 1
			} else {
				i = len(sql)
			}
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			n := strings.Index(sql[i+2:], "*/")
			if n < 0 {
				return tokens, ending{open: true, start: start}
			}
			i += n + 4
			continue
		case c == '\'' || c == '"' || c == '`':
			end := quoteEnd(sql, i)
			if end < 0 {
				return tokens, ending{open: true, start: start}
			}
			i = end
		case c == '$':
			i = heredocEnd(sql, i)
		case wordByte(c):
			for i < len(sql) && wordByte(sql[i]) {
				i++
			}
			tokens = append(tokens, token{text: sql[start:i], start: start, end: i, depth: depth, word: c < '0' || c > '9'})
			continue
		default:
			i++
		}
		if c == ')' || c == ']' || c == '}' {
			depth = max(depth-1, 0)
		}
		tokens = append(tokens, token{text: sql[start:i], start: start, end: i, depth: depth})
		if c == '(' || c == '[' || c == '{' {
			depth++
		}
	}
	return tokens, ending{}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// quoteEnd is the offset behind the quote that opens at i, -1 if it never ends.
// A doubled quote inside is two quotes side by side, which ends the same.
func quoteEnd(sql string, i int) int {
	quote := sql[i]
	for i++; i < len(sql); i++ {
		switch sql[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return -1
}

// heredocEnd is the offset behind $tag$ ... $tag$, or behind the lone dollar.
func heredocEnd(sql string, i int) int {
	j := i + 1
	for j < len(sql) && wordByte(sql[j]) {
		j++
	}
	if j == len(sql) || sql[j] != '$' {
		return i + 1
	}
	tag := sql[i : j+1]
	if n := strings.Index(sql[j+1:], tag); n >= 0 {
		return j + 1 + n + len(tag)
	}
	return i + 1
}
