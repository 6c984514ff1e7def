package decode

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hamba/avro/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"assay/internal/interaction"
)

const parcelAvro = `{"type":"record","name":"Call","namespace":"parcels","fields":[
 {"name":"id","type":"string"},
 {"name":"time","type":{"type":"long","logicalType":"timestamp-micros"}},
 {"name":"input","type":"string"},
 {"name":"output","type":["null","string"]},
 {"name":"metadata","type":{"type":"map","values":["null","string","double","long"]}},
 {"name":"contexts","type":{"type":"array","items":"bytes"}}]}`

const parcelProto = `syntax = "proto3";
package parcels;
import "google/protobuf/timestamp.proto";
import "parts.proto";
message Unused { string a = 1; }
message Wrapper {
  message Call {
    string id = 1;
    google.protobuf.Timestamp time = 2;
    string input = 3;
    string output = 4;
    repeated string contexts = 5;
    map<string, int64> metadata = 6;
    Usage usage = 7;
  }
}`

const partsProto = `syntax = "proto3";
package parcels;
message Usage { int64 input_tokens = 1; int64 output_tokens = 2; }`

// A registry serves schemas as Confluent's does, and counts what it is asked.
type registry struct {
	*httptest.Server
	asked atomic.Int64
	down  atomic.Bool
}

func newRegistry(t *testing.T, answers map[string]any) *registry {
	t.Helper()
	r := &registry{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.asked.Add(1)
		if user, password, _ := req.BasicAuth(); user != "assay" || password != "open" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		a, ok := answers[req.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if err := json.NewEncoder(w).Encode(a); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(func() {
		r.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return r
}

func (r *registry) source() Source {
	return Source{Topic: "t", SchemaRegistry: SchemaRegistry{Address: r.URL + "/", User: "assay", Password: "open"}}
}

func parcelCall() map[string]any {
	return map[string]any{
		"id": "c-1", "time": at().Add(-time.Hour), "input": "Where is it?", "output": "In \"Lyon\".\n",
		"metadata": map[string]any{"faq": "17", "share": 0.5}, "contexts": []any{[]byte("Depots: Lyon."), []byte{0xff, 0xfe}},
	}
}

func avroBytes(t testing.TB, schema string, v any) []byte {
	t.Helper()
	s, err := avro.ParseWithCache(schema, "", &avro.SchemaCache{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := avro.Marshal(s, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func framed(id uint32, payload []byte) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, id)) + string(payload)
}

func TestAvroIsReadByTheRegistrysSchema(t *testing.T) {
	reg := newRegistry(t, map[string]any{"/schemas/ids/7": map[string]any{"schema": parcelAvro}})
	d := newDecoder(t, reg.source())
	body := framed(7, avroBytes(t, parcelAvro, parcelCall()))
	for range 3 {
		res := decodeWith(d, body)
		if len(res.Interactions) != 1 || res.Envelope != "confluent+avro" {
			t.Fatalf("%+v", res)
		}
		it := res.Interactions[0]
		if it.ID != "c-1" || !it.Time.Equal(at().Add(-time.Hour)) || deref(it.Output) != "In \"Lyon\".\n" ||
			it.Attributes["faq"] != "17" || it.Attributes["share"] != "0.5" || it.Context[0] != "Depots: Lyon." || it.Context[1] != "//4=" {
			t.Errorf("%+v", it)
		}
	}
	if n := reg.asked.Load(); n != 1 {
		t.Errorf("the registry was asked %d times, want once", n)
	}
}

// One topic, three producers: each frames in its own way, and a bare value may start
// with any byte (field report ext-26).
func TestFramingsMixOnOneTopic(t *testing.T) {
	id := "1f0e2d3c-4b5a-4978-8695-a4b3c2d1e0f1"
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil {
		t.Fatal(err)
	}
	schema := map[string]any{"schema": parcelAvro, "schemaType": "AVRO"}
	reg := newRegistry(t, map[string]any{"/schemas/ids/7": schema, "/schemas/guids/" + id: schema, "/schemas/ids/8": map[string]any{"schema": "{}", "schemaType": "JSON"}})
	file := filepath.Join(t.TempDir(), "call.avsc")
	if err := os.WriteFile(file, []byte(parcelAvro), 0o600); err != nil {
		t.Fatal(err)
	}
	src := reg.source()
	src.SchemaRegistry.Files = map[string]string{strings.ToUpper(id): file}
	d := newDecoder(t, src)

	payload := avroBytes(t, parcelAvro, parcelCall())
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	if _, err := z.Write(payload); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f := func(envelope, body string, headers ...interaction.Header) {
		t.Helper()
		res := decodeWith(d, body, headers...)
		if len(res.Interactions) != 1 || res.Interactions[0].ID != "c-1" || res.Envelope != envelope {
			t.Errorf("%s: %+v", envelope, res)
		}
	}

	f("confluent+avro", framed(7, payload))
	f("confluent+avro", "\x01"+string(raw)+string(payload))
	f("confluent+avro", string(payload), interaction.Header{Key: "__value_schema_id", Value: []byte{0, 0, 0, 0, 7}})
	f("confluent+avro", string(payload), interaction.Header{Key: "__value_schema_id", Value: append([]byte{1}, raw...)})
	f("apicurio+avro", string(payload), interaction.Header{Key: "apicurio.value.globalId", Value: []byte{0, 0, 0, 0, 0, 0, 0, 7}})
	f("glue+avro", "\x03\x00"+string(raw)+string(payload))
	f("glue+avro", "\x03\x05"+string(raw)+deflated.String())
	f("confluent+json", framed(8, []byte(`{"id":"c-1","input":"q","output":"a"}`)))
	f("none", `{"id":"c-1","input":"q","output":"a"}`)
}

// Every second byte of a frame may be NUL by chance; that does not make it UTF-16.
func TestAFrameIsNotTakenForUTF16(t *testing.T) {
	d := newDecoder(t)
	for _, frame := range []string{"\x03\x00\x89\x00aaaaaaaaaaaaaa", "\x01\x00\x89\x00aaaaaaaaaaaaa", "\x00\x12\x00\x07\x09"} {
		if res := decodeWith(d, frame+"\x02\x02\x02"); res.Outcome != DeadLetter || res.Bad[0].Reason != unknownSchemaID {
			t.Errorf("%q: %+v", frame, res)
		}
	}
}

// JSON behind a frame says what it is; without a registry only Avro and Protobuf are lost.
func TestFramedJSONNeedsNoRegistry(t *testing.T) {
	d := newDecoder(t)
	if res := decodeWith(d, framed(3, []byte(parcel))); len(res.Interactions) != 1 || res.Envelope != "confluent" {
		t.Errorf("%+v", res)
	}
	res := decodeWith(d, framed(3, avroBytes(t, parcelAvro, parcelCall())))
	if res.Outcome != DeadLetter || res.Bad[0].Reason != unknownSchemaID || !strings.Contains(res.Bad[0].Error, "schema 3: the source has no schema_registry") {
		t.Errorf("%+v", res)
	}
}

func protoCall(t testing.TB) (*protoSchema, []byte) {
	t.Helper()
	s, err := compileProto(t.Context(), parcelProto, func(name string) (string, error) {
		if name == "parts.proto" {
			return partsProto, nil
		}
		return "", os.ErrNotExist
	})
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(s.find([]int{1, 0}))
	if err := protojson.Unmarshal([]byte(`{"id":"c-1","time":"2026-05-04T11:00:00.5Z","input":"Where is it?","output":"In Lyon.","contexts":["Depots."],
		"metadata":{"b":"9007199254740993","a":"1"},"usage":{"inputTokens":"12","outputTokens":"3"}}`), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// Serialisers write the indexes of the message type in several ways; the file says
// which makes sense.
func TestProtobufIsReadWithItsImportsAndIndexes(t *testing.T) {
	reg := newRegistry(t, map[string]any{
		"/schemas/ids/9": map[string]any{"schema": parcelProto, "schemaType": "PROTOBUF",
			"references": []any{map[string]any{"name": "parts.proto", "subject": "parts/proto", "version": 2}}},
		"/subjects/parts/proto/versions/2": map[string]any{"schema": partsProto, "schemaType": "PROTOBUF"},
	})
	d := newDecoder(t, reg.source())
	_, payload := protoCall(t)
	f := func(name, indexes string, header bool) {
		t.Helper()
		res := decodeWith(d, framed(9, append([]byte(indexes), payload...)))
		if header {
			res = decodeWith(d, string(payload), interaction.Header{Key: "__value_schema_id", Value: append([]byte{0, 0, 0, 0, 9}, indexes...)})
		}
		if len(res.Interactions) != 1 || res.Envelope != "confluent+protobuf" {
			t.Errorf("%s: %+v", name, res)
			return
		}
		it := res.Interactions[0]
		if it.ID != "c-1" || !it.Time.Equal(at().Add(-time.Hour+500*time.Millisecond)) || deref(it.Input) != "Where is it?" || deref(it.Output) != "In Lyon." ||
			it.Attributes["b"] != "9007199254740993" || *it.InputTokens != 12 || len(it.Context) != 1 {
			t.Errorf("%s: %+v", name, it)
		}
	}

	f("zigzag", "\x04\x02\x00", false)
	f("plain", "\x02\x01\x00", false)
	f("behind the id in the header", "\x04\x02\x00", true)

	res := decodeWith(d, framed(9, append([]byte{4, 20, 0}, 0xff)))
	if res.Outcome != DeadLetter || res.Bad[0].Reason != schemaMismatch && res.Bad[0].Reason != badProtobuf {
		t.Errorf("%+v", res)
	}
}

// The Python client registers descriptors in base64, and a registry may give them back
// as they came.
func TestProtobufSchemasMayBeDescriptorsInBase64(t *testing.T) {
	s, payload := protoCall(t)
	encode := func(f protoreflect.FileDescriptor) string {
		t.Helper()
		d := protodesc.ToFileDescriptorProto(f)
		for _, m := range d.MessageType {
			for _, field := range m.Field {
				field.JsonName = new(string) // as that client leaves it
			}
		}
		b, err := proto.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	parts := ""
	for i := range s.file.Imports().Len() {
		if f := s.file.Imports().Get(i); f.Path() == "parts.proto" {
			parts = encode(f.FileDescriptor)
		}
	}
	reg := newRegistry(t, map[string]any{
		"/schemas/ids/9": map[string]any{"schema": encode(s.file), "schemaType": "PROTOBUF",
			"references": []any{map[string]any{"name": "parts.proto", "subject": "parts", "version": 1}}},
		"/subjects/parts/versions/1": map[string]any{"schema": parts, "schemaType": "PROTOBUF"},
	})
	res := decodeWith(newDecoder(t, reg.source()), framed(9, append([]byte{4, 2, 0}, payload...)))
	if len(res.Interactions) != 1 || res.Interactions[0].ID != "c-1" || *res.Interactions[0].OutputTokens != 3 {
		t.Errorf("%+v", res)
	}
}

func TestSchemasComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("parts.proto", []byte(partsProto))
	_, payload := protoCall(t)
	d := newDecoder(t, Source{Topic: "t", SchemaRegistry: SchemaRegistry{Files: map[string]string{
		"1": write("call.avsc", []byte(parcelAvro)), "2": write("call.proto", []byte(parcelProto)),
	}}})
	for id, body := range map[uint32][]byte{1: avroBytes(t, parcelAvro, parcelCall()), 2: append([]byte{4, 2, 0}, payload...)} {
		if res := decodeWith(d, framed(id, body)); len(res.Interactions) != 1 || res.Interactions[0].ID != "c-1" {
			t.Errorf("schema %d: %+v", id, res)
		}
	}
	if res := decodeWith(d, framed(3, payload)); res.Outcome != DeadLetter || res.Bad[0].Reason != unknownSchemaID {
		t.Errorf("%+v", res)
	}
	_, err := New(Defaults(), []Source{{Topic: "t", SchemaRegistry: SchemaRegistry{Files: map[string]string{"1": write("broken.avsc", []byte(`{"type":"recrod"}`))}}}})
	if err == nil || !strings.Contains(err.Error(), "broken.avsc") {
		t.Errorf("a broken schema file: %v", err)
	}
}

// A registry that is away must not cost records; one that answers no does at once.
func TestAnAbsentRegistryIsWaitedFor(t *testing.T) {
	reg := newRegistry(t, map[string]any{"/schemas/ids/7": map[string]any{"schema": parcelAvro}})
	reg.down.Store(true)
	d := newDecoder(t, reg.source())
	body := framed(7, avroBytes(t, parcelAvro, parcelCall()))
	var wg sync.WaitGroup
	results := make([]Result, 4) // four partitions need the same schema
	for i := range results {
		wg.Go(func() { results[i] = decodeWith(d, body) })
	}
	for reg.asked.Load() < 2 { // it has been refused and asked again
		time.Sleep(time.Millisecond)
	}
	reg.down.Store(false)
	wg.Wait()
	for _, res := range results {
		if len(res.Interactions) != 1 {
			t.Errorf("%+v", res)
		}
	}

	before := reg.asked.Load()
	for range 3 {
		if res := decodeWith(d, framed(8, nil)); res.Bad[0].Reason != unknownSchemaID || !strings.Contains(res.Bad[0].Error, "does not know it") {
			t.Errorf("%+v", res)
		}
	}
	if n := reg.asked.Load() - before; n != 1 {
		t.Errorf("asked %d times for an id that it does not know, want once", n)
	}
}

func TestARegistryThatNeverAnswersEndsAsADeadLetterThatSaysSo(t *testing.T) {
	reg := newRegistry(t, nil)
	reg.down.Store(true)
	cfg := Defaults()
	cfg.SchemaWait = 50 * time.Millisecond
	d, err := New(cfg, []Source{reg.source()})
	if err != nil {
		t.Fatal(err)
	}
	res := decodeWith(d, framed(7, nil))
	if res.Outcome != DeadLetter || res.Bad[0].Reason != unknownSchemaID || !strings.Contains(res.Bad[0].Error, "no answer within 50ms") {
		t.Errorf("%+v", res)
	}
}

func TestBrokenBinaryValuesHaveAReason(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	d := newDecoder(t, Source{Topic: "t", SchemaRegistry: SchemaRegistry{Files: map[string]string{
		"1": file("call.avsc", parcelAvro),
		"2": file("nulls.avsc", `{"type":"array","items":"null"}`),
		"3": file("list.avsc", `{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}`),
		"4": file("decimal.avsc", `{"type":"record","name":"D","fields":[{"name":"input","type":"string"},{"name":"output","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},`+
			`{"name":"created_at","type":{"type":"int","logicalType":"date"}}]}`),
		"5": file("call.proto", `syntax = "proto3"; message M { string input = 1; string output = 2; }`),
	}}})
	good := avroBytes(t, parcelAvro, parcelCall())
	f := func(reason, body string) {
		t.Helper()
		res := decodeWith(d, body)
		if res.Outcome != DeadLetter || res.Bad[0].Reason != reason {
			t.Errorf("want %s: %+v", reason, res)
		}
	}

	f(badAvro, framed(1, good[:len(good)-3]))
	f(schemaMismatch, framed(1, append(bytes.Clone(good), 1)))
	// 2^40 nulls in seven bytes
	f(inflatedTooBig, framed(2, append(binary.AppendVarint(nil, 1<<40), 0)))
	f(inflatedTooBig, framed(2, append(binary.AppendVarint(nil, math.MinInt64), 2)))
	f(tooDeep, framed(3, bytes.Repeat([]byte{2}, 100_000)))
	f(badProtobuf, framed(5, []byte{0, 0x0a, 0x7f, 'a'}))

	res := decodeWith(d, framed(4, []byte{2, 'q', 4, 0xff, 0x85, 0xc0, 0xb4, 0x02}))
	if len(res.Interactions) != 1 {
		t.Fatalf("%+v", res)
	}
	if it := res.Interactions[0]; deref(it.Output) != "-1.23" || it.Time.Format(time.DateOnly) != "2024-01-22" {
		t.Errorf("output %s, time %s", deref(it.Output), it.Time)
	}
}

// Whatever the library can write, our reader reads back as the same JSON values.
func TestAvroReadsWhatTheLibraryWrites(t *testing.T) {
	f := func(schema string, v any, want string) {
		t.Helper()
		s, err := parseAvro(schema, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.json(avroBytes(t, schema, v), limits{bytes: 1 << 20, depth: 64})
		if err != nil || string(got) != want {
			t.Errorf("%s of %v = %s, %v, want %s", schema, v, got, err, want)
		}
	}

	f(`"null"`, nil, "null")
	f(`"boolean"`, true, "true")
	f(`"long"`, int64(math.MinInt64), "-9223372036854775808")
	f(`"float"`, float32(1.5), "1.5")
	f(`"double"`, math.Inf(1), "NaN")
	f(`"string"`, "a\"\\\x01é", `"a\"\\\u0001é"`)
	f(`{"type":"enum","name":"E","symbols":["A","B"]}`, "B", `"B"`)
	f(`{"type":"fixed","name":"F","size":2}`, [2]byte{'h', 'i'}, `"hi"`)
	f(`{"type":"array","items":"int"}`, []int{1, 2, 3}, "[1,2,3]")
	f(`{"type":"array","items":"int"}`, []int{}, "[]")
	f(`{"type":"map","values":"int"}`, map[string]int{"k": 1}, `{"k":1}`)
	f(`["null","int"]`, map[string]any{"int": 4}, "4")
	f(`{"type":"record","name":"R","fields":[{"name":"z","type":"int"},{"name":"a","type":"int"}]}`, map[string]any{"z": 1, "a": 2}, `{"z":1,"a":2}`)
	f(`{"type":"int","logicalType":"date"}`, time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), `"2026-05-04"`)
}

// Whatever frame the bytes claim, the answer is well formed, bounded and always the same.
func FuzzBinaryFramings(f *testing.F) {
	d := framingDecoder(f)
	_, message := protoCall(f)
	good := avroBytes(f, parcelAvro, parcelCall())
	f.Add([]byte(framed(1, good)))
	f.Add([]byte(framed(2, append([]byte{4, 2, 0}, message...))))
	f.Add([]byte(framed(3, []byte{2, 2, 0, 0})))
	f.Add(append(append([]byte{3, 0}, make([]byte, 16)...), good...))
	f.Add(append(append([]byte{3, 5}, make([]byte, 16)...), good...))
	f.Add(append(append([]byte{1}, make([]byte, 16)...), good...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		res := bounded(t, d, raw)
		if again := bounded(t, d, raw); fmt.Sprint(again.Outcome, again.Bad) != fmt.Sprint(res.Outcome, res.Bad) {
			t.Fatalf("%+v, then %+v", res, again)
		}
	})
}
