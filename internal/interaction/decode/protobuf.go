package decode

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// A protoSchema turns Protobuf's binary form into JSON with the field names of the
// .proto file.
type protoSchema struct{ file protoreflect.FileDescriptor }

// rootProto is the name that a schema without a file has.
const rootProto = "assay-record.proto"

// compileProto compiles a .proto text; imports gives the files it imports by name.
func compileProto(ctx context.Context, text string, imports func(name string) (string, error)) (*protoSchema, error) {
	find := func(name string) (protocompile.SearchResult, error) {
		if name == rootProto {
			return protoSource(name, text), nil
		}
		inner, err := imports(name)
		if err != nil {
			return protocompile.SearchResult{}, err
		}
		return protoSource(name, inner), nil
	}
	c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(protocompile.ResolverFunc(find)), MaxParallelism: 1}
	files, err := c.Compile(ctx, rootProto)
	if err != nil {
		return nil, err
	}
	return &protoSchema{files[0]}, nil
}

// protoSource is a file as text, or as the descriptor in base64 that some clients
// register in place of the text.
func protoSource(name, text string) protocompile.SearchResult {
	if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
		var file descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(b, &file); err == nil && len(file.MessageType)+len(file.EnumType)+len(file.Dependency) > 0 {
			file.Name = &name
			setJSONNames(file.MessageType)
			return protocompile.SearchResult{Proto: &file}
		}
	}
	return protocompile.SearchResult{Source: strings.NewReader(text)}
}

// setJSONNames makes the fields' names in JSON those of the file, which are ours: some
// writers leave them empty, and the compiler finds that all are the same.
func setJSONNames(messages []*descriptorpb.DescriptorProto) {
	for _, m := range messages {
		for _, f := range m.Field {
			f.JsonName = f.Name
		}
		setJSONNames(m.NestedType)
	}
}

// protoFromSet reads a descriptor set, as protoc writes it; its last file is the root.
func protoFromSet(b []byte) (*protoSchema, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(b, &set); err != nil {
		return nil, err
	}
	if len(set.File) == 0 {
		return nil, errors.New("a descriptor set without a file")
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, err
	}
	root, err := files.FindFileByPath(set.File[len(set.File)-1].GetName())
	if err != nil {
		return nil, err
	}
	return &protoSchema{root}, nil
}

func (s *protoSchema) kind() string { return "protobuf" }

// json reads a message behind the indexes that say which of the file's it is.
func (s *protoSchema) json(b []byte, lim limits) (value, error) {
	m, err := s.message(b, lim)
	if err != nil {
		return nil, err
	}
	w := protoWriter{limits: lim, out: make(value, 0, len(b)+len(b)/2)}
	if err := w.message(m, 0); err != nil {
		return nil, &schemaError{badProtobuf, err}
	}
	return w.out, nil
}

// message finds the message type and parses. Serialisers write the indexes in zigzag,
// some old ones plain, Glue's a single plain one, and where the id stands in a header
// they may be missing: what leaves a message without unknown fields is right.
func (s *protoSchema) message(b []byte, lim limits) (protoreflect.Message, error) {
	var spare protoreflect.Message
	err := error(&schemaError{schemaMismatch, errors.New("its indexes name no message of the schema")})
	for _, read := range []func([]byte) ([]int, []byte, bool){zigzagIndexes, plainIndexes, oneIndex, noIndexes} {
		path, rest, ok := read(b)
		if !ok {
			continue
		}
		d := s.find(path)
		if d == nil {
			continue
		}
		m := dynamicpb.NewMessage(d)
		if e := parse(rest, m, lim); e != nil {
			var known *schemaError
			if errors.As(err, &known) && known.reason == schemaMismatch {
				err = &schemaError{badProtobuf, e}
			}
			continue
		}
		if len(m.GetUnknown()) == 0 {
			return m, nil
		}
		if spare == nil {
			spare = m // a newer producer's field, unless a later reading fits better
		}
	}
	if spare != nil {
		return spare, nil
	}
	return nil, err
}

// parse reads the wire form. The library panics on a map entry whose key comes twice,
// the second time with a wrong wire type; bytes that can do that are broken all the same.
func parse(b []byte, m proto.Message, lim limits) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser gave up: %v", p)
		}
	}()
	return proto.UnmarshalOptions{RecursionLimit: lim.depth}.Unmarshal(b, m)
}

// find follows indexes of messages inside messages.
func (s *protoSchema) find(path []int) protoreflect.MessageDescriptor {
	list := s.file.Messages()
	var d protoreflect.MessageDescriptor
	for _, i := range path {
		if i < 0 || i >= list.Len() {
			return nil
		}
		d = list.Get(i)
		list = d.Messages()
	}
	return d
}

// maxIndexes bounds how deep a message type may be nested in others.
const maxIndexes = 32

func zigzagIndexes(b []byte) ([]int, []byte, bool) { return indexes(b, binary.Varint) }

func plainIndexes(b []byte) ([]int, []byte, bool) {
	return indexes(b, func(b []byte) (int64, int) {
		n, size := binary.Uvarint(b)
		return int64(n & math.MaxInt64), size
	})
}

func indexes(b []byte, varint func([]byte) (int64, int)) (path []int, rest []byte, ok bool) {
	n, size := varint(b)
	if size <= 0 || n < 0 || n > maxIndexes {
		return nil, nil, false
	}
	b = b[size:]
	if n == 0 {
		return []int{0}, b, true // the first message, in one byte
	}
	for range n {
		i, size := varint(b)
		if size <= 0 || i < 0 || i > math.MaxInt32 {
			return nil, nil, false
		}
		path = append(path, int(i))
		b = b[size:]
	}
	return path, b, true
}

func oneIndex(b []byte) ([]int, []byte, bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > math.MaxInt32 {
		return nil, nil, false
	}
	return []int{int(n)}, b[size:], true
}

func noIndexes(b []byte) ([]int, []byte, bool) { return []int{0}, b, true }

// A protoWriter writes a message as JSON, in the order of the .proto file. The standard
// writer changes its white space from build to build, writes long numbers as texts and
// has no bound on what it makes.
type protoWriter struct {
	limits
	out value
}

func (w *protoWriter) message(m protoreflect.Message, depth int) error {
	if depth > w.depth {
		return errTooDeep
	}
	if done, err := w.wellKnown(m, depth); done || err != nil {
		return err
	}
	w.out = append(w.out, '{')
	fields := m.Descriptor().Fields()
	first := true
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) {
			continue
		}
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.out = append(appendString(w.out, string(f.Name())), ':')
		if err := w.field(f, m.Get(f), depth); err != nil {
			return err
		}
		if int64(len(w.out)) > w.bytes {
			return errGrown
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *protoWriter) field(f protoreflect.FieldDescriptor, v protoreflect.Value, depth int) error {
	switch {
	case f.IsList():
		w.out = append(w.out, '[')
		for i := range v.List().Len() {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			if err := w.single(f, v.List().Get(i), depth); err != nil {
				return err
			}
			if int64(len(w.out)) > w.bytes {
				return errGrown
			}
		}
		w.out = append(w.out, ']')
		return nil
	case f.IsMap():
		return w.entries(f, v.Map(), depth)
	}
	return w.single(f, v, depth)
}

// entries writes a map in the order of its keys: the wire has none.
func (w *protoWriter) entries(f protoreflect.FieldDescriptor, m protoreflect.Map, depth int) error {
	var keys []protoreflect.MapKey
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return cmp.Compare(a.String(), b.String()) })
	w.out = append(w.out, '{')
	for i, k := range keys {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(appendString(w.out, k.String()), ':')
		if err := w.single(f.MapValue(), m.Get(k), depth); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *protoWriter) single(f protoreflect.FieldDescriptor, v protoreflect.Value, depth int) error {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return w.message(v.Message(), depth+1)
	case protoreflect.EnumKind:
		if d := f.Enum().Values().ByNumber(v.Enum()); d != nil {
			w.out = appendString(w.out, string(d.Name()))
		} else {
			w.out = strconv.AppendInt(w.out, int64(v.Enum()), 10)
		}
	case protoreflect.StringKind:
		w.out = appendString(w.out, v.String())
	case protoreflect.BytesKind:
		w.out = appendBlob(w.out, v.Bytes())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		bits := 64
		if f.Kind() == protoreflect.FloatKind {
			bits = 32
		}
		if n := v.Float(); math.IsNaN(n) || math.IsInf(n, 0) {
			w.out = append(w.out, "NaN"...)
		} else {
			w.out = strconv.AppendFloat(w.out, n, 'f', -1, bits)
		}
	default: // truth values and whole numbers print as JSON has them
		w.out = append(w.out, v.String()...)
	}
	return nil
}

// wellKnown writes Google's own types as what they stand for.
func (w *protoWriter) wellKnown(m protoreflect.Message, depth int) (bool, error) {
	d := m.Descriptor()
	name, ok := strings.CutPrefix(string(d.FullName()), "google.protobuf.")
	if !ok {
		return false, nil
	}
	field := func(name protoreflect.Name) (protoreflect.FieldDescriptor, protoreflect.Value) {
		f := d.Fields().ByName(name)
		return f, m.Get(f)
	}
	switch name {
	case "Timestamp":
		_, sec := field("seconds")
		_, ns := field("nanos")
		w.out = appendString(w.out, time.Unix(sec.Int(), ns.Int()).UTC().Format(time.RFC3339Nano))
	case "Duration":
		_, sec := field("seconds")
		_, ns := field("nanos")
		w.out = appendString(w.out, (time.Duration(sec.Int())*time.Second + time.Duration(ns.Int())).String())
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue":
		f, v := field("value")
		return true, w.single(f, v, depth)
	case "Struct", "Value", "ListValue":
		b, err := protojson.Marshal(m.Interface())
		if err != nil {
			return true, fmt.Errorf("%s: %w", d.FullName(), err)
		}
		s, _ := value(b).compact() // without the writer's changing white space
		w.out = append(w.out, s...)
	default:
		return false, nil
	}
	return true, nil
}
