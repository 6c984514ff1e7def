package server

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"assay/evaluators"
	"assay/evaluators/judge"
)

func TestThePageAndItsFilesComeFromHereAndAskNobodyElse(t *testing.T) {
	w := start(t)
	f := func(path, kind string) {
		t.Helper()
		a := w.get(path)
		if a.status != 200 || !strings.HasPrefix(a.header.Get("Content-Type"), kind) || len(a.body) == 0 {
			t.Errorf("%s: %d %q, %d bytes", path, a.status, a.header.Get("Content-Type"), len(a.body))
		}
		if csp := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'self';") {
			t.Errorf("%s: policy %q", path, csp)
		}
		for _, other := range []string{"https://", "http://"} {
			if body := strings.ReplaceAll(string(a.body), "http://www.w3.org/2000/svg", ""); strings.Contains(body, other) {
				t.Errorf("%s names another host", path)
			}
		}
		if again := w.do("GET", path, "", "If-None-Match", a.header.Get("ETag")); again.status != 304 {
			t.Errorf("%s again: %d, want 304", path, again.status)
		}
	}
	f("/", "text/html")
	f("/index.html", "text/html")
	f("/page.css", "text/css")
	for _, script := range []string{"page", "cards", "chart", "words", "why"} {
		f("/"+script+".js", "text/javascript")
	}
	f("/favicon.svg", "image/svg+xml")

	for _, path := range []string{"/nothing", "/docs", "/../go.mod", "/page/page.css"} {
		if a := w.get(path); a.status != 404 || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestHealthIsAboutThisProcessReadinessAboutWhatItNeeds(t *testing.T) {
	var reason error
	w := start(t, func(_ *Config, d *Deps) { d.Ready = func(context.Context) error { return reason } })
	if a := w.get("/-/ready"); a.status != 200 || string(a.body) != "ready\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	reason = errors.New("ClickHouse takes no rows")
	if a := w.get("/-/ready"); a.status != 503 || !strings.Contains(string(a.body), "ClickHouse takes no rows") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := w.get("/-/healthy"); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestAScrapeShowsWhatIsRegistered(t *testing.T) {
	w := start(t)
	w.evaluate(`{`)
	w.get("/no/such/path")
	a := w.get("/metrics")
	for _, line := range []string{
		`assay_http_requests_total{route="POST /api/v1/evaluate",status="4xx"} 1`,
		`assay_http_requests_total{route="POST /api/v1/evaluate",status="5xx"} 0`,
		`assay_http_requests_total{route="GET /{file...}",status="4xx"} 1`,
		`assay_http_request_seconds_count{route="POST /api/v1/evaluate"} 1`,
	} {
		if !strings.Contains(string(a.body), line) {
			t.Errorf("no %s in\n%s", line, a.body)
		}
	}
	a = w.do("GET", "/metrics", "", "Accept", "application/openmetrics-text; version=1.0.0")
	if !strings.HasPrefix(a.header.Get("Content-Type"), "application/openmetrics-text") || !strings.HasSuffix(string(a.body), "# EOF\n") {
		t.Errorf("content type %q", a.header.Get("Content-Type"))
	}
	if problems, err := testutil.GatherAndLint(w.reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// Paths are what clients make up; a series for each would fill Prometheus.
func TestUnknownRoutesAndMethodsShareOneSeries(t *testing.T) {
	w := start(t)
	for _, method := range []string{"PUT", "DELETE", "POST"} {
		if a := w.do(method, "/api/v1/quality", ""); a.status != 405 {
			t.Errorf("%s: %d", method, a.status)
		}
	}
	if n := testutil.CollectAndCount(w.reg, "assay_http_requests_total"); n%4 != 0 || n > 80 {
		t.Errorf("%d series", n)
	}
	if !strings.Contains(string(w.get("/metrics").body), `assay_http_requests_total{route="other",status="4xx"} 3`) {
		t.Error("the three are not under other")
	}
}

func TestAnotherSitesPageCannotSpendTheBudget(t *testing.T) {
	w := start(t, withJudge(judgeFunc(func(context.Context, judge.Question) (judge.Answer, error) {
		t.Error("the judge was asked")
		return judge.Answer{}, errors.New("no")
	})))
	body := `{"evaluators":["factuality"],"output":"o","expected":"x"}`
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		if a := w.do("POST", "/api/v1/evaluate", body, header...); a.status != 403 || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
			t.Errorf("%v: %d %s", header, a.status, a.body)
		}
	}
}

func TestABodyThatTricklesIsEndedAndASlowClientHoldsNothing(t *testing.T) {
	w := start(t, func(c *Config, _ *Deps) { c.ReadTimeout = time.Second })
	conn, err := net.Dial("tcp", w.server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("POST /api/v1/evaluate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "408") {
		t.Errorf("%q, %v", line, err)
	}
}

func TestTheOpenAPIDocumentDescribesTheRoutes(t *testing.T) {
	w := start(t)
	a := w.get("/openapi.json")
	doc := a.object(t)
	if doc["openapi"] != "3.1.0" {
		t.Errorf("openapi %v", doc["openapi"])
	}
	paths := doc["paths"].(map[string]any)
	for _, route := range []string{evaluateRoute, evaluatorsRoute, evaluatorRoute, aggregateRoute, aggregatesRoute, labelsRoute, qualityRoute, seriesRoute, alarmsRoute, whyRoute, pipelineRoute} {
		method, path, _ := strings.Cut(route, " ")
		item, _ := paths[path].(map[string]any)
		if item == nil || item[strings.ToLower(method)] == nil {
			t.Errorf("no %s", route)
		}
	}
	if len(paths) != 11 {
		t.Errorf("%d paths", len(paths))
	}
	post := paths["/api/v1/evaluate"].(map[string]any)["post"].(map[string]any)
	schema := post["requestBody"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
	properties := schema["properties"].(map[string]any)
	for _, name := range requestFields {
		if _, ok := properties[name]; !ok {
			t.Errorf("no property %s", name)
		}
	}
	if schema["additionalProperties"] != false {
		t.Error("the schema takes unknown fields")
	}
	settings := properties["options"].(map[string]any)["properties"].(map[string]any)["factuality"].(map[string]any)["properties"].(map[string]any)
	if _, ok := settings["coarse"]; !ok {
		t.Errorf("options of factuality: %v", settings)
	}
}

func TestTheListOfEvaluatorsSaysWhatARequestMayHold(t *testing.T) {
	w := start(t)
	var body struct {
		Evaluators []EvaluatorBody
		Judges     []string
	}
	w.get("/api/v1/evaluators").into(t, &body)
	if len(body.Evaluators) != len(evaluators.Table()) || !slices.Equal(body.Judges, []string{"main"}) {
		t.Fatalf("%d evaluators, judges %v", len(body.Evaluators), body.Judges)
	}
	of := func(name string) EvaluatorBody {
		i := slices.IndexFunc(body.Evaluators, func(e EvaluatorBody) bool { return e.Name == name })
		if i < 0 {
			t.Fatalf("no %s", name)
		}
		return body.Evaluators[i]
	}
	qa, facts, rate := of("closed_qa"), of("factuality"), of("hallucination_rate")
	if rate.Passes != "at_most" || *rate.PassLine != 0 || qa.Passes != "at_least" || of("noncommittal").Passes != "below" || qa.Calls != "1" || rate.Calls == "1" || of("exact_match").Calls != "none" || of("answer_relevancy").Aliases[0] != "answer_relevance" {
		t.Errorf("%+v", rate)
	}
	if qa.Name != "closed_qa" || *qa.PassLine != .5 || !slices.Equal(qa.Required, []string{"input", "output", "criteria"}) || qa.Question != "boolean" {
		t.Errorf("%+v", qa)
	}
	if len(facts.Options) != 5 || facts.Options[0].Score != .4 || len(facts.Coarse) != 2 || !slices.Equal(facts.Pass, []string{"B", "C", "E"}) {
		t.Errorf("%+v", facts)
	}
}

func TestAnAddressInUseIsFoundBeforeAnythingRuns(t *testing.T) {
	w := start(t)
	cfg := w.server.cfg
	cfg.Addr = w.server.Addr()
	deps := w.server.deps
	deps.Reg = prometheus.NewRegistry()
	second, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Listen(); err == nil || !strings.Contains(err.Error(), "ASSAY_HTTP_ADDR="+cfg.Addr) {
		t.Errorf("%v", err)
	}
	if err := second.Run(t.Context()); err == nil {
		t.Error("it runs")
	}
}

func TestTheAddressIsOneThatABrowserFinds(t *testing.T) {
	w := start(t)
	cfg, deps := w.server.cfg, w.server.deps
	deps.Reg = prometheus.NewRegistry()
	cfg.Addr = ":8420"
	s, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr() != "localhost:8420" {
		t.Errorf("%s", s.Addr())
	}
}
