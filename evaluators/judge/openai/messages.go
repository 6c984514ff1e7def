package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"assay/evaluators/judge"
)

// Protocol is how a server is spoken to. What is asked and how answers are read is the
// same in both.
type Protocol string

// The protocols.
const (
	ChatCompletions Protocol = "openai"    // the zero Protocol is this one too
	Messages        Protocol = "anthropic" // Anthropic's; it states no token probabilities
)

// MessagesURL is where the provider of Messages is.
const MessagesURL = "https://api.anthropic.com/v1"

// messagesVersion is of the protocol, and required.
const messagesVersion = "2023-06-01"

// gradeTool is the tool that a structured answer is the call of.
const gradeTool = "grade"

// toolTokens is what the provider adds to a prompt with a tool.
const toolTokens = 400

func (c Config) messages() bool { return c.Protocol == Messages }

// path is where questions go.
func (c Config) path() string {
	if c.messages() {
		return "/messages"
	}
	return "/chat/completions"
}

// authorize puts the key where the protocol has it.
func (c Config) authorize(h http.Header) {
	switch {
	case c.messages():
		h.Set("Anthropic-Version", messagesVersion)
		if c.APIKey != "" {
			h.Set("X-Api-Key", c.APIKey)
		}
	case c.APIKey != "":
		h.Set("Authorization", "Bearer "+c.APIKey)
	}
}

type messagesRequest struct {
	Model      string            `json:"model"`
	System     string            `json:"system"`
	Messages   []turn            `json:"messages"`
	MaxTokens  int               `json:"max_tokens"`
	Tools      []tool            `json:"tools,omitempty"`
	ToolChoice map[string]string `json:"tool_choice,omitempty"`
}

type turn struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type  string            `json:"type"`
	Text  string            `json:"text"`
	Cache map[string]string `json:"cache_control,omitempty"`
}

// turns is the user's text, cut where what other questions share ends: this API keeps a
// beginning only where it is told to, and asks a quarter more for keeping one, so what
// nobody shares is not marked. The votes of a question share all of it, claims the
// documents that they are held against.
func (j *Judge) turns(q judge.Question, s sheet) []turn {
	mark := tag(j.tagKey, q)
	text := s.userText(j.cfg.Method, mark)
	cut := 0
	switch {
	case j.cfg.Method == judge.Votes && q.Kind.HasOptions():
		cut = len(text)
	case len(q.FieldValues("claim")) == 1:
		cut = s.contextEnd(text, mark)
	}
	var content []block
	if cut > 0 {
		content = append(content, block{"text", text[:cut], map[string]string{"type": "ephemeral"}})
	}
	if cut < len(text) {
		content = append(content, block{Type: "text", Text: text[cut:]})
	}
	return []turn{{"user", content}}
}

type tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"input_schema"`
}

// messagesBody builds the body of one try. Temperature and the nucleus stay at their
// defaults of 1: some models take no value beside those.
func (j *Judge) messagesBody(q judge.Question, s sheet) ([]byte, error) {
	r := messagesRequest{
		Model:     j.cfg.Model,
		System:    systemOf(q, j.cfg.Method),
		Messages:  j.turns(q, s),
		MaxTokens: j.maxTokens(q),
	}
	if j.cfg.Method == judge.Structured && q.Kind != judge.Text {
		r.Tools = []tool{{gradeTool, "Takes the JSON object that is the answer.", s.responseFormat().JSONSchema.Schema}}
		r.ToolChoice = map[string]string{"type": "tool", "name": gradeTool}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(r)
	return b.Bytes(), err
}

// decodeMessages reads a response body into the form of the other protocol.
func decodeMessages(body []byte) (*completion, error) {
	var in struct {
		Model   string `json:"model"`
		Content []struct {
			Type  string          `json:"type"`
			Text  string          `json:"text"`
			Input json.RawMessage `json:"input"`
		} `json:"content"`
		StopReason string `json:"stop_reason"`
		Usage      *struct {
			Input      int64 `json:"input_tokens"`
			CacheWrite int64 `json:"cache_creation_input_tokens"`
			CacheRead  int64 `json:"cache_read_input_tokens"`
			Output     int64 `json:"output_tokens"`
		} `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	c := &completion{Model: in.Model, Error: in.Error}
	if u := in.Usage; u != nil {
		c.Usage = &usage{u.Input + u.CacheWrite + u.CacheRead, u.Output}
	}
	if len(in.Content) == 0 && in.StopReason == "" {
		return c, nil // no choice
	}
	ch := choice{FinishReason: "stop"}
	switch in.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		ch.FinishReason = "length"
	case "refusal":
		ch.FinishReason = "content_filter"
	}
	var text strings.Builder
	for _, block := range in.Content {
		switch block.Type {
		case "text":
			text.WriteString(block.Text)
		case "tool_use":
			ch.Message.ToolCalls = append(ch.Message.ToolCalls, toolCall{function{string(block.Input)}})
		}
	}
	if len(ch.Message.ToolCalls) > 0 {
		text.Reset() // what it says on the way to a call is no second answer
	}
	content, err := json.Marshal(text.String())
	if err != nil {
		return nil, err
	}
	ch.Message.Content = content
	c.Choices = []choice{ch}
	return c, nil
}
