package decode

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
)

// Before a library unmarshals a batch of OTLP, its cost is bounded here: two bytes of
// Protobuf can make a span of hundreds, and a recursion as deep as the record is long
// would end the process, not the record.

// shape is a message of OTLP as far as spans, log records and nested values go.
type shape uint8

const (
	noShape shape = iota
	batchShape
	resourceOfShape // ResourceSpans, ResourceLogs
	resourceShape
	scopeOfShape
	scopeShape
	recordShape // a Span or a LogRecord
	eventShape
	linkShape
	pairShape
	valueShape
	listShape
	mapShape
)

// inside is the message in a field of a message. A Span's field 5 is its name and a
// LogRecord's its body; reading a name as a value finds nothing deep in it.
func (s shape) inside(field uint64) shape {
	switch s {
	case batchShape:
		return only(field, 1, resourceOfShape)
	case resourceOfShape:
		if field == 1 {
			return resourceShape
		}
		return only(field, 2, scopeOfShape)
	case resourceShape:
		return only(field, 1, pairShape)
	case scopeOfShape:
		if field == 1 {
			return scopeShape
		}
		return only(field, 2, recordShape)
	case scopeShape:
		return only(field, 3, pairShape)
	case recordShape:
		switch field {
		case 5:
			return valueShape
		case 6, 9:
			return pairShape
		case 11:
			return eventShape
		case 13:
			return linkShape
		}
	case eventShape:
		return only(field, 3, pairShape)
	case linkShape:
		return only(field, 4, pairShape)
	case pairShape:
		return only(field, 2, valueShape)
	case valueShape:
		if field == 5 {
			return listShape
		}
		return only(field, 6, mapShape)
	case listShape:
		return only(field, 1, valueShape)
	case mapShape:
		return only(field, 1, pairShape)
	}
	return noShape
}

func only(field, want uint64, s shape) shape {
	if field == want {
		return s
	}
	return noShape
}

// A cost is what a batch would unfold to.
type cost struct {
	records  int // spans and log records
	messages int // of any kind: an attribute, an event, a value
	deep     bool
}

// messagesPerElement bounds messages by the bound of elements. A record of 8 MiB holds
// some 200,000 attributes of real names and values, and four million empty ones.
const messagesPerElement = 50

// over reports whether the batch is too much for a bound of elements.
func (c cost) over(elements int) bool {
	return c.records > elements || c.messages > messagesPerElement*elements
}

// protoCost walks a batch until it is over the bound of elements or of depth. What does
// not parse costs nothing: the unmarshaler refuses it.
func protoCost(b []byte, elements, depth int) cost {
	var c cost
	var walk func(b []byte, s shape, level int)
	walk = func(b []byte, s shape, level int) {
		for len(b) > 0 && !c.deep && !c.over(elements) {
			tag, n := binary.Uvarint(b)
			if n <= 0 {
				return
			}
			b = b[n:]
			size := uint64(0)
			switch tag & 7 {
			case 0:
				_, n = binary.Uvarint(b)
				if n <= 0 {
					return
				}
				size = uint64(n)
			case 1:
				size = 8
			case 5:
				size = 4
			case 2:
				if size, n = binary.Uvarint(b); n <= 0 {
					return
				}
				b = b[n:]
			default:
				return
			}
			if size > uint64(len(b)) {
				return
			}
			if inner := s.inside(tag >> 3); tag&7 == 2 && inner != noShape {
				c.messages++
				below := level
				switch inner {
				case recordShape:
					c.records++
				case valueShape:
					if below++; below > depth {
						c.deep = true
						return
					}
				}
				walk(b[:size], inner, below)
			}
			b = b[size:]
		}
	}
	walk(b, batchShape, 0)
	return c
}

// jsonCost counts the same in JSON. Its depth was bounded when it was scanned.
func jsonCost(batch value) cost {
	var c cost
	// Lists stand in lists: of resources, of scopes, of records.
	var count func(v value, lists int)
	count = func(v value, lists int) {
		for members := walk(v); members.obj && members.next(); {
			for items := walk(members.val); !items.obj && items.next(); {
				if lists == 1 {
					c.records++
				} else {
					count(items.val, lists-1)
				}
			}
		}
	}
	count(batch, 3)
	for i := 0; i < len(batch); {
		switch batch[i] {
		case '"':
			i = stringEnd(batch, i)
			continue
		case '{':
			c.messages++
		}
		i++
	}
	return c
}

// plainOTLP rewrites what some exporters write and the unmarshaler refuses: ids in
// base64, as Protobuf's own JSON has them, become hex; bare NaN and Infinity become
// the strings that OTLP has for them. It returns v itself where nothing had to be rewritten.
func plainOTLP(v value, nonfinite bool) (out value, base64IDs bool) {
	done := 0
	for i := 0; i < len(v); {
		switch v[i] {
		case '"':
			end := stringEnd(v, i)
			at := skipSpace(v, end)
			if at < len(v) && v[at] == ':' && isIDName(v[i+1:end-1]) {
				at = skipSpace(v, at+1)
				if id, last := hexID(v, at); id != "" {
					out = append(append(out, v[done:at]...), id...)
					done, end, base64IDs = last, last, true
				}
			}
			i = end
		case 'N', 'I':
			n, bare := scanWord(v[i:])
			if !bare || !nonfinite {
				i++
				continue
			}
			start := i
			if v[i-1] == '-' {
				start--
			}
			out = append(append(out, v[done:start]...), '"')
			out = append(append(out, v[start:i+n]...), '"')
			i += n
			done = i
		default:
			i++
		}
	}
	if done == 0 {
		return v, false
	}
	return append(out, v[done:]...), base64IDs
}

func isIDName(name []byte) bool {
	switch string(name) {
	case "traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id":
		return true
	}
	return false
}

// hexID reads the id at i if it is base64 of 16 or 8 bytes: a quoted hex id and where
// the old one ended; "" if it is none.
func hexID(v value, i int) (id string, end int) {
	if i >= len(v) || v[i] != '"' {
		return "", 0
	}
	end = stringEnd(v, i)
	text, _ := v[i:end].text()
	if len(text) != 24 && len(text) != 12 {
		return "", 0
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		if raw, err := enc.DecodeString(text); err == nil && (len(raw) == 16 || len(raw) == 8) {
			return `"` + hex.EncodeToString(raw) + `"`, end
		}
	}
	return "", 0
}
