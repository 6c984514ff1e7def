package decode

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
)

// maxPeels bounds how often bytes are unwrapped before they must be JSON.
const maxPeels = 4

// bytes peels what stands around the JSON: nothing at all, a schema's framing, gzip,
// a byte order mark, UTF-16. It decides by the bytes, record by record, since a topic
// may mix framings.
func (r *record) bytes(b []byte) {
	if b == nil {
		r.skip(tombstone)
		return
	}
	if len(b) == 0 {
		if r.src.proto {
			r.named(otlpProto)
			r.skip(emptyBatch)
		} else {
			r.skip(emptyValue)
		}
		return
	}
	if int64(len(b)) > int64(r.d.cfg.MaxRecord) {
		r.bad(r.take(), recordTooBig, "%d bytes, over %s", len(b), r.d.cfg.MaxRecord)
		return
	}
	r.cloudEventByHeader()
	if r.schemaByHeader(b) {
		return
	}
	r.peel(b)
}

// peel takes off what stands around the JSON, until there is nothing more of it.
func (r *record) peel(b []byte) {
	for range maxPeels {
		switch {
		case len(b) == 0: // nothing was inside
			r.skip(emptyValue)
			return
		case len(b) >= 2 && b[0] == 0x1f && b[1] == 0x8b:
			inner, err := gunzip(b, int64(r.d.cfg.MaxInflated)-r.inflated)
			if errors.Is(err, errInflated) {
				r.bad(r.take(), inflatedTooBig, "over %s after decompression", r.d.cfg.MaxInflated)
				return
			}
			if err != nil {
				r.bad(r.take(), badGzip, "%v", err)
				return
			}
			r.inflated += int64(len(inner))
			r.wrapped("gzip", "gunzipped")
			if b = inner; len(b) == 0 {
				r.skip(emptyValue)
				return
			}
		case r.src.proto && b[0] == 0x0a:
			r.otlpBytes(b)
			return
		case hasPrefix(b, "\xef\xbb\xbf"):
			r.flags = append(r.flags, "bom")
			b = b[3:]
		case isUTF16(b):
			inner, lossy, err := fromUTF16(b)
			if err != nil {
				r.bad(r.take(), badUTF16, "%v", err)
				return
			}
			r.wrapped("utf16", "utf16")
			if lossy {
				r.flags = append(r.flags, "lossy_utf8")
			}
			b = inner
		case b[0] <= 0x03 && r.schemaFramed(b):
			return
		default:
			r.json(b)
			return
		}
	}
	r.json(b)
}

func (r *record) wrapped(envelope, flag string) {
	r.wrap(envelope)
	r.flags = append(r.flags, flag)
}

// json decides by the first byte that is not white space.
func (r *record) json(b []byte) {
	i := skipSpace(b, 0)
	switch {
	case i == len(b):
		r.skip(emptyValue)
	case isOTLP(b):
		// Before JSON: a message's second byte is a length and may well be a brace.
		r.otlpBytes(b)
	case b[i] == '{', b[i] == '[', b[i] == '"':
		r.documents(b)
	default:
		if inner, ok := fromBase64(b); ok {
			r.wrapped("base64", "base64_decoded")
			r.documents(inner)
			return
		}
		r.documents(b) // null, scalars, and what is no JSON
	}
}

var errInflated = errors.New("over the limit")

// gunzip inflates all members of b up to limit bytes, and reads to the checksum.
func gunzip(b []byte, limit int64) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	inner, err := io.ReadAll(io.LimitReader(z, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(inner)) > limit {
		return nil, errInflated
	}
	return inner, z.Close()
}

// isUTF16 sees a byte order mark, or a NUL in every second of the first four bytes
// around what JSON may begin with: a registry's framing has NULs at such places too.
func isUTF16(b []byte) bool {
	if hasPrefix(b, "\xff\xfe") || hasPrefix(b, "\xfe\xff") {
		return true
	}
	return len(b) >= 4 && (b[0] == 0 && opensJSON(b[1]) && b[2] == 0 && b[3] != 0 ||
		opensJSON(b[0]) && b[1] == 0 && b[2] != 0 && b[3] == 0)
}

func opensJSON(c byte) bool {
	switch c {
	case '{', '[', '"', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

func fromUTF16(b []byte) (inner []byte, lossy bool, err error) {
	if len(b)%2 != 0 {
		return nil, false, errors.New("an odd number of bytes")
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case hasPrefix(b, "\xfe\xff"):
		order, b = binary.BigEndian, b[2:]
	case hasPrefix(b, "\xff\xfe"):
		b = b[2:]
	case b[0] == 0:
		order = binary.BigEndian
	}
	inner = make([]byte, 0, len(b)/2)
	for i := 0; i < len(b); i += 2 {
		c := rune(order.Uint16(b[i:]))
		if utf16.IsSurrogate(c) {
			pair := rune(utf8.RuneError)
			if i+4 <= len(b) {
				pair = utf16.DecodeRune(c, rune(order.Uint16(b[i+2:])))
			}
			if c = pair; pair == utf8.RuneError {
				lossy = true
			} else {
				i += 2
			}
		}
		inner = utf8.AppendRune(inner, c)
	}
	return inner, lossy, nil
}

// fromBase64 decodes values that are base64 as a whole and hold an object or a list.
func fromBase64(b []byte) ([]byte, bool) {
	b = bytes.TrimSpace(b)
	if len(b) < 8 {
		return nil, false
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		inner := make([]byte, enc.DecodedLen(len(b)))
		n, err := enc.Decode(inner, b)
		if err != nil {
			continue
		}
		inner = inner[:n]
		i := skipSpace(inner, 0)
		if i < len(inner) && (inner[i] == '{' || inner[i] == '[') {
			return inner, true
		}
	}
	return nil, false
}

// isOTLP reports whether b is a Protobuf message made of resources with scopes: the
// outer form of OTLP traces and logs. Its first byte is a newline, so a trial is due
// before the bytes are called broken JSON.
func isOTLP(b []byte) bool {
	if len(b) == 0 || b[0] != 0x0a {
		return false
	}
	scopes := false
	ok := eachField(b, func(number uint64, inner []byte) bool {
		return number == 1 && eachField(inner, func(n uint64, _ []byte) bool {
			scopes = scopes || n == 2
			return n <= 3
		})
	})
	return ok && scopes
}

// eachField walks the length-delimited fields of a Protobuf message; it is false when
// b is none, holds another kind of field, or f said no.
func eachField(b []byte, f func(number uint64, inner []byte) bool) bool {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag&7 != 2 {
			return false
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return false
		}
		if !f(tag>>3, b[n:n+int(size)]) {
			return false
		}
		b = b[n+int(size):]
	}
	return true
}
