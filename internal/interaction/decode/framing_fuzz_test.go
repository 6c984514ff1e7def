package decode

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"assay/internal/interaction"
)

// fuzzInflated is small, so that a fuzzer finds what reaches the bound.
const fuzzInflated = 64 << 10

const glueSchema = "00000000-0000-0000-0000-000000000000"

// fuzzListAvro nests without end and has items of no bytes: what makes small records large.
const fuzzListAvro = `{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]},
 {"name":"all","type":{"type":"array","items":"L"}},{"name":"none","type":{"type":"array","items":"null"}},
 {"name":"map","type":{"type":"map","values":["null","double",{"type":"fixed","name":"F","size":3}]}}]}`

// framingDecoder knows the schemas 1 to 3 of a registry, and Glue's.
func framingDecoder(f *testing.F) *Decoder {
	f.Helper()
	dir := f.TempDir()
	for name, text := range map[string]string{"call.avsc": parcelAvro, "call.proto": parcelProto, "parts.proto": partsProto, "list.avsc": fuzzListAvro} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	cfg := Defaults()
	cfg.MaxInflated = fuzzInflated
	d, err := New(cfg, []Source{{Topic: "t", SchemaRegistry: SchemaRegistry{Files: map[string]string{
		"1": filepath.Join(dir, "call.avsc"), "2": filepath.Join(dir, "call.proto"), "3": filepath.Join(dir, "list.avsc"), glueSchema: filepath.Join(dir, "call.avsc"),
	}}}})
	if err != nil {
		f.Fatal(err)
	}
	return d
}

// bounded decodes foreign bytes, checks what is true of every result, and that what was
// allocated on the way is in proportion to the record, or to what it may inflate to.
func bounded(t *testing.T, d *Decoder, raw []byte, headers ...interaction.Header) Result {
	t.Helper()
	// An interaction of a dozen bytes takes some hundred, and lists grow by doubling.
	const perByte, free = 300, 8 << 20
	before := allocated()
	got := d.Decode(interaction.Record{Topic: "t", Offset: 7, Time: at(), Value: raw, Headers: headers})
	used, size := allocated()-before, max(uint64(len(raw)), min(uint64(d.cfg.MaxInflated), 1100*uint64(len(raw))))
	if used > free+perByte*size {
		t.Fatalf("%d bytes allocated for a record of %d", used, len(raw))
	}
	wellFormed(t, got)
	return got
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// same fails unless both are the same answer but for what they were wrapped in.
func same(t *testing.T, bare, wrapped Result) {
	t.Helper()
	texts := func(r Result) string {
		var out strings.Builder
		for _, it := range r.Interactions {
			b, err := json.Marshal([]any{it.ID, it.Time, it.Input, it.Output, it.Expected, it.Context, it.Status, it.SkipReason, it.Element})
			if err != nil {
				t.Fatal(err)
			}
			out.Write(b)
			out.WriteByte('\n')
		}
		for _, b := range r.Bad {
			out.WriteString(b.Reason + "\n")
		}
		return out.String() + strings.Join(r.Skips, "\n")
	}
	if a, b := texts(bare), texts(wrapped); a != b {
		t.Fatalf("bare it is\n%s\nand wrapped\n%s", a, b)
	}
}

// plainJSONText reports whether raw is text whose first byte says that it is JSON, so
// that nothing else is to be peeled off it.
func plainJSONText(raw []byte) bool {
	return len(raw) > 4 && len(raw) < 8<<10 && utf8.Valid(raw) && (raw[0] == '{' || raw[0] == '[') && bytes.IndexByte(raw, 0) < 0
}

func addParcels(f *testing.F) {
	f.Helper()
	for _, s := range []string{parcel, "[" + parcel + "," + parcel + "]", parcel + "\n{\"input\":\n" + parcel, `{"input":"Grüße \ud83d\ude00","output":""}`} {
		f.Add([]byte(s))
	}
}

// Gzip is taken off whatever is inside, and what is no gzip is said to be none.
func FuzzGzip(f *testing.F) {
	addParcels(f)
	f.Add([]byte(zipped(f, strings.Repeat(" ", 2*fuzzInflated))))
	f.Add([]byte(zipped(f, `{"input":"a",`) + zipped(f, `"output":"b"}`)))
	d := framingDecoder(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t, d, append([]byte{0x1f, 0x8b, 8}, raw...))
		got := bounded(t, d, []byte(zipped(t, string(raw))))
		if plainJSONText(raw) {
			same(t, bounded(t, d, raw), got)
		}
	})
}

// UTF-16 of either order, with a mark or without, is read as the same text in UTF-8.
func FuzzUTF16(f *testing.F) {
	addParcels(f)
	d := framingDecoder(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t, d, append([]byte("\xff\xfe"), raw...))
		bounded(t, d, append([]byte("\xfe\xff"), raw...))
		if !plainJSONText(raw) || raw[1] >= 0x80 {
			return
		}
		bare := bounded(t, d, raw)
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for _, mark := range []bool{true, false} {
				var b []byte
				if mark {
					b = order.AppendUint16(b, 0xfeff)
				}
				for _, c := range utf16.Encode([]rune(string(raw))) {
					b = order.AppendUint16(b, c)
				}
				same(t, bare, bounded(t, d, b))
			}
		}
	})
}

// Base64 of an object or a list is read as that, whichever alphabet.
func FuzzBase64(f *testing.F) {
	addParcels(f)
	d := framingDecoder(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t, d, raw)
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			got := bounded(t, d, []byte(enc.EncodeToString(raw)))
			// fewer than eight characters are a word, not base64
			if plainJSONText(raw) && json.Valid(raw) && len(raw) > 5 {
				same(t, bounded(t, d, raw), got)
			}
		}
	})
}

// Avro behind a known schema, by prefix and by header.
func FuzzConfluentAvro(f *testing.F) {
	good := avroBytes(f, parcelAvro, parcelCall())
	f.Add(byte(0), good)
	f.Add(byte(1), []byte{2, 2, 0, 0, 0, 0, 0, 0, 0})
	f.Add(byte(1), []byte{0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0}) // items of no bytes, two thousand million of them
	d := framingDecoder(f)
	f.Fuzz(func(t *testing.T, schema byte, payload []byte) {
		id := uint32(schema%2)*2 + 1
		prefixed := bounded(t, d, []byte(framed(id, payload)))
		if len(payload) > 0 {
			same(t, prefixed, bounded(t, d, payload, interaction.Header{Key: "__value_schema_id", Value: binary.BigEndian.AppendUint32([]byte{0}, id)}))
		}
	})
}

// Protobuf behind a known schema, whatever stands where the message's indexes should.
func FuzzConfluentProtobuf(f *testing.F) {
	_, message := protoCall(f)
	f.Add(append([]byte{4, 2, 0}, message...))
	f.Add(append([]byte{2, 1, 0}, message...))
	f.Add([]byte{0, 10, 1, 'a'})
	d := framingDecoder(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		bounded(t, d, []byte(framed(2, payload)))
	})
}

// Glue's frame, bare and deflated; what it deflates to is what stands there bare.
func FuzzGlue(f *testing.F) {
	f.Add(avroBytes(f, parcelAvro, parcelCall()))
	f.Add(bytes.Repeat([]byte{0}, 2*fuzzInflated))
	d := framingDecoder(f)
	frame := func(compression byte, rest []byte) []byte {
		return append(append([]byte{3, compression}, make([]byte, 16)...), rest...)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		bounded(t, d, frame(5, payload))
		var deflated bytes.Buffer
		z := zlib.NewWriter(&deflated)
		if _, err := z.Write(payload); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		bare := bounded(t, d, frame(0, payload))
		if len(payload) <= fuzzInflated {
			same(t, bare, bounded(t, d, frame(5, deflated.Bytes())))
		}
	})
}
