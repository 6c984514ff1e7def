package embedded

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"assay/evaluators/judge"
)

//go:embed weights.json
var weights []byte

// coarseName begins the name of the one question this judge answers.
const coarseName = "factuality_coarse"

// maxAnswerWords is the longest answer that is read. People's verdicts on answers of
// that size were never seen in training.
const maxAnswerWords = 4000

// Config is what a checks file may say of an embedded judge.
type Config struct {
	// AbstainLowConfidence leaves a judgement unscored when p(agree) is between .2
	// and .8 (in the checks file `abstain: low_confidence`).
	AbstainLowConfidence bool
}

// Judge answers whether an output agrees with a short reference. It is immutable
// and safe for concurrent use.
type Judge struct {
	config      Config
	model       *Model
	lex         *lexicon
	fingerprint string
}

var _ judge.Judge = (*Judge)(nil)

// New returns the judge with the weights of this program.
func New() (*Judge, error) { return NewWith(Config{}) }

// NewWith returns the judge with settings.
func NewWith(cfg Config) (*Judge, error) {
	m, err := Decode(weights)
	if err != nil {
		return nil, err
	}
	return FromModel(m, cfg), nil
}

// FromModel returns a judge with other weights than the committed ones: training
// uses it to state the figures of what it has fitted.
func FromModel(m *Model, cfg Config) *Judge {
	sum := sha256.Sum256(fmt.Appendf(nil, "embedded\x00%s\x00%t", m.Version, cfg.AbstainLowConfidence))
	return &Judge{
		config:      cfg,
		model:       m,
		lex:         newLexicon(),
		fingerprint: "embedded/" + m.Version + "/" + hex.EncodeToString(sum[:4]),
	}
}

// Fingerprint identifies the judge as configured: features, weights and settings.
func (j *Judge) Fingerprint() string { return j.fingerprint }

// Model is the name that stands on every answer.
func (j *Judge) Model() string { return "embedded/" + j.model.Version }

// Figures returns the agreement with people that training measured.
func (j *Judge) Figures() Figures { return j.model.Figures }

// CanAnswer returns nil for the coarse factuality question and a
// *judge.RefusedError for every other, whatever its fields hold.
func CanAnswer(q judge.Question) error {
	coarse := strings.HasPrefix(q.Name, coarseName)
	if coarse && len(q.Options) == 2 && optionIndex(q, "agree") >= 0 && optionIndex(q, "disagree") >= 0 {
		return nil
	}
	if !coarse && strings.HasPrefix(q.Name, "factuality") {
		return &judge.RefusedError{Reason: "coarse_only"}
	}
	return &judge.RefusedError{Reason: "needs_language_model"}
}

func optionIndex(q judge.Question, key string) int {
	return slices.IndexFunc(q.Options, func(o judge.Option) bool { return o.Key == key })
}

// Ask answers a coarse factuality question. What it cannot compare comes back as a
// *judge.UnusableError with a Reason.
func (j *Judge) Ask(ctx context.Context, q judge.Question) (judge.Answer, error) {
	if err := ctx.Err(); err != nil {
		return judge.Answer{}, err
	}
	if err := CanAnswer(q); err != nil {
		return judge.Answer{}, err
	}
	start := time.Now()
	output, _ := q.Field("output")
	if isBlank(output) {
		return judge.Answer{}, &judge.RejectedError{Err: errors.New("the question has no output to judge")}
	}
	if n := len(strings.Fields(output)); n > maxAnswerWords {
		return judge.Answer{}, &judge.TooLongError{Err: fmt.Errorf("the output has %d words, the embedded judge reads %d", n, maxAnswerWords)}
	}
	input, _ := q.Field("input")
	o := j.compare(Pair{Question: input, Answer: output, References: q.FieldValues("expected")})
	if o.reason == "" && j.config.AbstainLowConfidence && o.p > 0.2 && o.p < 0.8 {
		o.reason = LowConfidence
	}
	if o.reason != "" {
		return judge.Answer{}, j.abstention(o)
	}
	probabilities := make([]float64, 2)
	probabilities[optionIndex(q, "agree")] = o.p
	probabilities[optionIndex(q, "disagree")] = 1 - o.p
	return judge.Answer{
		Probabilities: probabilities,
		Method:        judge.Model,
		Model:         j.Model(),
		Latency:       time.Since(start),
		Attempts:      1,
		Detail:        map[string]any{"coarse": true, "reference": o.reference, "because": o.because},
	}, nil
}

func (j *Judge) abstention(o opinion) error {
	detail := map[string]any{"coarse": true}
	if o.reason == LowConfidence {
		detail["p_agree"] = o.p
	}
	return &judge.UnusableError{
		Reason: string(o.reason),
		Detail: detail,
		Method: judge.Model,
		Spent:  judge.Spent{Attempts: 1, Model: j.Model()},
	}
}

// An opinion is what the judge makes of a pair: a probability, or why there is none.
type opinion struct {
	p         float64
	reference int // index of the reference that was compared, among those given
	because   []string
	reason    Reason
}

func (j *Judge) compare(p Pair) opinion {
	values, reference, reason := j.features(p)
	if reason != "" {
		return opinion{reason: reason}
	}
	return opinion{p: clip(j.model.Probability(values)), reference: reference, because: j.because(values)}
}

// features lays out a pair for the model, or says why it is none for it.
func (j *Judge) features(p Pair) (values []float64, reference int, reason Reason) {
	texts, references, reason := j.lex.usable(p.References)
	if reason != "" {
		return nil, 0, reason
	}
	v := &view{lex: j.lex, idf: j.model.IDF, answer: j.lex.read(p.Answer)}
	if !isBlank(p.Question) {
		v.question = j.lex.read(p.Question)
		if j.lex.foreignQuestion(p.Question, v.question) {
			return nil, 0, UnsupportedLanguage
		}
	}
	if reason := v.unfitAnswer(p.Answer, references); reason != "" {
		return nil, 0, reason
	}
	index, m := v.best(references)
	if v.extraItems(p.Answer, texts[index], m) {
		return nil, 0, OtherKind
	}
	f := vector{values: make([]float64, 0, len(j.model.Features))}
	v.describe(&f, m, references)
	return f.values, slices.Index(p.References, texts[index]), ""
}

// because names the three features that moved the probability most, with their
// share of the log odds: enough for a person to see what the judge saw.
func (j *Judge) because(values []float64) []string {
	type part struct {
		name  string
		share float64
	}
	var top [3]part
	for i, f := range j.model.Features {
		p := part{f.Name, f.Weight * (values[i] - f.Mean) / f.Scale}
		for k := range top {
			if math.Abs(p.share) > math.Abs(top[k].share) {
				top[k], p = p, top[k]
			}
		}
	}
	out := make([]string, 0, len(top))
	for _, p := range top {
		if p.name != "" {
			out = append(out, fmt.Sprintf("%s %+.2f", p.name, p.share))
		}
	}
	return out
}

// Compare gives p(agree) for a pair, or the reason for which the judge abstains. It
// is Ask without the envelope, for benchmarks and training.
func (j *Judge) Compare(p Pair) (float64, Reason) {
	o := j.compare(p)
	return o.p, o.reason
}

// Features gives a pair's features in the order of FeatureNames, or the reason for
// which the judge would abstain. Only training needs it.
func (j *Judge) Features(p Pair) ([]float64, Reason) {
	values, _, reason := j.features(p)
	return values, reason
}
