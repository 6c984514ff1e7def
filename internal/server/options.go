package server

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"assay/evaluators"
)

// options reads the settings of the requested evaluators. A blank output gets the worst
// answer unless the request says otherwise: whoever sends one wants it judged.
func (f *faults) options(raw json.RawMessage, names []string) map[string]evaluators.Settings {
	settings := make(map[string]evaluators.Settings, len(names))
	for _, name := range names {
		settings[name] = evaluators.Settings{EmptyOutput: evaluators.Fail}
	}
	if raw == nil {
		return settings
	}
	all, err := members(raw)
	if err != nil {
		f.add("options", "%v", err)
		return settings
	}
	for _, m := range all {
		at := "options." + m.name
		spec, err := evaluators.Lookup(m.name)
		switch {
		case err != nil:
			f.add(at, "unknown evaluator; want some of %s%s", strings.Join(names, ", "), didYouMean(m.name, names))
		case !slices.Contains(names, spec.Name):
			f.add(at, "the request does not ask for this evaluator")
		case !isNull(m.value):
			settings[spec.Name] = f.settings(at, m.value, spec, settings[spec.Name])
		}
	}
	return settings
}

func (f *faults) settings(at string, raw json.RawMessage, spec evaluators.Spec, s evaluators.Settings) evaluators.Settings {
	all, err := members(raw)
	if err != nil {
		f.add(at, "%v", err)
		return s
	}
	var known []string
	for _, setting := range spec.Settings {
		known = append(known, setting.Name)
	}
	for _, m := range all {
		where := at + "." + m.name
		switch {
		case !slices.Contains(known, m.name):
			f.add(where, "unknown option; want some of %s%s", strings.Join(known, ", "), didYouMean(m.name, known))
		case !isNull(m.value):
			f.setting(where, m.name, m.value, spec, &s)
		}
	}
	return s
}

// setting reads one setting. Values are checked by evaluators.New; here it is about
// their kinds.
func (f *faults) setting(at, name string, raw json.RawMessage, spec evaluators.Spec, s *evaluators.Settings) {
	switch name {
	case "pass":
		if spec.PassLine != nil {
			if v, ok := f.number(at, raw); ok {
				s.PassLine = &v
			}
		} else {
			s.Pass = f.strings(at, raw)
		}
	case "coarse":
		f.truth(at, raw, &s.Coarse)
	case "dialect":
		f.word(at, raw, &s.Dialect)
	case "claims":
		f.word(at, raw, &s.Claims)
	case "max_claims":
		f.whole(at, raw, &s.MaxClaims)
	case "count":
		f.word(at, raw, &s.Count)
	case "similarity":
		f.truth(at, raw, &s.Similarity)
	case "weights":
		s.Weights = f.numbers(at, raw)
	case "empty_output":
		f.word(at, raw, &s.EmptyOutput)
	case "refusals":
		f.word(at, raw, &s.Refusals)
	case "truncated":
		f.word(at, raw, &s.Truncated)
	case "max_input_runes":
		f.whole(at, raw, &s.MaxInputRunes)
	case "orders":
		f.whole(at, raw, &s.Orders)
	default:
		f.ruleOption(at, name, raw, spec, s)
	}
}

// ruleOption reads a setting of a deterministic evaluator's own, by the kind that the
// table says.
func (f *faults) ruleOption(at, name string, raw json.RawMessage, spec evaluators.Spec, s *evaluators.Settings) {
	kinds := map[string]string{"number": "a number", "boolean": "a boolean", "text": "a string", "list": "a list", "object": "an object"}
	i := slices.IndexFunc(spec.Settings, func(setting evaluators.Setting) bool { return setting.Name == name })
	if want := kinds[spec.Settings[i].Type]; spec.NeedsJudge() || kindOf(raw) != want {
		f.add(at, "want %s, not %s", want, kindOf(raw))
		return
	}
	if s.Options == nil {
		s.Options = make(map[string]any)
	}
	switch spec.Settings[i].Type {
	case "object":
		s.Options[name] = raw
	case "list":
		s.Options[name] = f.strings(at, raw)
	default:
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			f.add(at, "%v", err)
		}
		s.Options[name] = v
	}
}

func (f *faults) number(at string, raw json.RawMessage) (float64, bool) {
	var v float64
	if kindOf(raw) != "a number" || json.Unmarshal(raw, &v) != nil {
		f.add(at, "want a number, not %s", kindOf(raw))
		return 0, false
	}
	return v, true
}

func (f *faults) truth(at string, raw json.RawMessage, to *bool) {
	if kindOf(raw) != "a boolean" || json.Unmarshal(raw, to) != nil {
		f.add(at, "want true or false, not %s", kindOf(raw))
	}
}

func (f *faults) numbers(at string, raw json.RawMessage) []float64 {
	var elements []json.RawMessage
	if kindOf(raw) != "a list" || json.Unmarshal(raw, &elements) != nil {
		f.add(at, "want a list of numbers, not %s", kindOf(raw))
		return nil
	}
	list := []float64{}
	for i, e := range elements {
		if v, ok := f.number(fmt.Sprintf("%s[%d]", at, i), e); ok {
			list = append(list, v)
		}
	}
	return list
}

func (f *faults) whole(at string, raw json.RawMessage, to *int) {
	v, ok := f.number(at, raw)
	switch {
	case !ok:
	case v != math.Trunc(v) || v < 1 || v > math.MaxInt32: // 0 would mean the default
		f.add(at, "%v: want a whole number of at least 1", v)
	default:
		*to = int(v)
	}
}

// word reads a word; an empty one would mean the default.
func (f *faults) word(at string, raw json.RawMessage, to *string) {
	v := f.text(at, raw)
	switch {
	case v == nil:
	case *v == "":
		f.add(at, "is empty")
	default:
		*to = *v
	}
}
