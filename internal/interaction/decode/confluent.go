package decode

import (
	"encoding/binary"
	"encoding/hex"
)

// schemaByHeader reads values whose schema id stands in a header: they are bare Avro or
// Protobuf and may start with any byte, a brace included.
func (r *record) schemaByHeader(b []byte) bool {
	if h, ok := r.rec.Header("__value_schema_id"); ok {
		id, rest, ok := confluentID(h)
		if !ok {
			r.bad(r.take(), unknownSchemaID, "header __value_schema_id: %d bytes, no id", len(h))
			return true
		}
		r.wrap("confluent")
		// Where the value is Protobuf, its message indexes may stand behind the id.
		r.bySchema(id, append(rest[:len(rest):len(rest)], b...))
		return true
	}
	for _, name := range []string{"apicurio.value.globalId", "apicurio.value.contentId"} {
		if h, ok := r.rec.Header(name); ok && len(h) == 8 {
			r.wrap("apicurio")
			r.bySchema(decimal(binary.BigEndian.Uint64(h)), b)
			return true
		}
	}
	return false
}

// schemaFramed reads values with a schema id in front; it is false when b has none.
func (r *record) schemaFramed(b []byte) bool {
	if r.glueFramed(b) {
		return true
	}
	id, rest, ok := confluentID(b)
	if !ok {
		return false
	}
	r.wrap("confluent")
	r.bySchema(id, rest)
	return true
}

// confluentID reads Confluent's two prefixes: 00 and an int32, 01 and a GUID.
func confluentID(b []byte) (id string, rest []byte, ok bool) {
	switch {
	case len(b) >= 5 && b[0] == 0x00:
		return decimal(uint64(binary.BigEndian.Uint32(b[1:5]))), b[5:], true
	case len(b) >= 17 && b[0] == 0x01:
		return guid(b[1:17]), b[17:], true
	}
	return "", nil, false
}

func guid(b []byte) string {
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
