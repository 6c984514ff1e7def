package evaluators

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Set puts a value where the setting of that row has its place. The value has the Go
// type of the row's Type: float64 for number, []float64 for numbers, bool for boolean,
// string for text, []string for list; an object is kept as it comes. It is the one
// table of which setting is which field: requests, command lines and files read by it.
//
// What would mean "the default" (0, an empty word) is an error: whoever names a setting
// wants something of it. Whether a value makes sense New knows.
func (s *Settings) Set(row Setting, value any) error {
	switch at := s.field(row.Name).(type) {
	case nil:
		if s.Options == nil {
			s.Options = make(map[string]any)
		}
		s.Options[row.Name] = value
	case *bool:
		return put(at, value, "want true or false")
	case *[]float64:
		return put(at, value, "want a list of numbers")
	case *string:
		if value == "" {
			return errors.New("is empty")
		}
		return put(at, value, "want a text")
	case *int:
		v, ok := value.(float64)
		if !ok || v != math.Trunc(v) || v < 1 || v > math.MaxInt32 {
			return fmt.Errorf("%v: want a whole number of at least 1", value)
		}
		*at = int(v)
	case *Settings: // pass is a line or options, as its evaluator has it
		if v, ok := value.(float64); ok {
			at.PassLine = &v
			return nil
		}
		return put(&at.Pass, value, "want a number or a list of options")
	}
	return nil
}

// field points at the place of a setting that has one of its own; nil is for those in
// Options.
func (s *Settings) field(name string) any {
	switch name {
	case "pass":
		return s
	case "coarse":
		return &s.Coarse
	case "dialect":
		return &s.Dialect
	case "claims":
		return &s.Claims
	case "max_claims":
		return &s.MaxClaims
	case "count":
		return &s.Count
	case "similarity":
		return &s.Similarity
	case "weights":
		return &s.Weights
	case "empty_output":
		return &s.EmptyOutput
	case "refusals":
		return &s.Refusals
	case "truncated":
		return &s.Truncated
	case "max_input_runes":
		return &s.MaxInputRunes
	case "orders":
		return &s.Orders
	case "questions":
		return &s.Questions
	}
	return nil
}

func put[T any](at *T, value any, want string) error {
	v, ok := value.(T)
	if !ok {
		return errors.New(want)
	}
	*at = v
	return nil
}

// Setting returns the row of a setting; the error names the nearest of them.
func (s Spec) Setting(name string) (Setting, error) {
	known := make([]string, len(s.Settings))
	for i, row := range s.Settings {
		if row.Name == name {
			return row, nil
		}
		known[i] = row.Name
	}
	return Setting{}, fmt.Errorf("unknown setting %q: want one of %s%s", name, strings.Join(known, ", "), didYouMean(name, known))
}
