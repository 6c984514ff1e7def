package sink

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// The driver's own defaults (30 s to dial, which also bounds the wait for a pooled
// connection, and 300 s to read) are longer than a drain may take.
const (
	dialTimeout  = 5 * time.Second
	readTimeout  = 60 * time.Second
	connLifetime = 10 * time.Minute
	maxConns     = 12 // four tables being written, and the readers of monitor and server
)

// conn is what this package needs of the driver. The driver's own interface grows
// with its minor releases, so a fault-injecting test must not have to implement it.
type conn interface {
	Exec(ctx context.Context, query string, args ...any) error
	Query(ctx context.Context, query string, args ...any) (driver.Rows, error)
	PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (driver.Batch, error)
}

// A DB is an open pool of connections to one database.
type DB struct {
	conn     conn
	close    func() error
	database string
	addr     string
	dedup    clickhouse.Settings // what this server calls it that a token counts once
	tokens   *tokens
	log      *slog.Logger
}

// Open connects and asks the server for a sign of life. The error says which address
// was tried and what it answered.
func Open(ctx context.Context, cfg ConnConfig, log *slog.Logger) (*DB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	opts, err := cfg.options()
	if err != nil {
		return nil, fmt.Errorf("clickhouse at %s: %w", cfg.Addr, err)
	}
	c, err := clickhouse.Open(opts)
	if err != nil {
		return nil, fmt.Errorf("clickhouse at %s (%s): %w", cfg.Addr, cfg.Protocol, err)
	}
	version, err := cfg.greet(ctx, c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return &DB{conn: c, close: c.Close, database: cfg.Database, addr: cfg.Addr, dedup: dedupSettings(version), tokens: newTokens(randomID()), log: log}, nil
}

// options leaves the database out: before the first migration it does not exist, and
// every statement names its tables in full.
func (c ConnConfig) options() (*clickhouse.Options, error) {
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	opts := &clickhouse.Options{
		Protocol:        clickhouse.Native,
		Addr:            []string{c.Addr},
		Auth:            clickhouse.Auth{Username: c.Username, Password: password},
		DialTimeout:     dialTimeout,
		ReadTimeout:     readTimeout,
		ConnMaxLifetime: connLifetime,
		MaxOpenConns:    maxConns,
		MaxIdleConns:    maxConns,
		Compression:     &clickhouse.Compression{Method: clickhouse.CompressionLZ4},
	}
	if c.Protocol == "http" {
		opts.Protocol = clickhouse.HTTP
		opts.Compression = nil
	}
	if c.Token != "" {
		opts.HttpHeaders = map[string]string{"X-ClickHouse-Key": c.Token}
	}
	if c.TLS {
		if opts.TLS, err = c.tlsConfig(); err != nil {
			return nil, err
		}
	}
	return opts, nil
}

func (c ConnConfig) tlsConfig() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLSCA != "" {
		pem, err := os.ReadFile(c.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("ASSAY_CLICKHOUSE_TLS_CA: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ASSAY_CLICKHOUSE_TLS_CA=%s: no certificate in it", c.TLSCA)
		}
	}
	if c.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("ASSAY_CLICKHOUSE_TLS_CERT=%s with ASSAY_CLICKHOUSE_TLS_KEY=%s: %w", c.TLSCert, c.TLSKey, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// Close ends the pool; running statements fail.
func (db *DB) Close() error { return db.close() }

// sql puts the configured database where a statement says {{db}}.
func (db *DB) sql(text string) string { return strings.ReplaceAll(text, "{{db}}", db.database) }

// tokens hands out insert_deduplication_tokens. A token belongs to one block of rows
// and is repeated only to send the same bytes again: the same token over other rows
// makes the server drop them without a word.
type tokens struct {
	process string
	last    atomic.Uint64
}

func newTokens(process string) *tokens { return &tokens{process: process} }

func (t *tokens) next() string { return fmt.Sprintf("%s:%d", t.process, t.last.Add(1)) }

func randomID() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
