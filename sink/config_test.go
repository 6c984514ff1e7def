package sink

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sethvargo/go-envconfig"
)

func TestSettingsAreReadWithTheirDefaults(t *testing.T) {
	var w WriterConfig
	load := func(into any, env map[string]string) {
		t.Helper()
		if err := envconfig.ProcessWith(context.Background(), &envconfig.Config{Target: into, Lookuper: envconfig.MapLookuper(env)}); err != nil {
			t.Fatal(err)
		}
	}
	load(&w, nil)
	if w != defaults() || w.Validate() != nil {
		t.Errorf("defaults are %+v (%v)", w, w.Validate())
	}
	w = WriterConfig{}
	load(&w, map[string]string{"BATCH_BYTES": "64MiB", "GRACE": "5s", "BUFFER_ROWS": "7"})
	if w.BatchBytes != 64<<20 || w.Grace != 5*time.Second || w.BufferRows != 7 {
		t.Errorf("read %+v", w)
	}
	var c ConnConfig
	load(&c, map[string]string{"ADDR": "db:9000"})
	if want := (ConnConfig{Addr: "db:9000", Protocol: "native", Database: "assay"}); c != want || c.Validate() != nil {
		t.Errorf("read %+v (%v), want %+v", c, c.Validate(), want)
	}
}

// Every field that a variable sets has a name and says what it means.
func TestEverySettingIsDescribed(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[ConnConfig](), reflect.TypeFor[WriterConfig]()} {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Name != "Token" && (f.Tag.Get("env") == "" || f.Tag.Get("help") == "") {
				t.Errorf("%s.%s has no name or no help", typ, f.Name)
			}
		}
	}
}

func TestAllFaultsOfSettingsAreReportedByName(t *testing.T) {
	f := func(err error, want ...string) {
		t.Helper()
		if err == nil {
			t.Fatalf("valid, want %v", want)
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%v\nlacks %q", err, w)
			}
		}
	}
	f(WriterConfig{Grace: -1}.Validate(), "ASSAY_SINK_BATCH_ROWS=0", "ASSAY_SINK_BATCH_BYTES=0B", "ASSAY_SINK_BATCH_AGE=0s", "ASSAY_SINK_GRACE")
	small := defaults()
	small.BufferRows, small.BufferBytes = 1, 1
	f(small.Validate(), "ASSAY_SINK_BUFFER_ROWS=1", "ASSAY_SINK_BUFFER_BYTES=1B", "32MiB")
	f(ConnConfig{Addr: "x:1", Protocol: "native", Database: "d", Password: "secret", PasswordFile: "/nowhere/at/all", TLSCA: "ca.pem", TLSKey: "key.pem"}.Validate(),
		"ASSAY_CLICKHOUSE_PASSWORD and ASSAY_CLICKHOUSE_PASSWORD_FILE", "no such file", "ASSAY_CLICKHOUSE_TLS_CA", "ASSAY_CLICKHOUSE_TLS_KEY: want both")
	if _, err := NewWriter(defaults(), WriterDeps{Reg: prometheus.NewRegistry()}); err == nil {
		t.Error("a writer without a process id was made")
	}
}

func TestThePasswordIsTheFilesFirstLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("p w\r\nnot this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := ConnConfig{Addr: "db:9000", Protocol: "native", Database: "assay", PasswordFile: file}
	opts, err := c.options()
	if err != nil || opts.Auth.Password != "p w" {
		t.Errorf("password %q (%v)", opts.Auth.Password, err)
	}
}

func TestAnAuthorityFileWithoutACertificateIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []ConnConfig{{TLS: true, TLSCA: file}, {TLS: true, TLSCert: file, TLSKey: file}} {
		if _, err := c.options(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("got %v", err)
		}
	}
	opts, err := ConnConfig{TLS: true}.options()
	if err != nil || opts.TLS == nil {
		t.Errorf("TLS is off (%v)", err)
	}
}

// Closed lists start at 0, or the first event is no increase.
func TestEverySeriesExistsBeforeTheFirstRow(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := newWriter(defaults(), WriterDeps{Reg: reg, ProcessID: "p"}, inserts{}); err != nil {
		t.Fatal(err)
	}
	found, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range found {
		series[f.GetName()] = len(f.GetMetric())
	}
	const tables = 4
	want := map[string]int{
		"assay_sink_rows_total": tables, "assay_sink_rejected_rows_total": 2 * tables, "assay_sink_flushes_total": 5 * tables,
		"assay_sink_flush_seconds": tables, "assay_sink_batch_rows": tables, "assay_sink_retries_total": 7 * tables,
		"assay_sink_buffer_ratio": 1, "assay_sink_breaker_state": 1,
	}
	if !reflect.DeepEqual(series, want) {
		t.Errorf("series %v, want %v", series, want)
	}
}
