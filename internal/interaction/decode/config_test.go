package decode

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// The environment's defaults and the ones used without an environment are one set of
// numbers, and every variable explains itself.
func TestTheEnvironmentsDefaultsAreTheDefaults(t *testing.T) {
	v := reflect.ValueOf(Defaults())
	for i := range v.NumField() {
		field := v.Type().Field(i)
		_, text, ok := strings.Cut(field.Tag.Get("env"), ", default=")
		if got := fmt.Sprint(v.Field(i)); !ok || got != text {
			t.Errorf("%s: %s, the environment says %q", field.Name, got, text)
		}
		if field.Tag.Get("help") == "" {
			t.Errorf("%s has no help", field.Name)
		}
	}
}
