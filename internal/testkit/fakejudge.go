package testkit

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/evaluators/judge/openai"
)

// A Fault is what a fake judge does instead of answering.
type Fault string

// The faults, each as real servers show it.
const (
	Throttled    Fault = "throttled"    // 429, with RetryAfter where one is set
	ServerError  Fault = "server error" // 500
	Garbage      Fault = "garbage"      // 200, JSON by its type, cut in the middle
	HTML         Fault = "html"         // 200, a proxy's page
	EmptyBody    Fault = "empty body"   // 200 and nothing
	Hang         Fault = "hang"         // no answer until the caller gives up
	Reset        Fault = "reset"        // the connection breaks
	EmptyAnswer  Fault = "empty answer" // a completion without text
	NoChoices    Fault = "no choices"
	Prose        Fault = "prose"       // sentences without a verdict
	NoLogprobs   Fault = "no logprobs" // "logprobs": null
	Cut          Fault = "cut"         // finish_reason length before the answer is whole
	Refusal      Fault = "refusal"     // the refusal field is set
	Filtered     Fault = "filtered"    // finish_reason content_filter
	FencedJSON   Fault = "fenced json" // the right answer inside a code fence, fences inside its strings
	TwoAnswers   Fault = "two answers"
	TooLong      Fault = "too long"     // 400, context_length_exceeded
	Unauthorized Fault = "unauthorized" // 401
	ModelGone    Fault = "model gone"   // 404 that names the model
	Rejected     Fault = "rejected"     // 422
)

// FakeAbstain is the key of the option that a backend adds to ours.
const FakeAbstain = "abstain"

// A FakeOption is a lettered line of the prompt. Key is the evaluator's, found by the
// text; for a text that no evaluator has it is the text itself.
type FakeOption struct {
	Letter, Text, Key string
}

// A FakeRequest is a request as the fake judge understood it: what it knows of the
// question it has read off the prompt, as a model would.
type FakeRequest struct {
	N          int // counted from 1
	Structured bool
	Probe      bool // answered right whatever the reply's distribution says, unless it is literal
	System     string
	Prompt     string
	Fields     []judge.Field
	Options    []FakeOption
	Header     http.Header
	Body       []byte
}

// Field returns the first block of that name.
func (r FakeRequest) Field(name string) string {
	for _, f := range r.Fields {
		if f.Name == name || strings.HasPrefix(f.Name, name+" ") {
			return f.Value
		}
	}
	return ""
}

// A FakeReply is what to answer: a distribution over option keys, or a fault. Mass
// that Probabilities leave out falls on a token that is no option.
type FakeReply struct {
	Probabilities map[string]float64
	Parts         []map[string]float64 // in place of it for a question about several blocks
	Fault         Fault
	RetryAfter    time.Duration
	Latency       time.Duration
	Model         string // "fake-model" unless set
	NoUsage       bool
	Literal       bool // Probabilities hold for probes too
}

// A FakeJudge is a chat-completion server that answers as it is told.
type FakeJudge struct {
	URL string // base address, up to /v1

	reply func(FakeRequest) FakeReply
	keys  map[string]string // option text -> key
	right map[string]string // question text of a probe -> key
	quit  chan struct{}

	mu       sync.Mutex // guards requests
	requests []FakeRequest
}

// NewFakeJudge starts a server that ends with the test. reply may be called by many
// requests at a time.
func NewFakeJudge(tb testing.TB, reply func(FakeRequest) FakeReply) *FakeJudge {
	tb.Helper()
	f := &FakeJudge{reply: reply, keys: make(map[string]string), right: make(map[string]string), quit: make(chan struct{})}
	for _, spec := range evaluators.Table() {
		f.learn(spec.Options())
		if coarse, ok := spec.Coarse(); ok {
			f.learn(coarse)
		}
	}
	for _, p := range openai.ProbeQuestions() {
		f.right[p.Question.Text] = p.Right
		for _, o := range p.Question.Options {
			f.keys[o.Text] = o.Key
		}
	}
	server := httptest.NewServer(http.HandlerFunc(f.serve))
	f.URL = server.URL + "/v1"
	tb.Cleanup(func() {
		close(f.quit) // hanging requests first: Close waits for them
		server.CloseClientConnections()
		server.Close()
	})
	return f
}

func (f *FakeJudge) learn(options []evaluators.OptionDefinition) {
	for _, o := range options {
		f.keys[o.Text] = o.Key
	}
}

// Requests returns the requests so far, in the order in which they came.
func (f *FakeJudge) Requests() []FakeRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Calls returns how many requests came.
func (f *FakeJudge) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

func (f *FakeJudge) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" {
		problem(w, http.StatusNotFound, "", "no such path")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	req, max, err := f.read(body)
	if err != nil {
		problem(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	req.Header = r.Header.Clone()
	f.mu.Lock()
	f.requests = append(f.requests, req)
	req.N = len(f.requests)
	f.requests[req.N-1].N = req.N
	f.mu.Unlock()

	reply := f.reply(req)
	if req.Probe && !reply.Literal {
		reply.Probabilities = map[string]float64{f.rightKey(req): .97}
	}
	if reply.Latency > 0 && !f.wait(r, reply.Latency) {
		return
	}
	if f.transportFault(w, r, reply) {
		return
	}
	f.complete(w, req, reply, max)
}

func (f *FakeJudge) wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-f.quit:
	}
	return false
}

func (f *FakeJudge) rightKey(req FakeRequest) string {
	for text, key := range f.right {
		if strings.Contains(req.Prompt, text) {
			return key
		}
	}
	return ""
}

// transportFault plays the faults that are no completion.
func (f *FakeJudge) transportFault(w http.ResponseWriter, r *http.Request, reply FakeReply) bool {
	switch reply.Fault {
	case Throttled:
		if reply.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(reply.RetryAfter.Seconds()))))
		}
		problem(w, http.StatusTooManyRequests, "rate_limit_exceeded", "slow down")
	case ServerError:
		problem(w, http.StatusInternalServerError, "server_error", "something broke")
	case Garbage:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"model":"fake-model","choices":[{"message":{"cont`)
	case HTML:
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><body>Answer: A</body></html>")
	case EmptyBody:
		w.Header().Set("Content-Type", "application/json")
	case Hang:
		select {
		case <-r.Context().Done():
		case <-f.quit:
		}
	case Reset:
		panic(http.ErrAbortHandler)
	case TooLong:
		problem(w, http.StatusBadRequest, "context_length_exceeded", "this model's maximum context length is 8192 tokens")
	case Unauthorized:
		problem(w, http.StatusUnauthorized, "invalid_api_key", "wrong key "+r.Header.Get("Authorization"))
	case ModelGone:
		problem(w, http.StatusNotFound, "model_not_found", "the model does not exist")
	case Rejected:
		problem(w, http.StatusUnprocessableEntity, "invalid_request_error", "one of the values is not taken")
	default:
		return false
	}
	return true
}

func problem(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "code": code}})
}

var (
	letteredLine = regexp.MustCompile(`^([A-Z])\) (.+)$`)
	fenceMark    = regexp.MustCompile(`the mark ([0-9a-f]{16})`)
)

// read understands a request: the last run of lettered lines is the options, what
// stands between two marks is a field.
func (f *FakeJudge) read(body []byte) (FakeRequest, int, error) {
	var in struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
		Logprobs       bool            `json:"logprobs"`
		TopLogprobs    int             `json:"top_logprobs"`
		ResponseFormat json.RawMessage `json:"response_format"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return FakeRequest{}, 0, err
	}
	if in.TopLogprobs > 20 {
		return FakeRequest{}, 0, fmt.Errorf("top_logprobs %d: want at most 20", in.TopLogprobs)
	}
	req := FakeRequest{Structured: len(in.ResponseFormat) > 0, Body: body}
	for _, m := range in.Messages {
		if m.Role == "system" {
			req.System = m.Content
		} else {
			req.Prompt = m.Content
		}
	}
	lines := strings.Split(req.Prompt, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		m := letteredLine.FindStringSubmatch(lines[i])
		if m == nil {
			if len(req.Options) > 0 {
				break
			}
			continue
		}
		req.Options = slices.Insert(req.Options, 0, FakeOption{Letter: m[1], Text: m[2], Key: f.keyOf(m[2])})
	}
	if len(req.Options) == 0 {
		return FakeRequest{}, 0, fmt.Errorf("a prompt without lettered lines")
	}
	req.Fields = fieldsOf(req.Prompt)
	req.Probe = f.rightKey(req) != ""
	return req, in.TopLogprobs, nil
}

func (f *FakeJudge) keyOf(text string) string {
	if key, ok := f.keys[text]; ok {
		return key
	}
	if strings.HasPrefix(text, "This cannot be judged") {
		return FakeAbstain
	}
	return text
}

func fieldsOf(prompt string) []judge.Field {
	m := fenceMark.FindStringSubmatch(prompt)
	if m == nil {
		return nil
	}
	block := regexp.MustCompile(`(?s)<<< begin ([^\n]*) ` + m[1] + `\n(.*?)\n>>> end [^\n]* ` + m[1])
	var fields []judge.Field
	for _, b := range block.FindAllStringSubmatch(prompt, -1) {
		fields = append(fields, judge.Field{Name: b[1], Value: b[2]})
	}
	return fields
}

// complete writes a completion, sound or not.
func (f *FakeJudge) complete(w http.ResponseWriter, req FakeRequest, reply FakeReply, top int) {
	message := map[string]any{"role": "assistant"}
	choice := map[string]any{"index": 0, "message": message, "finish_reason": "stop"}
	p := make(map[string]float64, len(req.Options)) // by letter
	for _, o := range req.Options {
		p[o.Letter] = reply.Probabilities[o.Key]
	}
	if req.Structured && reply.Parts != nil {
		message["content"] = partsJSON(req, reply.Parts)
	} else if req.Structured {
		message["content"] = answerJSON(p, reply.Fault)
	} else {
		tokens := letterTokens(p, top)
		message["content"] = tokens[0]["token"]
		choice["logprobs"] = map[string]any{"content": tokens}
	}
	switch reply.Fault {
	case EmptyAnswer:
		message["content"] = ""
		choice["logprobs"] = map[string]any{"content": []any{}}
	case Prose:
		message["content"] = "Based on the text, it is hard to say more."
		if !req.Structured {
			choice["logprobs"] = map[string]any{"content": proseTokens("Based", " on", " the", " text")}
		}
	case NoLogprobs:
		choice["logprobs"] = nil
	case Cut:
		text := message["content"].(string)
		message["content"] = text[:len(text)/2]
		choice["finish_reason"] = "length"
	case Refusal:
		message["content"], message["refusal"] = nil, "I cannot help with that."
	case Filtered:
		message["content"], choice["finish_reason"] = "", "content_filter"
	}
	model := reply.Model
	if model == "" {
		model = "fake-model"
	}
	out := map[string]any{"id": "fake", "object": "chat.completion", "model": model, "choices": []any{choice}}
	if reply.Fault == NoChoices {
		out["choices"] = []any{}
	}
	if !reply.NoUsage {
		out["usage"] = map[string]any{"prompt_tokens": (len(req.System) + len(req.Prompt)) / 4, "completion_tokens": 1}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(out)
}

func answerJSON(p map[string]float64, fault Fault) string {
	sum := 0.0
	for _, v := range p {
		sum += v
	}
	scaled := make(map[string]float64, len(p))
	for letter, v := range p {
		if sum > 0 {
			v /= sum
		}
		scaled[letter] = v
	}
	answer := func(reason string) string {
		data, _ := json.Marshal(map[string]any{"reason": reason, "probabilities": scaled})
		return string(data)
	}
	switch fault {
	case FencedJSON:
		return "```json\n" + answer("use ``` in code, or ```json") + "\n```"
	case TwoAnswers:
		first := answer("first thought")
		for letter := range scaled {
			scaled[letter] = 1 / float64(len(scaled))
		}
		return "At first: " + first + " but on reflection: " + answer("second thought")
	}
	return answer("as told")
}

// partsJSON answers block by block.
func partsJSON(req FakeRequest, parts []map[string]float64) string {
	answers := make(map[string]map[string]float64, len(parts))
	for i, part := range parts {
		p := make(map[string]float64, len(req.Options))
		for _, o := range req.Options {
			p[o.Letter] = part[o.Key]
		}
		answers[strconv.Itoa(i+1)] = p
	}
	data, _ := json.Marshal(map[string]any{"reason": "as told", "answers": answers})
	return string(data)
}

// letterTokens lists the letters with their probabilities, the rest on a word.
func letterTokens(p map[string]float64, top int) []map[string]any {
	rest := 1.0
	var list []map[string]any
	for letter, v := range p {
		rest -= v
		list = append(list, listedToken(letter, v))
	}
	if rest > 1e-9 {
		list = append(list, listedToken("The", rest))
	}
	slices.SortFunc(list, func(a, b map[string]any) int {
		if a["logprob"].(float64) != b["logprob"].(float64) {
			if a["logprob"].(float64) > b["logprob"].(float64) {
				return -1
			}
			return 1
		}
		return strings.Compare(a["token"].(string), b["token"].(string))
	})
	if len(list) > top && top > 0 {
		list = list[:top]
	}
	sampled := listedToken(list[0]["token"].(string), 0)
	sampled["logprob"], sampled["top_logprobs"] = list[0]["logprob"], list
	return []map[string]any{sampled}
}

func listedToken(text string, p float64) map[string]any {
	logprob := -9999.0
	if p > 0 {
		logprob = math.Log(p)
	}
	bytes := make([]int, len(text))
	for i := range text {
		bytes[i] = int(text[i])
	}
	return map[string]any{"token": text, "bytes": bytes, "logprob": logprob}
}

func proseTokens(words ...string) []map[string]any {
	var tokens []map[string]any
	for _, word := range words {
		t := listedToken(word, .9)
		t["top_logprobs"] = []map[string]any{listedToken(word, .9), listedToken(" Well", .05)}
		tokens = append(tokens, t)
	}
	return tokens
}
