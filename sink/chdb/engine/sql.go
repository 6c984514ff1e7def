package engine

import (
	"slices"
	"strings"
)

// A kind is what the front must know of a statement to run it.
type kind int

const (
	kindQuery     kind = iota // takes FORMAT and SETTINGS at its end: SELECT, SHOW, CREATE, ALTER, ...
	kindChange                // DELETE and UPDATE take SETTINGS only
	kindBare                  // takes neither: SYSTEM, CREATE FUNCTION, ...
	kindInsert                // INSERT ... FORMAT f: the data follows the statement
	kindInsertSQL             // INSERT ... VALUES or SELECT: an ordinary statement
	kindSession               // USE, SET: would outlive the request on a shared connection
)

// A statement is one parsed request text.
type statement struct {
	kind   kind
	verb   string // first word, upper case
	text   string // without a closing semicolon and comments behind it
	format string // the format it names itself, else empty

	settingsAt int  // offset in text where the SETTINGS clause goes
	joins      bool // the text has a SETTINGS clause there already: ours joins it
	data       string

	defaultFormat string // of the request, for an answer whose text names none
}

// parse reads as much of sql as running it needs. The engine parses it again and
// reports every other mistake.
func parse(sql string) (statement, *Exception) {
	tokens, end := scan(sql)
	if len(tokens) == 0 {
		return statement{}, exceptionf(codeSyntaxError, "Syntax error: empty query (SYNTAX_ERROR)")
	}
	first := tokens[0]
	// "(SELECT 1) UNION ALL (SELECT 2)" opens with brackets.
	for i := 0; first.text == "(" && i+1 < len(tokens); i++ {
		first = tokens[i+1]
	}
	s := statement{verb: strings.ToUpper(first.text)}
	if s.verb == "INSERT" {
		return parseInsert(s, sql, tokens)
	}
	tokens, bad := lone(tokens)
	if bad != nil {
		return s, bad
	}
	if len(tokens) == 0 {
		return s, exceptionf(codeSyntaxError, "Syntax error: empty query (SYNTAX_ERROR)")
	}
	if end.open {
		// An unclosed string or comment: whatever we append would land inside it.
		return s, exceptionf(codeSyntaxError, "Syntax error: unclosed quote or comment at offset %d (SYNTAX_ERROR)", end.start)
	}
	s.text = sql[:tokens[len(tokens)-1].end]
	s.settingsAt = len(s.text)
	s.kind = kindOf(s.verb, tokens)
	switch s.kind {
	case kindQuery:
		s.format, s.joins = tail(tokens)
	case kindChange:
		s.joins = slices.ContainsFunc(tokens, func(t token) bool { return t.depth == 0 && t.word && t.upper() == "SETTINGS" })
	}
	return s, nil
}

// kindOf tells statements apart by the clauses the engine's grammar gives them.
func kindOf(verb string, tokens []token) kind {
	switch verb {
	case "USE", "SET":
		return kindSession
	case "DELETE", "UPDATE":
		return kindChange
	case "SYSTEM", "GRANT", "REVOKE", "BACKUP", "RESTORE", "BEGIN", "COMMIT", "ROLLBACK":
		return kindBare
	case "CREATE", "DROP", "ALTER":
		object := 1
		if len(tokens) > 3 && tokens[1].upper() == "OR" { // CREATE OR REPLACE
			object = 3
		}
		if len(tokens) > object {
			switch tokens[object].upper() {
			case "FUNCTION", "USER", "ROLE", "QUOTA", "ROW", "SETTINGS", "NAMED":
				return kindBare
			}
		}
	}
	return kindQuery
}

// tail finds the FORMAT name and whether a SETTINGS clause ends the statement.
// FORMAT is a keyword only when a bare word follows that ends the statement or
// stands before SETTINGS; elsewhere it may be a column of that name.
func tail(tokens []token) (format string, settings bool) {
	for i := len(tokens) - 2; i > 0; i-- {
		if tokens[i].depth != 0 || !tokens[i].word {
			continue
		}
		switch strings.ToUpper(tokens[i].text) {
		case "FORMAT":
			last := i+2 == len(tokens)
			if next := tokens[i+1]; next.word && (last || strings.EqualFold(tokens[i+2].text, "SETTINGS")) {
				return next.text, !last
			}
			return "", false
		case "FROM", "SELECT", "WHERE", "BY", "ENGINE":
			return "", false
		}
	}
	return "", false
}

// parseInsert finds where settings go, and where data starts.
func parseInsert(s statement, sql string, tokens []token) (statement, *Exception) {
	settings := -1
	// The third word at the earliest: INSERT INTO <table>.
	for i := 3; i < len(tokens); i++ {
		t := tokens[i]
		if t.depth != 0 || !t.word {
			continue
		}
		switch strings.ToUpper(t.text) {
		case "SETTINGS":
			settings = t.end
		case "FORMAT":
			if i+1 == len(tokens) || !tokens[i+1].word {
				return s, exceptionf(codeSyntaxError, "Syntax error: no format after FORMAT at offset %d (SYNTAX_ERROR)", t.start)
			}
			s.kind = kindInsert
			s.text, s.format = strings.TrimRight(sql[:t.start], " \t\r\n"), tokens[i+1].text
			s.data = insertData(sql[tokens[i+1].end:])
			s.settingsAt = len(s.text)
			if settings >= 0 {
				s.settingsAt, s.joins = settings, true
			}
			return s, nil
		case "VALUES", "SELECT", "WITH", "FROM":
			s.kind, s.text = kindInsertSQL, sql
			if t.upper() != "VALUES" { // whose data may hold a semicolon
				whole, bad := lone(tokens)
				if bad != nil {
					return s, bad
				}
				s.text = sql[:whole[len(whole)-1].end]
			}
			s.settingsAt = t.start
			if settings >= 0 {
				s.settingsAt, s.joins = settings, true
			}
			return s, nil
		}
	}
	// INSERT INTO t (SELECT ...) and mistakes: as they stand.
	whole, bad := lone(tokens)
	if bad != nil {
		return s, bad
	}
	s.kind, s.text = kindBare, sql[:whole[len(whole)-1].end]
	return s, nil
}

// lone cuts a closing semicolon and refuses a second statement: the engine would
// run both and run their answers together.
func lone(tokens []token) ([]token, *Exception) {
	for i, t := range tokens {
		if t.text != ";" || t.depth != 0 {
			continue
		}
		if i+1 < len(tokens) {
			return nil, exceptionf(codeSyntaxError, "Syntax error: one statement per request, found more after offset %d (SYNTAX_ERROR)", t.end)
		}
		return tokens[:i], nil
	}
	return tokens, nil
}

// insertData is what follows the format's name in the same text. One line break
// or the blanks up to it belong to the statement.
func insertData(rest string) string {
	trimmed := strings.TrimLeft(rest, " \t\r")
	if after, ok := strings.CutPrefix(trimmed, "\n"); ok {
		return after
	}
	if strings.HasPrefix(trimmed, ";") {
		return strings.TrimLeft(trimmed[1:], " \t\r\n")
	}
	return trimmed
}

// with returns the statement's text with settings and, where it has none, a
// format. A SETTINGS clause counts for one statement only, so nothing can leak
// into the next one on the connection.
func (s statement) with(settings []param) string {
	if s.kind == kindBare || s.kind == kindSession {
		return s.text
	}
	var b strings.Builder
	b.WriteString(s.text[:s.settingsAt])
	if s.kind == kindQuery && s.format == "" && len(settings) > 0 {
		// Without FORMAT before it, SETTINGS after a CREATE would be the table's.
		b.WriteString("\nFORMAT " + s.answerFormat())
	}
	for i, p := range settings {
		switch {
		case i > 0, s.joins && s.settingsAt == len(s.text):
			b.WriteString(", ")
		case s.joins:
			b.WriteString(" ")
		default:
			b.WriteString("\nSETTINGS ")
		}
		b.WriteString(p.name + " = " + quoteString(p.value))
	}
	if s.settingsAt < len(s.text) {
		if s.joins && len(settings) > 0 {
			b.WriteString(",")
		}
		b.WriteString(" " + s.text[s.settingsAt:])
	}
	return b.String()
}

// answerFormat is the format that the engine is told to answer in.
func (s statement) answerFormat() string {
	switch {
	case s.format != "":
		return s.format
	case s.defaultFormat != "":
		return s.defaultFormat
	default:
		return "Native"
	}
}

// quoteString writes a string literal.
func quoteString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\x00", `\0`).Replace(s) + "'"
}
