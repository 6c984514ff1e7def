package sink

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/alecthomas/units"
)

// ConnConfig is the ASSAY_CLICKHOUSE_ part of the environment.
type ConnConfig struct {
	Addr         string `env:"ADDR" help:"host:port of the ClickHouse server"`
	Protocol     string `env:"PROTOCOL, default=native" help:"native or http"`
	Database     string `env:"DATABASE, default=assay" help:"database that holds Assay's tables"`
	Username     string `env:"USERNAME" help:"user name; empty is the server's default user"`
	Password     string `env:"PASSWORD" help:"password; prefer ASSAY_CLICKHOUSE_PASSWORD_FILE"`
	PasswordFile string `env:"PASSWORD_FILE" help:"file whose first line is the password"`
	TLS          bool   `env:"TLS, default=false" help:"speak TLS to the server"`
	TLSCA        string `env:"TLS_CA" help:"PEM file of the authorities to trust; empty uses the system's"`
	TLSCert      string `env:"TLS_CERT" help:"PEM file of the client's certificate, for servers that ask for one"`
	TLSKey       string `env:"TLS_KEY" help:"PEM file of the client certificate's key"`
	Migrate      bool   `env:"MIGRATE, default=false" help:"run missing migrations at the start of assay run"`

	// Token is sent as X-ClickHouse-Key over HTTP: the embedded engine's secret. It
	// is made at run time, so no variable sets it.
	Token string
}

// databaseName is what may stand unquoted in every statement.
var databaseName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// Validate reports every fault by the name the user wrote.
func (c ConnConfig) Validate() error {
	var errs []error
	if host, port, err := net.SplitHostPort(c.Addr); err != nil || host == "" || port == "" {
		errs = append(errs, fmt.Errorf("ASSAY_CLICKHOUSE_ADDR=%q: want host:port", c.Addr))
	}
	if c.Protocol != "native" && c.Protocol != "http" {
		errs = append(errs, fmt.Errorf("ASSAY_CLICKHOUSE_PROTOCOL=%q: want native or http", c.Protocol))
	}
	if !databaseName.MatchString(c.Database) {
		errs = append(errs, fmt.Errorf("ASSAY_CLICKHOUSE_DATABASE=%q: want letters, digits and _, not starting with a digit", c.Database))
	}
	if c.Password != "" && c.PasswordFile != "" {
		errs = append(errs, errors.New("ASSAY_CLICKHOUSE_PASSWORD and ASSAY_CLICKHOUSE_PASSWORD_FILE are both set: want one"))
	}
	if c.PasswordFile != "" {
		if _, err := c.password(); err != nil {
			errs = append(errs, fmt.Errorf("ASSAY_CLICKHOUSE_PASSWORD_FILE: %w", err))
		}
	}
	if (c.TLSCA != "" || c.TLSCert != "") && !c.TLS {
		errs = append(errs, errors.New("ASSAY_CLICKHOUSE_TLS_CA or ASSAY_CLICKHOUSE_TLS_CERT is set without ASSAY_CLICKHOUSE_TLS=true"))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("ASSAY_CLICKHOUSE_TLS_CERT and ASSAY_CLICKHOUSE_TLS_KEY: want both or neither"))
	}
	return errors.Join(errs...)
}

// password returns the secret from where the user put it.
func (c ConnConfig) password() (string, error) {
	if c.PasswordFile == "" {
		return c.Password, nil
	}
	b, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimRight(line, "\r"), nil
}

// WriterConfig is the ASSAY_SINK_ part of the environment.
type WriterConfig struct {
	BatchRows   int              `env:"BATCH_ROWS, default=100000" help:"rows per insert, at most"`
	BatchBytes  units.Base2Bytes `env:"BATCH_BYTES, default=32MiB" help:"bytes per insert, at most"`
	BatchAge    time.Duration    `env:"BATCH_AGE, default=1s" help:"how long a row may wait for its batch, and the least time between two small inserts into a table"`
	BufferRows  int              `env:"BUFFER_ROWS, default=400000" help:"rows held per table before writers have to wait"`
	BufferBytes units.Base2Bytes `env:"BUFFER_BYTES, default=128MiB" help:"bytes held per table before writers have to wait"`
	Grace       time.Duration    `env:"GRACE, default=30s" help:"how long inserts may go on after the process was told to stop"`
}

// Validate reports every fault by the name the user wrote.
func (c WriterConfig) Validate() error {
	var errs []error
	if c.BatchRows < 1 || c.BatchRows > 1_000_000 {
		errs = append(errs, fmt.Errorf("ASSAY_SINK_BATCH_ROWS=%d: want 1 to 1000000", c.BatchRows))
	}
	if c.BatchBytes < 1<<10 || c.BatchBytes > 1<<30 {
		errs = append(errs, fmt.Errorf("ASSAY_SINK_BATCH_BYTES=%s: want 1KiB to 1GiB", c.BatchBytes))
	}
	if c.BatchAge < 10*time.Millisecond || c.BatchAge > time.Minute {
		errs = append(errs, fmt.Errorf("ASSAY_SINK_BATCH_AGE=%s: want 10ms to 1m", c.BatchAge))
	}
	if c.BufferRows < c.BatchRows {
		errs = append(errs, fmt.Errorf("ASSAY_SINK_BUFFER_ROWS=%d: want at least ASSAY_SINK_BATCH_ROWS (%d)", c.BufferRows, c.BatchRows))
	}
	if c.BufferBytes < c.BatchBytes {
		errs = append(errs, fmt.Errorf("ASSAY_SINK_BUFFER_BYTES=%s: want at least ASSAY_SINK_BATCH_BYTES (%s)", c.BufferBytes, c.BatchBytes))
	}
	if c.Grace < 0 || c.Grace > 10*time.Minute {
		errs = append(errs, fmt.Errorf("ASSAY_SINK_GRACE=%s: want 0s to 10m", c.Grace))
	}
	return errors.Join(errs...)
}
