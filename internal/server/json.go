package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// A member is one name and value of a JSON object. encoding/json's own reading of
// structs would take "Input" for input and the last of two for both.
type member struct {
	name  string
	value json.RawMessage
}

// document reads a body that must be one JSON object and nothing else.
func document(body []byte) ([]member, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("the body is not UTF-8")
	}
	if !json.Valid(body) {
		var v any
		err := json.Unmarshal(body, &v)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("the body is not JSON: %w, at byte %d", err, syntax.Offset)
		}
		return nil, fmt.Errorf("the body is not JSON: %w", err)
	}
	return members(body)
}

// members returns the members of an object in their order.
func members(raw json.RawMessage) ([]member, error) {
	if kindOf(raw) != "an object" {
		return nil, fmt.Errorf("want an object, not %s", kindOf(raw))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var list []member
	seen := make(map[string]bool)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: token.(string)} // json.Valid has seen that names are strings
		if seen[m.name] {
			return nil, fmt.Errorf("%s twice", quoted(m.name))
		}
		seen[m.name] = true
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	if _, err := dec.Token(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return list, nil
}

// kindOf names the kind of a JSON value, as a sentence needs it.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func isNull(raw json.RawMessage) bool { return kindOf(raw) == "null" }

// text reads a string; null is nil, as a field that is not there.
func (f *faults) text(location string, raw json.RawMessage) *string {
	if isNull(raw) {
		return nil
	}
	var s string
	if kindOf(raw) != "a string" || json.Unmarshal(raw, &s) != nil {
		f.add(location, "want a string, not %s", kindOf(raw))
		return nil
	}
	return &s
}

// oneOrMore reads a list of strings, or one string as a list of one.
func (f *faults) oneOrMore(location string, raw json.RawMessage) []string {
	switch kindOf(raw) {
	case "null":
		return nil
	case "a string":
		if s := f.text(location, raw); s != nil {
			return []string{*s}
		}
		return nil
	case "a list":
		return f.strings(location, raw)
	}
	f.add(location, "want a string or a list of strings, not %s", kindOf(raw))
	return nil
}

// strings reads a list of strings.
func (f *faults) strings(location string, raw json.RawMessage) []string {
	var elements []json.RawMessage
	if kindOf(raw) != "a list" || json.Unmarshal(raw, &elements) != nil {
		f.add(location, "want a list of strings, not %s", kindOf(raw))
		return nil
	}
	texts := make([]string, 0, len(elements))
	for i, e := range elements {
		at := fmt.Sprintf("%s[%d]", location, i)
		if isNull(e) {
			f.add(at, "want a string, not null")
		} else if s := f.text(at, e); s != nil {
			texts = append(texts, *s)
		}
	}
	return texts
}
