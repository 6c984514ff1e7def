package server

import (
	"encoding/json"
	"strconv"

	"assay/sink"
)

func judgementOf(r sink.Evaluation, version string) Judgement {
	j := Judgement{
		Version: r.CheckVersion, Current: r.CheckVersion == version,
		Status: r.Status, Reason: r.Reason, Option: r.Option, Passed: r.Passed,
		Score: widen(r.Score), Confidence: widen(r.Confidence), Outside: wide(r.Outside),
		Method: r.Method, Judge: r.Judge, JudgeModel: r.JudgeModel, Pi: r.Pi,
		Time: r.Time, EvaluatedAt: r.EvaluatedAt, Position: Position{r.Topic, r.Partition, r.Offset, r.Element},
		Repeat: r.Repeat, Attempts: r.Attempts, LatencyMS: r.LatencyMS, CostUSD: float64(r.CostNanoUSD) / 1e9,
		Slice: r.Slice, Excerpt: r.Excerpt, AnswerExcerpt: r.AnswerExcerpt, Worker: r.Worker,
	}
	if len(r.OptionNames) == len(r.OptionProbs) && len(r.OptionNames) > 0 {
		j.Probabilities = make(map[string]float64, len(r.OptionNames))
		for i, name := range r.OptionNames {
			j.Probabilities[name] = wide(r.OptionProbs[i])
		}
	}
	if json.Valid([]byte(r.Detail)) {
		j.Detail = json.RawMessage(r.Detail)
	}
	if j.Slice == nil {
		j.Slice = map[string]string{}
	}
	return j
}

func textOf(t *sink.Text) *StoredText {
	return &StoredText{
		Time: t.Time, Topic: t.Topic, Partition: t.Partition, Offset: t.Offset, Element: t.Element, Stored: t.Store,
		Input: t.Input, Output: t.Output, Expected: t.Expected, Criteria: t.Criteria, Context: t.Context,
		App: t.App, Model: t.Model, Route: t.Route, PromptVersion: t.PromptVersion,
		Status: t.Status, Flags: t.Flags, Attributes: t.Attributes,
	}
}

// wide is the shortest number that a stored one stands for: 0.22 and not
// 0.2199999988079071.
func wide(v float32) float64 {
	w, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	if err != nil {
		return float64(v)
	}
	return w
}

func widen(v *float32) *float64 {
	if v == nil {
		return nil
	}
	w := wide(*v)
	return &w
}
