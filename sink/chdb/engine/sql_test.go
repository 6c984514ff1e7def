package engine

import (
	"strings"
	"testing"
)

func TestSettingsGoWhereTheStatementTakesThem(t *testing.T) {
	settings := []param{{"max_threads", "2"}, {"log_comment", "it's"}}
	const clause = `SETTINGS max_threads = '2', log_comment = 'it\'s'`
	f := func(sql, want string) {
		t.Helper()
		s, bad := parse(sql)
		if bad != nil {
			t.Errorf("%s: %v", sql, bad)
			return
		}
		got := strings.Join(strings.Fields(s.with(settings)), " ")
		if want = strings.ReplaceAll(want, "<S>", clause); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}

	f("SELECT 1", "SELECT 1 FORMAT Native <S>")
	f("SELECT 1 ; -- done", "SELECT 1 FORMAT Native <S>")
	f("SELECT 1 FORMAT JSON", "SELECT 1 FORMAT JSON <S>")
	f("SELECT 1 FORMAT JSON SETTINGS a = 1", "SELECT 1 FORMAT JSON SETTINGS a = 1, max_threads = '2', log_comment = 'it\\'s'")
	// its own clause before FORMAT stays what it is
	f("SELECT 1 SETTINGS a = 1", "SELECT 1 SETTINGS a = 1 FORMAT Native <S>")
	// a table's settings are no query's
	f("CREATE TABLE t (n Int8) ENGINE = MergeTree ORDER BY n SETTINGS index_granularity = 9",
		"CREATE TABLE t (n Int8) ENGINE = MergeTree ORDER BY n SETTINGS index_granularity = 9 FORMAT Native <S>")
	// words in quotes, comments, brackets and names are no clauses
	f("SELECT 'FORMAT x', `SETTINGS` /* FORMAT y */ FROM (SELECT 1 FORMAT Null)", "SELECT 'FORMAT x', `SETTINGS` /* FORMAT y */ FROM (SELECT 1 FORMAT Null) FORMAT Native <S>")
	f("SELECT format FROM t", "SELECT format FROM t FORMAT Native <S>")
	f("SELECT $tag$ ; FORMAT $tag$", "SELECT $tag$ ; FORMAT $tag$ FORMAT Native <S>")
	f("DELETE FROM t WHERE n = 1", "DELETE FROM t WHERE n = 1 <S>")
	f("DELETE FROM t WHERE n = 1 SETTINGS a = 1", "DELETE FROM t WHERE n = 1 SETTINGS a = 1, max_threads = '2', log_comment = 'it\\'s'")
	f("INSERT INTO t (a) VALUES (1); SELECT 2", "INSERT INTO t (a) <S> VALUES (1); SELECT 2")
	f("INSERT INTO t SELECT ';' ;", "INSERT INTO t <S> SELECT ';'")
	f("INSERT INTO t SETTINGS a = 1 SELECT 2", "INSERT INTO t SETTINGS max_threads = '2', log_comment = 'it\\'s', a = 1 SELECT 2")
	f("insert into t (a) format Native", "insert into t (a) <S>")
	f("INSERT INTO t SETTINGS a = 1 FORMAT Native", "INSERT INTO t SETTINGS max_threads = '2', log_comment = 'it\\'s', a = 1")
	f("INSERT INTO values (format) FORMAT CSV", "INSERT INTO values (format) <S>")
	f("SYSTEM FLUSH LOGS", "SYSTEM FLUSH LOGS")
	f("CREATE FUNCTION f AS (x) -> x", "CREATE FUNCTION f AS (x) -> x")
	f("CREATE OR REPLACE TABLE t AS u", "CREATE OR REPLACE TABLE t AS u FORMAT Native <S>")
}

func TestInsertDataStartsBehindTheFormat(t *testing.T) {
	f := func(sql, format, data string) {
		t.Helper()
		s, bad := parse(sql)
		if bad != nil || s.kind != kindInsert || s.format != format || s.data != data {
			t.Errorf("%q: kind %d, format %q, data %q, %v; want %q, %q", sql, s.kind, s.format, s.data, bad, format, data)
		}
	}
	f("INSERT INTO t FORMAT Native", "Native", "")
	f("INSERT INTO t FORMAT CSV\n1,2\n", "CSV", "1,2\n")
	f("INSERT INTO t FORMAT CSV  \r\n\n1,2\n", "CSV", "\n1,2\n")
	f("INSERT INTO t FORMAT JSONEachRow {\"a\": \";'\"}", "JSONEachRow", "{\"a\": \";'\"}")
	f("INSERT INTO t FORMAT CSV;\n1", "CSV", "1")
}

func TestWhatCannotBeOneStatementIsRefused(t *testing.T) {
	f := func(sql string) {
		t.Helper()
		if s, bad := parse(sql); bad == nil || bad.Code != codeSyntaxError {
			t.Errorf("%q became %+v, %v, want a syntax error", sql, s, bad)
		}
	}
	f("")
	f(" -- nothing\n/* at all */")
	f(";")
	f("SELECT 1; DROP TABLE t")
	f("INSERT INTO t SELECT 1; DROP TABLE t")
	// an open quote or comment would swallow the limits that follow it
	f("SELECT 'abc")
	f("SELECT 1 /* abc")
	f("SELECT `a")
	f("INSERT INTO t FORMAT")
	for _, sql := range []string{"USE other", "set max_threads = 1"} {
		if s, bad := parse(sql); bad != nil || s.kind != kindSession {
			t.Errorf("%q: kind %d, %v, want a session statement", sql, s.kind, bad)
		}
	}
}

// FuzzParse: whatever the text, the limits that the front adds are outside of
// every quote, comment and bracket of it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"SELECT 1", "SELECT 'a' -- b", "INSERT INTO t (a) FORMAT CSV\n1", "INSERT INTO t VALUES ('x')",
		"CREATE TABLE t (a Int8) ENGINE = Memory", "SELECT $a$ ' $a$", "DELETE FROM t WHERE 1", "SELECT \"\\\"\" /* */ FORMAT x SETTINGS y = 1", "(SELECT 1)"} {
		f.Add(seed)
	}
	const mark = "zz_limit"
	f.Fuzz(func(t *testing.T, sql string) {
		if strings.Contains(sql, mark) {
			return
		}
		s, bad := parse(sql)
		if bad != nil || s.kind == kindBare || s.kind == kindSession {
			return
		}
		tokens, _ := scan(s.with([]param{{mark, "1"}}))
		for i, tok := range tokens {
			if tok.text == mark && tok.word {
				if i == 0 || i+2 >= len(tokens) || tokens[i+1].text != "=" || tokens[i+2].text != "'1'" {
					t.Fatalf("%q: the limit is torn apart", sql)
				}
				return
			}
		}
		t.Fatalf("%q became %q: the limit is lost in a quote or comment", sql, s.with([]param{{mark, "1"}}))
	})
}
