package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"assay/internal/interaction"
)

// form is how interactions are laid out in a record.
type form int

const (
	envelope form = iota // an OpenAI chat request and response in a home-made object
	flat                 // question and answer as plain fields
	array                // several envelopes in one JSON array
)

type pairRecord struct {
	ID        string       `json:"id"`
	Timestamp string       `json:"timestamp"`
	LatencyMS int          `json:"latency_ms"`
	Request   chatRequest  `json:"request"`
	Response  chatResponse `json:"response"`
	Metadata  metadata     `json:"metadata"`
}

type chatRequest struct {
	Model       string        `json:"model"`
	Messages    []chatMessage `json:"messages"`
	Temperature float64       `json:"temperature"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   chatUsage    `json:"usage"`
}

type chatChoice struct {
	Index        int         `json:"index"`
	Message      chatMessage `json:"message"`
	FinishReason string      `json:"finish_reason"`
}

type chatUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

type flatRecord struct {
	ID           string   `json:"id"`
	Time         string   `json:"time"`
	Model        string   `json:"model"`
	Question     string   `json:"question"`
	Answer       string   `json:"answer"`
	LatencyMS    int      `json:"latency_ms"`
	InputTokens  int      `json:"input_tokens"`
	OutputTokens int      `json:"output_tokens"`
	Metadata     metadata `json:"metadata"`
}

// metadata is where checks.yaml looks for what a chat log has no field for.
type metadata struct {
	App           string `json:"app"`
	PromptVersion string `json:"prompt_version"`
	Tenant        string `json:"tenant"`
	Route         string `json:"route"`
	Environment   string `json:"environment"`
	SessionID     string `json:"session_id"`
	Reference     string `json:"reference"`
	Criteria      string `json:"criteria"`
}

// event lays interactions out as one record. A batch is logged when its last
// interaction is over, so that is its time.
func (s *Simulator) event(form form, batch []logged) Event {
	e := Event{Record: s.record(batch[len(batch)-1].Time, batch[0].Session)}
	for _, l := range batch {
		e.Truths = append(e.Truths, l.Truth)
	}
	switch form {
	case flat:
		e.Record.Value = marshal(flatOf(batch[0]))
	case array:
		pairs := make([]pairRecord, len(batch))
		for i, l := range batch {
			pairs[i] = pairOf(l)
		}
		e.Record.Value = marshal(pairs)
	default:
		e.Record.Value = marshal(pairOf(batch[0]))
	}
	return e
}

func (s *Simulator) record(at time.Time, key string) interaction.Record {
	return interaction.Record{
		Topic:     s.opts.Topic,
		Partition: ByKey,
		Time:      at,
		Key:       []byte(key),
		Headers:   []interaction.Header{{Key: "content-type", Value: []byte("application/json")}},
	}
}

// brokenEvent is a record that no decoder can use, of one of the sorts that real
// topics hold.
func (s *Simulator) brokenEvent(index int, at time.Time) Event {
	e := Event{Record: s.record(at, fmt.Sprintf("broken-%s-%d", s.run, index))}
	cut := marshal(pairOf(s.interaction(index, at, envelope)))
	switch index % 4 {
	case 0: // the logger was stopped while it wrote
		e.Record.Value = cut[:len(cut)/2]
	case 1: // a line of another log
		e.Record.Value = []byte("WARN gateway: upstream closed the connection, request dropped")
	case 2: // an object without a question or an answer
		e.Record.Value = []byte(`{"event":"heartbeat","host":"gw-3","uptime_s":86411}`)
	default: // a Python repr where JSON was meant
		e.Record.Value = []byte(`{'id': None, 'ok': True}`)
	}
	return e
}

func pairOf(l logged) pairRecord {
	text := func(s string) *string { return &s }
	system := fmt.Sprintf("You are the %s assistant of Tansy Lane, a shop for the home. Answer briefly. Prompt %s.", l.App, l.PromptVersion)
	messages := []chatMessage{{Role: "system", Content: text(system)}}
	for _, t := range l.History {
		messages = append(messages, chatMessage{Role: "user", Content: text(t.question)}, chatMessage{Role: "assistant", Content: text(t.answer)})
	}
	messages = append(messages, chatMessage{Role: "user", Content: text(l.Question)})

	choice := chatChoice{Message: chatMessage{Role: "assistant", Content: text(l.Output)}, FinishReason: "stop"}
	if l.ToolCall {
		choice.FinishReason = "tool_calls"
		choice.Message.Content = nil
		choice.Message.ToolCalls = []toolCall{{
			ID:   "call-" + l.ID,
			Type: "function",
			Function: toolFunction{
				Name:      "look_up",
				Arguments: string(marshal(map[string]string{"topic": l.Route})),
			},
		}}
	}
	prompt := 0
	for _, m := range messages {
		prompt += tokens(*m.Content)
	}
	completion := tokens(l.Output)
	return pairRecord{
		ID:        l.ID,
		Timestamp: stamp(l.Time),
		LatencyMS: l.LatencyMS,
		Request:   chatRequest{Model: l.Model, Messages: messages, Temperature: 0.2},
		Response: chatResponse{
			ID:      "chatcmpl-" + l.ID,
			Object:  "chat.completion",
			Created: l.Time.Unix(),
			Model:   l.Model,
			Choices: []chatChoice{choice},
			Usage:   chatUsage{PromptTokens: prompt, CompletionTokens: completion, TotalTokens: prompt + completion},
		},
		Metadata: metadataOf(l),
	}
}

func flatOf(l logged) flatRecord {
	return flatRecord{
		ID:           l.ID,
		Time:         stamp(l.Time),
		Model:        l.Model,
		Question:     l.Question,
		Answer:       l.Output,
		LatencyMS:    l.LatencyMS,
		InputTokens:  tokens(l.Question),
		OutputTokens: tokens(l.Output),
		Metadata:     metadataOf(l),
	}
}

func metadataOf(l logged) metadata {
	return metadata{
		App:           l.App,
		PromptVersion: l.PromptVersion,
		Tenant:        l.Tenant,
		Route:         l.Route,
		Environment:   "demo",
		SessionID:     l.Session,
		Reference:     l.Reference,
		Criteria:      l.Criteria,
	}
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }

// tokens is roughly what a tokenizer would count in English text.
func tokens(text string) int { return (len(text) + 3) / 4 }

// marshal writes JSON as loggers do, without HTML escapes.
func marshal(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only our own structs of strings and numbers come here; they always encode.
		panic(fmt.Sprintf("demo: encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
