package sink

import (
	"errors"
	"fmt"
	"math"
	"time"
)

func evaluationsTable() table[Evaluation] {
	type E = Evaluation
	statuses := set("ok", "unscored", "not_applicable", "shed", "error")
	methods := set("none", "logprobs", "votes", "structured", "native", "model", "pooled", "simulated")
	return table[E]{
		name: "evaluations",
		columns: []column[E]{
			dictionary("check", func(r *E) string { return r.Check }),
			dictionary("check_version", func(r *E) string { return r.CheckVersion }),
			moment("ts", func(r *E) time.Time { return r.Time }),
			plain("interaction_id", "String", func(r *E) string { return r.InteractionID }),
			plain("repeat", "UInt8", func(r *E) uint8 { return r.Repeat }),
			dictionary("kafka_topic", func(r *E) string { return r.Topic }),
			plain("kafka_partition", "UInt32", func(r *E) uint32 { return r.Partition }),
			plain("kafka_offset", "UInt64", func(r *E) uint64 { return r.Offset }),
			plain("element", "UInt16", func(r *E) uint16 { return r.Element }),
			dictionary("tenant", func(r *E) string { return r.Tenant }),
			dictionary("app", func(r *E) string { return r.App }),
			dictionary("model", func(r *E) string { return r.Model }),
			dictionary("route", func(r *E) string { return r.Route }),
			dictionary("prompt_version", func(r *E) string { return r.PromptVersion }),
			dictionary("environment", func(r *E) string { return r.Environment }),
			plain("slice_id", "UInt64", func(r *E) uint64 { return r.SliceID }),
			dictionaryMap("slice", "Map(LowCardinality(String), String)", func(r *E) map[string]string { return r.Slice }),
			dictionaryMap("attributes", "Map(LowCardinality(String), String)", func(r *E) map[string]string { return r.Attributes }),
			dictionary("stratum", func(r *E) string { return r.Stratum }),
			plain("pi", "Float64", func(r *E) float64 { return r.Pi }),
			plain("epoch", "UInt32", func(r *E) uint32 { return r.Epoch }),
			plain("status", "Enum8('ok' = 1, 'unscored' = 2, 'not_applicable' = 3, 'shed' = 4, 'error' = 5)", func(r *E) string { return r.Status }),
			dictionary("reason", func(r *E) string { return r.Reason }),
			plain("score", "Nullable(Float32)", func(r *E) *float32 { return r.Score }),
			plain("passed", "Nullable(UInt8)", func(r *E) *uint8 { return bit(r.Passed) }),
			plain("confidence", "Nullable(Float32)", func(r *E) *float32 { return r.Confidence }),
			dictionary("option", func(r *E) string { return r.Option }),
			each("option_names", "Array(LowCardinality(String))", func(r *E) []string { return r.OptionNames }),
			each("option_probs", "Array(Float32)", func(r *E) []float32 { return r.OptionProbs }),
			plain("outside", "Float32", func(r *E) float32 { return r.Outside }),
			plain("method", "Enum8('none' = 0, 'logprobs' = 1, 'votes' = 2, 'structured' = 3, 'native' = 4, 'model' = 5, 'pooled' = 6, 'simulated' = 7)", evaluationMethod),
			dictionary("judge", func(r *E) string { return r.Judge }),
			dictionary("judge_model", func(r *E) string { return r.JudgeModel }),
			plain("attempts", "UInt8", func(r *E) uint8 { return r.Attempts }),
			plain("latency_ms", "UInt32", func(r *E) uint32 { return r.LatencyMS }),
			plain("input_tokens", "UInt32", func(r *E) uint32 { return r.InputTokens }),
			plain("output_tokens", "UInt32", func(r *E) uint32 { return r.OutputTokens }),
			plain("cost_nano_usd", "UInt64", func(r *E) uint64 { return r.CostNanoUSD }),
			plain("excerpt", "String", func(r *E) string { return r.Excerpt }),
			plain("answer_excerpt", "String", func(r *E) string { return r.AnswerExcerpt }),
			plain("detail", "String", func(r *E) string { return r.Detail }),
			moment("evaluated_at", evaluationVersion),
			dictionary("worker", func(r *E) string { return r.Worker }),
		},
		validate: func(r *E) error {
			switch {
			case r.Check == "" || r.CheckVersion == "" || r.InteractionID == "":
				return errors.New("check, check version and interaction id must not be empty")
			case !(r.Pi > 0 && r.Pi <= 1):
				return fmt.Errorf("pi %v: want above 0 and at most 1", r.Pi)
			case (r.Status == "ok") != (r.Score != nil):
				return fmt.Errorf("status %q with score present %t: a score belongs to ok and to nothing else", r.Status, r.Score != nil)
			case r.Answered() && r.EvaluatedAt.Year() < 2000:
				return fmt.Errorf("an answer evaluated at %s would lose against a failure", r.EvaluatedAt.UTC().Format(time.RFC3339))
			case len(r.OptionProbs) > 0 && len(r.OptionProbs) != len(r.OptionNames):
				return fmt.Errorf("%d probabilities for %d options", len(r.OptionProbs), len(r.OptionNames))
			}
			for _, v := range r.OptionProbs {
				if !finite(v) {
					return fmt.Errorf("probability %v is not a number", v)
				}
			}
			if !finite(value(r.Score)) || !finite(value(r.Confidence)) || !finite(r.Outside) {
				return fmt.Errorf("score %v, confidence %v or outside %v is not a number", value(r.Score), value(r.Confidence), r.Outside)
			}
			return errors.Join(
				oneOf("status", r.Status, statuses),
				oneOf("method", evaluationMethod(r), methods),
				storable("time", r.Time),
				storable("evaluation time", evaluationVersion(r)),
			)
		},
		part: func(r *E) int64 { return day(r.Time) },
		size: func(r *E) int {
			return 256 + len(r.InteractionID) + len(r.Excerpt) + len(r.AnswerExcerpt) + len(r.Detail) + 8*len(r.OptionNames) +
				textSize(r.Slice) + textSize(r.Attributes)
		},
		label: func(r *E) string {
			return fmt.Sprintf("%s/%d/%d#%d check %s version %s interaction %s", r.Topic, r.Partition, r.Offset, r.Element, r.Check, r.CheckVersion, r.InteractionID)
		},
	}
}

// evaluationVersion is the row's version. Shed and error rows always carry 1970, so
// that the late failure of a zombie cannot replace an answer of the same identity.
func evaluationVersion(r *Evaluation) time.Time {
	if !r.Answered() {
		return time.Unix(0, 0).UTC()
	}
	return r.EvaluatedAt
}

// evaluationMethod is none where no judge was asked.
func evaluationMethod(r *Evaluation) string {
	if r.Method == "" {
		return "none"
	}
	return r.Method
}

func finite(f float32) bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

func value(f *float32) float32 {
	if f == nil {
		return 0
	}
	return *f
}
