package decode

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/hamba/avro/v2"
)

// An avroSchema turns Avro's binary form into JSON, which every rule of this package
// reads. It walks the bytes itself: the library's generic values lose the order of
// fields, and its bounds are per value, while ours is on what one record may become.
type avroSchema struct{ schema avro.Schema }

// parseAvro reads a schema and those it refers to. Each gets names of its own: two
// schemas of one registry may well define the same name differently.
func parseAvro(text string, references []string) (*avroSchema, error) {
	names := &avro.SchemaCache{}
	for _, ref := range references {
		if _, err := avro.ParseWithCache(ref, "", names); err != nil {
			return nil, fmt.Errorf("a schema that it refers to: %w", err)
		}
	}
	s, err := avro.ParseWithCache(text, "", names)
	if err != nil {
		return nil, err
	}
	return &avroSchema{s}, nil
}

func (s *avroSchema) kind() string { return "avro" }

// json reads exactly one value.
func (s *avroSchema) json(b []byte, lim limits) (value, error) {
	r := avroReader{b: b, limits: lim}
	r.out = make(value, 0, len(b)+len(b)/2)
	if err := r.read(s.schema, 0); err != nil {
		return nil, &schemaError{badAvro, err}
	}
	if len(r.b) > 0 {
		return nil, &schemaError{schemaMismatch, fmt.Errorf("%d bytes more than the schema describes", len(r.b))}
	}
	return r.out, nil
}

type avroReader struct {
	limits
	b   []byte
	out value
}

var (
	errShort   = errors.New("it ends early")
	errGrown   = errors.New("it becomes larger than may be")
	errNoUnion = errors.New("no such branch of a union")
)

func (r *avroReader) read(s avro.Schema, depth int) error {
	if depth > r.depth {
		return errTooDeep
	}
	if int64(len(r.out)) > r.bytes {
		return errGrown
	}
	switch s := s.(type) {
	case *avro.RefSchema:
		return r.read(s.Schema(), depth)
	case *avro.RecordSchema:
		r.out = append(r.out, '{')
		for i, f := range s.Fields() {
			if i > 0 {
				r.out = append(r.out, ',')
			}
			r.out = append(appendString(r.out, f.Name()), ':')
			if err := r.read(f.Type(), depth+1); err != nil {
				return fmt.Errorf("%s: %w", f.Name(), err)
			}
		}
		r.out = append(r.out, '}')
		return nil
	case *avro.ArraySchema:
		return r.blocks('[', ']', func() error { return r.read(s.Items(), depth+1) })
	case *avro.MapSchema:
		return r.blocks('{', '}', func() error {
			key, err := r.bytesField()
			if err != nil {
				return err
			}
			r.out = append(appendString(r.out, string(key)), ':')
			return r.read(s.Values(), depth+1)
		})
	case *avro.UnionSchema:
		i, err := r.long()
		if err != nil {
			return err
		}
		if i < 0 || i >= int64(len(s.Types())) {
			return errNoUnion
		}
		return r.read(s.Types()[i], depth+1)
	case *avro.EnumSchema:
		i, err := r.long()
		if err != nil {
			return err
		}
		symbol, ok := s.Symbol(int(i))
		if !ok || i < 0 {
			return fmt.Errorf("no symbol %d", i)
		}
		r.out = appendString(r.out, symbol)
		return nil
	case *avro.FixedSchema:
		b, err := r.take(int64(s.Size()))
		if err != nil {
			return err
		}
		if d, ok := s.Logical().(*avro.DecimalLogicalSchema); ok {
			r.decimal(b, d.Scale())
			return nil
		}
		r.blob(b)
		return nil
	case *avro.NullSchema:
		r.out = append(r.out, "null"...)
		return nil
	case *avro.PrimitiveSchema:
		return r.primitive(s)
	}
	return fmt.Errorf("a type %s that is not read", s.Type())
}

func (r *avroReader) primitive(s *avro.PrimitiveSchema) error {
	switch s.Type() {
	case avro.Boolean:
		b, err := r.take(1)
		if err != nil {
			return err
		}
		r.out = strconv.AppendBool(r.out, b[0] != 0)
	case avro.Int, avro.Long:
		n, err := r.long()
		if err != nil {
			return err
		}
		// Instants stay numbers: their unit shows by magnitude, as everywhere. A date
		// counts days and would be taken for seconds.
		if l := s.Logical(); l != nil && l.Type() == avro.Date && n > -1e6 && n < 1e7 {
			r.out = appendString(r.out, time.Unix(n*86400, 0).UTC().Format(time.DateOnly))
			return nil
		}
		r.out = strconv.AppendInt(r.out, n, 10)
	case avro.Float:
		b, err := r.take(4)
		if err != nil {
			return err
		}
		r.float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), 32)
	case avro.Double:
		b, err := r.take(8)
		if err != nil {
			return err
		}
		r.float(math.Float64frombits(binary.LittleEndian.Uint64(b)), 64)
	case avro.String:
		b, err := r.bytesField()
		if err != nil {
			return err
		}
		r.out = appendString(r.out, string(b))
	case avro.Bytes:
		b, err := r.bytesField()
		if err != nil {
			return err
		}
		if d, ok := s.Logical().(*avro.DecimalLogicalSchema); ok {
			r.decimal(b, d.Scale())
			return nil
		}
		r.blob(b)
	default:
		return fmt.Errorf("a type %s that is not read", s.Type())
	}
	return nil
}

// blocks reads the counted blocks of an array or a map. A negative count is followed by
// the block's size, which only a reader that skips needs.
func (r *avroReader) blocks(open, end byte, item func() error) error {
	r.out = append(r.out, open)
	for first := true; ; {
		n, err := r.long()
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if n < 0 {
			if _, err := r.long(); err != nil {
				return err
			}
			n = -n
		}
		for ; n != 0; n-- { // -n of the least number is itself: the bound on bytes ends it
			if !first {
				r.out = append(r.out, ',')
			}
			first = false
			if err := item(); err != nil {
				return err
			}
			if int64(len(r.out)) > r.bytes {
				return errGrown // items of no bytes cost a comma each
			}
		}
	}
	r.out = append(r.out, end)
	return nil
}

func (r *avroReader) take(n int64) ([]byte, error) {
	if n < 0 || n > int64(len(r.b)) {
		return nil, errShort
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b, nil
}

func (r *avroReader) long() (int64, error) {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		return 0, errShort
	}
	r.b = r.b[size:]
	return n, nil
}

func (r *avroReader) bytesField() ([]byte, error) {
	n, err := r.long()
	if err != nil {
		return nil, err
	}
	return r.take(n)
}

// float writes a number; what is none in JSON is null, as everywhere.
func (r *avroReader) float(f float64, bits int) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.out = append(r.out, "NaN"...)
		return
	}
	r.out = strconv.AppendFloat(r.out, f, 'f', -1, bits)
}

func (r *avroReader) blob(b []byte) { r.out = appendBlob(r.out, b) }

// appendBlob writes bytes: as the text that they mostly are, else in base64.
func appendBlob(out value, b []byte) value {
	if utf8.Valid(b) {
		return appendString(out, string(b))
	}
	out = append(out, '"')
	out = base64.StdEncoding.AppendEncode(out, b)
	return append(out, '"')
}

// maxDecimal bounds a decimal's digits; a larger one is written as its bytes.
const maxDecimal = 64

func (r *avroReader) decimal(b []byte, scale int) {
	if len(b) == 0 || len(b) > maxDecimal || scale > 1024 {
		r.blob(b)
		return
	}
	n := new(big.Int).SetBytes(b)
	if b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	r.out = append(r.out, new(big.Rat).SetFrac(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)).FloatString(scale)...)
}

// appendString writes s as a JSON string.
func appendString(out value, s string) value {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
