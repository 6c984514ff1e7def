package server

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"assay/evaluators"
	"assay/internal/testkit"
)

// a golden is a request, what the judge's model answers to each of its questions, and
// what comes back.
type golden struct {
	About    string             `json:"about"`
	Request  json.RawMessage    `json:"request"`
	Judge    map[string]float64 `json:"judge,omitempty"`
	Response json.RawMessage    `json:"response"`
}

// Every evaluator answers its golden request as it did: through the running server and
// the client of a model. ASSAY_GOLDEN=1 writes the answers anew.
func TestEveryEvaluatorAnswersAsItsGoldenFileSays(t *testing.T) {
	var answers map[string]float64
	model, fake := withFakeModel(t, func() testkit.FakeReply { return testkit.FakeReply{Probabilities: answers} })
	w := start(t, model)
	api := served(t, w)
	request := api.schema("/paths/~1api~1v1~1evaluate/post/requestBody/content/application~1json/schema")
	response := api.schema("/paths/~1api~1v1~1evaluate/post/responses/200/content/application~1json/schema")
	line := api.schema("/paths/~1api~1v1~1evaluate/post/responses/200/content/application~1x-ndjson/schema")
	for _, spec := range evaluators.Table() {
		t.Run(spec.Name, func(t *testing.T) {
			path := filepath.Join("testdata", "evaluate", spec.Name+".json")
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("each evaluator has a golden file (with request, and judge where one is asked): %v", err)
			}
			var g golden
			if err := json.Unmarshal(raw, &g); err != nil {
				t.Fatal(err)
			}
			var of struct{ Evaluators []string }
			if err := json.Unmarshal(g.Request, &of); err != nil || !slices.Equal(of.Evaluators, []string{spec.Name}) {
				t.Fatalf("the request is about %v", of.Evaluators)
			}
			answers = g.Judge
			calls := fake.Calls()
			a := w.evaluate(string(g.Request))
			if a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if asked := fake.Calls() > calls; asked != spec.NeedsJudge() {
				t.Errorf("the judge was asked: %v", asked)
			}
			valid(t, request, g.Request)
			valid(t, response, a.body)
			for l := range bytes.Lines(w.lines(string(g.Request)).body) {
				valid(t, line, l)
			}
			got := steady(t, a.body)
			if os.Getenv("ASSAY_GOLDEN") != "" {
				g.Response = got
				writeGolden(t, path, g)
				return
			}
			if want := steady(t, g.Response); !bytes.Equal(got, want) {
				t.Errorf("%s\nanswers\n%s\nwant\n%s\nASSAY_GOLDEN=1 go test ./internal/server -run Golden writes it anew", spec.Name, got, want)
			}
		})
	}
	files, err := os.ReadDir(filepath.Join("testdata", "evaluate"))
	if err != nil || len(files) != len(evaluators.Table()) {
		t.Errorf("%d golden files for %d evaluators, %v", len(files), len(evaluators.Table()), err)
	}
}

func writeGolden(t *testing.T, path string, g golden) {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(g); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// steady is an answer without what changes with the wording of questions or the time,
// each of which other tests hold: versions, tokens and milliseconds.
func steady(t *testing.T, body []byte) []byte {
	t.Helper()
	for pattern, with := range map[string]string{
		`"version": ?"[0-9a-f]{16}"`:   `"version":"(16 hex digits)"`,
		`"latency_ms": ?[0-9]+(\s*})`:  `"latency_ms":0$1`,
		`"input_tokens": ?[1-9][0-9]*`: `"input_tokens":1`,
	} {
		body = regexp.MustCompile(pattern).ReplaceAll(body, []byte(with))
	}
	body = regexp.MustCompile(`[0-9]\.[0-9]{7,}`).ReplaceAllFunc(body, func(number []byte) []byte {
		v, err := strconv.ParseFloat(string(number), 64)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.AppendFloat(nil, math.Round(v*1e6)/1e6, 'f', -1, 64)
	})
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "  "); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return bytes.TrimSpace(out.Bytes())
}

// an openAPI is a served document, by whose schemas bodies are held.
type openAPI struct {
	t        *testing.T
	compiler *jsonschema.Compiler
}

func served(t *testing.T, w *world) openAPI {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.get("/openapi.json").body))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("assay:openapi", doc); err != nil {
		t.Fatal(err)
	}
	return openAPI{t, c}
}

// schema compiles the schema at a JSON pointer.
func (o openAPI) schema(pointer string) *jsonschema.Schema {
	o.t.Helper()
	s, err := o.compiler.Compile("assay:openapi#" + pointer)
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

func valid(t *testing.T, s *jsonschema.Schema, body []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("the OpenAPI document does not describe\n%s\n%v", body, err)
	}
}

// The check above must be able to fail.
func TestTheServedSchemasRefuseWhatIsWrong(t *testing.T) {
	w := start(t)
	api := served(t, w)
	refuses := func(pointer, body string) {
		t.Helper()
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if api.schema(pointer).Validate(v) == nil {
			t.Errorf("%s is taken by %s", body, pointer)
		}
	}
	request := "/paths/~1api~1v1~1evaluate/post/requestBody/content/application~1json/schema"
	refuses(request, `{"output":"x"}`)
	refuses(request, `{"evaluators":["factuality"],"suite":"rag"}`)
	refuses(request, `{"evaluators":["nonsense"]}`)
	refuses(request, `{"evaluators":["factuality"],"outptu":"x"}`)
	refuses(request, `{"evaluators":["factuality"],"options":{"factuality":{"pass":1}}}`)
	refuses("/paths/~1api~1v1~1evaluate/post/responses/200/content/application~1json/schema",
		`{"judge":"m","results":[{"evaluator":"length","status":"fine"}]}`)
}
