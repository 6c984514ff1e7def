package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"assay/evaluators/judge"
)

// vectorText is the text whose vector a question of kind judge.Vector asks for.
func vectorText(q judge.Question) string {
	if len(q.Fields) == 0 {
		return ""
	}
	return q.Fields[0].Value
}

// embed asks the embeddings endpoint of the same server for one text's vector.
func (j *Judge) embed(ctx context.Context, q judge.Question) (judge.Answer, error) {
	start := time.Now()
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	err := enc.Encode(map[string]any{"model": j.cfg.EmbeddingModel, "input": vectorText(q), "encoding_format": "float"})
	if err != nil {
		return judge.Answer{}, &judge.RejectedError{Err: err}
	}
	data, _, err := j.post(ctx, q, "/embeddings", body.Bytes())
	if err != nil {
		return judge.Answer{}, err
	}
	e, err := readVector(data)
	if err != nil {
		if _, failure := j.failed(e.failure, data); failure != nil {
			return judge.Answer{}, failure
		}
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return judge.Answer{}, j.garbage(q, fmt.Errorf("%d bytes that are no embedding: %w", len(data), err))
	}
	a := judge.Answer{Vector: e.vector, Method: judge.Model, Model: e.model, Attempts: 1, Latency: time.Since(start), Usage: j.Estimate(q)}
	a.Usage.Estimated = e.tokens <= 0
	if !a.Usage.Estimated {
		a.Usage.InputTokens = e.tokens
	}
	if a.Model == "" {
		a.Model = j.cfg.EmbeddingModel
	}
	if err != nil {
		return judge.Answer{}, &judge.UnusableError{
			Reason: judge.ReasonNoVector, Detail: map[string]any{"why": err.Error()}, Method: judge.Model,
			Spent: judge.Spent{Usage: a.Usage, Attempts: 1, Model: a.Model},
		}
	}
	return a, nil
}

// An embedding is what the endpoint answers.
type embedding struct {
	vector []float32
	model  string
	tokens int64 // 0 where the server states none

	failure json.RawMessage // in place of it, where a gateway answers so
}

// readVector reads a response body. The error is one of encoding/json where it is none.
func readVector(data []byte) (embedding, error) {
	var r struct {
		Model string `json:"model"`
		Data  []struct {
			Embedding []float64 `json:"embedding"`
		} `json:"data"`
		Usage struct {
			Prompt int64 `json:"prompt_tokens"`
		} `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return embedding{}, err
	}
	e := embedding{model: r.Model, tokens: r.Usage.Prompt, failure: r.Error}
	if len(r.Data) != 1 {
		return e, fmt.Errorf("%d embeddings of one text", len(r.Data))
	}
	var err error
	e.vector, err = vector(r.Data[0].Embedding)
	return e, err
}

// vector refuses what has no direction.
func vector(numbers []float64) ([]float32, error) {
	v := make([]float32, len(numbers))
	zero := true
	for i, x := range numbers {
		v[i] = float32(x)
		if math.IsInf(float64(v[i]), 0) || math.IsNaN(x) {
			return nil, errors.New("an embedding with numbers that are none")
		}
		zero = zero && v[i] == 0
	}
	if zero {
		return nil, errors.New("an embedding of zeros")
	}
	return v, nil
}

// probeVectors finds out whether the server embeds.
func (j *Judge) probeVectors(ctx context.Context) error {
	_, err := j.embed(ctx, judge.VectorQuestion("a word"))
	if err != nil {
		return fmt.Errorf("probe of embedding_model %s: %w", j.cfg.EmbeddingModel, err)
	}
	return nil
}
