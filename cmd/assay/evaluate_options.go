package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"assay/evaluators"
	"assay/internal/checks"
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
	spec, err := evaluators.Lookup(evaluator)
	if err != nil {
		return err
	}
	s, asked := all[spec.Name]
	if !asked {
		return fmt.Errorf("%s is not among --evaluator", evaluator)
	}
	row, err := spec.Setting(name)
	if err != nil {
		return err
	}
	v, err := settingValue(row.Type, value)
	if err != nil {
		return err
	}
	if err := s.Set(row, v); err != nil {
		return err
	}
	all[spec.Name] = s
	return nil
}

// settingValue reads a value of that kind. A list is one of JSON, or its parts with
// commas between them.
func settingValue(kind, value string) (any, error) {
	switch kind {
	case "number":
		return finite(value)
	case "boolean":
		if value != "true" && value != "false" {
			return nil, errors.New("want true or false")
		}
		return value == "true", nil
	case "list":
		return parts(value)
	case "numbers":
		return numbers(value)
	case "object":
		if !json.Valid([]byte(value)) || !strings.HasPrefix(strings.TrimSpace(value), "{") {
			return nil, errors.New("want a JSON object")
		}
		return json.RawMessage(value), nil
	}
	return value, nil
}

func finite(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q: want a number", text)
	}
	return v, nil
}

// parts takes a list of texts apart.
func parts(value string) ([]string, error) {
	if !strings.HasPrefix(value, "[") {
		return strings.Split(value, ","), nil
	}
	var list []string
	if err := json.Unmarshal([]byte(value), &list); err != nil {
		return nil, fmt.Errorf("want a list of texts: %w", err)
	}
	return list, nil
}

func numbers(value string) ([]float64, error) {
	var list []float64
	if strings.HasPrefix(value, "[") {
		if err := json.Unmarshal([]byte(value), &list); err != nil {
			return nil, fmt.Errorf("want a list of numbers: %w", err)
		}
		return list, nil
	}
	for part := range strings.SplitSeq(value, ",") {
		v, err := finite(part)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
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

// note says what the chosen judge cannot answer; empty where there is nothing to say.
func (o evaluateOptions) note(evs []evaluators.Evaluator) string {
	for _, ev := range evs {
		if o.url == "" && o.judge == checks.KindEmbedded && ev.Name() == "factuality" && !ev.Definition().Coarse {
			return "of factuality the embedded judge says only agree or disagree: add --coarse, or name another judge"
		}
	}
	return ""
}

// chosen puts the evaluators of a suite in their place: a built-in one, or one of the
// checks file at that path.
func (o *evaluateOptions) chosen(path string) error {
	switch {
	case o.suite != "" && len(o.evaluators) > 0:
		return errors.New("--suite stands beside --evaluator: want one of the two")
	case o.suite != "":
		s, err := evaluators.LookupSuite(o.suite)
		if err == nil {
			o.evaluators = s.Evaluators
			return nil
		}
		file, failed := loadChecks(path)
		if failed != nil {
			return fmt.Errorf("--suite: %w; and for suites of your own: %w", err, failed)
		}
		if s, err = file.Suite(o.suite); err != nil {
			return fmt.Errorf("--suite: %w", err)
		}
		o.evaluators = s.Evaluators
	case len(o.evaluators) == 0:
		return fmt.Errorf("--evaluator is missing: want one or more of %s, or --suite", strings.Join(evaluatorNames(), ", "))
	}
	return o.settleNames()
}

// settleNames puts evaluators' names in the place of aliases, and refuses one that stands
// twice: its items would be judged and paid for twice.
func (o *evaluateOptions) settleNames() error {
	names := make([]string, len(o.evaluators))
	for i, name := range o.evaluators {
		spec, err := evaluators.Lookup(name)
		if err != nil {
			return fmt.Errorf("--evaluator: %w", err)
		}
		if slices.Contains(names, spec.Name) {
			return fmt.Errorf("--evaluator: %s stands there twice", name)
		}
		names[i] = spec.Name
	}
	o.evaluators = names
	return nil
}

// validate checks the flags that need nothing but each other.
func (o evaluateOptions) validate() error {
	var errs []error
	if o.concurrency < 1 {
		errs = append(errs, fmt.Errorf("--concurrency %d: want at least 1", o.concurrency))
	}
	if o.fresh && o.out == "" {
		errs = append(errs, errors.New("--fresh: is about --out, which is missing"))
	}
	if info, err := os.Stat(filepath.Dir(o.junit)); o.junit != "" && (err != nil || !info.IsDir()) {
		errs = append(errs, fmt.Errorf("--junit %s: its folder is not there", o.junit)) // said before anything is paid for
	}
	if !(o.failWorse >= 0 && o.failWorse < 1) {
		errs = append(errs, fmt.Errorf("--fail-worse %v: want a p value above 0 and below 1, such as 0.05", o.failWorse))
	}
	if o.failWorse > 0 && o.against == "" {
		errs = append(errs, errors.New("--fail-worse: needs --against, an earlier run's results"))
	}
	return errors.Join(errs...)
}

func suiteList() string {
	var names []string
	for _, s := range evaluators.Suites() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}
