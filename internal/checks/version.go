package checks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/evaluators/judge/embedded"
	"assay/evaluators/judge/openai"
	"assay/internal/interaction"
)

// Settings are the evaluator's settings of the check.
func (c Check) Settings() evaluators.Settings {
	return evaluators.Settings{
		PassLine: c.PassLine, Pass: c.Pass, Coarse: c.Coarse,
		Dialect: c.Dialect, Claims: c.Claims, MaxClaims: c.MaxClaims, Count: c.Count, Similarity: c.Similarity, Weights: c.Weights, Questions: c.Questions,
		EmptyOutput: c.EmptyOutput, Refusals: c.Refusals, Truncated: c.Truncated,
		MaxInputRunes: c.MaxInputRunes, Orders: c.Orders,
		Options: c.Options,
	}
}

// Fingerprint identifies the judge as configured and what it asks with: what it answers
// may change when this does. Limits, price and key do not belong to it, nor does the
// address: a gateway that moves must not start a new series.
func (j Judge) Fingerprint() string { return j.fingerprint(j.asksWith()) }

func (j Judge) fingerprint(asksWith string) string {
	return hash(struct {
		Kind, Model, Method, AsksWith string
		AbstainLow                    bool
		MaxTokens                     int    `json:",omitempty"`
		EmbeddingModel                string `json:",omitempty"`
	}{j.Kind, j.Model, j.Method, asksWith, j.AbstainLow, j.MaxTokens, j.EmbeddingModel})
}

// Votes is how many calls of the judge a question takes.
func (j Judge) Votes() int {
	if _, n, err := judge.ParseMethod(j.Method); err == nil {
		return n
	}
	return 1
}

// asksWith is the version of what this program puts between a question and its answer.
func (j Judge) asksWith() string {
	switch j.Kind {
	case KindOpenAI, KindAnthropic:
		return openai.SheetVersion
	case KindEmbedded:
		return embedded.WeightsVersion()
	}
	return ""
}

// version is a hash of everything in a check that can change a verdict. Its name, its
// filter and its sampling cannot: they choose interactions.
func version(d evaluators.Definition, c Check, j Judge) string {
	if !d.Embeddings {
		j.EmbeddingModel = "" // a model that this check does not ask starts no new series
	}
	return hash(struct {
		Definition evaluators.Definition
		Criteria   Text
		Reference  Text
		Judge      string
	}{d, c.Criteria, c.Reference, j.Fingerprint()})
}

// hash is of everything in the file that can change a decision: the ledger's segments
// are counted under it and the decoder's fingerprint, so it must change whenever a
// re-count could come out differently.
func (f *File) hash() string {
	type decision struct {
		Name, Version, When, Salt string
		Rate                      float64
	}
	decisions := make([]decision, len(f.Checks))
	for i, c := range f.Checks {
		decisions[i] = decision{Name: c.Name, Version: c.Version, When: c.When.String(), Salt: c.Sample.Salt, Rate: c.Sample.Rate}
	}
	return hash(struct {
		Checks     []decision
		Dimensions []string
		Sources    []Source
	}{decisions, f.Dimensions, f.Sources})
}

// hash is 16 hex digits over the JSON of v, whose maps come out in order.
func hash(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		// Only NaN and the like cannot be written, and the loader lets none in.
		panic(fmt.Sprintf("hash of %T: %v", v, err))
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// Of returns the texts for an interaction: the fixed one, or what the record's field
// holds; none when the field is absent.
func (t Text) Of(it *interaction.Interaction) []string {
	switch t.Field {
	case "":
		if t.Text == "" {
			return nil
		}
		return []string{t.Text}
	case "expected":
		return it.Expected
	case "criteria":
		if it.Criteria == nil {
			return nil
		}
		return []string{*it.Criteria}
	}
	if s, ok := it.Attributes[t.Field[len("attributes."):]]; ok {
		return []string{s}
	}
	return nil
}

// Notes are what is right in the file and still worth a sentence.
func (f *File) Notes() []string {
	var notes []string
	for _, c := range f.Checks {
		switch {
		case c.Sample.Rate == 0:
			notes = append(notes, fmt.Sprintf("check %s: sample.rate is 0, so nothing is judged", c.Name))
		case c.Alert.Off && c.Alert.Target == 0:
			notes = append(notes, fmt.Sprintf("check %s: no alert.target, so its drift detector is off (learning a target from a baseline comes with a later version of Assay)", c.Name))
		case c.Alert.Off:
			notes = append(notes, fmt.Sprintf("check %s: alert.off, so its drift detector is off", c.Name))
		}
	}
	if why := f.slow(); why != "" {
		notes = append(notes, why)
	}
	return notes
}
