package embedded

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Schema is the version of the features: the names, their order and their meaning.
// It rises whenever weights of before would be read wrongly.
const Schema = 1

// A Model is a fitted logistic regression with what is needed to trust it.
type Model struct {
	Schema   int       `json:"schema"`
	Version  string    `json:"version"` // of features and weights; part of every answer's model name
	Origin   Origin    `json:"origin"`
	Figures  Figures   `json:"figures"`
	Bias     float64   `json:"bias"`
	Features []Feature `json:"features"`
	IDF      IDF       `json:"-"`
	Table    idfFile   `json:"idf"`
}

// A Feature is one input of the model: its weight is for the standardised value.
type Feature struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
	Mean   float64 `json:"mean"`
	Scale  float64 `json:"scale"`
}

// Origin says what the weights were made from.
type Origin struct {
	Data      string  `json:"data"`
	SHA256    string  `json:"sha256"` // of the data file
	License   string  `json:"license"`
	Split     string  `json:"split"`
	Date      string  `json:"date"`
	Rows      int     `json:"rows"` // trained on, of all three kinds
	Short     int     `json:"short_rows"`
	Sentences int     `json:"sentence_rows"`
	Traps     int     `json:"trap_rows"`
	L2        float64 `json:"l2"`
}

// Figures are agreements with people on held-out questions, with 95% intervals over
// questions.
type Figures struct {
	Short     Figure `json:"short_references"`
	Sentences Figure `json:"sentence_references"`
	Traps     Figure `json:"traps"`
}

// A Figure is how well the model did on one kind of pair.
type Figure struct {
	Rows      int     `json:"rows"`
	Questions int     `json:"questions"`
	Abstained int     `json:"abstained"`
	Agreement float64 `json:"agreement"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	ECE       float64 `json:"ece"`
	RawECE    float64 `json:"ece_before_clipping"`
	Sure      float64 `json:"sure_share"`     // with p outside .2 to .8
	SureRight float64 `json:"sure_agreement"` // agreement there
}

// WeightsVersion is the Version of this program's weights, without reading the weights
// themselves: it stands near the file's top. It is empty when the file names none, and
// then no judge can be made of it either.
func WeightsVersion() string {
	dec := json.NewDecoder(bytes.NewReader(weights))
	if _, err := dec.Token(); err != nil { // the opening brace
		return ""
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return ""
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return ""
		}
		if key == "version" {
			version, _ := value.(string)
			return version
		}
	}
	return ""
}

// FeatureNames lists the features in the model's order.
func FeatureNames() []string {
	v := &view{lex: newLexicon(), idf: IDF{rest: 1}}
	v.answer = v.lex.read("a")
	f := &vector{wanted: true}
	v.describe(f, lay(v.answer, v.answer, nil), []*document{v.answer})
	return f.names
}

// Probability is the model's p(agree) for a feature vector, unclipped.
func (m *Model) Probability(values []float64) float64 {
	z := m.Bias
	for i, f := range m.Features {
		z += f.Weight * (values[i] - f.Mean) / f.Scale
	}
	return 1 / (1 + math.Exp(-z))
}

// clip keeps a probability away from certainty. Under a shift of domain the model is
// surest where it is wrong most often; .05 to .95 is as sure as it may say it is.
func clip(p float64) float64 {
	return math.Min(0.95, math.Max(0.05, p))
}

// Encode writes the weights file.
func (m *Model) Encode() ([]byte, error) {
	m.Table = m.IDF.file()
	raw, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode the embedded judge's weights: %w", err)
	}
	return append(raw, '\n'), nil
}

// Decode reads a weights file and refuses one that was made for other features.
func Decode(raw []byte) (*Model, error) {
	var m Model
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("decode the embedded judge's weights: %w", err)
	}
	if m.Schema != Schema {
		return nil, fmt.Errorf("the embedded judge's weights are of schema %d, this program reads %d", m.Schema, Schema)
	}
	names := make([]string, len(m.Features))
	for i, f := range m.Features {
		names[i] = f.Name
		if f.Scale <= 0 || math.IsNaN(f.Weight) || math.IsInf(f.Weight, 0) {
			return nil, fmt.Errorf("the embedded judge's weights: feature %s has weight %v, scale %v", f.Name, f.Weight, f.Scale)
		}
	}
	if want := FeatureNames(); !slices.Equal(names, want) {
		return nil, fmt.Errorf("the embedded judge's weights are for the features %v, this program computes %v", names, want)
	}
	m.IDF = m.Table.table()
	return &m, nil
}
