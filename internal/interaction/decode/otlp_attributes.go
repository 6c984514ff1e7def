package decode

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"assay/internal/interaction"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Attributes of spans, events and log records. Instrumentations write a list of
// messages as a string that holds JSON, or as a structured value, and both within one
// stream: whoever reads them here sees JSON.
type attributes map[string]pcommon.Value

func attributesOf(m pcommon.Map) attributes {
	a := make(attributes, m.Len())
	for k, v := range m.All() {
		a[k] = v
	}
	return a
}

func (a attributes) has(key string) bool {
	v, ok := a[key]
	return ok && v.Type() != pcommon.ValueTypeEmpty
}

// value is an attribute as JSON, as it was written: a string stays a string. nil: absent.
func (a attributes) value(key string) value {
	v, ok := a[key]
	if !ok || v.Type() == pcommon.ValueTypeEmpty {
		return nil
	}
	return appendJSON(nil, v)
}

// first is the value of the first of the keys that says something.
func (a attributes) first(keys ...string) value {
	for _, key := range keys {
		if v := a.value(key); !v.absent() && (!v.isString() || !interaction.Blank(string(v[1:len(v)-1]))) {
			return v
		}
	}
	return nil
}

// maxAttribute is the longest value that is a label and not some text.
const maxAttribute = 256

// short is the value of an attribute that is a label, nil for texts and structures.
func (a attributes) short(key string) value {
	switch v := a[key]; v.Type() {
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap, pcommon.ValueTypeBytes:
		return nil
	case pcommon.ValueTypeStr:
		if len(v.Str()) > maxAttribute {
			return nil
		}
	}
	return a.value(key)
}

// raw is a string attribute as it is.
func (a attributes) raw(key string) string {
	if v, ok := a[key]; ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}

// A content is a text or a structure that an attribute holds.
type content struct {
	value value
	cut   int // how many containers were open where a length limit cut it; 0: whole
}

// content reads an attribute that holds JSON: structured, in a string, or what is left
// of one that was cut. A string that is no JSON stays a string.
func (a attributes) content(key string) content {
	v, ok := a[key]
	if !ok || v.Type() == pcommon.ValueTypeEmpty {
		return content{}
	}
	if v.Type() != pcommon.ValueTypeStr {
		return content{value: appendJSON(nil, v)}
	}
	return contentOf(v.Str())
}

func contentOf(s string) content {
	text := strings.TrimLeft(s, " \t\r\n") // what stands at the end may be inside a string that was cut
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		b := []byte(text)
		if end, _, err := scan(b, 0, nestedDepth); err == nil && skipSpace(b, end) == len(b) {
			return content{value: b[:end]}
		}
		// "[draft] ..." is a text: what was cut begins with a member or an object.
		if v, depth, ok := salvage(b); ok {
			if w := walk(v); w.next() && (w.obj || w.val.isObject()) {
				return content{value: v, cut: depth}
			}
		}
	}
	return content{value: quoted([]byte(s))}
}

// appendJSON writes a value as JSON. Bytes that are no UTF-8 stay as they are: reading
// the text replaces and flags them.
func appendJSON(out value, v pcommon.Value) value {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return appendQuoted(out, v.Str())
	case pcommon.ValueTypeInt:
		return strconv.AppendInt(out, v.Int(), 10)
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(out, v.Bool())
	case pcommon.ValueTypeDouble:
		if f := v.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return strconv.AppendFloat(out, f, 'g', -1, 64)
		}
		return append(out, "null"...)
	case pcommon.ValueTypeBytes:
		return appendQuoted(out, base64.StdEncoding.EncodeToString(v.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice:
		out = append(out, '[')
		for i, inner := range v.Slice().All() {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSON(out, inner)
		}
		return append(out, ']')
	case pcommon.ValueTypeMap:
		return appendMap(out, v.Map())
	}
	return append(out, "null"...)
}

func appendMap(out value, m pcommon.Map) value {
	out = append(out, '{')
	empty := true
	for k, inner := range m.All() {
		if !empty {
			out = append(out, ',')
		}
		empty = false
		out = append(appendQuoted(out, k), ':')
		out = appendJSON(out, inner)
	}
	return append(out, '}')
}

func appendQuoted(out value, s string) value {
	const hexDigits = "0123456789abcdef"
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// list reads attributes that spell a list out, one key per leaf: <prefix>N.<rest>. The
// items come in the order of N as a number.
func (a attributes) list(prefix string) []attributes {
	var numbers []int
	items := map[int]attributes{}
	for key, v := range a {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		number, name, ok := strings.Cut(rest, ".")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 0 {
			continue
		}
		if items[n] == nil {
			items[n] = attributes{}
			numbers = append(numbers, n)
		}
		items[n][name] = v
	}
	slices.Sort(numbers)
	out := make([]attributes, len(numbers))
	for i, n := range numbers {
		out[i] = items[n]
	}
	return out
}
