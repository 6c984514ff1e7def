package sink

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// oldestServer is the oldest version that our tables and inserts were tried on.
var oldestServer = proto.Version{Major: 24, Minor: 8}

// newDedup is the version in which deduplicate_insert took the place of
// insert_deduplicate. A server refuses a setting that it does not know.
var newDedup = proto.Version{Major: 26, Minor: 2}

// dedupSettings make a server of a version store the rows of a token once, whatever its
// defaults are.
func dedupSettings(v proto.Version) clickhouse.Settings {
	if proto.CheckMinVersion(newDedup, v) {
		return clickhouse.Settings{"deduplicate_insert": "enable"}
	}
	return clickhouse.Settings{"insert_deduplicate": 1}
}

// An OpenError says which server was tried, what it answered and what mends it.
type OpenError struct {
	Addr, Protocol string
	Fix            string // empty where only Err is known
	Class          Class
	Err            error
}

func (e *OpenError) Error() string {
	if e.Fix == "" {
		return fmt.Sprintf("clickhouse at %s (%s) does not answer: %v", e.Addr, e.Protocol, e.Err)
	}
	return fmt.Sprintf("clickhouse at %s (%s): %s: %v", e.Addr, e.Protocol, e.Fix, e.Err)
}

func (e *OpenError) Unwrap() error { return e.Err }

// greeter is what of the driver tells whether there is a server to work with.
type greeter interface {
	Ping(ctx context.Context) error
	ServerVersion() (*clickhouse.ServerVersion, error)
}

// greet asks for a sign of life and for a version that we can work with.
func (c ConnConfig) greet(ctx context.Context, server greeter) (proto.Version, error) {
	err := server.Ping(ctx)
	var hello *clickhouse.ServerVersion
	if err == nil {
		hello, err = server.ServerVersion()
	}
	if err != nil {
		return proto.Version{}, &OpenError{Addr: c.Addr, Protocol: c.Protocol, Fix: c.mend(err), Class: classify(err), Err: err}
	}
	if !proto.CheckMinVersion(oldestServer, hello.Version) {
		return proto.Version{}, &OpenError{Addr: c.Addr, Protocol: c.Protocol, Fix: tooOld, Class: Fatal, Err: fmt.Errorf("it is version %s", hello.Version)}
	}
	return hello.Version, nil
}

var tooOld = fmt.Sprintf("too old a server, Assay needs ClickHouse %d.%d or later", oldestServer.Major, oldestServer.Minor)

// mend says what is wrong and what the user can change about it, as far as the error
// tells. Both protocols greet a stranger in their own words; what they say to each
// other is known by its first bytes.
func (c ConnConfig) mend(err error) string {
	text := err.Error()
	says := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
	}
	other, plain, secure := "http", "9000", "9440"
	if c.Protocol == "http" {
		other, plain, secure = "native", "8123", "8443"
	}
	own := plain
	if c.TLS {
		own = secure
	}

	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	var name *net.DNSError
	cut := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
	switch {
	case refusedSignIn(err):
		return fmt.Sprintf("user %s is not let in, check ASSAY_CLICKHOUSE_USERNAME and ASSAY_CLICKHOUSE_PASSWORD_FILE", cmp.Or(c.Username, "default"))
	case says("Unknown setting client_protocol_version"):
		return tooOld
	case serverCode(err) != 0:
		return ""
	case errors.As(err, &host):
		return "its certificate is for another name, put one that it is for into ASSAY_CLICKHOUSE_ADDR"
	case errors.As(err, &authority):
		return "its certificate is not signed by an authority that is trusted here, set ASSAY_CLICKHOUSE_TLS_CA to a file with the right one"
	case errors.As(err, &certificate):
		return "its certificate is not valid"
	case errors.As(err, &notTLS), errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Sprintf("this port does not speak TLS, take the one that does (usually %s) or set ASSAY_CLICKHOUSE_TLS=false", secure)
	case wantsCertificate(err):
		return "it does not accept our certificate or wants one, set ASSAY_CLICKHOUSE_TLS_CERT and ASSAY_CLICKHOUSE_TLS_KEY"
	case says("unexpected packet [72]"), // the H of HTTP/1.1
		says("is for clickhouse-client program"):
		return fmt.Sprintf("this port speaks the %s protocol, set ASSAY_CLICKHOUSE_PROTOCOL=%s or take the %s port (usually %s)", other, other, c.Protocol, own)
	case says("unexpected packet [21]", `malformed HTTP response "\x15`): // how a TLS alert begins
		return fmt.Sprintf("this port speaks TLS, set ASSAY_CLICKHOUSE_TLS=true or take the one without (usually %s)", plain)
	case cut && c.TLS && c.TLSCert == "":
		return "it ended the connection without a word, as a server does that wants a certificate of ours (ASSAY_CLICKHOUSE_TLS_CERT, ASSAY_CLICKHOUSE_TLS_KEY)"
	case cut && !c.TLS:
		return "it ended the connection without a word, as a port with TLS does (ASSAY_CLICKHOUSE_TLS=true) or one of another service"
	case says("handshake: failed to read packet") && errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("it takes the connection and says nothing, as a port of the %s protocol may (ASSAY_CLICKHOUSE_PROTOCOL), or a server with too much to do", other)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there, check ASSAY_CLICKHOUSE_ADDR and that the server runs"
	case errors.As(err, &name):
		return "no such host, check ASSAY_CLICKHOUSE_ADDR"
	}
	return ""
}

// refusedSignIn reports a wrong name or password. Servers of before 2020 have codes of
// their own for it; a proxy has only the status.
func refusedSignIn(err error) bool {
	switch serverCode(err) {
	case codeAuthentication, codeUnknownUser, codeWrongPassword, codeRequiredPassword:
		return true
	case 0:
		var status *clickhouse.HTTPError
		return errors.As(err, &status) && status.StatusCode == http.StatusUnauthorized
	}
	return false
}
