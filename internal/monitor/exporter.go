package monitor

import (
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/interaction"
)

// exporter shows the snapshot to Prometheus. A scrape reads memory and asks nobody. A
// snapshot older than cfg.Stale gives no series but the time of the last refresh: what
// nobody computes any more disappears instead of standing still.
type exporter struct{ monitor *Monitor }

// Describe sends nothing: which labels a series has depends on the declared slices, as
// a dimension that a slice does not fix is absent and not empty.
func (e *exporter) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (e *exporter) Collect(out chan<- prometheus.Metric) {
	s := e.monitor.Snapshot()
	if s == nil {
		return
	}
	g := gauges{out: out}
	g.set("assay_monitor_last_refresh_timestamp_seconds", float64(s.At.UnixNano())/1e9)
	if e.monitor.wall().Sub(s.At) > e.monitor.cfg.Stale {
		return
	}
	open := map[seriesKey]int{}
	for _, a := range s.Alarms {
		if a.State != alarmClosed {
			open[seriesKey{a.Check, a.Version, a.Slice.ID()}]++
		}
	}
	for _, c := range s.Checks {
		if c.Integrity != nil {
			check := gauges{out, []label{{"check", c.Name}}}
			check.set("assay_monitor_conservation_gap", float64(c.Integrity.Gap))
			check.setIf("assay_sampling_check_z", c.Integrity.SamplingZ)
		}
		for _, slice := range c.Slices {
			g := gauges{out, baseLabels(c, slice.Slice)}
			g.quality(c, slice)
			g.calibration(slice)
			if d := slice.Detector; d != nil && d.State != DetectorOff {
				g.with("detector", d.Name).drift(d, open[seriesKey{c.Name, c.Version, slice.Slice.ID()}])
			}
		}
	}
}

type seriesKey struct {
	check, version string
	slice          uint64
}

func (g gauges) quality(c Check, s Slice) {
	current := 0.0
	if c.Current {
		current = 1
	}
	g.with("slice", s.Slice.String()).set("assay_quality_current", current)
	g.setIf("assay_quality_target", c.Target)
	if s.LastJudged != nil {
		g.set("assay_quality_last_judged_timestamp_seconds", float64(s.LastJudged.Unix()))
	}
	for _, w := range s.Windows {
		g := g.with("window", w.Name)
		g.set("assay_quality_samples", float64(w.N))
		g.set("assay_quality_effective_samples", w.PassRate.NEff)
		g.set("assay_quality_population", w.Population)
		g.setIf("assay_quality_coverage_ratio", w.Coverage)
		g.setIf("assay_quality_missing_ratio", w.MissingShare)
		g.rate("assay_quality_pass_rate", w.PassRate, w.Name)
		g.rate("assay_quality_mean_score", w.MeanScore, w.Name)
	}
}

// rate shows an estimate and its interval; no rows, no series.
func (g gauges) rate(name string, r Rate, window string) {
	if r.Value == nil {
		return
	}
	g.set(name, *r.Value)
	narrow := g.with("level", "0.95")
	narrow.set(name+"_lower", r.Lower)
	narrow.set(name+"_upper", r.Upper)
	if window == "24h" {
		wide := g.with("level", "0.999")
		wide.set(name+"_lower", r.Lower999)
		wide.set(name+"_upper", r.Upper999)
	}
}

func (g gauges) drift(d *Detector, open int) {
	alarm := 0.0
	if d.State == DetectorAlarm {
		alarm = 1
	}
	g.set("assay_drift_e_value", d.EValue)
	g.set("assay_drift_threshold", d.Threshold)
	g.set("assay_drift_tolerance", d.Tolerance)
	g.set("assay_drift_samples", float64(d.Samples))
	g.set("assay_drift_alarm", alarm)
	g.set("assay_alarms_open", float64(open))
}

// help is every gauge that the exporter shows.
var help = map[string]string{
	"assay_monitor_last_refresh_timestamp_seconds": "Wall-clock time at which the last complete round ended.",
	"assay_monitor_conservation_gap":               "Interactions without exactly one decision, plus selected ones without exactly one row, over the closed minutes of the last 24 hours.",
	"assay_sampling_check_z":                       "Weight of everything selected against the ledger's population over 24 hours, in standard errors of the sampling.",
	"assay_quality_current":                        "1 for the check version that the checks file holds, 0 for older ones. slice is the slice in words, for dashboards to choose by.",
	"assay_quality_target":                         "Pass rate that the checks file aims at.",
	"assay_quality_last_judged_timestamp_seconds":  "Event time (to the minute) of the newest judged row.",
	"assay_quality_samples":                        "Judged rows in the window.",
	"assay_quality_effective_samples":              "Rows of equal weight that would know as much: the n behind the interval.",
	"assay_quality_population":                     "Interactions that the check applies to: counted for the whole check, the sum of weights for a slice.",
	"assay_quality_coverage_ratio":                 "Weight of the judged rows over the population that the check applies to.",
	"assay_quality_missing_ratio":                  "Weighted share of selected rows that ended without a usable answer.",
	"assay_quality_pass_rate":                      "Weighted pass rate of the judged rows.",
	"assay_quality_pass_rate_lower":                "Lower end of the pass rate's interval at this level.",
	"assay_quality_pass_rate_upper":                "Upper end of the pass rate's interval at this level.",
	"assay_quality_mean_score":                     "Weighted mean score of the judged rows, 0 to 1.",
	"assay_quality_mean_score_lower":               "Lower end of the mean score's interval at this level.",
	"assay_quality_mean_score_upper":               "Upper end of the mean score's interval at this level.",
	"assay_drift_e_value":                          "Evidence that failures exceed target and tolerance; capped at 1e300.",
	"assay_drift_threshold":                        "Evidence at which the alarm opens: rows a year over the detector's share of false alarms.",
	"assay_drift_tolerance":                        "Fall of the pass rate below the target that is not looked for.",
	"assay_drift_samples":                          "Rows read since the evidence began.",
	"assay_drift_alarm":                            "1 from the alarm's opening to its end.",
	"assay_alarms_open":                            "Alarms that are not closed.",
}

type label struct{ name, value string }

// gauges sends constant gauges that share their labels.
type gauges struct {
	out    chan<- prometheus.Metric
	labels []label
}

func baseLabels(c Check, slice interaction.Slice) []label {
	labels := []label{{"check", c.Name}, {"check_version", c.Version}}
	for _, dimension := range slices.Sorted(maps.Keys(slice)) {
		labels = append(labels, label{dimension, slice[dimension]})
	}
	return labels
}

func (g gauges) with(name, value string) gauges {
	return gauges{g.out, append(slices.Clip(g.labels), label{name, value})}
}

func (g gauges) setIf(name string, v *float64) {
	if v != nil {
		g.set(name, *v)
	}
}

func (g gauges) set(name string, v float64) {
	names, values := make([]string, len(g.labels)), make([]string, len(g.labels))
	for i, l := range g.labels {
		names[i], values[i] = l.name, l.value
	}
	text, ok := help[name]
	if !ok {
		text, ok = calibrationHelp[name]
	}
	if !ok {
		text = "undocumented: " + strconv.Quote(name)
	}
	m, err := prometheus.NewConstMetric(prometheus.NewDesc(name, text, names, nil), prometheus.GaugeValue, v, values...)
	if err != nil {
		m = prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
	}
	g.out <- m
}
