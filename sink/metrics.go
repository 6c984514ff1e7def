package sink

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// A cause is why a batch went out. Renaming one breaks users' dashboards.
type cause string

const (
	causeRows   cause = "rows"   // as many rows as a batch may have
	causeBytes  cause = "bytes"  // as many bytes as a batch may have
	causeAge    cause = "age"    // its oldest row waited long enough
	causeCommit cause = "commit" // somebody waits for it: Flush, or the ledger
	causeDrain  cause = "drain"  // the writer ends
)

// A rejection is why a row can never be stored.
type rejection string

const (
	rejectedInvalid rejection = "invalid" // our own check, before the insert
	rejectedServer  rejection = "server"  // found by bisecting a refused block
)

// nativeReset bounds how often a native histogram may start over.
const nativeReset = time.Hour

type metrics struct {
	rows         *prometheus.CounterVec // by table
	rejected     *prometheus.CounterVec // by table, reason
	flushes      *prometheus.CounterVec // by table, cause
	flushSeconds *prometheus.HistogramVec
	batchRows    *prometheus.HistogramVec
	retries      *prometheus.CounterVec // by table, class
}

// newMetrics creates every series of a closed list at 0, so that the first event is an increase.
func newMetrics(reg prometheus.Registerer, tables []string, fill, breaker func() float64) *metrics {
	with := promauto.With(reg)
	m := &metrics{
		rows:     with.NewCounterVec(prometheus.CounterOpts{Name: "assay_sink_rows_total", Help: "Rows made durable in ClickHouse."}, []string{"table"}),
		rejected: with.NewCounterVec(prometheus.CounterOpts{Name: "assay_sink_rejected_rows_total", Help: "Rows that can never be stored."}, []string{"table", "reason"}),
		flushes:  with.NewCounterVec(prometheus.CounterOpts{Name: "assay_sink_flushes_total", Help: "Batches sent, by what made them go out."}, []string{"table", "cause"}),
		flushSeconds: with.NewHistogramVec(prometheus.HistogramOpts{Name: "assay_sink_flush_seconds", Help: "Time from a batch going out to its last row being settled, retries included.",
			Buckets:                     []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: nativeReset}, []string{"table"}),
		batchRows: with.NewHistogramVec(prometheus.HistogramOpts{Name: "assay_sink_batch_rows", Help: "Rows per batch.",
			Buckets:                     prometheus.ExponentialBuckets(1, 10, 7),
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: nativeReset}, []string{"table"}),
		retries: with.NewCounterVec(prometheus.CounterOpts{Name: "assay_sink_retries_total", Help: "Failed inserts, by what may be done about them."}, []string{"table", "class"}),
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: "assay_sink_buffer_ratio", Help: "Fullest table's share of its buffer; at 1 writers wait."}, fill)
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: "assay_sink_breaker_state", Help: "0 closed, 1 half-open, 2 open: inserts wait for the server."}, breaker)
	for _, t := range tables {
		m.rows.WithLabelValues(t)
		m.flushSeconds.WithLabelValues(t)
		m.batchRows.WithLabelValues(t)
		for _, r := range []rejection{rejectedInvalid, rejectedServer} {
			m.rejected.WithLabelValues(t, string(r))
		}
		for _, c := range []cause{causeRows, causeBytes, causeAge, causeCommit, causeDrain} {
			m.flushes.WithLabelValues(t, string(c))
		}
		for _, c := range classNames {
			m.retries.WithLabelValues(t, c)
		}
	}
	return m
}
