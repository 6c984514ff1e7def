package testkit

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Both servers answer the driver on every port that they promise.
func TestClickHouseServersListenOnAllTheirPorts(t *testing.T) {
	f := func(s *ClickHouseServer, addr string, protocol clickhouse.Protocol, secure bool) {
		t.Helper()
		o := &clickhouse.Options{Protocol: protocol, Addr: []string{addr}, Auth: clickhouse.Auth{Username: ClickHouseUser, Password: ClickHousePassword}}
		if secure {
			pem, err := os.ReadFile(s.Certificates.CA)
			if err != nil {
				t.Fatal(err)
			}
			o.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
			o.TLS.RootCAs.AppendCertsFromPEM(pem)
		}
		conn, err := clickhouse.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var version string
		if err := conn.QueryRow(t.Context(), "SELECT version()").Scan(&version); err != nil || version != s.Version {
			t.Errorf("%s (TLS %t) answers %q (%v), want %q", addr, secure, version, err, s.Version)
		}
	}
	current := StartClickHouse(t, ClickHouseServerOptions{})
	f(current, current.Native, clickhouse.Native, false)
	f(current, current.NativeTLS, clickhouse.Native, true)
	f(current, current.HTTP, clickhouse.HTTP, false)
	f(current, current.HTTPS, clickhouse.HTTP, true)
	old := StartOldClickHouse(t, ClickHouseServerOptions{})
	if !strings.HasPrefix(old.Version, "18.") {
		t.Errorf("Debian's server is of version %s, want 18", old.Version)
	}
	f(old, old.Native, clickhouse.Native, false)
	f(old, old.NativeTLS, clickhouse.Native, true)
}
