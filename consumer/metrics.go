package consumer

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The label values of closed lists.
const (
	commitOK      = "ok"
	commitRetried = "retried" // failed, and will be sent again
	commitRefused = "refused" // another generation runs

	causeStart     = "start"     // first of this process or of a new set of topics
	causeRebalance = "rebalance" // the generation before ended
	causeRejoin    = "rejoin"    // joining had failed in between

	drainComplete = "complete"
	drainOverrun  = "overrun"
)

// metrics are the process's counters; what belongs to a partition is read from it at
// the scrape (partitionSeries), so that nothing of it remains after a revoke.
type metrics struct {
	records     *prometheus.CounterVec
	bytes       *prometheus.CounterVec
	resolved    *prometheus.CounterVec
	commits     *prometheus.CounterVec
	generations *prometheus.CounterVec
	drain       *prometheus.HistogramVec
	skippedBy   *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, topics []string) *metrics {
	f := promauto.With(reg)
	m := &metrics{
		records: f.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_consumer_records_total", Help: "Records handed to the pipeline."}, []string{"topic"}),
		bytes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_consumer_bytes_total", Help: "Bytes of the records handed to the pipeline."}, []string{"topic"}),
		resolved: f.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_consumer_resolved_total", Help: "Records that nothing is left to do for, by how they ended."}, []string{"topic", "outcome"}),
		commits: f.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_consumer_commits_total", Help: "Offset commits, by result."}, []string{"result"}),
		generations: f.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_consumer_generations_total", Help: "Generations of the consumer group this process took part in, by what began them."}, []string{"cause"}),
		drain: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assay_consumer_drain_seconds", Help: "Time to finish running work when a partition is given up.",
			Buckets:                         []float64{.01, .05, .1, .5, 1, 2, 5, 10, 15, 20, 30},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour}, []string{"outcome"}),
		skippedBy: f.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_consumer_skipped_offsets_total", Help: "Offsets that will never be read, by reason."}, []string{"topic", "reason"}),
	}
	for _, t := range topics {
		m.records.WithLabelValues(t)
		m.bytes.WithLabelValues(t)
		for _, o := range outcomes() {
			m.resolved.WithLabelValues(t, string(o))
		}
		m.skipped(t, skipRetention)
		m.skipped(t, skipReset)
	}
	for _, r := range []string{commitOK, commitRetried, commitRefused} {
		m.commits.WithLabelValues(r)
	}
	for _, c := range []string{causeStart, causeRebalance, causeRejoin} {
		m.generations.WithLabelValues(c)
	}
	for _, o := range []string{drainComplete, drainOverrun} {
		m.drain.WithLabelValues(o)
	}
	return m
}

func (m *metrics) skipped(topic, reason string) prometheus.Counter {
	return m.skippedBy.WithLabelValues(topic, reason)
}

// partitionSeries is a collector over the partitions held now.
type partitionSeries struct {
	inFlight, inFlightBytes, held   *prometheus.Desc
	lag, lagSeconds                 *prometheus.Desc
	watermarkAge, oldest, committed *prometheus.Desc
	paused, state                   *prometheus.Desc

	mu   sync.Mutex // guards held partitions
	live map[*partition]struct{}
}

func newPartitionSeries(reg prometheus.Registerer) (*partitionSeries, error) {
	desc := func(name, help string, extra ...string) *prometheus.Desc {
		return prometheus.NewDesc("assay_consumer_"+name, help, append([]string{"topic", "partition"}, extra...), nil)
	}
	c := &partitionSeries{
		inFlight:      desc("in_flight_records", "Unresolved records."),
		inFlightBytes: desc("in_flight_bytes", "Bytes of unresolved records that are not yet with the sink."),
		held:          desc("held_records", "Unresolved records that wait on purpose for another one."),
		lag:           desc("lag_records", "Offsets between the watermark and the end of the log."),
		lagSeconds:    desc("lag_seconds", "Age of the oldest record that is not resolved, by the producers' clocks."),
		watermarkAge:  desc("watermark_age_seconds", "Time since the watermark moved while there is lag."),
		oldest:        desc("oldest_in_flight_seconds", "Time since the oldest unresolved record was fetched."),
		committed:     desc("committed_offset", "Committed offset."),
		paused:        desc("paused", "1 while the reason keeps the partition from reading.", "reason"),
		state:         desc("partition_state", "1 for the state the partition is in.", "state"),
		live:          make(map[*partition]struct{}),
	}
	return c, reg.Register(c)
}

func (c *partitionSeries) add(p *partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live[p] = struct{}{}
}

func (c *partitionSeries) remove(p *partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, p)
}

func (c *partitionSeries) list() []*partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*partition, 0, len(c.live))
	for p := range c.live {
		out = append(out, p)
	}
	return out
}

// Describe implements prometheus.Collector.
func (c *partitionSeries) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.inFlight, c.inFlightBytes, c.held, c.lag, c.lagSeconds,
		c.watermarkAge, c.oldest, c.committed, c.paused, c.state} {
		ch <- d
	}
}

// Collect implements prometheus.Collector; it reads memory only. Only the newest
// holder of a partition speaks for it.
func (c *partitionSeries) Collect(ch chan<- prometheus.Metric) {
	newest := make(map[topicPartition]*partition)
	for _, p := range c.list() {
		key := topicPartition{p.topic, p.id}
		if other := newest[key]; other == nil || other.generation < p.generation {
			newest[key] = p
		}
	}
	now := time.Now()
	for key, p := range newest {
		c.collect(ch, key, p.observe(now), p)
	}
}

func (c *partitionSeries) collect(ch chan<- prometheus.Metric, key topicPartition, o observation, p *partition) {
	labels := []string{key.topic, itoa(key.partition)}
	gauge := func(d *prometheus.Desc, v float64, extra ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append(labels[:2:2], extra...)...)
	}
	gauge(c.inFlight, float64(o.open))
	gauge(c.inFlightBytes, float64(o.bytes))
	gauge(c.held, float64(o.held))
	if o.known {
		gauge(c.lag, float64(o.lag))
		gauge(c.lagSeconds, o.lagAge.Seconds())
		gauge(c.watermarkAge, o.watermarkAge.Seconds())
	}
	gauge(c.oldest, o.oldestAge.Seconds())
	if at := p.committed.Load(); at >= 0 {
		gauge(c.committed, float64(at))
	}
	set := p.gate.load()
	for _, r := range pauseReasons() {
		gauge(c.paused, oneIf(set&r.bit() != 0), string(r))
	}
	now := p.state()
	for _, s := range []string{stateStarting, stateRunning, stateDraining, stateStopped} {
		gauge(c.state, oneIf(s == now), s)
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
