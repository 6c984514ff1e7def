package decode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"assay/internal/interaction"
)

// Foreign bytes never panic, never give a text that is not UTF-8, never an interaction
// that is both judgeable and excused, and always the same answer.
func FuzzDecode(f *testing.F) {
	for _, path := range sidecars(f) {
		_, rec := load(f, path)
		if len(rec.Value) < 64<<10 {
			f.Add(rec.Value)
		}
	}
	d := newDecoder(f, Source{Topic: "t", Fields: map[string]string{"expected": "metadata.reference", "tenant": "header:x"}})
	f.Add([]byte(`{"op":"u","before":{"op":"u","before":` + parcel + `,"after":{"input":"a"}},"after":` + parcel + `}`))
	whole := newDecoder(f, Source{Topic: "t", Turn: transcript, Snapshots: "skip", Unit: "root", ToolResults: "ignore"})
	f.Fuzz(func(t *testing.T, raw []byte) {
		bounded(t, whole, raw)
		rec := interaction.Record{Topic: "t", Offset: 7, Time: at(), Value: raw}
		got := bounded(t, d, raw)
		if again := d.Decode(rec); !reflect.DeepEqual(got, again) {
			t.Fatalf("the same record gave\n%+v\nthen\n%+v", got, again)
		}
	})
}

// wellFormed checks what is true of every result.
func wellFormed(t *testing.T, got Result) {
	t.Helper()
	if len(got.Bad) > 0 && got.Bad[0].Reason == decoderPanic {
		t.Fatalf("panic: %s", got.Bad[0].Error)
	}
	if n := len(got.Interactions) + len(got.Scores) + len(got.Skips) + len(got.Bad); n == 0 {
		t.Fatal("the record ended as nothing")
	}
	if (got.Outcome == DeadLetter) != (len(got.Bad) > 0 && len(got.Interactions)+len(got.Scores)+len(got.Skips) == 0) {
		t.Fatalf("outcome %s with %d interactions, %d skips, %d bad", got.Outcome, len(got.Interactions), len(got.Skips), len(got.Bad))
	}
	for _, it := range got.Interactions {
		if it.Judgeable == (it.SkipReason != "") {
			t.Fatalf("judgeable %t with skip reason %q", it.Judgeable, it.SkipReason)
		}
		if it.Judgeable && (absentText(it.Input) || absentText(it.Output)) {
			t.Fatalf("judgeable without a text: %+v", it)
		}
		if it.ID == "" || len(it.ID) > maxIDBytes || it.Time.IsZero() || it.Status == "" {
			t.Fatalf("id %q, time %s, status %q", it.ID, it.Time, it.Status)
		}
		for _, s := range []*string{it.Input, it.Output, &it.ID, &it.App, &it.Model} {
			if s != nil && !utf8.ValidString(*s) {
				t.Fatalf("%q is no UTF-8", *s)
			}
		}
	}
}

// The scanner and the standard library agree on what is JSON, but for the bare words.
func FuzzScanAgreesWithTheStandardLibrary(f *testing.F) {
	for _, seed := range []string{`{}`, `[1,-0.5e+3,"a\u00e9\\"]`, `{"a":{"b":[null,true]}}`, `[1,]`, `{"a" 1}`, `01`, `-`, `"\ud800"`,
		"\"a\tb\"", `[[[[]]]]`, ` {"k" : "v" } `, `"1234567\"890"`, `tru`, `1.`, `{"a":1}}`} {
		f.Add([]byte(seed))
	}
	dir := filepath.Join(casesDir(f), "formats", "nasty")
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	for _, entry := range entries {
		if raw, err := os.ReadFile(filepath.Join(dir, entry.Name())); err == nil && len(raw) < 4096 {
			f.Add(raw)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if strings.Contains(string(raw), "NaN") || strings.Contains(string(raw), "Infinity") {
			return
		}
		end, _, err := scan(raw, 0, depthCap)
		if err == errTooDeep {
			return
		}
		ok := err == nil && skipSpace(raw, end) == len(raw)
		if want := json.Valid(raw); ok != want {
			t.Fatalf("scan(%q) = %t (%v), json.Valid = %t", raw, ok, err, want)
		}
		if !ok {
			return
		}
		// What the scanner passed, the walkers read as the library does.
		v := value(raw[skipSpace(raw, 0):end:end])
		if v.isString() {
			var want string
			if err := json.Unmarshal(v, &want); err != nil {
				t.Fatal(err)
			}
			if got, _ := v.text(); got != want {
				t.Fatalf("text of %q = %q, want %q", v, got, want)
			}
		}
		if v.isObject() {
			var want map[string]json.RawMessage
			if err := json.Unmarshal(v, &want); err != nil {
				t.Fatal(err)
			}
			n := 0
			for w := walk(v); w.next(); {
				n++
			}
			for name, inner := range want {
				if got := v.member(name); utf8.ValidString(name) && utf8.Valid(raw) && strings.TrimSpace(string(inner)) != string(got) {
					t.Fatalf("member %q = %q, want %q", name, got, inner)
				}
			}
			if n < len(want) {
				t.Fatalf("%d members, want at least %d", n, len(want))
			}
		}
	})
}
