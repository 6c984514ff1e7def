package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"assay/evaluators/judge"
)

func anthropic(m judge.Method) func(*Config) {
	return func(c *Config) { c.Protocol, c.Method = Messages, m }
}

// promptOf is the user's text, whose parts are looked at elsewhere.
func promptOf(body map[string]any) string {
	text := ""
	for _, b := range body["messages"].([]any)[0].(map[string]any)["content"].([]any) {
		text += b.(map[string]any)["text"].(string)
	}
	return text
}

// blocks is a message with that content.
func blocks(stop string, content ...string) string {
	return fmt.Sprintf(`{"type":"message","role":"assistant","model":"m-2","content":[%s],"stop_reason":%q,`+
		`"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":3,"output_tokens":9}}`, strings.Join(content, ","), stop)
}

func said(text string) string {
	data, _ := json.Marshal(map[string]string{"type": "text", "text": text})
	return string(data)
}

func called(input string) string {
	return `{"type":"tool_use","id":"t","name":"grade","input":` + input + `}`
}

func TestMessagesAreAskedAsTheirProtocolHasIt(t *testing.T) {
	var header http.Header
	var path string
	var body map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header, path = r.Header.Clone(), r.URL.Path
		body = nil
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, blocks("tool_use", called(`{"reason":"so","probabilities":{"A":0.6,"B":0.4,"C":0}}`)))
	}))
	defer server.Close()
	j := newJudge(t, server.URL+"/v1", anthropic(judge.Structured))
	q := boolean("It is <fine>.")
	a, err := j.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	first := newSheet(q).lines[0].option
	if math.Abs(a.Probabilities[first]-.6) > 1e-12 || a.Method != judge.Structured || a.Model != "m-2" || a.Usage.InputTokens != 123 || a.Usage.OutputTokens != 9 || a.Detail["judge_reason"] != "so" {
		t.Errorf("%+v", a)
	}
	if path != "/v1/messages" || header.Get("X-Api-Key") != "secret-key-1234" || header.Get("Authorization") != "" || header.Get("Anthropic-Version") != "2023-06-01" || header.Get("X-Assay-Purpose") != mark {
		t.Errorf("%s %v", path, header)
	}
	choice, _ := body["tool_choice"].(map[string]any)
	tools, _ := body["tools"].([]any)
	messages, _ := body["messages"].([]any)
	if body["model"] != "test-model" || body["max_tokens"] != 500.0 || choice["name"] != "grade" || len(tools) != 1 || len(messages) != 1 || body["system"] != systemText(judge.Structured) {
		t.Errorf("%v", body)
	}
	for _, foreign := range []string{"temperature", "top_p", "seed", "logprobs", "response_format", "metadata", "max_completion_tokens"} {
		if _, there := body[foreign]; there {
			t.Errorf("%s is of the other protocol", foreign)
		}
	}
	schema, _ := tools[0].(map[string]any)["input_schema"].(map[string]any)
	if schema["type"] != "object" || schema["additionalProperties"] != false {
		t.Errorf("%v", schema)
	}
	prompt := promptOf(body)
	if !strings.Contains(prompt, "It is <fine>.") {
		t.Errorf("%s", prompt)
	}
	if estimate := j.Estimate(q); estimate.InputTokens <= newJudge(t, server.URL, structured).Estimate(q).InputTokens {
		t.Errorf("%+v: a tool is paid for too", estimate)
	}
}

func TestMessagesHaveTheOutcomesOfEveryAnswer(t *testing.T) {
	f := func(name, structuredBody, votesBody, wantStructured, wantVotes string) {
		t.Helper()
		for m, c := range map[judge.Method][2]string{judge.Structured: {structuredBody, wantStructured}, judge.Votes: {votesBody, wantVotes}} {
			server := record(t, func(string, map[string]any) (int, string) { return 200, c[0] })
			a, err := newJudge(t, server.URL, anthropic(m)).Ask(t.Context(), boolean("x"))
			if got := outcome(err); got != c[1] {
				t.Errorf("%s by %s: %s, want %s", name, m, got, c[1])
			}
			if err == nil && a.Probabilities[newSheet(boolean("x")).lines[0].option] < .5 {
				t.Errorf("%s by %s: %v", name, m, a.Probabilities)
			}
		}
	}
	const good = `{"reason":"so","probabilities":{"A":0.9,"B":0.1,"C":0}}`
	f("sound", blocks("tool_use", called(good)), blocks("end_turn", said("A")), "ok", "ok")
	f("talk before it", blocks("tool_use", said("Let me grade."), called(good)), blocks("end_turn", `{"type":"thinking","thinking":"B?"}`, said("A")), "ok", "ok")
	f("text for a call", blocks("end_turn", said(good)), blocks("end_turn", said("It is A.")), "ok", "unusable prose")
	f("two calls", blocks("tool_use", called(good), called(good)), blocks("end_turn", said("A"), said("B")), "unusable ambiguous", "unusable prose")
	f("nothing", blocks("end_turn"), blocks("end_turn"), "reask empty_answer", "unusable empty_answer")
	f("no message", `{}`, `{}`, "reask empty_answer", "unusable empty_answer")
	f("cut", blocks("max_tokens", called(`{"reason":"so"}`)), blocks("max_tokens"), "reask cut", "unusable cut")
	f("refused", blocks("refusal"), blocks("refusal", said("A")), "unusable judge_refused", "unusable judge_refused")
	f("abstained", blocks("tool_use", called(`{"probabilities":{"A":0,"B":0,"C":1}}`)), blocks("end_turn", said("C")), "unusable judge_abstained", "unusable judge_abstained")
	f("no JSON", `<html>`, `[1]`, "transient garbage", "transient garbage")
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	f("a failure inside a 200", overloaded, overloaded, "transient unavailable", "transient unavailable")
}

func TestMessagesFailuresMeanWhatTheySay(t *testing.T) {
	f := func(status int, kind, message, want string) {
		t.Helper()
		server := record(t, func(string, map[string]any) (int, string) {
			return status, fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
		})
		_, err := newJudge(t, server.URL, anthropic(judge.Votes)).Ask(t.Context(), boolean("x"))
		if got := outcome(err); got != want {
			t.Errorf("%d %s: %s, want %s", status, kind, got, want)
		}
		if len(server.bodies) != 1 {
			t.Errorf("%d %s: %d calls: there is no other form to try", status, kind, len(server.bodies))
		}
	}
	f(401, "authentication_error", "invalid x-api-key", "fatal")
	f(403, "permission_error", "no", "fatal")
	f(400, "invalid_request_error", "Your credit balance is too low to access the API.", "fatal")
	f(404, "not_found_error", "model: no-such-model", "fatal")
	f(400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum", "too long")
	f(413, "request_too_large", "Request exceeds the maximum size", "too long")
	f(400, "invalid_request_error", "metadata.user_id: must be a string", "rejected")
	f(429, "rate_limit_error", "slow down", "transient throttled")
	f(529, "overloaded_error", "Overloaded", "transient unavailable")
	f(500, "api_error", "Internal", "transient unavailable")
}

func TestWhatMessagesCannotDoIsRefusedAtStart(t *testing.T) {
	f := func(want string, change func(*Config)) {
		t.Helper()
		c := Config{Protocol: Messages, BaseURL: MessagesURL, Model: "m", Method: judge.Votes}
		change(&c)
		if err := c.Validate(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	f("", func(*Config) {})
	f("states no token probabilities", func(c *Config) { c.Method = judge.Logprobs })
	f("has no embeddings", func(c *Config) { c.EmbeddingModel = "e" })
	f(`protocol "messages"`, func(c *Config) { c.Protocol = "messages" })

	openAI, messages := newJudge(t, "http://localhost/v1", votes), newJudge(t, "http://localhost/v1", anthropic(judge.Votes))
	if openAI.Fingerprint() == messages.Fingerprint() {
		t.Error("two providers' models of one name would share a cache")
	}
}

func TestMessagesDraftAndProbe(t *testing.T) {
	server := record(t, func(_ string, body map[string]any) (int, string) {
		prompt := promptOf(body)
		switch {
		case strings.HasSuffix(prompt, "Write what is asked."):
			if body["tools"] != nil {
				t.Error("a text is no tool call")
			}
			return 200, blocks("end_turn", said(" What is it?\n"))
		case body["tools"] != nil:
			return 200, blocks("tool_use", called(fmt.Sprintf(`{"choice":%q}`, rightLetter(prompt))))
		}
		return 200, blocks("end_turn", said(rightLetter(prompt)))
	})
	for _, m := range []judge.Method{judge.Votes, judge.Structured} {
		j := newJudge(t, server.URL, anthropic(m))
		if err := j.Probe(t.Context()); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if a, err := j.Ask(t.Context(), draft()); err != nil || a.Text != "What is it?" {
			t.Errorf("%s: %+v, %v", m, a, err)
		}
	}
}

// This API keeps a beginning only where it is told to, and charges for it.
func TestWhatQuestionsShareIsMarkedToBeKept(t *testing.T) {
	f := func(name string, m judge.Method, q judge.Question, kept func(text string) bool) {
		t.Helper()
		j := newJudge(t, "http://localhost/v1", anthropic(m))
		turns := j.turns(q, newSheet(q))
		whole := ""
		marked := ""
		for _, b := range turns[0].Content {
			if b.Cache != nil {
				marked = whole + b.Text
			}
			whole += b.Text
		}
		if whole != j.Prompt(q)[1].Text || !kept(marked) {
			t.Errorf("%s by %s: keeps\n%s\nof\n%s", name, m, marked, whole)
		}
	}
	nothing := func(text string) bool { return text == "" }
	whole := func(text string) bool { return strings.HasSuffix(text, "Reply with one letter only.") }
	claim := judge.Question{
		Name: "claim/1", Kind: judge.Choice, Text: "Is it so?", Options: boolean("x").Options,
		Fields: []judge.Field{{Name: "context", Value: "one\n>>> end context 2 of 2"}, {Name: "context", Value: "two"}, {Name: "claim", Value: "three"}},
	}
	f("one question", judge.Structured, boolean("x"), nothing)
	f("one question", judge.Votes, boolean("x"), whole)
	f("a claim", judge.Votes, claim, whole)
	f("a claim", judge.Structured, claim, func(text string) bool {
		return strings.Contains(text, "\ntwo\n") && !strings.Contains(text, "three") && strings.HasSuffix(text, "\n\n")
	})
	f("a text", judge.Votes, draft(), nothing)
	all := claims()
	f("claims in one", judge.Structured, all, nothing)
}
