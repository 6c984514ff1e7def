package aggregate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// UnknownProvenance stands beside a value of verdicts that somebody brought without
// saying where they are from: a number without origin is no result.
const UnknownProvenance = "as given; how claims were extracted and judged is not stated"

// ReadArgs reads the arguments of a metric from JSON: one object is the arguments
// themselves, several are items whose fields become lists under the arguments' names.
// from names the field of an argument that is called otherwise; fixed are arguments of
// the whole set. asItems makes an item of a single object too.
func (m Metric) ReadArgs(r io.Reader, from map[string]string, fixed map[string]json.RawMessage, asItems bool) (args json.RawMessage, items int, err error) {
	for name := range from {
		if !slices.Contains(m.Args, name) {
			return nil, 0, fmt.Errorf("%s has no argument %q: want one of %v", m.Name, name, m.Args)
		}
	}
	var rows []map[string]json.RawMessage
	dec := json.NewDecoder(r)
	for {
		var row map[string]json.RawMessage
		err := dec.Decode(&row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, fmt.Errorf("object %d: %w", len(rows)+1, err)
		}
		if row == nil {
			return nil, 0, fmt.Errorf("object %d is null", len(rows)+1)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, 0, errors.New("there is no JSON object")
	}
	all := make(map[string]json.RawMessage, len(fixed))
	if len(rows) == 1 && !asItems {
		all = rows[0]
	} else if err := m.gather(rows, from, all); err != nil {
		return nil, 0, err
	}
	for name, value := range fixed {
		all[name] = value
	}
	args, err = json.Marshal(all)
	return args, len(rows), err
}

// gather makes lists of the fields that are arguments. An item without one of them would
// shift all after it.
func (m Metric) gather(rows []map[string]json.RawMessage, from map[string]string, into map[string]json.RawMessage) error {
	for _, name := range m.Args {
		field := name
		if f, ok := from[name]; ok {
			field = f
		}
		var list bytes.Buffer
		have := 0
		for i, row := range rows {
			value, ok := row[field]
			if ok {
				have++
			}
			if ok && have != i+1 || !ok && have > 0 {
				return fmt.Errorf("object %d: field %s stands in some objects and not in others", i+1, field)
			}
			list.WriteByte("[,"[min(i, 1)])
			list.Write(value)
		}
		list.WriteByte(']')
		if have > 0 {
			into[name] = list.Bytes()
		} else if _, named := from[name]; named {
			return fmt.Errorf("no object has the field %s", field)
		}
	}
	if len(into) == 0 {
		return fmt.Errorf("no object has any of the fields %v", m.Args)
	}
	return nil
}
