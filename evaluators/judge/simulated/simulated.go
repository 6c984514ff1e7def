package simulated

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"assay/evaluators/judge"
)

// Model is what the answers name as their model.
const Model = "simulated/1"

// Judge answers from a known truth with known mistakes. It is safe for concurrent use.
type Judge struct{ cfg Config }

var _ judge.Judge = (*Judge)(nil)

// New checks the settings.
func New(cfg Config) (*Judge, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Judge{cfg}, nil
}

// Fingerprint identifies everything that can change an answer but the truth itself.
func (j *Judge) Fingerprint() string {
	// Maps are encoded in the order of their keys, so equal settings are equal text.
	settings, err := json.Marshal(struct {
		Accuracy  float64
		Confusion map[string]map[string]float64
		Noise     float64
		Seed      uint64
	}{j.cfg.Accuracy, j.cfg.Confusion, j.cfg.Noise, j.cfg.Seed})
	if err != nil {
		panic(fmt.Sprintf("simulated judge: settings that passed Validate do not encode: %v", err))
	}
	sum := sha256.Sum256(settings)
	return fmt.Sprintf("%s:%x", Model, sum[:8])
}

// Ask answers with a distribution that depends on the question alone.
func (j *Judge) Ask(ctx context.Context, q judge.Question) (judge.Answer, error) {
	if !q.Kind.HasOptions() {
		return judge.Answer{}, &judge.RefusedError{Reason: judge.NeedsLanguageModel}
	}
	rng := rand.New(rand.NewChaCha8(digest(j.cfg.Seed, q)))
	latency := time.Duration(float64(j.cfg.Latency) * (0.5 + rng.Float64()))
	if err := wait(ctx, latency); err != nil {
		return judge.Answer{}, err
	}
	unusable := func(reason string) error {
		return &judge.UnusableError{Reason: reason, Method: judge.Simulated, Spent: judge.Spent{Attempts: 1, Model: Model}}
	}
	right, ok := j.cfg.Truth(q)
	if !ok {
		return judge.Answer{}, unusable("judge_abstained")
	}
	keys := make([]string, len(q.Options))
	for i, o := range q.Options {
		keys[i] = o.Key
	}
	chosen := slices.Index(keys, j.choose(rng, right, keys))
	if chosen < 0 || !slices.Contains(keys, right) {
		return judge.Answer{}, unusable("outside_options")
	}
	return judge.Answer{
		Probabilities: j.spread(rng, chosen, len(keys)),
		Method:        judge.Simulated,
		Model:         Model,
		Latency:       latency,
		Attempts:      1,
	}, nil
}

// choose draws the option the judge settles on. Keys are walked in their own order,
// not in the question's, so that the order shown cannot change the choice.
func (j *Judge) choose(rng *rand.Rand, right string, keys []string) string {
	u := rng.Float64()
	if row, ok := j.cfg.Confusion[right]; ok {
		last := right
		for _, key := range slices.Sorted(maps.Keys(row)) {
			if row[key] == 0 {
				continue
			}
			if u < row[key] {
				return key
			}
			u -= row[key]
			last = key
		}
		return last // rounding left a hair of the unit interval
	}
	others := slices.DeleteFunc(slices.Sorted(slices.Values(keys)), func(k string) bool { return k == right })
	if u < j.cfg.Accuracy || len(others) == 0 {
		return right
	}
	return others[rng.IntN(len(others))]
}

// spread gives the chosen option the most, and shares up to Noise among the others.
func (j *Judge) spread(rng *rand.Rand, chosen, n int) []float64 {
	p := make([]float64, n)
	if n == 1 {
		p[0] = 1
		return p
	}
	rest := j.cfg.Noise * rng.Float64()
	sum := 0.0
	for i := range p {
		if i != chosen {
			p[i] = rng.ExpFloat64()
			sum += p[i]
		}
	}
	inside := 0.0
	for i := range p {
		if i != chosen {
			p[i] *= rest / sum
			inside += p[i]
		}
	}
	p[chosen] = 1 - inside
	return p
}

// digest is a key of the whole question, with lengths so that no two questions run
// together. Options count as a set: their order is the backend's to choose.
func digest(seed uint64, q judge.Question) [32]byte {
	h := sha256.New()
	number(h, seed)
	for _, s := range []string{q.Name, string(q.Kind), q.Text} {
		text(h, s)
	}
	number(h, uint64(len(q.Fields)))
	for _, f := range q.Fields {
		text(h, f.Name)
		text(h, f.Value)
	}
	keys := make([]string, len(q.Options))
	for i, o := range q.Options {
		keys[i] = o.Key
	}
	slices.Sort(keys)
	for _, k := range keys {
		text(h, k)
	}
	number(h, uint64(q.Vote))
	return [32]byte(h.Sum(nil))
}

func number(h hash.Hash, n uint64) { h.Write(binary.BigEndian.AppendUint64(nil, n)) }

func text(h hash.Hash, s string) {
	number(h, uint64(len(s)))
	h.Write([]byte(s))
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
