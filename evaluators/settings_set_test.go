package evaluators_test

import (
	"strings"
	"testing"

	"assay/evaluators"
)

// Whatever row the table has, a value of its type has a place, and the evaluator is then
// another one or says what is wrong: no setting is swallowed.
func TestEverySettingOfTheTableHasItsPlace(t *testing.T) {
	other := map[string]any{"number": 3.0, "boolean": true, "text": "nonsense", "list": []string{"zz"}, "numbers": []float64{3, 1, 1}, "object": map[string]any{"type": 7}}
	for _, spec := range evaluators.Table() {
		for _, row := range spec.Settings {
			value, ok := other[row.Type]
			if !ok {
				t.Errorf("%s.%s: no value of type %q in this test", spec.Name, row.Name, row.Type)
				continue
			}
			plain, plainErr := evaluators.New(spec.Name, evaluators.Settings{})
			var s evaluators.Settings
			if err := s.Set(row, value); err != nil {
				t.Errorf("%s.%s: %v", spec.Name, row.Name, err)
				continue
			}
			e, err := evaluators.New(spec.Name, s)
			switch {
			case err != nil && strings.Contains(err.Error(), "of evaluators that compute"):
				t.Errorf("%s.%s has no place in Settings", spec.Name, row.Name)
			case err != nil: // refused by name, or something else is missing
			case plainErr == nil && e.Definition().Hash() == plain.Definition().Hash():
				t.Errorf("%s.%s = %v changes nothing", spec.Name, row.Name, value)
			}
		}
	}
}

func TestAValueOfAnotherTypeIsRefusedBySet(t *testing.T) {
	f := func(name string, value any, want string) {
		t.Helper()
		var s evaluators.Settings
		err := s.Set(evaluators.Setting{Name: name}, value)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %v: %v, want %q", name, value, err, want)
		}
	}
	f("coarse", 1.0, "true or false")
	f("dialect", true, "want a text")
	f("dialect", "", "is empty")
	f("orders", 0.0, "at least 1")
	f("orders", 1.5, "whole number")
	f("orders", "1", "whole number")
	f("weights", "1", "list of numbers")
	f("pass", "x", "number or a list")
}
