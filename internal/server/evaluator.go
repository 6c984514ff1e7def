package server

import (
	"context"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"assay/evaluators"
	"assay/evaluators/judge"
)

type evaluatorOutput struct {
	Body evaluatorDetail
}

// evaluatorDetail is all there is to know about one evaluator.
type evaluatorDetail struct {
	EvaluatorBody
	Use       string        `json:"use" doc:"What it is for"`
	NotFor    string        `json:"not_for" doc:"What another one is better for; may be empty"`
	Mapping   string        `json:"mapping" doc:"How an answer becomes a score"`
	Suites    []string      `json:"suites" nullable:"false" doc:"Suites that it belongs to"`
	Questions []wordingBody `json:"questions" nullable:"false" doc:"What a judge is asked, by the settings that choose the question; empty where nobody is asked"`
}

// wordingBody is a question without an item's texts.
type wordingBody struct {
	Name    string       `json:"name" doc:"Of the wording: it changes with the text"`
	Kind    string       `json:"kind" enum:"boolean,choice,score,text,vector" doc:"What the answer is: a distribution over options, a text, or the embedding of a field"`
	Dialect string       `json:"dialect,omitempty" doc:"The setting that chooses it"`
	Coarse  bool         `json:"coarse,omitempty" doc:"The setting that chooses it"`
	Claims  string       `json:"claims,omitempty" doc:"The setting that chooses it"`
	Text    string       `json:"text"`
	Options []optionBody `json:"options" nullable:"false"`
}

func (s *Server) addEvaluator(api huma.API) {
	op := get(api, "get-evaluator", "/api/v1/evaluators/{name}", "One evaluator with its questions",
		"Fields, question, options with their scores, settings and cost. Aliases are answered under their evaluator's name.")
	op.Errors = []int{404}
	huma.Register(api, op, func(_ context.Context, in *struct {
		Name string `path:"name" maxLength:"100" example:"factuality"`
	}) (*evaluatorOutput, error) {
		spec, err := evaluators.Lookup(in.Name)
		if err != nil {
			return nil, huma.Error404NotFound("no evaluator " + quoted(in.Name) + didYouMean(in.Name, evaluatorNames()) + "; GET /api/v1/evaluators lists them")
		}
		return &evaluatorOutput{s.detailOf(spec)}, nil
	})
}

func (s *Server) detailOf(spec evaluators.Spec) evaluatorDetail {
	d := evaluatorDetail{EvaluatorBody: evaluatorOf(spec), Use: spec.Use, NotFor: spec.NotFor, Mapping: mappingOf(spec), Suites: []string{}, Questions: []wordingBody{}}
	for _, suite := range s.suites {
		if slices.Contains(suite.Evaluators, spec.Name) {
			d.Suites = append(d.Suites, suite.Name)
		}
	}
	for _, w := range spec.Wordings() {
		d.Questions = append(d.Questions, wordingBody{
			Name: w.Template, Kind: string(kindOfWording(spec, w)), Dialect: w.Dialect, Coarse: w.Coarse, Claims: w.Claims, Text: w.Text, Options: optionsOf(w.Options),
		})
	}
	return d
}

// kindOfWording is what its answer is.
func kindOfWording(spec evaluators.Spec, w evaluators.Wording) judge.Kind {
	switch {
	case len(w.Options) > 0 && w.Claims != "":
		return judge.Choice // of claim_supported, whatever the evaluator asks otherwise
	case len(w.Options) > 0:
		return spec.Kind
	case w.Text == "":
		return judge.Vector
	}
	return judge.Text
}

func mappingOf(spec evaluators.Spec) string {
	switch {
	case !spec.NeedsJudge():
		return "The score is computed from the item; there is no distribution and no confidence."
	case strings.Contains(spec.Calls(), "for each"):
		return "The score is over the answers to the parts of the text; detail lists them. Confidence is the mean of their largest probabilities."
	}
	switch spec.Kind {
	case judge.Boolean:
		return "The score is the probability of yes. Confidence is twice its distance from 0.5."
	case judge.Choice:
		return "The score is that of the most probable option. Confidence is its probability; detail.expected_score is the mean over all options."
	}
	return "The score is the expected level over the highest one. Confidence is the largest probability."
}
