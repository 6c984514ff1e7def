package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A step is a part of a round; it names where the time goes and what failed.
type step string

const (
	stepLedger    step = "ledger"
	stepLabels    step = "labels"
	stepRollup    step = "rollup"
	stepDrift     step = "drift"
	stepAlarms    step = "alarms"
	stepWindows   step = "windows"
	stepPeople    step = "calibration"
	stepIntegrity step = "integrity"
)

var steps = [...]step{stepLedger, stepLabels, stepRollup, stepDrift, stepAlarms, stepWindows, stepPeople, stepIntegrity}

type metrics struct {
	dirty      prometheus.Gauge
	outOfRange *prometheus.CounterVec   // by doubt
	errors     *prometheus.CounterVec   // by step
	seconds    *prometheus.HistogramVec // by step
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		dirty: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "assay_monitor_dirty_minutes",
			Help: "Minutes (per check and table) that the last round recomputed.",
		}),
		outOfRange: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_monitor_log_times_out_of_range_total",
			Help: "Partitions, counted in every round, whose newest Kafka timestamp is ahead of ClickHouse's clock (future: cut to it) or from before 2000 (no_time: ignored).",
		}, []string{"reason"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_monitor_refresh_errors_total",
			Help: "Rounds that ended at this step with an error.",
		}, []string{"step"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                            "assay_monitor_refresh_seconds",
			Help:                            "Time that a round spent in this step.",
			Buckets:                         []float64{.01, .03, .1, .3, 1, 3, 10, 30, 100},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"step"}),
	}
	for _, d := range doubts {
		m.outOfRange.WithLabelValues(string(d))
	}
	for _, s := range steps {
		m.errors.WithLabelValues(string(s))
		m.seconds.WithLabelValues(string(s))
	}
	for _, c := range []prometheus.Collector{m.dirty, m.outOfRange, m.errors, m.seconds} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
