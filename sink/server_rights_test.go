package sink

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/internal/testkit"
)

// The users of docs/clickhouse.md can do what it says of them, and no more than that.
func TestTheDocumentedRightsAreEnoughAndNoMore(t *testing.T) {
	grants := documentedGrants(t)
	var accounts []testkit.ClickHouseAccount
	for _, name := range []string{"assay_owner", "assay_worker", "assay_server", "assay_reader"} {
		if len(grants[name]) == 0 {
			t.Fatalf("docs/clickhouse.md grants nothing to %s", name)
		}
		accounts = append(accounts, testkit.ClickHouseAccount{Name: name, Password: name + "'s", Grants: grants[name]})
	}
	accounts[3].Readonly = 2
	strict := testkit.ClickHouseAccount{Name: "strict", Password: "strict's", Grants: grants["assay_reader"], Readonly: 1}
	s := testkit.StartClickHouse(t, testkit.ClickHouseServerOptions{Accounts: append(accounts, strict)})
	open := func(name string) *DB {
		return openAt(t, ConnConfig{Addr: s.Native, Protocol: "native", Database: "assay", Username: name, Password: name + "'s"})
	}
	owner, worker, server, reader := open("assay_owner"), open("assay_worker"), open("assay_server"), open("assay_reader")
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	refused := func(what string, code int32, class Class, err error) {
		t.Helper()
		if serverCode(err) != code || classify(err) != class {
			t.Errorf("%s: %v, class %s; want code %d, class %s", what, err, classify(err), code, class)
		}
	}

	for _, statement := range documentedStatements(t) {
		if _, err := readOne(ctx, reader, query{"test", page, "SELECT formatQuery({statement:String})"},
			func(scan func(...any) error) (text string, err error) { return text, scan(&text) }, clickhouse.Named("statement", statement)); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if _, err := Migrate(ctx, owner, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	must(owner.conn.Exec(ctx, "ALTER TABLE assay.alarms ADD COLUMN IF NOT EXISTS ticket String"))
	must(owner.conn.Exec(ctx, "ALTER TABLE assay.alarms DROP COLUMN IF EXISTS ticket"))

	w := runWriter(t, worker, defaults())
	o := &outcomes{}
	o.add(t, w, numbers(3)...)
	must(w.AddTexts(ctx, []Text{{Time: noon, InteractionID: "t", Store: "none"}}, o.of("text")))
	must(w.AddDeadLetters(ctx, []DeadLetter{{Topic: "chat", LogTime: noon}}, o.of("letter")))
	must(w.Flush(ctx))
	for id, told := range o.told {
		if len(told) != 1 || told[0] != nil {
			t.Errorf("%s was told %v", id, told)
		}
	}
	must(w.InsertPopulation(ctx, []Population{{Topic: "chat", Minute: noon, Decision: "interaction", N: 3}}))
	must(worker.PutAlarms(ctx, []Alarm{{ID: "a", State: "open", OpenedAt: noon, UpdatedAt: noon}}))
	must(worker.RollupQuality(ctx, "refunds", []time.Time{noon}, noon.Add(time.Hour)))
	refused("a worker's table", codeNotEnoughPrivileges, Fatal, worker.conn.Exec(ctx, "CREATE TABLE assay.mine (x UInt8) ENGINE = Memory"))
	refused("a worker's migration", codeNotEnoughPrivileges, Fatal, worker.conn.Exec(ctx, "DROP TABLE assay.alarms"))

	if _, err := server.WriteLabels(ctx, []LabelChange{passLabel("int-000001", "ann", true)}, time.Now()); err != nil {
		t.Error(err)
	}
	for name, db := range map[string]*DB{"server": server, "reader": reader} {
		must(Verify(ctx, db))
		judged, err := db.EvaluationsOf(ctx, "int-000001")
		if err != nil || len(judged) != 1 {
			t.Errorf("the %s reads %d judgements (%v), want 1", name, len(judged), err)
		}
	}
	for _, name := range []string{"assay_worker", "assay_reader"} {
		err := Verify(ctx, openAt(t, ConnConfig{Addr: s.Native, Protocol: "native", Database: "elsewhere", Username: name, Password: name + "'s"}))
		if err == nil || !strings.Contains(err.Error(), "database elsewhere") || !strings.Contains(err.Error(), "assay migrate") {
			t.Errorf("to %s a database that is not there verifies with %v", name, err)
		}
	}
	insert := func(db *DB) error { return put(ctx, db, evaluationsTable(), []Evaluation{evaluation(9)}) }
	refused("a server's judgement", codeNotEnoughPrivileges, Fatal, insert(server))
	refused("a reader's judgement", codeNotEnoughPrivileges, Fatal, insert(reader))
	_, err := reader.WriteLabels(ctx, []LabelChange{passLabel("int-000001", "bob", true)}, time.Now())
	refused("a reader's label", codeNotEnoughPrivileges, Fatal, err)
	_, err = open("strict").EvaluationsOf(ctx, "int-000001")
	refused("a limit under readonly = 1", codeReadonly, ReadOnly, err)
	var insertion *InsertError
	if err := insert(server); !errors.As(err, &insertion) || insertion.Table != "evaluations" || insertion.Class != Fatal {
		t.Errorf("the refusal %v does not name its table and class", err)
	}
}

// documentedGrants are the GRANT statements of the page by user, without their TO.
func documentedGrants(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	grant := regexp.MustCompile(`^(GRANT .*) TO (\w+)$`)
	for _, statement := range documentedStatements(t) {
		if m := grant.FindStringSubmatch(statement); m != nil {
			found[m[2]] = append(found[m[2]], m[1])
		}
	}
	return found
}

// documentedStatements are those of the page's SQL.
func documentedStatements(t *testing.T) []string {
	t.Helper()
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "clickhouse.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sql\n")
	sql, _, closed := strings.Cut(rest, "```")
	if !closed {
		t.Fatal("no sql block in docs/clickhouse.md")
	}
	return statements(sql)
}
