package aggregate

import (
	"reflect"
	"strings"
)

// fieldNames are the JSON names of the fields of A.
func fieldNames[A any]() []string {
	t := reflect.TypeFor[A]()
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
