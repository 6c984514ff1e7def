package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"

	"assay/dashboards"
)

// grafanaBoard is what these tests read of a dashboard.
type grafanaBoard struct {
	UID         string   `json:"uid"`
	Title       string   `json:"title"`
	Tags        []string `json:"tags"`
	Links       []grafanaLink
	Panels      []grafanaPanel
	Annotations struct {
		List []struct {
			Name       string
			Type       string
			Datasource grafanaSource
			Target     grafanaTarget
		}
	}
	Templating struct {
		List []grafanaVariable
	}
}

type grafanaLink struct{ Title, URL string }

type grafanaSource struct{ Type, UID string }

type grafanaPanel struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Datasource  *grafanaSource
	Targets     []grafanaTarget
	Links       []grafanaLink
	FieldConfig struct {
		Defaults  struct{ Links []grafanaLink }
		Overrides []struct {
			Matcher struct {
				ID      string
				Options any
			}
			Properties []struct {
				ID    string
				Value any
			}
		}
	}
	Interval string
}

type grafanaTarget struct {
	RefID        string
	Datasource   grafanaSource
	Expr         string // of Prometheus
	LegendFormat string
	RawSQL       string // of ClickHouse
}

type grafanaVariable struct {
	Name       string
	Type       string
	Query      any
	Datasource grafanaSource
	Regex      string
	Current    struct{ Value any }
}

// boards are the dashboards of the binary by file name, with their text.
func boards(t *testing.T) (map[string]grafanaBoard, map[string]string) {
	t.Helper()
	files := dashboards.Grafana()
	names, err := fs.Glob(files, "*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("dashboards %v, %v", names, err)
	}
	read, texts := map[string]grafanaBoard{}, map[string]string{}
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		var b grafanaBoard
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		read[name], texts[name] = b, string(raw)
	}
	return read, texts
}

func TestDashboardsCanBeImportedAnywhere(t *testing.T) {
	uids := map[string]bool{}
	all, texts := boards(t)
	for name, b := range all {
		if b.UID == "" || uids[b.UID] || b.UID+".json" != name || !slices.Contains(b.Tags, "assay") || strings.Contains(texts[name], `"id": null`) {
			t.Errorf("%s: uid %q, tags %v: want the file's name as its only uid, and the tag assay", name, b.UID, b.Tags)
		}
		uids[b.UID] = true
		variables := map[string]bool{}
		for _, v := range b.Templating.List {
			if variables[v.Name] {
				t.Errorf("%s: two variables are called %s", name, v.Name)
			}
			variables[v.Name] = true
			if v.Type == "query" && v.Datasource.UID != "${prometheus}" {
				t.Errorf("%s: variable %s reads %+v", name, v.Name, v.Datasource)
			}
		}
		byVariable := func(where string, s grafanaSource) {
			want := map[string]string{"prometheus": "${prometheus}", "grafana-clickhouse-datasource": "${clickhouse}"}[s.Type]
			if want == "" || s.UID != want {
				t.Errorf("%s: %s reads the data source %+v, want one by its variable", name, where, s)
			}
		}
		links := slices.Clone(b.Links)
		ids := map[int]string{}
		for _, p := range b.Panels {
			if other, twice := ids[p.ID]; twice || p.ID == 0 {
				t.Errorf("%s: panel %q has the id %d of %q", name, p.Title, p.ID, other)
			}
			ids[p.ID] = p.Title
			links = append(append(links, p.Links...), p.FieldConfig.Defaults.Links...)
			for _, o := range p.FieldConfig.Overrides {
				for _, property := range o.Properties {
					if property.ID != "links" {
						continue
					}
					for _, l := range property.Value.([]any) {
						links = append(links, grafanaLink{URL: l.(map[string]any)["url"].(string)})
					}
				}
			}
			if p.Type == "row" {
				continue
			}
			if p.Description == "" || p.Datasource == nil || len(p.Targets) == 0 {
				t.Errorf("%s: panel %q lacks a description, a data source or queries", name, p.Title)
				continue
			}
			byVariable(p.Title, *p.Datasource)
			refs := map[string]bool{}
			for _, target := range p.Targets {
				byVariable(p.Title, target.Datasource)
				if refs[target.RefID] || (target.Expr == "") == (target.RawSQL == "") {
					t.Errorf("%s: panel %q, query %s: twice, or not one of PromQL and SQL", name, p.Title, target.RefID)
				}
				refs[target.RefID] = true
			}
		}
		for _, a := range b.Annotations.List {
			if a.Type != "dashboard" { // Grafana's own
				byVariable("annotation "+a.Name, a.Datasource)
				byVariable("annotation "+a.Name, a.Target.Datasource)
			}
		}
		if len(links) == 0 {
			t.Errorf("%s has no links", name)
		}
		for _, l := range links {
			if strings.Contains(l.URL, "://") || strings.HasPrefix(l.URL, "//") {
				t.Errorf("%s: the link %q is absolute", name, l.URL)
			}
		}
		for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(texts[name], -1) {
			if !variables[m[1]] && !strings.HasPrefix(m[1], "__") {
				t.Errorf("%s uses the variable %s, which it does not have", name, m[1])
			}
		}
	}
}

func TestPanelsStandBesideEachOther(t *testing.T) {
	all, _ := boards(t)
	for name, b := range all {
		taken := map[[2]int]string{}
		for _, p := range b.Panels {
			g := p.GridPos
			if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 || g.Y < 0 {
				t.Errorf("%s: panel %q stands outside the 24 columns: %+v", name, p.Title, g)
				continue
			}
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					if other, ok := taken[[2]int{x, y}]; ok {
						t.Fatalf("%s: panels %q and %q overlap at %d, %d", name, p.Title, other, x, y)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

// An estimate is never drawn without its interval, gaps stay gaps, and rates have the
// whole axis.
func TestPanelsKeepTheDrawingRules(t *testing.T) {
	all, texts := boards(t)
	for name, b := range all {
		for _, p := range b.Panels {
			exprs := ""
			for _, target := range p.Targets {
				exprs += target.Expr + "\n"
			}
			for _, m := range regexp.MustCompile(`assay_(quality_pass_rate|quality_mean_score|calibration_agreement)\{`).FindAllStringSubmatch(exprs, -1) {
				for _, end := range []string{"_lower{", "_upper{"} {
					if !strings.Contains(exprs, "assay_"+m[1]+end) {
						t.Errorf("%s: panel %q shows %s without its interval", name, p.Title, m[1])
					}
				}
			}
			for _, target := range p.Targets {
				for column := range strings.SplitSeq("pass rate,corrected", ",") {
					if strings.Contains(target.RawSQL, `AS "`+column+`"`) && (!strings.Contains(target.RawSQL, `AS "lower 95%"`) || !strings.Contains(target.RawSQL, `AS "upper 95%"`)) {
						t.Errorf("%s: panel %q shows %s without its interval", name, p.Title, column)
					}
				}
			}
		}
		if strings.Contains(texts[name], `"spanNulls": true`) || !strings.Contains(texts[name], `"spanNulls": false`) || strings.Contains(texts[name], "connectNulls") {
			t.Errorf("%s joins points over gaps", name)
		}
	}
}

// What a panel says of a series by name is said of one that its queries give: a band
// without its other end is drawn down to 0.
func TestPanelsNameOnlySeriesThatTheyHave(t *testing.T) {
	all, _ := boards(t)
	bands := 0
	for name, b := range all {
		for _, p := range b.Panels {
			legends := ""
			for _, target := range p.Targets {
				legends += "|" + regexp.MustCompile(`\\\{\\\{\w+\\\}\\\}`).ReplaceAllString(regexp.QuoteMeta(target.LegendFormat), ".+")
				for _, m := range regexp.MustCompile(`AS "([^"]+)"`).FindAllStringSubmatch(target.RawSQL, -1) {
					legends += "|" + regexp.QuoteMeta(m[1])
				}
				if target.RawSQL != "" {
					legends += "|summary|score" // columns under their own names
				}
			}
			has := regexp.MustCompile("^(?:" + strings.TrimPrefix(legends, "|") + ")$")
			for _, o := range p.FieldConfig.Overrides {
				series, _ := o.Matcher.Options.(string)
				if o.Matcher.ID == "byName" && !has.MatchString(series) {
					t.Errorf("%s: panel %q draws %q, and has %s", name, p.Title, series, has)
				}
				if o.Matcher.ID == "byRegexp" && !matchesSome(series, legends) {
					t.Errorf("%s: panel %q draws what %q matches, which is nothing of %s", name, p.Title, series, has)
				}
				for _, property := range o.Properties {
					if property.ID == "custom.fillBelowTo" {
						bands++
						if to, _ := property.Value.(string); !has.MatchString(to) {
							t.Errorf("%s: panel %q fills from %q to %q, and has %s", name, p.Title, series, to, has)
						}
					}
				}
			}
		}
	}
	if bands < 4 {
		t.Errorf("only %d bands", bands)
	}
}

// matchesSome reports whether an override's pattern finds one of the legends. Grafana
// takes a pattern without slashes for the whole name.
func matchesSome(pattern, legends string) bool {
	inner, ok := strings.CutPrefix(pattern, "/")
	if !ok || !strings.HasSuffix(inner, "/") {
		return false
	}
	found := regexp.MustCompile(strings.TrimSuffix(inner, "/"))
	return slices.ContainsFunc(strings.Split(legends, "|"), func(l string) bool { return l != "" && found.MatchString(strings.ReplaceAll(l, `\`, "")) })
}

// Every query of Prometheus parses, and so do those behind the variables.
func TestDashboardsPromQLParses(t *testing.T) {
	all, _ := boards(t)
	n := 0
	for name, b := range all {
		for where, expr := range b.promQL(overviewValues("all")) {
			n++
			if _, err := metricsql.Parse(expr); err != nil {
				t.Errorf("%s: %s: %s: %v", name, where, expr, err)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d expressions", n)
	}
}

// overviewValues are the values of variables as a person has chosen them.
func overviewValues(slice string) map[string]string {
	return map[string]string{
		"check": "answers_policy", "check_version": "v", "slice": slice, "window": "1h", "topic": ".*", "__rate_interval": "1m",
	}
}

// fillVariables puts variables in as Grafana does: $name, ${name}, and ${name:sqlstring} as a
// string of SQL. What it does not know stays.
func fillVariables(text string, values map[string]string) string {
	return regexp.MustCompile(`\$(?:\{(\w+)(?::(\w+))?\}|(\w+))`).ReplaceAllStringFunc(text, func(v string) string {
		m := regexp.MustCompile(`\w+`).FindAllString(v, -1)
		value, ok := values[m[0]]
		switch {
		case !ok:
			return v
		case len(m) == 2 && m[1] == "sqlstring":
			return "'" + strings.ReplaceAll(value, "'", "''") + "'"
		default:
			return value
		}
	})
}

// promQL are a dashboard's expressions by panel and query, the variables' included.
func (b grafanaBoard) promQL(values map[string]string) map[string]string {
	found := map[string]string{}
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			if target.Expr != "" {
				found[p.Title+"/"+target.RefID] = fillVariables(target.Expr, values)
			}
		}
	}
	for _, v := range b.Templating.List {
		if v.Type == "query" {
			found["variable/"+v.Name] = fillVariables(v.expr(), values)
		}
	}
	return found
}

// expr is the expression that a variable asks Prometheus for.
func (v grafanaVariable) expr() string {
	query, _ := v.Query.(map[string]any)
	text, _ := query["query"].(string)
	if inner, ok := strings.CutPrefix(text, "label_values("); ok {
		at := strings.LastIndex(inner, ",")
		label := strings.TrimSpace(strings.TrimSuffix(inner[at+1:], ")"))
		return fmt.Sprintf("count by (%s) (%s)", label, inner[:at])
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "query_result("), ")")
}

// leadsToADashboard holds a link without a host against the dashboards that there are,
// and what it fills in against their variables.
func leadsToADashboard(t *testing.T, alert, link string) {
	t.Helper()
	page, query, _ := strings.Cut(link, "?")
	all, _ := boards(t)
	b, ok := all[strings.TrimPrefix(page, "/d/")+".json"]
	if !ok || !strings.HasPrefix(page, "/d/") {
		t.Errorf("%s leads to the dashboard %q, which is none", alert, link)
		return
	}
	for _, m := range regexp.MustCompile(`(?:^|&)([^=]+)=`).FindAllStringSubmatch(query, -1) {
		name := strings.TrimPrefix(m[1], "var-")
		if !slices.ContainsFunc(b.Templating.List, func(v grafanaVariable) bool { return v.Name == name }) {
			t.Errorf("%s sets %s on %s, which has no such variable", alert, m[1], page)
		}
	}
}
