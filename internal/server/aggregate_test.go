package server

import (
	"strings"
	"testing"

	"assay/evaluators/aggregate"
)

func TestAMetricOverVerdictsThatTheClientHas(t *testing.T) {
	w := start(t)
	f := func(body string, value any, interval bool) {
		t.Helper()
		a := w.do("POST", "/api/v1/aggregate", body, "Content-Type", "application/json")
		got := a.object(t)
		if a.status != 200 || got["value"] != value || (got["interval"] != nil) != interval || got["detail"] == nil {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	f(`{"metric":"faithfulness","args":{"claims":[[true,false],["nei","supported"]]}}`, .5, true)
	f(`{"metric":"faithfulness","dialect":"ragas","args":{"claims":[[]]}}`, nil, false)
	f(`{"metric":"pass_at_k","args":{"n":[10],"c":[3],"k":1}}`, .30000000000000004, true)
	f(`{"metric":"majority_vote","args":{"samples":["b","a","b"]}}`, "b", false)
	f(`{"metric":"fuzzy_match","args":{"a":"x","b":"y"}}`, false, false)

	a := w.do("POST", "/api/v1/aggregate", `{"metric":"faithfulness","args":{"claims":[[true]]},"provenance":"two people"}`, "Content-Type", "application/json")
	if a.object(t)["provenance"] != "two people" {
		t.Errorf("%s", a.body)
	}
	a = w.do("POST", "/api/v1/aggregate", `{"metric":"faithfulness","args":{"claims":[[true]]}}`, "Content-Type", "application/json")
	if a.object(t)["provenance"] != aggregate.UnknownProvenance {
		t.Errorf("a number without origin: %s", a.body)
	}
}

func TestAWrongMetricNamesItsField(t *testing.T) {
	w := start(t)
	f := func(body string, want ...string) {
		t.Helper()
		a := w.do("POST", "/api/v1/aggregate", body, "Content-Type", "application/json")
		if a.status != 400 {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
		for _, s := range want {
			if !strings.Contains(string(a.body), s) {
				t.Errorf("%s: %s does not say %q", body, a.body, s)
			}
		}
	}
	f(`{`, "not JSON")
	f(`{}`, "metric", "missing", "args")
	f(`{"metric":"faithfullness","args":{}}`, "did you mean faithfulness?")
	f(`{"metric":"faithfulness","args":[]}`, "args", "want an object")
	f(`{"metric":"faithfulness","arg":{}}`, "unknown field (did you mean args?)")
	f(`{"metric":"faithfulness","args":{"claims":"supported"}}`, "args", "faithfulness")
	f(`{"metric":"faithfulness","args":{"claims":[]}}`, "nothing to count")
	f(`{"metric":"faithfulness","args":{"claims":[[true]],"averge":"micro"}}`, "averge")
	f(`{"metric":"faithfulness","dialect":"deepeval","args":{"claims":[[true]]}}`, "assay or ragas")
	f(`{"metric":"","args":{}}`, "unknown metric")
	f(`{"metric":1,"args":{}}`, "want a string, not a number")
}

func TestTheListOfMetricsIsTheTable(t *testing.T) {
	w := start(t)
	var body struct{ Metrics []metricBody }
	w.get("/api/v1/aggregates").into(t, &body)
	if len(body.Metrics) != len(aggregate.Metrics()) {
		t.Errorf("%d metrics", len(body.Metrics))
	}
	for _, m := range body.Metrics {
		if m.Name == "extract_answer" && (strings.Join(m.Args, " ") != "text style" || strings.Join(m.Dialects, " ") != "assay evalsuite openai_strict lm_eval_flexible") {
			t.Errorf("%+v", m)
		}
	}
}
