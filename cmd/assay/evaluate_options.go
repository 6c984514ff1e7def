package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay/evaluators"
)

// settingsOf are the settings of the named evaluators: a blank output gets the worst
// answer, and what --set says.
func settingsOf(names, sets []string) (map[string]evaluators.Settings, error) {
	all := make(map[string]evaluators.Settings, len(names))
	for _, name := range names {
		all[name] = evaluators.Settings{EmptyOutput: evaluators.Fail}
	}
	var errs []error
	for _, set := range sets {
		if err := applySet(all, set); err != nil {
			errs = append(errs, fmt.Errorf("--set %s: %w", set, err))
		}
	}
	return all, errors.Join(errs...)
}

// applySet reads EVALUATOR.SETTING=VALUE.
func applySet(all map[string]evaluators.Settings, set string) error {
	path, value, ok := strings.Cut(set, "=")
	evaluator, name, dotted := strings.Cut(path, ".")
	if !ok || !dotted {
		return errors.New("want EVALUATOR.SETTING=VALUE, as in length.max=500")
	}
	s, asked := all[evaluator]
	if !asked {
		return fmt.Errorf("%s is not among --evaluator", evaluator)
	}
	spec, err := evaluators.Lookup(evaluator)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(spec.Settings, func(row evaluators.Setting) bool { return row.Name == name })
	if i < 0 {
		var known []string
		for _, row := range spec.Settings {
			known = append(known, row.Name)
		}
		return fmt.Errorf("no setting %q: want one of %s", name, strings.Join(known, ", "))
	}
	v, err := settingValue(spec.Settings[i].Type, value)
	if err != nil {
		return err
	}
	assign(&s, spec, name, v)
	all[evaluator] = s
	return nil
}

// settingValue reads a value of that kind. A list is one of JSON, or texts with commas
// between them.
func settingValue(kind, value string) (any, error) {
	switch kind {
	case "number":
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("want a number")
		}
		return v, nil
	case "boolean":
		if value != "true" && value != "false" {
			return nil, errors.New("want true or false")
		}
		return value == "true", nil
	case "list", "numbers":
		if !strings.HasPrefix(value, "[") {
			return strings.Split(value, ","), nil
		}
		var list []string
		if err := json.Unmarshal([]byte(value), &list); err != nil {
			return nil, fmt.Errorf("want a list of texts: %w", err)
		}
		return list, nil
	case "object":
		if !json.Valid([]byte(value)) {
			return nil, errors.New("want a JSON object")
		}
		return json.RawMessage(value), nil
	}
	return value, nil
}

// assign puts a value where Settings has it. Numbers are rounded towards what settle
// refuses: 1.5 orders are no orders.
func assign(s *evaluators.Settings, spec evaluators.Spec, name string, v any) {
	number, _ := v.(float64)
	text, _ := v.(string)
	truth, _ := v.(bool)
	list, _ := v.([]string)
	whole := int(number)
	if float64(whole) != number {
		whole = -1
	}
	switch name {
	case "pass":
		if spec.PassLine != nil {
			s.PassLine = &number
		} else {
			s.Pass = list
		}
	case "coarse":
		s.Coarse = truth
	case "dialect":
		s.Dialect = text
	case "max_claims":
		s.MaxClaims = whole
	case "count":
		s.Count = text
	case "similarity":
		s.Similarity = truth
	case "weights":
		s.Weights = weights(list)
	case "empty_output":
		s.EmptyOutput = text
	case "refusals":
		s.Refusals = text
	case "truncated":
		s.Truncated = text
	case "max_input_runes":
		s.MaxInputRunes = whole
	case "orders":
		s.Orders = whole
	default:
		if s.Options == nil {
			s.Options = make(map[string]any)
		}
		s.Options[name] = v
	}
}

// weights are numbers; what is none is NaN, which settle refuses.
func weights(list []string) []float64 {
	numbers := make([]float64, len(list))
	for i, s := range list {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			v = math.NaN()
		}
		numbers[i] = v
	}
	return numbers
}

// make makes the evaluators of the flags and says whether any of them asks a judge.
func (o evaluateOptions) make() (evs []evaluators.Evaluator, asking bool, err error) {
	settings, err := settingsOf(o.evaluators, o.sets)
	if err != nil {
		return nil, false, err
	}
	for _, name := range o.evaluators {
		s := settings[name]
		s.Coarse = s.Coarse || o.coarse && name == "factuality"
		ev, err := evaluators.New(name, s)
		if err != nil {
			return nil, false, err
		}
		spec, err := evaluators.Lookup(name)
		if err != nil {
			return nil, false, err
		}
		asking = asking || spec.NeedsJudge()
		evs = append(evs, ev)
	}
	return evs, asking, nil
}

// chosen puts the evaluators of a suite in their place.
func (o *evaluateOptions) chosen() error {
	switch {
	case o.suite != "" && len(o.evaluators) > 0:
		return errors.New("--suite stands beside --evaluator: want one of the two")
	case o.suite != "":
		s, err := evaluators.LookupSuite(o.suite)
		if err != nil {
			return fmt.Errorf("--suite: %w", err)
		}
		o.evaluators = s.Evaluators
	case len(o.evaluators) == 0:
		return fmt.Errorf("--evaluator is missing: want one or more of %s, or --suite", strings.Join(evaluatorNames(), ", "))
	}
	return nil
}

func suiteList() string {
	var names []string
	for _, s := range evaluators.Suites() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
