package evaluators

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// parseJSON reads a text that is one JSON value and nothing else. Numbers keep their
// digits.
func parseJSON(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// structured reports whether a JSON value is an object or an array.
func structured(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// compactJSON writes a value without spaces and with sorted keys.
func compactJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only what no JSON text can hold cannot be written.
		panic(fmt.Sprintf("a JSON value of type %T: %v", v, err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// JSONDiff says how alike two JSON values are, from 0 to 1: objects by the union of
// their keys, arrays by position, texts by Levenshtein, numbers by NumericDiff. Values
// are what encoding/json makes of JSON, with or without UseNumber. With py, booleans are
// the numbers 0 and 1, as in Python.
func JSONDiff(output, expected any, py bool) (float64, error) {
	d := differ{comparison{cells: maxCells}, py}
	return d.diff(output, expected)
}

type differ struct {
	comparison
	py bool
}

func (d *differ) diff(a, b any) (float64, error) {
	a, b = unfold(a), unfold(b)
	if a == nil || b == nil {
		return one(a == nil && b == nil), nil
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return d.objects(x, y)
		}
	case []any:
		if y, ok := b.([]any); ok {
			return d.arrays(x, y)
		}
	case string:
		if y, ok := b.(string); ok {
			return d.levenshtein(x, y)
		}
	}
	x, isNumber := d.number(a)
	y, areNumbers := d.number(b)
	if isNumber && areNumbers {
		return NumericDiff(x, y)
	}
	return d.levenshtein(compactJSON(a), compactJSON(b))
}

func (d *differ) objects(a, b map[string]any) (float64, error) {
	keys := slices.Sorted(maps.Keys(a))
	for _, k := range slices.Sorted(maps.Keys(b)) {
		if _, both := a[k]; !both {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return 1, nil
	}
	sum := 0.0
	for _, k := range keys {
		s, err := d.diff(a[k], b[k])
		if err != nil {
			return 0, err
		}
		sum += s
	}
	return sum / float64(len(keys)), nil
}

func (d *differ) arrays(a, b []any) (float64, error) {
	longer := max(len(a), len(b))
	if longer == 0 {
		return 1, nil
	}
	sum := 0.0
	for i := range min(len(a), len(b)) {
		s, err := d.diff(a[i], b[i])
		if err != nil {
			return 0, err
		}
		sum += s
	}
	return sum / float64(longer), nil
}

// unfold parses a text that holds an object or an array.
func unfold(v any) any {
	text, ok := v.(string)
	if !ok || !strings.ContainsAny(firstByte(strings.TrimSpace(text)), "{[") {
		return v
	}
	if inner, err := parseJSON(text); err == nil && structured(inner) {
		return inner
	}
	return v
}

func firstByte(s string) string { return s[:min(1, len(s))] }

// number reads a value as a number. One too large for a float is none, and is compared
// as text.
func (d *differ) number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case bool:
		if d.py {
			return one(n), true
		}
	}
	return 0, false
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// JSONMatch reports whether output is the same JSON value as any of the references. The
// order of arrays counts, that of keys does not. What is no JSON matches nothing.
func JSONMatch(output string, references []string) bool {
	return matchingJSON(output, references) >= 0
}

// matchingJSON returns the first reference that output equals, or -1.
func matchingJSON(output string, references []string) int {
	a, err := parseJSON(output)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(references, func(r string) bool {
		b, err := parseJSON(r)
		return err == nil && sameJSON(a, b)
	})
}

func sameJSON(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, sameJSON)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, sameJSON)
	case json.Number:
		y, ok := b.(json.Number)
		return ok && sameNumber(x, y)
	}
	return a == b
}

// sameNumber takes 1, 1.0 and 1e0 for equal; two integers by their digits, since a float
// has fewer.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	if !strings.ContainsAny(string(a)+string(b), ".eE") {
		return strings.Trim(string(a), "-") == "0" && strings.Trim(string(b), "-") == "0"
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// A Schema is a compiled JSON schema.
type Schema struct{ compiled *jsonschema.Schema }

// CompileSchema reads a JSON schema. It may refer to its own parts and to nothing else:
// a schema of a request must not make us read files or addresses.
func CompileSchema(text []byte) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("schema: not JSON: %w", err)
	}
	if n, ok := beyondNumber(doc); ok {
		return nil, fmt.Errorf("schema: the number %s is out of range", n)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const here = "assay:schema"
	if err := c.AddResource(here, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := c.Compile(here)
	if err != nil {
		return nil, fmt.Errorf("schema: %s", strings.ReplaceAll(err.Error(), here, ""))
	}
	return &Schema{compiled}, nil
}

// beyondNumber finds a number outside of what a float can hold. The validator computes
// with exact rationals: a million digits for 1e1000000, and a crash a little further on.
func beyondNumber(v any) (string, bool) {
	const mostDigits, mostExponent = 500, 308
	switch x := v.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(string(x)), "e")
		e, err := strconv.Atoi(cmp.Or(exponent, "0"))
		if len(x) > mostDigits || err != nil || e > mostExponent || e < -mostExponent {
			return firstRunes(string(x), 40), true
		}
	case []any:
		for _, element := range x {
			if n, ok := beyondNumber(element); ok {
				return n, true
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if n, ok := beyondNumber(x[k]); ok {
				return n, true
			}
		}
	}
	return "", false
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a schema may refer to its own parts only", url)
}

// ValidJSON reports whether output is a JSON object or array; with a schema, whether it
// is JSON that the schema describes. It returns why not.
func ValidJSON(output string, schema *Schema) (valid bool, why string) {
	v, err := parseJSON(output)
	switch {
	case err != nil:
		return false, "not JSON: " + err.Error()
	case schema != nil:
		if n, ok := beyondNumber(v); ok {
			return false, "the number " + n + " is out of range"
		}
		if err := schema.compiled.Validate(v); err != nil {
			return false, err.Error()
		}
		return true, ""
	case !structured(v):
		return false, "neither an object nor an array"
	}
	return true, ""
}

// lenientStarts bounds how many places an object is tried at, since each may be read to
// the end of the text.
const lenientStarts = 16

// LenientJSON takes the JSON out of a text: without the code fence around it, or the
// first whole object or array in it.
func LenientJSON(text string) string {
	text = strings.TrimSpace(text)
	if inside, ok := unfenced(text); ok && json.Valid([]byte(inside)) {
		return inside // fences in its strings are its own
	}
	rest := text
	for range lenientStarts {
		at := strings.IndexAny(rest, "{[")
		if at < 0 {
			break
		}
		dec := json.NewDecoder(strings.NewReader(rest[at:]))
		var value json.RawMessage
		if dec.Decode(&value) == nil {
			return string(value)
		}
		rest = rest[at+1:]
	}
	return text
}

func unfenced(text string) (string, bool) {
	body, ok := strings.CutPrefix(text, "```")
	if !ok {
		return "", false
	}
	body, ok = strings.CutSuffix(body, "```")
	if !ok {
		return "", false
	}
	if _, after, ok := strings.Cut(body, "\n"); ok {
		body = after // the fence's first line may name a language
	}
	return strings.TrimSpace(body), true
}
