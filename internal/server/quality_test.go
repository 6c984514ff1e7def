package server

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/monitor"
	"assay/sink"
)

func TestTheStateSaysWhatToThinkOfTheSnapshot(t *testing.T) {
	w := start(t)
	f := func(want string) {
		t.Helper()
		var body qualityBody
		a := w.get("/api/v1/quality")
		a.into(t, &body)
		if a.status != 200 || body.State != want || body.Mode != "test: everything invented" {
			t.Errorf("%d, state %q, want %q", a.status, body.State, want)
		}
		if (body.Snapshot == nil) != (want == stateLoading || want == stateAbsent) {
			t.Errorf("%s: snapshot %v", want, body.Snapshot != nil)
		}
	}
	f(stateLoading)
	now := time.Now().UTC()
	w.monitor.Store(aDay(w, now))
	f(stateOK)
	old := aDay(w, now)
	old.At = now.Add(-6 * time.Minute)
	w.monitor.Store(old)
	f(stateStale)

	w = start(t, func(_ *Config, d *Deps) { d.Monitor = nil })
	f(stateAbsent)
}

func TestASeriesEndsWhereTheSnapshotDoes(t *testing.T) {
	w := start(t)
	now := time.Date(2026, 8, 1, 13, 7, 30, 0, time.UTC)
	w.monitor.Store(aDay(w, now))
	var body seriesBody
	a := w.get("/api/v1/quality/series?check=refunds&slice=app%3Dsupport")
	a.into(t, &body)
	if a.status != 200 || body.StepSeconds != 1800 || len(body.Points) != 49 {
		t.Fatalf("%d, step %d, %d points", a.status, body.StepSeconds, len(body.Points))
	}
	first, last := body.Points[0], body.Points[48]
	if !first.From.Equal(now.Truncate(30*time.Minute).Add(-24*time.Hour)) || !last.From.Equal(now.Truncate(30*time.Minute)) {
		t.Errorf("from %s to %s", first.From, last.From)
	}
	if body.Slice["app"] != "support" || body.Version != w.server.deps.Checks.Checks[0].Version {
		t.Errorf("%v %s", body.Slice, body.Version)
	}
	gaps, judged := 0, 0
	for _, p := range body.Points {
		if p.PassRate.Value == nil {
			gaps++
			continue
		}
		judged++
		if v := *p.PassRate.Value; !(p.PassRate.Lower < v && v <= p.PassRate.Upper) {
			t.Errorf("%s: %v outside %v to %v", p.From, v, p.PassRate.Lower, p.PassRate.Upper)
		}
	}
	if gaps == 0 || judged < 40 {
		t.Errorf("%d gaps, %d judged", gaps, judged)
	}
}

func TestSeriesParametersAreHeldAgainstTheChecksFile(t *testing.T) {
	w := start(t)
	f := func(query string, words ...string) {
		t.Helper()
		a := w.get("/api/v1/quality/series?" + query)
		if a.status != 400 {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
		for _, word := range words {
			if !strings.Contains(string(a.body), word) {
				t.Errorf("%s: no %q in %s", query, word, a.body)
			}
		}
	}
	f("", "check", "want one of refunds, facts")
	f("check=refund", "did you mean refunds?")
	f("check=refunds&slice=ap%3Dx", "did you mean app?")
	f("check=refunds&slice=x", "want name=value")
	f("check=refunds&slice=app%3Da,app%3Db", "twice")
	f("check=refunds&step=90s", "whole minutes")
	f("check=refunds&from=yesterday", "want a time as in")
	f("check=refunds&from=2026-08-02T00:00:00Z&to=2026-08-01T00:00:00Z", "is not before to")
	f("check=refunds&step=1m&from=2026-08-01T00:00:00Z&to=2026-08-08T00:00:00Z", "longer step")
	f("check=refunds&windw=1h", "unknown parameter")
	f("check=refunds&from=", "from is empty")

	if a := w.get("/api/v1/quality?chek=x"); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestAStoreThatIsDownIsSaidOnceAndIsNoAnswer(t *testing.T) {
	w := start(t)
	w.store.fail(errDown)
	for _, path := range []string{"/api/v1/quality/series?check=refunds", "/api/v1/alarms", "/api/v1/why/x"} {
		if a := w.get(path); a.status != 503 || !strings.Contains(string(a.body), "connection refused") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if n := strings.Count(w.logs.String(), "level=ERROR"); n != 3 {
		t.Errorf("%d errors logged, want 3", n)
	}
	if a := w.get("/api/v1/quality"); a.status != 200 {
		t.Errorf("the snapshot needs no store: %d", a.status)
	}
}

func TestAlarmsComeFromTheTablesWithWhatTheMonitorKnows(t *testing.T) {
	w := start(t)
	now := time.Now().UTC()
	s := aDay(w, now)
	s.Alarms[0].Data = monitor.DataNone
	w.monitor.Store(s)
	w.store.alarms = []sink.Alarm{
		{ID: "a1", Check: "refunds", State: "open", OpenedAt: now, Summary: "fell", Revision: 2},
		{ID: "a9", Check: "gone", State: "closed", OpenedAt: now, ClosedAt: &now},
	}
	var body struct{ Alarms []monitor.Alarm }
	w.get("/api/v1/alarms").into(t, &body)
	if len(body.Alarms) != 2 || body.Alarms[0].Data != monitor.DataNone || body.Alarms[0].Severity != "ticket" || body.Alarms[1].Data != "" {
		t.Errorf("%+v", body.Alarms)
	}
	if a := w.get("/api/v1/alarms?since=soon"); a.status != 400 {
		t.Errorf("%d", a.status)
	}
}

func TestThePipelineIsAddedUpFromMetricsAndWhatDoesNotRunIsNull(t *testing.T) {
	w := start(t)
	a := w.get("/api/v1/pipeline")
	if m := a.object(t); a.status != 200 || m["lag_records"] != nil || m["ready"] != true {
		t.Errorf("%d %s", a.status, a.body)
	}
	gauge := func(name string, labels prometheus.Labels, v float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: name, ConstLabels: labels})
		g.Set(v)
		w.reg.MustRegister(g)
	}
	gauge("assay_consumer_lag_records", prometheus.Labels{"partition": "0"}, 7)
	gauge("assay_consumer_lag_records", prometheus.Labels{"partition": "1"}, 5)
	gauge("assay_consumer_lag_seconds", prometheus.Labels{"partition": "0"}, 2)
	gauge("assay_consumer_lag_seconds", prometheus.Labels{"partition": "1"}, 40)
	gauge("assay_consumer_paused", prometheus.Labels{"reason": "sink"}, 1)
	gauge("assay_consumer_paused", prometheus.Labels{"reason": "judge"}, 0)
	gauge("assay_sink_breaker_state", nil, 2)
	gauge("assay_judge_breaker_state", prometheus.Labels{"judge": "main"}, 2)
	var body pipelineBody
	w.get("/api/v1/pipeline").into(t, &body)
	if *body.LagRecords != 12 || *body.LagSeconds != 40 || *body.SinkOpen || *body.JudgesOpen != 1 ||
		len(body.PausedBecause) != 1 || body.PausedBecause[0] != "sink" || body.CostUSD != nil {
		t.Errorf("%+v", body)
	}
}
