package decode

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"assay/internal/interaction"
)

const parcel = `{"id":"p-1","input":"Where is my parcel?","output":"In Lyon."}`

// decodeWith reads a value with headers.
func decodeWith(d *Decoder, body string, headers ...interaction.Header) Result {
	return d.Decode(interaction.Record{Topic: "t", Offset: 7, Time: at(), Value: []byte(body), Headers: headers})
}

func zipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A user's pipeline wraps as it likes: what is inside is read the same.
func TestEnvelopesNestInAnyOrder(t *testing.T) {
	d := newDecoder(t)
	row := func(i int) string {
		return fmt.Sprintf(`{"schema":{},"payload":{"op":"c","after":{"id":"r-%d","input":"q%d","output":"a%d"}}}`, i, i, i)
	}
	batch := zipped(t, "["+row(0)+","+row(1)+"]")
	body := `{"specversion":"1.0","id":"e-1","time":"2026-05-04T11:00:00Z","data_base64":"` + base64.StdEncoding.EncodeToString([]byte(batch)) + `"}`
	res := decodeWith(d, body)
	if res.Outcome != Records || len(res.Interactions) != 2 || res.Format != flat {
		t.Fatalf("%+v", res)
	}
	for i, it := range res.Interactions {
		if it.ID != "r-"+strconv.Itoa(i) || deref(it.Input) != "q"+strconv.Itoa(i) || it.Element != i || !it.HasFlag("gunzipped") {
			t.Errorf("%d: %+v", i, it)
		}
		if it.Time.Hour() != 11 {
			t.Errorf("%d: time %s, want the event's", i, it.Time)
		}
	}
	if res.Envelope != "cloudevents+gzip+array" {
		t.Errorf("envelope %s", res.Envelope)
	}
}

// A flag of one row of change data must not mark its neighbour.
func TestFlagsOfOneRowAreItsOwn(t *testing.T) {
	d := newDecoder(t)
	res := decodeWith(d, `[{"op":"u","after":`+parcel+`},{"op":"c","after":`+parcel+`},{"op":"r","after":`+parcel+`},{"op":"d","before":`+parcel+`,"after":null}]`)
	if len(res.Interactions) != 3 || len(res.Skips) != 1 || res.Skips[0] != cdcDelete {
		t.Fatalf("%+v", res)
	}
	for i, want := range []string{"cdc_update", "", "cdc_snapshot"} {
		it := res.Interactions[i]
		if it.HasFlag("cdc_update") != (want == "cdc_update") || it.HasFlag("cdc_snapshot") != (want == "cdc_snapshot") {
			t.Errorf("row %d: flags %v, want %q", i, it.Flags, want)
		}
	}
}

func TestOneEventsElementsHaveIdsOfTheirOwn(t *testing.T) {
	d := newDecoder(t)
	res := decodeWith(d, `{"specversion":"1.0","id":"e-7","data":[{"input":"q","output":"a"},{"input":"q","output":"b"},{"id":"x","input":"q","output":"c"}]}`)
	var ids []string
	for _, it := range res.Interactions {
		ids = append(ids, it.ID)
	}
	if got := strings.Join(ids, " "); got != "e-7#0 e-7#1 x" {
		t.Errorf("ids %s", got)
	}
}

func TestCloudEventsInBinaryModeTakeIdAndTimeFromHeaders(t *testing.T) {
	d := newDecoder(t)
	headers := []interaction.Header{{Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_id", Value: []byte("e-1")}, {Key: "ce_time", Value: []byte("2026-05-04T10:30:00Z")}}
	it := decodeWith(d, `{"input":"q","output":"a"}`, headers...).Interactions[0]
	if it.ID != "e-1" || it.Time.Minute() != 30 || it.HasFlag("time_from:kafka") {
		t.Errorf("id %s, time %s, flags %v", it.ID, it.Time, it.Flags)
	}
	it = decodeWith(d, parcel, headers...).Interactions[0]
	if it.ID != "p-1" {
		t.Errorf("id %s: the data's own must win", it.ID)
	}
}

func TestEnvelopesAreBounded(t *testing.T) {
	d := newDecoder(t)
	deep := parcel
	for range maxLayers + 1 {
		deep = `{"schema":{},"payload":` + deep + `}`
	}
	if res := decodeWith(d, deep); res.Outcome != DeadLetter || res.Bad[0].Reason != unknownShape {
		t.Errorf("%d layers: %+v", maxLayers+1, res)
	}
	// Bombs in a row: each is below the bound, all together are not.
	cfg := Defaults()
	cfg.MaxInflated = 1 << 20
	small, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := `{"specversion":"1.0","data_base64":"` + base64.StdEncoding.EncodeToString([]byte(zipped(t, `{"input":"q","output":"`+strings.Repeat("a", 400<<10)+`"}`))) + `"}`
	res := decodeWith(small, "["+strings.Repeat(bomb+",", 9)+bomb+"]")
	if len(res.Interactions) != 2 || len(res.Bad) != 8 || res.Bad[0].Reason != inflatedTooBig {
		t.Errorf("%d interactions, bad %+v", len(res.Interactions), res.Bad)
	}
}

func TestElementsOfBatchesInsideARecordCountOn(t *testing.T) {
	cfg := Defaults()
	cfg.MaxElements = 3
	d, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	line := func(n int) string {
		return `{"messageType":"DATA_MESSAGE","logEvents":[` + strings.TrimSuffix(strings.Repeat(`{"message":`+strconv.Quote(`{"input":"q","output":"a"}`)+`},`, n), ",") + `]}`
	}
	res := decodeWith(d, "["+line(1)+","+line(2)+"]")
	for i, it := range res.Interactions {
		if it.Element != i || it.ID != fmt.Sprintf("t/0/7#%d", i) {
			t.Errorf("%d: element %d, id %s", i, it.Element, it.ID)
		}
	}
	if len(res.Interactions) != 3 {
		t.Errorf("%+v", res)
	}
	if res := decodeWith(d, "["+line(2)+","+line(2)+"]"); res.Outcome != DeadLetter || res.Bad[0].Reason != tooManyElements {
		t.Errorf("%+v", res)
	}
}

func TestALogGroupsOtherLinesAreBadElements(t *testing.T) {
	d := newDecoder(t)
	res := decodeWith(d, `{"messageType":"DATA_MESSAGE","logEvents":[{"message":"START RequestId"},{"message":`+strconv.Quote(parcel)+`}]}`)
	if res.Outcome != Partial || len(res.Interactions) != 1 || res.Interactions[0].Element != 1 || res.Bad[0].Element != 0 || res.Bad[0].Reason != notJSON {
		t.Errorf("%+v", res)
	}
}

// Extended JSON's wrappers are types, at any depth; a text that looks like one stays.
func TestExtendedJSONIsReadAsPlainJSON(t *testing.T) {
	d := newDecoder(t)
	doc := `{"_id":{"$oid":"65f2"},"input":"what is {\"$oid\"}?","output":"a type","input_tokens":{"$numberInt":"12"},"latency_ms":{"$numberDouble":"1.5"},` +
		`"metadata":{"n":{"$numberLong":"9007199254740993"}},"ts":{"$date":{"$numberLong":"1777888800000"}}}`
	res := decodeWith(d, `{"op":"c","after":`+strconv.Quote(doc)+`}`)
	if len(res.Interactions) != 1 {
		t.Fatalf("%+v", res)
	}
	it := res.Interactions[0]
	if it.ID != "65f2" || deref(it.Input) != `what is {"$oid"}?` || *it.InputTokens != 12 || *it.LatencyMS != 1.5 ||
		it.Attributes["n"] != "9007199254740993" || it.Time.UnixMilli() != 1777888800000 || !it.HasFlag("extended_json") {
		t.Errorf("%+v", it)
	}
}

// The format that a source names counts inside envelopes too.
func TestANamedFormatCountsInsideEnvelopes(t *testing.T) {
	d := newDecoder(t, Source{Topic: "t", Format: "cloudflare"})
	res := decodeWith(d, `{"schema":{},"payload":{"Gateway":"g","RequestBody":"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]}","ResponseBody":"{\"choices\":[{\"message\":{\"content\":\"a\"}}]}"}}`)
	if res.Format != "cloudflare" || len(res.Interactions) != 1 || res.Interactions[0].Route != "g" || !res.Interactions[0].Judgeable {
		t.Errorf("%+v", res)
	}
}

func TestRowsThatAreGoneOrNotThereAreSkipped(t *testing.T) {
	d := newDecoder(t)
	f := func(reason, body string) {
		t.Helper()
		if res := decodeWith(d, body); res.Outcome != Skip || res.Skips[0] != reason {
			t.Errorf("%s: %+v, want %s", body, res, reason)
		}
	}

	f(cdcDelete, `{"op":"d","before":`+parcel+`,"after":null}`)
	f(cdcDelete, `{"id":"p-1","input":"q","output":"a","__deleted":"true"}`)
	f(jsonNull, `{"op":"t","after":null}`)
	f(jsonNull, `{"op":"u","after":null,"updateDescription":{"updatedFields":"{}"}}`)
	if res := decodeWith(d, `{"id":"p-1","input":"q","output":"a","__deleted":"false"}`); len(res.Interactions) != 1 {
		t.Errorf("%+v", res)
	}
}
