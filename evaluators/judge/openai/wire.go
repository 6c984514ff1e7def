package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"assay/evaluators/judge"
)

// Decoding parameters. Servers differ in whether the probabilities they list are
// those before or after temperature and nucleus; at 1 there is no difference.
const (
	temperature = 1.0
	topP        = 1.0
)

// mark tells loggers in between that a call is a judge's. Logged judge calls are not
// judged themselves.
const mark = "llm_judge"

type request struct {
	Model               string            `json:"model"`
	Messages            []message         `json:"messages"`
	Temperature         *float64          `json:"temperature,omitempty"`
	TopP                *float64          `json:"top_p,omitempty"`
	MaxTokens           int               `json:"max_tokens,omitempty"`
	MaxCompletionTokens int               `json:"max_completion_tokens,omitempty"`
	Seed                *int              `json:"seed,omitempty"`
	Logprobs            bool              `json:"logprobs,omitempty"`
	TopLogprobs         int               `json:"top_logprobs,omitempty"`
	ResponseFormat      *responseFormat   `json:"response_format,omitempty"`
	Metadata            map[string]string `json:"metadata,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type responseFormat struct {
	Type       string     `json:"type"`
	JSONSchema jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name   string         `json:"name"`
	Strict bool           `json:"strict"`
	Schema map[string]any `json:"schema"`
}

// request builds the body of one try in the form the server takes.
func (j *Judge) request(q judge.Question, s sheet, f form) ([]byte, error) {
	if j.cfg.messages() {
		return j.messagesBody(q, s)
	}
	r := request{
		Model: j.cfg.Model,
		Messages: []message{
			{"system", systemOf(q, j.cfg.Method)},
			{"user", s.userText(j.cfg.Method, tag(j.tagKey, q))},
		},
	}
	if !f.noTemperature {
		r.Temperature = new(temperature)
	}
	if !f.noTopP {
		r.TopP = new(topP)
	}
	if f.completionTokens {
		r.MaxCompletionTokens = j.maxTokens(q)
	} else {
		r.MaxTokens = j.maxTokens(q)
	}
	if !f.noMetadata {
		r.Metadata = map[string]string{"purpose": mark}
	}
	if (j.cfg.Method == judge.Votes || q.Kind == judge.Text) && !f.noSeed {
		r.Seed = new(q.Vote + 1)
	}
	switch {
	case q.Kind == judge.Text, j.cfg.Method == judge.Votes:
	case j.cfg.Method == judge.Logprobs:
		r.Logprobs, r.TopLogprobs = true, f.topLogprobs
	default:
		r.ResponseFormat = s.responseFormat()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// A completion is the part of a response that we read.
type completion struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
}

type choice struct {
	Message struct {
		Content   json.RawMessage `json:"content"`
		Refusal   string          `json:"refusal"`
		ToolCalls []toolCall      `json:"tool_calls"`
	} `json:"message"`
	FinishReason string `json:"finish_reason"`
	Logprobs     *struct {
		Content []token `json:"content"`
	} `json:"logprobs"`
}

type toolCall struct {
	Function function `json:"function"`
}

type function struct {
	Arguments string `json:"arguments"`
}

type token struct {
	Token   string   `json:"token"`
	Bytes   []int    `json:"bytes"`
	Logprob *logprob `json:"logprob"` // nil when null or left out: no probability
	Top     []token  `json:"top_logprobs"`
}

// raw is the token's text: its bytes where the server gives them, since a token may
// be half a character and `token` then holds a replacement.
func (t token) raw() string {
	if len(t.Bytes) == 0 {
		return t.Token
	}
	b := make([]byte, len(t.Bytes))
	for i, v := range t.Bytes {
		b[i] = byte(v)
	}
	return string(b)
}

// logprob is a number, or what servers write where JSON has no number.
type logprob float64

func (l *logprob) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	v, err := strconv.ParseFloat(text, 64) // knows -Infinity and NaN, in any case
	if err != nil {
		v = math.NaN()
	}
	*l = logprob(v)
	return nil
}

// text is the message's content: a string, or parts of one.
func (c *completion) text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	raw := c.Choices[0].Message.Content
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// decode reads a response body. Python servers write -Infinity and NaN, which JSON
// does not have; they are quoted and read again.
func decode(body []byte) (*completion, error) {
	var c completion
	err := json.Unmarshal(body, &c)
	if err != nil {
		if fixed, changed := quoteNonNumbers(body); changed {
			c = completion{}
			err = json.Unmarshal(fixed, &c)
		}
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// quoteNonNumbers puts the bare words NaN, Infinity and -Infinity in quotes, outside
// of strings.
func quoteNonNumbers(body []byte) (fixed []byte, changed bool) {
	inString := false
	for i := 0; i < len(body); i++ {
		ch := body[i]
		switch {
		case inString && ch == '\\' && i+1 < len(body):
			fixed = append(fixed, ch, body[i+1])
			i++
			continue
		case ch == '"':
			inString = !inString
		case !inString && (ch == 'N' || ch == 'I' || ch == '-'):
			for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
				if bytes.HasPrefix(body[i:], []byte(word)) {
					fixed = append(append(append(fixed, '"'), word...), '"')
					i += len(word)
					changed = true
					break
				}
			}
			if i >= len(body) {
				return fixed, changed
			}
			ch = body[i]
			if ch == '"' {
				inString = !inString
			}
		}
		fixed = append(fixed, ch)
	}
	return fixed, changed
}
