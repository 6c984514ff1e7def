package server

import (
	"encoding/json"
	"fmt"
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
	for _, m := range all {
		where := at + "." + m.name
		row, err := spec.Setting(m.name)
		switch {
		case err != nil:
			f.add(where, "%v", err)
		case !isNull(m.value):
			f.setting(where, m.value, row, &s)
		}
	}
	return s
}

// setting reads one setting. Values are checked by evaluators.New; here it is about
// their kinds.
func (f *faults) setting(at string, raw json.RawMessage, row evaluators.Setting, s *evaluators.Settings) {
	v, ok := f.value(at, raw, row.Type)
	if !ok {
		return
	}
	if err := s.Set(row, v); err != nil {
		f.add(at, "%v", err)
	}
}

// value reads a value of a setting's type, as Settings.Set wants it.
func (f *faults) value(at string, raw json.RawMessage, kind string) (v any, ok bool) {
	before := len(f.list) + f.more
	switch kind {
	case "number":
		v, _ = f.number(at, raw)
	case "numbers":
		v = f.numbers(at, raw)
	case "boolean":
		v = f.truth(at, raw)
	case "list":
		v = f.strings(at, raw)
	case "object":
		if kindOf(raw) != "an object" {
			f.add(at, "want an object, not %s", kindOf(raw))
		}
		v = raw
	default:
		if text := f.text(at, raw); text != nil {
			v = *text
		}
	}
	return v, len(f.list)+f.more == before
}

func (f *faults) number(at string, raw json.RawMessage) (float64, bool) {
	var v float64
	if kindOf(raw) != "a number" || json.Unmarshal(raw, &v) != nil {
		f.add(at, "want a number, not %s", kindOf(raw))
		return 0, false
	}
	return v, true
}

func (f *faults) truth(at string, raw json.RawMessage) (v bool) {
	if kindOf(raw) != "a boolean" || json.Unmarshal(raw, &v) != nil {
		f.add(at, "want true or false, not %s", kindOf(raw))
	}
	return v
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
