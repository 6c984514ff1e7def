package server

import (
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// allowNulls lets the schemas of our types say what encoding/json writes: a pointer to
// a struct is null when there is none. The library that writes the schemas marks
// pointers to numbers and texts so, and not those to what it refers to by name.
func allowNulls(schemas huma.Registry) {
	for name, schema := range schemas.Map() {
		t := schemas.TypeFromRef("#/components/schemas/" + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(t) {
			key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			property := schema.Properties[key]
			if property == nil || property.Ref == "" || strings.Contains(options, "omit") ||
				f.Type.Kind() != reflect.Pointer || f.Type.Elem() == reflect.TypeFor[time.Time]() {
				continue
			}
			schema.Properties[key] = &huma.Schema{
				Description: property.Description,
				AnyOf:       []*huma.Schema{{Ref: property.Ref}, {Type: "null"}},
			}
		}
	}
}
