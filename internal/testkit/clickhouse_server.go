package testkit

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Who may do everything on a ClickHouseServer.
const (
	ClickHouseUser     = "assay"
	ClickHousePassword = "p&ss<word>"
)

// A ClickHouseServer listens as users' servers do: native and HTTP, each with and
// without TLS, with users that have passwords. It belongs to one test.
type ClickHouseServer struct {
	Version      string // as it says itself, 26.7.2.1
	Native       string // host:port
	NativeTLS    string
	HTTP         string
	HTTPS        string
	Certificates *Certificates

	alive func() error
}

// A ClickHouseAccount is a user beside ClickHouseUser.
type ClickHouseAccount struct {
	Name, Password string
	Grants         []string // GRANT statements without TO
	Readonly       int      // the setting of its profile
}

// ClickHouseServerOptions say what a server is like.
type ClickHouseServerOptions struct {
	Accounts []ClickHouseAccount
	// ClientCertificates makes the TLS ports refuse whoever shows none.
	ClientCertificates bool
}

// StartClickHouse starts a current ClickHouse: the clickhouse on PATH when it is a
// current one, else the embedded engine's library, which has the server's own code for
// both protocols in it. The library listens without TLS, so a small front takes TLS off
// before it, as many users' load balancers do. A wrong password over the native
// protocol ends the library's server, after its answer.
func StartClickHouse(tb testing.TB, o ClickHouseServerOptions) *ClickHouseServer {
	tb.Helper()
	if program, err := exec.LookPath("clickhouse"); err == nil && isCurrentClickHouse(tb, program) {
		return startClickHouseServer(tb, o, "clickhouse", []string{program, "server"})
	}
	s := newClickHouseServer(tb)
	library, err := testLibrary()
	if err != nil {
		tb.Fatal(err)
	}
	config := s.configure(tb, o, "clickhouse", false)
	s.run(tb, buildClickHouseLibrary(tb), library, "--config-file="+config, "--path="+filepath.Join(filepath.Dir(config), "data"),
		// the last statement reads what never comes, so the server ends with its input
		"--query=SYSTEM START LISTEN QUERIES ALL; SELECT count() FROM file('-', 'LineAsString', 'line String') FORMAT Null")
	s.NativeTLS = terminateTLS(tb, s.Certificates, o.ClientCertificates, s.Native)
	s.HTTPS = terminateTLS(tb, s.Certificates, o.ClientCertificates, s.HTTP)
	return s
}

// StartOldClickHouse starts the ClickHouse that Debian 12 packages, of 2018: a server
// that does TLS itself, and whose protocol is many revisions behind the driver's.
func StartOldClickHouse(tb testing.TB, o ClickHouseServerOptions) *ClickHouseServer {
	tb.Helper()
	const program = "/usr/sbin/clickhouse-server" // ClickHouse's own packages have theirs in /usr/bin
	if _, err := os.Stat(program); err != nil {
		tb.Fatalf("Debian's ClickHouse is not here; `make clickhouse` installs it: %v", err)
	}
	return startClickHouseServer(tb, o, "yandex", []string{program})
}

func startClickHouseServer(tb testing.TB, o ClickHouseServerOptions, root string, command []string) *ClickHouseServer {
	tb.Helper()
	s := newClickHouseServer(tb)
	s.NativeTLS, s.HTTPS = freeAddr(tb), freeAddr(tb)
	config := s.configure(tb, o, root, true)
	s.run(tb, command[0], append(command[1:], "--config-file="+config)...)
	return s
}

func newClickHouseServer(tb testing.TB) *ClickHouseServer {
	tb.Helper()
	return &ClickHouseServer{Native: freeAddr(tb), HTTP: freeAddr(tb), Certificates: NewCertificates(tb)}
}

// configure writes the server's files into a directory of the test. Configurations
// began with <yandex> before ClickHouse was a company's name.
func (s *ClickHouseServer) configure(tb testing.TB, o ClickHouseServerOptions, root string, tls bool) (file string) {
	tb.Helper()
	dir := tb.TempDir()
	users := filepath.Join(dir, "users.xml")
	logger := ""
	ports := fmt.Sprintf("<tcp_port>%s</tcp_port><http_port>%s</http_port>", portOf(s.Native), portOf(s.HTTP))
	if tls {
		verify := "none"
		if o.ClientCertificates {
			verify = "strict"
		}
		logger = "<logger><level>warning</level><console>1</console></logger>"
		// the certificate is not for the second address
		ports += fmt.Sprintf("<listen_host>127.0.0.2</listen_host><tcp_port_secure>%s</tcp_port_secure><https_port>%s</https_port>"+
			"<openSSL><server><certificateFile>%s</certificateFile><privateKeyFile>%s</privateKeyFile><caConfig>%s</caConfig><verificationMode>%s</verificationMode></server></openSSL>",
			portOf(s.NativeTLS), portOf(s.HTTPS), s.Certificates.server, s.Certificates.server, s.Certificates.CA, verify)
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	write(users, usersFile(root, o.Accounts))
	file = filepath.Join(dir, "config.xml")
	data := filepath.Join(dir, "data") + "/"
	write(file, fmt.Sprintf("<%s>%s<path>%s</path><tmp_path>%stmp/</tmp_path><listen_host>127.0.0.1</listen_host>%s<users_config>%s</users_config>"+
		"<default_profile>default</default_profile><default_database>default</default_database><timezone>UTC</timezone>"+
		"<mark_cache_size>268435456</mark_cache_size></%s>\n", root, logger, data, data, ports, users, root))
	return file
}

// usersFile gives every user a password but default, as which the library's own
// statements run.
func usersFile(root string, accounts []ClickHouseAccount) string {
	var b strings.Builder
	user := func(a ClickHouseAccount) {
		fmt.Fprintf(&b, "<%s><password>%s</password><networks><ip>127.0.0.1</ip></networks><profile>%s</profile><quota>default</quota>",
			a.Name, html.EscapeString(a.Password), [...]string{"default", "readonly_1", "readonly_2"}[a.Readonly])
		if len(a.Grants) > 0 {
			b.WriteString("<grants>")
			for _, g := range a.Grants {
				fmt.Fprintf(&b, "<query>%s</query>", html.EscapeString(g))
			}
			b.WriteString("</grants>")
		}
		fmt.Fprintf(&b, "</%s>", a.Name)
	}
	profile := ""
	if root == "yandex" { // what later versions allow without being told
		profile = "<allow_experimental_low_cardinality_type>1</allow_experimental_low_cardinality_type>"
	}
	profile += "</default>"
	for n := 1; n <= 2; n++ {
		profile += fmt.Sprintf("<readonly_%d><readonly>%d</readonly></readonly_%d>", n, n, n)
	}
	fmt.Fprintf(&b, "<%s><profiles><default>%s</profiles><quotas><default/></quotas><users>", root, profile)
	user(ClickHouseAccount{Name: "default"})
	user(ClickHouseAccount{Name: ClickHouseUser, Password: ClickHousePassword})
	for _, a := range accounts {
		user(a)
	}
	fmt.Fprintf(&b, "</users></%s>\n", root)
	return b.String()
}

// run starts the program and waits until it answers both protocols' ports.
func (s *ClickHouseServer) run(tb testing.TB, program string, args ...string) {
	tb.Helper()
	output := &lockedBuffer{}
	cmd := exec.Command(program, args...)
	cmd.Dir = tb.TempDir()
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// an open pipe that nobody writes to, closed when the server has ended
	if _, err := cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	var ended error // read after done
	go func() {
		ended = cmd.Wait()
		close(done)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if tb.Failed() {
			tb.Logf("%s printed:\n%s", filepath.Base(program), output)
		}
	})
	s.alive = func() error {
		select {
		case <-done:
			return fmt.Errorf("%s ended: %v\n%s", filepath.Base(program), ended, output)
		default:
			return nil
		}
	}
	Eventually(tb, time.Minute, "ClickHouse answers", func() error {
		if err := s.alive(); err != nil {
			tb.Fatal(err)
		}
		body, code, err := httpGet("http://" + s.HTTP + "/?query=SELECT%20version()")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		s.Version = strings.TrimSpace(body)
		return err
	})
}

// buildClickHouseLibrary builds the program beside this file.
func buildClickHouseLibrary(tb testing.TB) string {
	tb.Helper()
	root, err := RepositoryRoot()
	if err != nil {
		tb.Fatal(err)
	}
	program := filepath.Join(tb.TempDir(), "clickhouse-library")
	ctx, cancel := context.WithTimeout(tb.Context(), engineWait)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "internal/testkit/clickhouse_library.go")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("go build clickhouse_library.go: %v\n%s", err, out)
	}
	return program
}

var clickHouseVersion = regexp.MustCompile(`version (\d+)\.(\d+)`)

// isCurrentClickHouse asks a program for its version. Tests of the package's whole are
// for those that have today's settings.
func isCurrentClickHouse(tb testing.TB, program string) bool {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "server", "--version").CombinedOutput()
	found := clickHouseVersion.FindSubmatch(out)
	if err != nil || found == nil {
		return false
	}
	major, _ := strconv.Atoi(string(found[1])) // digits only
	minor, _ := strconv.Atoi(string(found[2]))
	return major > 26 || major == 26 && minor >= 2
}

func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
