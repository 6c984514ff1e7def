package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/evaluators"
	"assay/internal/testkit"
)

const evaluatePointer = "/paths/~1api~1v1~1evaluate/post"

// What the golden files do not show: batches, dry runs, problems and what only reads.
func TestEveryFormOfAnAnswerIsDescribed(t *testing.T) {
	w := start(t)
	w.monitor.Store(aDay(w, time.Now().UTC()))
	api := served(t, w)
	request := api.schema(evaluatePointer + "/requestBody/content/application~1json/schema")
	response := api.schema(evaluatePointer + "/responses/200/content/application~1json/schema")
	line := api.schema(evaluatePointer + "/responses/200/content/application~1x-ndjson/schema")
	for _, body := range []string{
		`{"evaluators":["factuality","answer_relevance"],"items":[{"id":"a","output":"o","expected":["x","y"]},{"id":null,"output":"","expected":"x"}]}`,
		`{"suite":"everything","dry_run":true,"input":"q","output":"One [1]. Two.","expected":"x","criteria":"c","context":["d"],"judge":null}`,
		`{"suite":"rag","evaluators":null,"items":[{"input":"q","output":"One [1]. Two.","context":["d"]}],"dry_run":null,"options":null}`,
	} {
		valid(t, request, []byte(body))
		a := w.evaluate(body)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", body, a.status, a.body)
			continue
		}
		valid(t, response, a.body)
		for l := range bytes.Lines(w.lines(body).body) {
			valid(t, line, l)
		}
	}
	problem := api.schema(evaluatePointer + "/responses/default/content/application~1problem+json/schema")
	valid(t, problem, w.evaluate(`{"evaluators":["x"]}`).body)

	of := func(path string) string {
		return "/paths/" + strings.ReplaceAll(path, "/", "~1") + "/get/responses/200/content/application~1json/schema"
	}
	for path, schema := range map[string]string{
		"/api/v1/evaluators":                    of("/api/v1/evaluators"),
		"/api/v1/aggregates":                    of("/api/v1/aggregates"),
		"/api/v1/quality":                       of("/api/v1/quality"),
		"/api/v1/quality/series?check=refunds":  of("/api/v1/quality/series"),
		"/api/v1/alarms":                        of("/api/v1/alarms"),
		"/api/v1/why/conv-1":                    of("/api/v1/why/{id}"),
		"/api/v1/pipeline":                      of("/api/v1/pipeline"),
		"/api/v1/evaluators/" + "factuality":    of("/api/v1/evaluators/{name}"),
		"/api/v1/evaluators/" + "json_match":    of("/api/v1/evaluators/{name}"),
		"/api/v1/evaluators/" + "faithfulness":  of("/api/v1/evaluators/{name}"),
		"/api/v1/evaluators/answer_correctness": of("/api/v1/evaluators/{name}"),
	} {
		a := w.get(path)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.body)
			continue
		}
		valid(t, api.schema(schema), a.body)
	}
}

// Each evaluator says what it asks, and its page has all that the table has.
func TestEveryEvaluatorsPageIsWhole(t *testing.T) {
	w := start(t)
	for _, spec := range evaluators.Table() {
		var d evaluatorDetail
		a := w.get("/api/v1/evaluators/" + spec.Name)
		a.into(t, &d)
		if a.status != http.StatusOK || d.Use == "" || d.Mapping == "" || d.Calls == "" || len(d.Suites) == 0 && !spec.NeedsSettings() {
			t.Errorf("%s: %d %s", spec.Name, a.status, a.body)
		}
		if (len(d.Questions) > 0) != spec.NeedsJudge() {
			t.Errorf("%s has %d questions", spec.Name, len(d.Questions))
		}
		for _, q := range d.Questions {
			if distribution := q.Kind != "text" && q.Kind != "vector"; distribution != (len(q.Options) > 0) || (q.Kind != "vector") != (q.Text != "") {
				t.Errorf("%s: %+v", spec.Name, q)
			}
		}
	}
}

// The request and the answer of docs/api.md are such.
func TestTheExamplesOfTheManualHold(t *testing.T) {
	w := start(t)
	api := served(t, w)
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "-d '")
	body, _, closed := strings.Cut(rest, "'\n```")
	if !ok || !closed {
		t.Fatal("no request in docs/api.md")
	}
	valid(t, api.schema(evaluatePointer+"/requestBody/content/application~1json/schema"), []byte(body))
	if a := w.evaluate(body); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
	_, rest, ok = strings.Cut(string(raw), "```json\n")
	answer, _, closed := strings.Cut(rest, "```")
	if !ok || !closed || !json.Valid([]byte(answer)) {
		t.Fatal("no answer in docs/api.md")
	}
	valid(t, api.schema(evaluatePointer+"/responses/200/content/application~1json/schema"), []byte(answer))
}
