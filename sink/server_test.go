package sink

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/internal/testkit"
)

// serverConfig is what a user sets for one of the server's ports.
func serverConfig(t testing.TB, s *testkit.ClickHouseServer, protocol string, secure bool) ConnConfig {
	t.Helper()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(testkit.ClickHousePassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := ConnConfig{Protocol: protocol, Database: "assay", Username: testkit.ClickHouseUser, PasswordFile: password, TLS: secure}
	switch {
	case protocol == "native" && secure:
		c.Addr = s.NativeTLS
	case protocol == "native":
		c.Addr = s.Native
	case secure:
		c.Addr = s.HTTPS
	default:
		c.Addr = s.HTTP
	}
	if secure {
		c.TLSCA = s.Certificates.CA
	}
	return c
}

// A server is reached over both protocols, with and without TLS, by a user with a
// password in a file; what one connection writes the others read.
func TestAServerIsReachedByEveryWay(t *testing.T) {
	s := testkit.StartClickHouse(t, testkit.ClickHouseServerOptions{ClientCertificates: true})
	var written []Evaluation
	for i, way := range []struct {
		protocol string
		secure   bool
	}{{"native", true}, {"native", false}, {"http", true}, {"http", false}} {
		c := serverConfig(t, s, way.protocol, way.secure)
		if way.secure {
			c.TLSCert, c.TLSKey = s.Certificates.ClientCert, s.Certificates.ClientKey
		}
		db := openAt(t, c)
		if applied, err := Migrate(t.Context(), db, db.log); err != nil || applied != map[bool]int{true: 1}[i == 0] {
			t.Fatalf("%+v: %d migrations applied (%v)", way, applied, err)
		}
		written = append(written, evaluation(i))
		insertAll(t, db, evaluationsTable(), written[i:])
		judged, err := db.JudgedRows(t.Context(), "refunds", "v1", noon, noon.AddDate(0, 0, 1))
		if err != nil || len(judged) != len(written) {
			t.Errorf("%+v: %d rows are read (%v), want %d", way, len(judged), err, len(written))
		}
	}
}

// Whatever is set wrongly, the error names it and says what to do, and no class asks
// for the same again where only a person can mend it.
func TestAWrongSettingIsNamedWithWhatMendsIt(t *testing.T) {
	current := testkit.StartClickHouse(t, testkit.ClickHouseServerOptions{})
	old := testkit.StartOldClickHouse(t, testkit.ClickHouseServerOptions{})
	strict := testkit.StartOldClickHouse(t, testkit.ClickHouseServerOptions{ClientCertificates: true})
	stranger := testkit.NewCertificates(t)

	check := func(name string, c ConnConfig, err error, class Class, want ...string) {
		t.Helper()
		var opened *OpenError
		if !errors.As(err, &opened) || opened.Class != class && class != either {
			t.Errorf("%s: %v\nis not of class %s", name, err, class)
			return
		}
		for _, w := range append(want, c.Addr, "("+c.Protocol+")") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\nlacks %q", name, err, w)
			}
		}
		if strings.Contains(err.Error(), testkit.ClickHousePassword) {
			t.Errorf("%s: %v\nshows the password", name, err)
		}
	}
	try := func(c ConnConfig) error {
		db, err := Open(t.Context(), c, slog.New(slog.DiscardHandler))
		if err == nil {
			err = db.Close()
		}
		return err
	}
	f := func(name string, s *testkit.ClickHouseServer, protocol string, secure bool, change func(*ConnConfig), class Class, want ...string) {
		t.Helper()
		c := serverConfig(t, s, protocol, secure)
		change(&c)
		check(name, c, try(c), class, want...)
	}
	// nobody accepts the connection, which the kernel has taken already; this lasts for the
	// whole of dialTimeout
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	silent := serverConfig(t, current, "native", false)
	silent.Addr = l.Addr().String()
	said := make(chan error, 1)
	go func() { said <- try(silent) }()
	to := func(addr string) func(*ConnConfig) { return func(c *ConnConfig) { c.Addr = addr } }
	wrong := func(c *ConnConfig) { c.PasswordFile, c.Password = "", "wrong" }
	nobody := func(c *ConnConfig) { c.Username = "nobody" }
	distrust := func(c *ConnConfig) { c.TLSCA = stranger.CA }
	system := func(c *ConnConfig) { c.TLSCA = "" }
	same := func(*ConnConfig) {}

	for _, protocol := range []string{"native", "http"} {
		for _, secure := range []bool{false, true} {
			f("too old", old, protocol, secure, same, map[string]Class{"native": Fatal, "http": Unknown}[protocol], "too old a server", "24.8")
		}
		f("another authority", current, protocol, true, distrust, Fatal, "ASSAY_CLICKHOUSE_TLS_CA", "unknown authority")
		f("another authority", old, protocol, true, distrust, Fatal, "ASSAY_CLICKHOUSE_TLS_CA", "unknown authority")
		f("the system's authorities", old, protocol, true, system, Fatal, "ASSAY_CLICKHOUSE_TLS_CA", "unknown authority")
		// the server's alert and the end of the connection race each other
		f("no client certificate", strict, protocol, true, same, either, "ASSAY_CLICKHOUSE_TLS_CERT", "ASSAY_CLICKHOUSE_TLS_KEY")
	}
	f("wrong password", old, "native", true, wrong, Fatal, "user assay is not let in", "ASSAY_CLICKHOUSE_PASSWORD_FILE", "193")
	f("wrong password", old, "http", true, wrong, Fatal, "user assay is not let in", "ASSAY_CLICKHOUSE_PASSWORD_FILE", "193")
	f("wrong password", current, "http", false, wrong, Fatal, "user assay is not let in", "ASSAY_CLICKHOUSE_PASSWORD_FILE", "516")
	f("unknown user", current, "http", true, nobody, Fatal, "user nobody is not let in", "516")
	f("unknown user", old, "native", false, nobody, Fatal, "user nobody is not let in", "192")

	f("the HTTP port", current, "native", false, to(current.HTTP), Unknown, "ASSAY_CLICKHOUSE_PROTOCOL=http", "9000")
	f("the native port", current, "http", false, to(current.Native), Unknown, "ASSAY_CLICKHOUSE_PROTOCOL=native", "8123")
	f("the HTTPS port", current, "native", true, to(current.HTTPS), Unknown, "ASSAY_CLICKHOUSE_PROTOCOL=http", "9440")
	f("the native TLS port", current, "http", true, to(current.NativeTLS), Unknown, "ASSAY_CLICKHOUSE_PROTOCOL=native", "8443")
	f("a port without TLS", old, "native", true, to(old.Native), Fatal, "does not speak TLS", "9440", "ASSAY_CLICKHOUSE_TLS=false")
	f("a port without TLS", old, "http", true, to(old.HTTP), Fatal, "does not speak TLS", "8443")
	for _, s := range []*testkit.ClickHouseServer{current, old} {
		f("a port with TLS", s, "native", false, to(s.NativeTLS), Transient, "ASSAY_CLICKHOUSE_TLS=true")
		f("a port with TLS", s, "http", false, to(s.HTTPS), Transient, "ASSAY_CLICKHOUSE_TLS=true")
	}
	alerting := answering(t, "\x15\x03\x01\x00\x02\x02\x46")
	f("a port with TLS that says so", current, "native", false, to(alerting), Unknown, "ASSAY_CLICKHOUSE_TLS=true", "9000")
	f("a port with TLS that says so", current, "http", false, to(alerting), Transient, "ASSAY_CLICKHOUSE_TLS=true", "8123")
	f("nobody there", current, "native", false, to("127.0.0.1:1"), Transient, "nothing listens there", "ASSAY_CLICKHOUSE_ADDR")
	f("no such host", current, "http", false, to("nowhere.invalid:8123"), Transient, "no such host, check ASSAY_CLICKHOUSE_ADDR")
	f("another name", old, "native", true, func(c *ConnConfig) { c.Addr = "127.0.0.2:" + c.Addr[strings.LastIndexByte(c.Addr, ':')+1:] }, Fatal, "another name", "127.0.0.2")

	check("a port that says nothing", silent, <-said, Transient, "says nothing", "ASSAY_CLICKHOUSE_PROTOCOL")

	// last, because the library's server does not survive it
	f("wrong password", current, "native", true, wrong, Fatal, "user assay is not let in", "ASSAY_CLICKHOUSE_PASSWORD_FILE", "516")
}

// either stands for a class that depends on who is faster.
const either Class = -1

// answering is the address of a server that says one thing to everybody.
func answering(t testing.TB, what string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			// it reads first, or its end would reset the connection and its words with it
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, what)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}
