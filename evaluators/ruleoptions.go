package evaluators

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// ruleOptions are the settings of a rule's own. They are read by the kinds that its
// rows of Settings name; all faults come at once.
type ruleOptions struct {
	spec    Spec
	dialect string
	values  map[string]any
	faults  []error
	settled map[string]any // what is not the default: it can change a verdict
}

// typedSettings have fields of their own in Settings.
var typedSettings = []string{"pass", "dialect", "empty_output", "refusals", "truncated"}

func readOptions(spec Spec, s Settings) *ruleOptions {
	o := &ruleOptions{spec: spec, dialect: s.Dialect, values: make(map[string]any), settled: make(map[string]any)}
	var known []string
	for _, setting := range spec.Settings {
		if slices.Contains(typedSettings, setting.Name) {
			continue
		}
		known = append(known, setting.Name)
		value, ok := s.Options[setting.Name]
		if !ok || value == nil {
			continue
		}
		v, err := valueAs(setting, value)
		if err != nil {
			o.fault("%s: %v", setting.Name, err)
			continue
		}
		o.values[setting.Name] = v
		if v != setting.Default {
			o.settled[setting.Name] = v
		}
	}
	var unknown []string
	for name := range s.Options {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		o.fault("%s: unknown option%s", name, didYouMean(name, known))
	}
	for name, v := range o.values { // lists and objects are kept as their JSON, so that they compare
		if text, ok := v.(jsonText); ok {
			o.settled[name] = json.RawMessage(text)
		}
	}
	return o
}

// jsonText is a list or an object as canonical JSON.
type jsonText string

// valueAs reads a value of YAML, JSON or Go as the kind that the setting has.
func valueAs(setting Setting, value any) (any, error) {
	switch setting.Type {
	case "number":
		var v float64
		switch n := value.(type) {
		case float64:
			v = n
		case int:
			v = float64(n)
		case int64:
			v = float64(n)
		case uint64:
			v = float64(n)
		default:
			return nil, fmt.Errorf("want a number, not %v", value)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v: want a finite number", v)
		}
		return v, nil
	case "boolean":
		if v, ok := value.(bool); ok {
			return v, nil
		}
		return nil, fmt.Errorf("want true or false, not %v", value)
	case "text":
		v, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("want a text, not %v", value)
		}
		if len(setting.Values) > 0 && !slices.Contains(setting.Values, v) {
			return nil, fmt.Errorf("%q: want %s", v, strings.Join(setting.Values, " or "))
		}
		return v, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	if setting.Type == "list" {
		if list, ok := textList(string(data)); !ok || len(list) == 0 {
			return nil, fmt.Errorf("want a list of texts with at least one")
		}
		return jsonText(data), nil
	}
	if data[0] != '{' {
		return nil, fmt.Errorf("want an object")
	}
	return jsonText(compactJSON(valueOf(string(data)))), nil
}

func (o *ruleOptions) fault(format string, args ...any) {
	o.faults = append(o.faults, fmt.Errorf(o.spec.Name+": "+format, args...))
}

// needs says that one of the named settings must be there.
func (o *ruleOptions) needs(names ...string) {
	if len(o.faults) == 0 { // or the fault of one of them would be told twice
		o.fault("%s: want at least one of %s", names[0], strings.Join(names, ", "))
	}
}

// onlyWith refuses settings that would have no effect.
func (o *ruleOptions) onlyWith(what string, names ...string) {
	for _, name := range names {
		if _, ok := o.values[name]; ok {
			o.fault("%s: has an effect only with %s", name, what)
		}
	}
}

func (o *ruleOptions) boolean(name string) bool {
	v, _ := o.values[name].(bool)
	return v
}

func (o *ruleOptions) text(name string) string {
	if v, ok := o.values[name].(string); ok {
		return v
	}
	for _, s := range o.spec.Settings {
		if s.Name == name {
			v, _ := s.Default.(string)
			return v
		}
	}
	return ""
}

func (o *ruleOptions) list(name string) []string {
	v, _ := o.values[name].(jsonText)
	list, _ := textList(string(v))
	return list
}

func (o *ruleOptions) object(name string) []byte {
	if v, ok := o.values[name].(jsonText); ok {
		return []byte(v)
	}
	return nil
}

// pattern compiles a pattern; an empty one is none.
func (o *ruleOptions) pattern(name, text string) *regexp.Regexp {
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		o.fault("%s: %v", name, err)
		return nil
	}
	return re
}

// bounds reads min and max, one of which must be there.
func (o *ruleOptions) bounds() bounds {
	b := bounds{math.Inf(-1), math.Inf(1)}
	least, hasLeast := o.values["min"].(float64)
	most, hasMost := o.values["max"].(float64)
	if hasLeast {
		b.min = least
	}
	if hasMost {
		b.max = most
	}
	switch {
	case !hasLeast && !hasMost:
		o.needs("min", "max")
	case b.min > b.max:
		o.fault("min: %g is above max %g", b.min, b.max)
	}
	return b
}

// bounds are inclusive.
type bounds struct{ min, max float64 }

func (b bounds) finding(v float64, name string) finding {
	return finding{score: one(v >= b.min && v <= b.max), detail: map[string]any{name: v}}
}

func boundSettings(unit string) []Setting {
	return []Setting{
		{Name: "min", Type: "number", Help: "least " + unit + " that passes"},
		{Name: "max", Type: "number", Help: "most " + unit + " that passes"},
	}
}
