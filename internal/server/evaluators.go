package server

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"assay/evaluators"
)

type evaluatorsOutput struct {
	Body struct {
		Evaluators []EvaluatorBody `json:"evaluators" nullable:"false"`
		Suites     []suiteBody     `json:"suites" nullable:"false" doc:"What a request may name in place of evaluators"`
		Judges     []string        `json:"judges" nullable:"false" doc:"What a request may name as its judge"`
	}
}

// EvaluatorBody is exported for the library that writes the schemas: it does not see
// fields of an embedded type that is not.
type EvaluatorBody struct {
	Name     string        `json:"name"`
	Aliases  []string      `json:"aliases,omitempty" doc:"Other names that a request may use"`
	Summary  string        `json:"summary"`
	Calls    string        `json:"calls" doc:"How often an item asks the judge"`
	Question string        `json:"question" enum:"boolean,choice,score,none" doc:"What a judge is asked; none where the evaluator computes and asks nobody"`
	Required []string      `json:"required" nullable:"false" doc:"Fields without which an item is not applicable"`
	Optional []string      `json:"optional" nullable:"false"`
	Options  []optionBody  `json:"options" nullable:"false"`
	Coarse   []optionBody  `json:"coarse_options,omitempty" doc:"The options where coarse is set"`
	PassLine *float64      `json:"pass_line" doc:"Which scores pass; null where options pass"`
	Passes   string        `json:"passes" enum:"at_least,below,at_most" doc:"Which side of the line passes: below and at_most where less is better"`
	Pass     []string      `json:"pass,omitempty" doc:"The options that pass; absent where a line decides"`
	Settings []settingBody `json:"settings" nullable:"false"`
}

type suiteBody struct {
	Name       string   `json:"name"`
	Summary    string   `json:"summary"`
	Evaluators []string `json:"evaluators" nullable:"false"`
}

type optionBody struct {
	Key   string  `json:"key"`
	Text  string  `json:"text"`
	Score float64 `json:"score"`
}

type settingBody struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Values  []string `json:"values,omitempty"`
	Default any      `json:"default"`
	Help    string   `json:"help"`
}

func (s *Server) judgeNames() []string { return slices.Sorted(maps.Keys(s.deps.Judges)) }

func (s *Server) addEvaluators(api huma.API) {
	op := get(api, "list-evaluators", "/api/v1/evaluators", "Evaluators and their settings",
		"Written from the table that requests are checked against. Defaults are those of a request.")
	huma.Register(api, op, func(context.Context, *struct{}) (*evaluatorsOutput, error) {
		out := &evaluatorsOutput{}
		out.Body.Judges = s.judgeNames()
		for _, spec := range evaluators.Table() {
			out.Body.Evaluators = append(out.Body.Evaluators, evaluatorOf(spec))
		}
		for _, suite := range s.suites {
			out.Body.Suites = append(out.Body.Suites, suiteBody{suite.Name, suite.Summary, suite.Evaluators})
		}
		return out, nil
	})
}

func evaluatorOf(spec evaluators.Spec) EvaluatorBody {
	b := EvaluatorBody{
		Name: spec.Name, Aliases: spec.Aliases, Passes: passesOf(spec), Calls: spec.Calls(), Summary: spec.Summary, Question: cmp.Or(string(spec.Kind), "none"),
		Required: append([]string{}, spec.Required...), Optional: append([]string{}, spec.Optional...),
		Options: optionsOf(spec.Options()), PassLine: spec.PassLine, Pass: spec.DefaultPass(),
	}
	if coarse, ok := spec.Coarse(); ok {
		b.Coarse = optionsOf(coarse)
	}
	for _, setting := range spec.Settings {
		body := settingBody{setting.Name, setting.Type, setting.Values, setting.Default, setting.Help}
		if setting.Name == "empty_output" {
			body.Default = evaluators.Fail // see options
		}
		b.Settings = append(b.Settings, body)
	}
	return b
}

func passesOf(spec evaluators.Spec) string {
	if spec.Passes == evaluators.AtLeast {
		return "at_least"
	}
	return string(spec.Passes)
}

func optionsOf(definitions []evaluators.OptionDefinition) []optionBody {
	bodies := make([]optionBody, len(definitions))
	for i, o := range definitions {
		bodies[i] = optionBody{o.Key, o.Text, o.Score}
	}
	return bodies
}
