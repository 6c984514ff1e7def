package monitor

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// gathered is the registry as `name{labels} value` lines.
func gathered(t *testing.T, w *world) map[string]float64 {
	t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetType() == dto.MetricType_HISTOGRAM {
				continue
			}
			series[f.GetName()+labelsOf(m)] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return series
}

func labelsOf(m *dto.Metric) string {
	var parts []string
	for _, l := range m.GetLabel() {
		parts = append(parts, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func TestTheExporterShowsTheSnapshot(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, .5, 4, "app=support", "app=sales,model=m1"))
	if n := len(gathered(t, w)); n != len(steps)+len(doubts)+1 {
		t.Errorf("%d series before the first round, want the errors by step, the log times out of range and the dirty minutes only", n)
	}
	w.load(time.Hour, batch{check: "refund", slice: sliceOf("app=support,model=m1"), pi: .5, ok: 80, pass: 60, failed: 20})
	w.pass(10 * time.Minute)
	w.round()
	series := gathered(t, w)
	f := func(name string, want float64) {
		t.Helper()
		got, ok := series[name]
		if !ok || got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %v (there: %t), want %v", name, got, ok, want)
		}
	}
	all, support := "check=refund,check_version=v1", "app=support,check=refund,check_version=v1"

	f("assay_quality_pass_rate{"+all+",window=6h}", .75)
	f("assay_quality_pass_rate{"+support+",window=6h}", .75)
	f("assay_quality_samples{"+all+",window=6h}", 80)
	f("assay_quality_effective_samples{"+all+",window=6h}", 79)
	f("assay_quality_population{"+all+",window=6h}", 200)
	f("assay_quality_population{"+support+",window=6h}", 200)
	f("assay_quality_missing_ratio{"+all+",window=6h}", .2)
	f("assay_quality_coverage_ratio{"+all+",window=6h}", .8)
	f("assay_quality_mean_score{"+all+",window=6h}", .625)
	f("assay_quality_target{"+all+"}", .9)
	f("assay_quality_current{"+all+",slice=all}", 1)
	f("assay_quality_current{app=sales,check=refund,check_version=v1,model=m1,slice=app=sales,model=m1}", 1)
	f("assay_quality_last_judged_timestamp_seconds{"+all+"}", float64(morning.Add(59*time.Minute).Unix()))
	f("assay_drift_tolerance{"+all+",detector=esr}", .02)
	f("assay_drift_samples{"+all+",detector=esr}", 80)
	f("assay_drift_alarm{"+all+",detector=esr}", 0)
	f("assay_drift_threshold{"+all+",detector=esr}", 365*1000*3./4)
	f("assay_alarms_open{"+support+",detector=esr}", 0)
	f("assay_monitor_conservation_gap{check=refund}", 0)
	f("assay_sampling_check_z{check=refund}", 0)
	f("assay_monitor_refresh_errors_total{step=rollup}", 0)
	f("assay_monitor_last_refresh_timestamp_seconds{}", float64(w.now.Unix()))

	// both ends at .95 everywhere, at .999 for 24h only; the wider one is wider
	lower, wide := series["assay_quality_pass_rate_lower{"+atLevel("0.95", "24h")+"}"], series["assay_quality_pass_rate_lower{"+atLevel("0.999", "24h")+"}"]
	if !(0 < wide && wide < lower && lower < .75) {
		t.Errorf("lower ends %v at .95 and %v at .999", lower, wide)
	}
	for name := range series {
		// a slice without rows has no rate; a 6h window has one level
		if strings.HasPrefix(name, "assay_quality_pass_rate") && strings.Contains(name, "app=sales") || strings.Contains(name, "level=0.999,window=6h") {
			t.Errorf("%s is shown", name)
		}
		if strings.Contains(name, "=,") || strings.Contains(name, "=}") {
			t.Errorf("%s has an empty label: a dimension that is not fixed is absent", name)
		}
	}
}

func atLevel(level, window string) string {
	return "check=refund,check_version=v1,level=" + level + ",window=" + window
}

func TestEverySeriesIsDocumented(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, .5, 4, "app=support"))
	for hour := range 14 {
		w.load(time.Hour, fallingDay(hour))
	}
	w.round()
	families, err := w.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, f := range families {
		if strings.HasPrefix(f.GetHelp(), "undocumented") {
			t.Errorf("%s: %s", f.GetName(), f.GetHelp())
		}
		shown[f.GetName()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(help)) {
		if !shown[name] {
			t.Errorf("%s is documented and never shown", name)
		}
	}
	if series := gathered(t, w); series["assay_alarms_open{app=support,check=refund,check_version=v1,detector=esr}"] != 1 ||
		series["assay_drift_alarm{app=support,check=refund,check_version=v1,detector=esr}"] != 1 {
		t.Error("the fall is not shown as an open alarm")
	}
}

func TestAnOldSnapshotDisappearsButForItsAge(t *testing.T) {
	w := newWorld(t, newMemory(), aFile(.90, .02, .5, 4))
	w.load(time.Hour, batch{check: "refund", pi: .5, ok: 80, pass: 60})
	at := w.now
	w.round()
	count := func() (quality int) {
		for name := range gathered(t, w) {
			if strings.HasPrefix(name, "assay_quality_") || strings.HasPrefix(name, "assay_drift_") {
				quality++
			}
		}
		return quality
	}
	w.now = at.Add(5 * time.Minute)
	if count() == 0 {
		t.Error("a snapshot of five minutes is gone")
	}
	w.now = at.Add(5*time.Minute + time.Second)
	if n := count(); n != 0 {
		t.Errorf("%d series of a snapshot that is too old", n)
	}
	if got := gathered(t, w)["assay_monitor_last_refresh_timestamp_seconds{}"]; got != float64(at.Unix()) {
		t.Errorf("last refresh %v, want %v", got, at.Unix())
	}
}
