package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// Grafana drops what it does not know without a word, so a misspelt option would only
// show in a picture. Its published schema knows the dashboard, the panels and the
// queries of Prometheus; those of ClickHouse it takes as they are.
func TestDashboardsFitGrafanasSchema(t *testing.T) {
	schema := cog.NewRuntime()
	schema.RegisterPanelcfgVariant(timeseries.VariantConfig())
	schema.RegisterPanelcfgVariant(stat.VariantConfig())
	schema.RegisterPanelcfgVariant(table.VariantConfig())
	schema.RegisterDataqueryVariant(prometheus.VariantConfig())
	faults := func(text string) string {
		//lint:ignore SA1019 the second schema is a resource of its own, which import pages of Grafana 11 do not take
		var d dashboard.Dashboard
		if err := d.UnmarshalJSONStrict([]byte(text)); err != nil {
			return err.Error() // empty where it found no fault: its list is never nil
		}
		return ""
	}
	_, texts := boards(t)
	for name, text := range texts {
		if wrong := faults(text); wrong != "" {
			t.Errorf("%s:\n%s", name, wrong)
		}
		if wrong := faults(overridden(t, text)); wrong != "" {
			t.Errorf("%s, what it overrides:\n%s", name, wrong)
		}
		if misspelt := strings.Replace(text, `"custom.lineStyle"`, `"custom.lineStile"`, 1); misspelt == text || faults(overridden(t, misspelt)) == "" {
			t.Errorf("%s: a misspelt override passes", name)
		}
		// the schema does look inside panels, options and queries
		for _, s := range [][2]string{{`"lineWidth"`, `"lineWidht"`}, {`"spanNulls": false`, `"spanNulls": "x y"`}, {`"showHeader"`, `"showHead"`}, {`"legendFormat"`, `"legend"`}, {`"schemaVersion": 39`, `"schemaVersion": "39"`}} {
			if !strings.Contains(text, s[0]) {
				t.Fatalf("%s has no %s", name, s[0])
			}
			if faults(strings.Replace(text, s[0], s[1], 1)) == "" {
				t.Errorf("%s with %s in place of %s passes", name, s[1], s[0])
			}
		}
	}
}

// overridden is the dashboard with what panels override for one series in the place of
// what holds for all: the schema takes overrides as they are, and this it reads.
func overridden(t *testing.T, text string) string {
	t.Helper()
	var board map[string]any
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board["panels"].([]any) {
		config, ok := p.(map[string]any)["fieldConfig"].(map[string]any)
		if !ok {
			continue // a row
		}
		defaults := config["defaults"].(map[string]any)
		for _, o := range config["overrides"].([]any) {
			for _, each := range o.(map[string]any)["properties"].([]any) {
				property := each.(map[string]any)
				if name, custom := strings.CutPrefix(property["id"].(string), "custom."); custom {
					defaults["custom"].(map[string]any)[name] = property["value"]
				} else {
					defaults[property["id"].(string)] = property["value"]
				}
			}
		}
	}
	raw, err := json.Marshal(board)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
