package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metricsql"

	"assay/internal/interaction"
	"assay/internal/monitor"
	"assay/internal/stats"
	"assay/internal/testkit"
)

const policyCheck = "answers_policy"

// The shares with which labels of the overview's run are drawn.
const labelPi2 = 0.05

// label gives people's answers to judged interactions: most say what the judge said. It
// returns when the monitor has read them, so that calibration has its series.
func (w *alertWorld) label(t *testing.T) {
	t.Helper()
	rows, err := w.engine.Conn(t).Query(t.Context(), "SELECT interaction_id, passed FROM evaluations FINAL WHERE status = 'ok' ORDER BY cityHash64(interaction_id) LIMIT 240")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	labels := map[string][]map[string]any{}
	for n := 0; rows.Next(); n++ {
		var id string
		var passed *uint8
		if err := rows.Scan(&id, &passed); err != nil {
			t.Fatal(err)
		}
		l := map[string]any{"check": policyCheck, "interaction_id": id, "rater": "ana", "passed": (*passed == 1) != (n%12 == 0), "origin": "imported"}
		if n%2 == 0 {
			l["origin"], l["pi2"] = "sampled", labelPi2
		}
		origin := l["origin"].(string)
		labels[origin] = append(labels[origin], l)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for origin, list := range labels {
		body, err := json.Marshal(map[string]any{"labels": list})
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
		res, err := client.Post(w.assay.URL+"/api/v1/labels", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("labels: %s", res.Status)
		}
		series := fmt.Sprintf(`max(assay_calibration_labels{window="7d",origin=%q,app=""})`, origin)
		testkit.Eventually(t, time.Minute, "the labels are read", func() error {
			if s := w.prometheus.Query(t, series); len(s) != 1 || s[0].Value != float64(len(list)) {
				return fmt.Errorf("%s is %v, want %d", series, s, len(list))
			}
			return nil
		})
	}
}

// showsTheOverview asks each query of the overview of the servers it is for, when all
// parts have run, and holds its numbers against those of the API and of /metrics.
func (w *alertWorld) showsTheOverview(t *testing.T, from time.Time) {
	t.Helper()
	all, _ := boards(t)
	board := all["assay-overview.json"]
	var body struct{ Snapshot monitor.Snapshot }
	if err := json.Unmarshal([]byte(w.assay.Get(t, "/api/v1/quality")), &body); err != nil {
		t.Fatal(err)
	}
	check, ok := body.Snapshot.Check(policyCheck)
	if !ok {
		t.Fatalf("no check %s in %+v", policyCheck, body.Snapshot.Checks)
	}
	for _, slice := range []string{"all", "app=support"} {
		values := overviewValues(slice)
		values["check_version"] = check.Version
		w.answersPromQL(t, board, values)
		w.answersSQL(t, board, values, panelRange{from, body.Snapshot.Now.Add(time.Minute), time.Hour})
		w.hoursAreTheAPIs(t, board, values)
	}
	w.slicesAreTheMonitors(t, board, check)
	w.correctedIsTheRows(t, board, check, panelRange{from, body.Snapshot.Now.Add(time.Minute), 0})
}

// answersPromQL: each expression of the dashboard gives series. Queries called Doubt...
// draw what is not so here; of them every selector must find something.
func (w *alertWorld) answersPromQL(t *testing.T, board grafanaBoard, values map[string]string) {
	t.Helper()
	asked := 0
	for where, expr := range board.promQL(values) {
		for _, text := range selectorsUnless(t, expr, !strings.Contains(where, "/Doubt")) {
			asked++
			if len(w.prometheus.Query(t, text)) == 0 {
				t.Errorf("%s on %s: no series for %s", where, values["slice"], text)
			}
		}
	}
	if asked < 50 {
		t.Errorf("only %d expressions were asked", asked)
	}
	// the variables offer what the panels were asked with; the current version is the first
	for _, v := range board.Templating.List {
		if v.Type != "query" || v.Name == "topic" {
			continue
		}
		var offered []string
		for _, s := range w.prometheus.Query(t, fillVariables(v.expr(), values)) {
			offered = append(offered, s.Labels[v.Name])
		}
		if !slices.Contains(offered, values[v.Name]) || v.Name == "check_version" && offered[0] != values[v.Name] {
			t.Errorf("variable %s offers %v, want %s in it", v.Name, offered, values[v.Name])
		}
	}
}

// selectorsUnless is the whole expression, or its selectors one by one.
func selectorsUnless(t *testing.T, expr string, whole bool) []string {
	t.Helper()
	if whole {
		return []string{expr}
	}
	parsed, err := metricsql.Parse(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var found []string
	metricsql.VisitAll(parsed, func(e metricsql.Expr) {
		if m, ok := e.(*metricsql.MetricExpr); ok {
			found = append(found, string(m.AppendString(nil)))
		}
	})
	return found
}

// answersSQL: each statement gives rows, with the columns that it declares and the
// panel's overrides name.
func (w *alertWorld) answersSQL(t *testing.T, board grafanaBoard, values map[string]string, r panelRange) {
	t.Helper()
	asked := 0
	ask := func(where, sql string, r panelRange) {
		asked++
		columns, rows := panelSQL(t, w.engine, sql, values, r)
		if len(rows) == 0 {
			t.Errorf("%s on %s: no rows", where, values["slice"])
		}
		for _, m := range regexp.MustCompile(`(?m)\bAS "([^"]+)"`).FindAllStringSubmatch(sql, -1) {
			if !slices.Contains(columns, m[1]) {
				t.Errorf("%s declares %s and gives %v", where, m[1], columns)
			}
		}
	}
	for _, p := range board.Panels {
		r := r
		if p.Interval != "" {
			d, err := time.ParseDuration(p.Interval)
			if err != nil {
				t.Fatal(err)
			}
			r.interval = d
		}
		for _, target := range p.Targets {
			if target.RawSQL == "" {
				continue
			}
			ask(p.Title, target.RawSQL, r)
			for _, o := range p.FieldConfig.Overrides {
				name, _ := o.Matcher.Options.(string)
				if o.Matcher.ID == "byName" && !strings.Contains(target.RawSQL, `"`+name+`"`) && !strings.Contains(target.RawSQL, "AS "+name) && !strings.Contains(target.RawSQL, ", "+name) {
					t.Errorf("%s draws the column %s, which its query does not give", p.Title, name)
				}
			}
		}
	}
	for _, a := range board.Annotations.List {
		if a.Target.RawSQL != "" {
			// versions are stamped by the wall clock, the traffic is simulated
			wide := panelRange{r.from, time.Now().Add(time.Hour), r.interval}
			ask("annotation "+a.Name, a.Target.RawSQL, wide)
		}
	}
	if asked < 8 {
		t.Errorf("only %d statements were asked", asked)
	}
}

// hoursAreTheAPIs: the panel by the hour is the API's series.
func (w *alertWorld) hoursAreTheAPIs(t *testing.T, board grafanaBoard, values map[string]string) {
	t.Helper()
	slice := ""
	if values["slice"] != "all" {
		slice = "&slice=" + values["slice"]
	}
	var series struct {
		Points []monitor.Point
	}
	if err := json.Unmarshal([]byte(w.assay.Get(t, "/api/v1/quality/series?step=1h&check="+policyCheck+slice)), &series); err != nil {
		t.Fatal(err)
	}
	first, last := series.Points[0], series.Points[len(series.Points)-1]
	_, rows := panelSQL(t, w.engine, board.queryOf(t, "Pass rate by the hour"), values, panelRange{first.From, last.To, time.Hour})
	byHour := map[time.Time]map[string]any{}
	for _, row := range rows {
		byHour[row["time"].(time.Time).UTC()] = row
	}
	judged := 0
	for _, p := range series.Points {
		row := byHour[p.From]
		if p.PassRate.Value == nil {
			if row["pass rate"] != nil {
				t.Errorf("%s: %v, and the API has no rate", p.From, row)
			}
			continue
		}
		judged++
		where := fmt.Sprintf("%s at %s: ", values["slice"], p.From.Format("15:04"))
		nearTo(t, where+"pass rate", row["pass rate"], *p.PassRate.Value)
		nearTo(t, where+"lower", row["lower 95%"], p.PassRate.Lower)
		nearTo(t, where+"upper", row["upper 95%"], p.PassRate.Upper)
		nearTo(t, where+"effective n", row["effective n"], p.PassRate.NEff)
	}
	if judged < 20 {
		t.Errorf("only %d hours were compared", judged)
	}
}

// slicesAreTheMonitors: the table of slices over a window says what /metrics and the API
// say of that window.
func (w *alertWorld) slicesAreTheMonitors(t *testing.T, board grafanaBoard, check monitor.Check) {
	t.Helper()
	values := overviewValues("all")
	values["check_version"] = check.Version
	for _, name := range []string{"1h", "24h"} {
		compared := 0
		for _, slice := range check.Slices {
			window, ok := slice.Window(name)
			if !ok || window.PassRate.Value == nil {
				t.Fatalf("no rate of %s over %s", slice.Slice, name)
			}
			// the last minute of a window begins before its end
			_, rows := panelSQL(t, w.engine, board.queryOf(t, "Slices over"), values, panelRange{window.From, window.To.Add(-time.Second), time.Hour})
			at := slices.IndexFunc(rows, func(r map[string]any) bool { return r["slice"] == slice.Slice.String() })
			if at < 0 {
				t.Errorf("the table lacks %s: %v", slice.Slice, rows)
				continue
			}
			compared++
			row, where := rows[at], fmt.Sprintf("%s over %s: ", slice.Slice, name)
			nearTo(t, where+"pass rate", row["pass rate"], *window.PassRate.Value)
			nearTo(t, where+"lower", row["lower 95%"], window.PassRate.Lower)
			nearTo(t, where+"upper", row["upper 95%"], window.PassRate.Upper)
			nearTo(t, where+"n", row["n"], float64(window.N))
			nearTo(t, where+"effective n", row["effective n"], window.PassRate.NEff)
			nearTo(t, where+"missing", row["missing"], *window.MissingShare)
			of := fmt.Sprintf(`{check=%q,check_version=%q,window=%q,app=%q`, check.Name, check.Version, name, slice.Slice["app"])
			for metric, column := range map[string]string{
				"assay_quality_pass_rate" + of + "}":                    "pass rate",
				"assay_quality_pass_rate_lower" + of + `,level="0.95"}`: "lower 95%",
				"assay_quality_pass_rate_upper" + of + `,level="0.95"}`: "upper 95%",
				"assay_quality_effective_samples" + of + "}":            "effective n",
				"assay_quality_missing_ratio" + of + "}":                "missing",
			} {
				s := w.prometheus.Query(t, metric)
				if len(s) != 1 {
					t.Errorf("%s: %v", metric, s)
					continue
				}
				nearTo(t, where+column, row[column], s[0].Value)
			}
		}
		if compared != 3 {
			t.Errorf("%d slices over %s were compared, want 3", compared, name)
		}
	}
}

// correctedIsTheRows: the closed form over stored sums is nested PPI++ over the rows
// themselves, computed here by its definition.
func (w *alertWorld) correctedIsTheRows(t *testing.T, board grafanaBoard, check monitor.Check, r panelRange) {
	t.Helper()
	rows, err := w.engine.Conn(t).Query(t.Context(), `
		SELECT e.app, e.pi, assumeNotNull(toFloat64(e.score)) AS f, l.interaction_id != '' AS labelled, ifNull(toFloat64(l.passed), 0) AS y, l.pi2
		FROM (SELECT interaction_id, slice['app'] AS app, pi, score FROM evaluations FINAL WHERE check = ? AND check_version = ? AND status = 'ok') AS e
		LEFT JOIN (SELECT interaction_id, passed, pi2 FROM labels FINAL WHERE origin = 'sampled' AND deleted = 0) AS l ON e.interaction_id = l.interaction_id`, check.Name, check.Version)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	judged := map[string][]ppiRow{}
	for rows.Next() {
		var app string
		var pi, pi2 float64
		var labelled uint8
		var p ppiRow
		if err := rows.Scan(&app, &pi, &p.f, &labelled, &p.y, &pi2); err != nil {
			t.Fatal(err)
		}
		p.w = 1 / pi
		if labelled == 1 {
			p.w2 = p.w / pi2
		}
		for _, part := range []string{"all", interaction.Slice{"app": app}.String()} {
			judged[part] = append(judged[part], p)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	values := overviewValues("all")
	values["check_version"] = check.Version
	_, table := panelSQL(t, w.engine, board.queryOf(t, "Slices over"), values, r)
	for part, list := range judged {
		mean, lo, hi := nestedPPI(t, list)
		at := slices.IndexFunc(table, func(row map[string]any) bool { return row["slice"] == part })
		if at < 0 {
			t.Errorf("the table lacks %s", part)
			continue
		}
		if !(lo < mean && mean < hi && hi-lo < .5) {
			t.Errorf("%s: corrected %v in %v to %v says nothing", part, mean, lo, hi)
		}
		nearTo(t, part+": corrected", table[at]["corrected"], mean)
		nearTo(t, part+": corrected, lower", table[at]["corrected, lower"], lo)
		nearTo(t, part+": corrected, upper", table[at]["corrected, upper"], hi)
		// one step over the whole range is the same estimate
		values["slice"] = part
		_, steps := panelSQL(t, w.engine, board.queryOf(t, "Judged and corrected"), values, panelRange{r.from, r.to, 100 * 365 * 24 * time.Hour})
		if len(steps) != 1 {
			t.Errorf("%s: %d steps, want 1", part, len(steps))
			continue
		}
		nearTo(t, part+": corrected, in one step", steps[0]["corrected"], mean)
		nearTo(t, part+": lower, in one step", steps[0]["lower 95%"], lo)
	}
	if len(judged) != 3 {
		t.Errorf("slices %d, want 3", len(judged))
	}
}

// ppiRow is a judged row: its weight, the judge's score, and when a person labelled it
// the label and the weight of a labelled row.
type ppiRow struct{ w, f, y, w2 float64 }

// nestedPPI is the mean of people's verdicts with judged rows as its help, row by row.
func nestedPPI(t *testing.T, rows []ppiRow) (mean, lo, hi float64) {
	t.Helper()
	var s1, s2, f1, f2, y2, squares float64
	for _, r := range rows {
		s1, s2 = s1+r.w, s2+r.w2
		f1, f2, y2 = f1+r.w*r.f, f2+r.w2*r.f, y2+r.w2*r.y
		squares += r.w2 * r.w2
	}
	f1, f2, y2 = f1/s1, f2/s2, y2/s2
	var ab, bb float64
	parts := func(r ppiRow) (a, b float64) {
		return r.w2 * (r.y - y2) / s2, r.w*(r.f-f1)/s1 - r.w2*(r.f-f2)/s2
	}
	for _, r := range rows {
		a, b := parts(r)
		ab, bb = ab+a*b, bb+b*b
	}
	lambda := min(1, max(0, -ab/bb))
	mean = y2 + lambda*(f1-f2)
	var v float64
	for _, r := range rows {
		a, b := parts(r)
		v += math.Pow(a+lambda*b, 2)
	}
	m := s2 * s2 / squares
	centre := min(1-.5/m, max(.5/m, mean))
	n := centre * (1 - centre) / (v + 1/(m*m))
	lo, hi, err := stats.Wilson(centre*n, n, .95)
	if err != nil {
		t.Fatal(err)
	}
	return mean, lo, hi
}
