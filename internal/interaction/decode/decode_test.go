package decode

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/interaction"

	"github.com/prometheus/client_golang/prometheus"
)

func at() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

func decodeText(t testing.TB, d *Decoder, body string) Result {
	t.Helper()
	return d.Decode(interaction.Record{Topic: "t", Partition: 2, Offset: 41, Time: at(), Value: []byte(body)})
}

func one(t testing.TB, d *Decoder, body string) interaction.Interaction {
	t.Helper()
	r := decodeText(t, d, body)
	if len(r.Interactions) != 1 {
		t.Fatalf("%s\ngave %d interactions, skips %v, bad %+v", body, len(r.Interactions), r.Skips, r.Bad)
	}
	return r.Interactions[0]
}

func deref(s *string) string {
	if s == nil {
		return "<absent>"
	}
	return *s
}

func TestOverridesWinOverTheFamilysRules(t *testing.T) {
	d := newDecoder(t, Source{Topic: "t", Fields: map[string]string{
		"expected": "metadata.reference", "app": `request.headers["x.app"]`, "input": `turns[1].say`,
		"tenant": "header:tenant", "session_id": "key", "output": `deep.a\.b`, "attributes.tier": "metadata.plan.tier",
		"latency_ms": "metadata.took", "time": "metadata.at",
	}})
	r := d.Decode(interaction.Record{Topic: "t", Time: at(), Key: []byte(`k"1`),
		Headers: []interaction.Header{{Key: "tenant", Value: []byte("old")}, {Key: "tenant", Value: []byte("north")}},
		Value: []byte(`{"id":7,"input":"not this","output":"nor this","turns":[{"say":"a"},{"say":"b"}],"deep":"{\"a.b\":\"from a string\"}",
			"metadata":{"reference":["r1","r2"],"plan":{"tier":"gold"},"took":"2s","at":"2026-05-04T11:00:00Z"},"request":{"headers":{"x.app":"shop"}}}`)})
	if len(r.Interactions) != 1 {
		t.Fatalf("%+v", r)
	}
	it := r.Interactions[0]
	got := []string{it.ID, deref(it.Input), deref(it.Output), strings.Join(it.Expected, "|"), it.App, it.Tenant, it.SessionID,
		it.Attributes["tier"], fmt.Sprint(*it.LatencyMS), it.Time.Format(time.RFC3339), strings.Join(it.Flags, ",")}
	want := []string{"7", "b", "from a string", "r1|r2", "shop", "north", `k"1`, "gold", "2000", "2026-05-04T11:00:00Z", "coerced_numbers,expected_alternatives:2"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAnOverrideOfATextMakesAnyObjectReadable(t *testing.T) {
	d := newDecoder(t, Source{Topic: "t", Fields: map[string]string{"input": "q.text", "output": "a.text"}})
	it := one(t, d, `{"q":{"text":"why"},"a":{"text":"because"}}`)
	if deref(it.Input) != "why" || deref(it.Output) != "because" || !it.Judgeable {
		t.Errorf("%+v", it)
	}
}

func TestSourcesAreCheckedByName(t *testing.T) {
	f := func(s Source, want string) {
		t.Helper()
		_, err := New(Defaults(), []Source{s})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	f(Source{Topic: "t", Format: "csv"}, `no format "csv"`)
	f(Source{Topic: "t", Fields: map[string]string{"inputs": "a"}}, `no field "inputs"`)
	f(Source{Topic: "t", Fields: map[string]string{"input": "a..b"}}, "empty name")
	f(Source{Topic: "t", Fields: map[string]string{"input": "a[x]"}}, "want a number")
	f(Source{Topic: "t", Fields: map[string]string{"input": "a."}}, "ends with a dot")
	f(Source{Topic: "t", Fields: map[string]string{"input": "header:"}}, "names no header")
}

func TestFlatAliasesAreExactFirstThenCaseBlind(t *testing.T) {
	d := newDecoder(t)
	f := func(body, input, output string) {
		t.Helper()
		it := one(t, d, body)
		if deref(it.Input) != input || deref(it.Output) != output {
			t.Errorf("%s: %q, %q, want %q, %q", body, deref(it.Input), deref(it.Output), input, output)
		}
	}

	f(`{"Question":"q","ANSWER":"a"}`, "q", "a")
	f(`{"Input":"no","input":"q","output":"a"}`, "q", "a")
	// null is absent: the next name counts
	f(`{"input":null,"prompt":"q","output":null,"completion":"a"}`, "q", "a")
	f(`{"request":"q","response":"a"}`, "q", "a")
	f(`{"messages":[{"role":"user","content":"q"}],"output":"a"}`, "q", "a")
	f(`{"input":{"messages":[{"role":"user","content":"q"}]},"output":{"role":"assistant","content":"a"}}`, "q", "a")
	f(`{"input":"q","output":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "q", "a\nb")
	f(`{"input":"q","output":{"choices":[{"message":{"content":"a"}}]}}`, "q", "a")
}

func TestAnObjectThatNoFamilyKnowsIsADeadLetter(t *testing.T) {
	d := newDecoder(t)
	f := func(body, reason string) {
		t.Helper()
		r := decodeText(t, d, body)
		if r.Outcome != DeadLetter || r.Bad[0].Reason != reason {
			t.Errorf("%s: %s %+v, want %s", body, r.Outcome, r.Bad, reason)
		}
	}

	f(`{}`, unknownShape)
	f(`{"id":"1","model":"m","metadata":{"input":"q"}}`, unknownShape)
	// provider bodies of a provider nobody knows are not judged as raw JSON
	f(`{"request":{"contents":[{"parts":[]}]},"response":{"candidates":[]}}`, unknownShape)
	f(`[1,2,3]`, notAnObject)
	f(`12`, notJSON)
	f(`"prose"`, notJSON)
	f(`{"input":"q","output":"a"`, notJSON)
	f("\x00\x00\x00\x00\x07\x00abc", unknownSchemaID)
	f("\x1f\x8bgarbage", badGzip)
	f("\xff\xfe{", badUTF16)
}

func TestLimitsAreNamed(t *testing.T) {
	cfg := Defaults()
	cfg.MaxRecord, cfg.MaxInflated, cfg.MaxElements, cfg.MaxTextRunes, cfg.MaxMessages, cfg.MaxAttributes = 4<<10, 8<<10, 3, 100, 2, 2
	d, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	bad := func(body, reason string) {
		t.Helper()
		r := decodeText(t, d, body)
		if len(r.Bad) != 1 || r.Bad[0].Reason != reason || r.Outcome != DeadLetter {
			t.Errorf("%.40s: %+v, want %s", body, r.Bad, reason)
		}
	}
	flat := `{"input":"q","output":"a"}`
	bad(flat+strings.Repeat(" ", 5000), recordTooBig)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write([]byte(flat + strings.Repeat(" ", 9000)))
	w.Close()
	bad(z.String(), inflatedTooBig)
	bad("["+strings.Repeat(flat+",", 3)+flat+"]", tooManyElements)
	bad(strings.Repeat(flat+"\n", 4), tooManyElements)
	bad(strings.Repeat("[", 300), tooDeep)

	it := one(t, d, `{"output":"`+strings.Repeat("é", 150)+`","messages":[{"role":"user","content":"1"},{"role":"assistant","content":"2"},{"role":"user","content":"3"}],
		"metadata":{"a":1,"b":true,"c":"x","api_key":"k"}}`)
	if len([]rune(*it.Output)) != 100 || !it.HasFlag("output_cut") || len(it.Messages) != 2 || len(it.Attributes) != 2 {
		t.Errorf("%d runes, flags %v, %d messages, attributes %v", len([]rune(*it.Output)), it.Flags, len(it.Messages), it.Attributes)
	}
}

// A record of lists that never close would be scanned from every line to its end.
func TestBrokenNestedLinesCostABoundedNumberOfScans(t *testing.T) {
	body := `{"input":"q","output":"a"}` + "\n" + strings.Repeat("[\n", 200) + strings.Repeat("1,", 10_000)
	r := decodeText(t, newDecoder(t), body)
	if r.Outcome != Partial || len(r.Interactions) != 1 || len(r.Bad) > 6 || r.Bad[0].Reason != notJSON {
		t.Fatalf("%s: %d interactions, %d bad, want the good line and at most 6 scans of the rest", r.Outcome, len(r.Interactions), len(r.Bad))
	}
}

func TestSecretsAreNeverKept(t *testing.T) {
	it := one(t, newDecoder(t), `{"input":"q","output":"a","Authorization":"s","x-api-key":"s","session_token":"s","cached_tokens":5,"tier":"gold",
		"metadata":{"password":"s","Cookie":"s","team":"blue"}}`)
	got, _ := json.Marshal(it.Attributes)
	if string(got) != `{"cached_tokens":"5","team":"blue","tier":"gold"}` {
		t.Errorf("attributes %s", got)
	}
}

func TestDamagedTextIsReplacedAndFlagged(t *testing.T) {
	d := newDecoder(t)
	f := func(body, output string, lossy bool) {
		t.Helper()
		it := one(t, d, body)
		if deref(it.Output) != output || it.HasFlag("lossy_utf8") != lossy {
			t.Errorf("%q: %q %v", body, deref(it.Output), it.Flags)
		}
	}

	f("{\"input\":\"q\",\"output\":\"caf\xe9 x\"}", "caf\ufffd x", true)
	f(`{"input":"q","output":"a\ud83dz"}`, "a\ufffdz", true)
	f(`{"input":"q","output":"a\ude00z"}`, "a\ufffdz", true)
	f(`{"input":"q","output":"a\ud83d\ude00z"}`, "a😀z", false)
	f(`{"input":"q","output":"a\u0000\"b"}`, "a\x00\"b", false)
}

func TestTimesAreReadInManyForms(t *testing.T) {
	d := newDecoder(t)
	f := func(raw, want, flags string) {
		t.Helper()
		it := one(t, d, `{"id":"1","input":"q","output":"a","time":`+raw+`}`)
		if got := it.Time.Format(time.RFC3339Nano); got != want || strings.Join(it.Flags, ",") != flags {
			t.Errorf("%s: %s %v, want %s %s", raw, got, it.Flags, want, flags)
		}
	}

	f(`1777888800.123456789`, "2026-05-04T10:00:00.123456789Z", "")
	f(`"1777888800123"`, "2026-05-04T10:00:00.123Z", "")
	f(`1.7778888e9`, "2026-05-04T10:00:00Z", "")
	f(`"2026-05-04T12:00:00.5+02:00"`, "2026-05-04T10:00:00.5Z", "")
	f(`"2026-05-04 12:00:00 +0200"`, "2026-05-04T10:00:00Z", "")
	f(`"2026-05-04 10:00:00 UTC"`, "2026-05-04T10:00:00Z", "")
	f(`"Mon, 04 May 2026 10:00:00 GMT"`, "2026-05-04T10:00:00Z", "")
	f(`"2026-05-04T09:59:60Z"`, "2026-05-04T10:00:00Z", "")
	f(`"2026-05-04 10:00"`, "2026-05-04T10:00:00Z", "time_no_zone")
	f(`"soon"`, "2026-05-04T12:00:00Z", "time_from:kafka")
	f(`{"$date":1777888800123}`, "2026-05-04T10:00:00.123Z", "")
	f(`0`, "2026-05-04T12:00:00Z", "time_from:kafka,time_out_of_range")
	f(`1e300`, "2026-05-04T12:00:00Z", "time_from:kafka")
	f(`9999999999999999999999`, "2026-05-04T12:00:00Z", "time_from:kafka,time_out_of_range")
	f(`"2026-05-05T12:00:01Z"`, "2026-05-04T12:00:00Z", "time_from:kafka,time_out_of_range")
	f(`"2026-05-05T12:00:00Z"`, "2026-05-05T12:00:00Z", "")
}

func TestChatLogsOfManyShapes(t *testing.T) {
	d := newDecoder(t)
	f := func(body, input, output string, status interaction.Status, reason, flags string) {
		t.Helper()
		it := one(t, d, body)
		if deref(it.Input) != input || deref(it.Output) != output || it.Status != status || it.SkipReason != reason || strings.Join(it.Flags, ",") != flags {
			t.Errorf("%s\n  got  %q %q %s %q %v\n  want %q %q %s %q %s", body, deref(it.Input), deref(it.Output), it.Status, it.SkipReason, it.Flags,
				input, output, status, reason, flags)
		}
	}
	pair := func(response string) string {
		return `{"id":"1","time":"2026-05-04T10:00:00Z","request":{"messages":[{"role":"user","content":[{"type":"text","text":"q1"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"q2"}]}]},"response":` + response + `}`
	}

	f(pair(`{"choices":[{"message":{"content":"a"},"finish_reason":"length"},{"message":{"content":"b"}}]}`),
		"q1\nq2", "a", interaction.Truncated, "", "choices:2,images:1")
	f(pair(`{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}`),
		"q1\nq2", "no", interaction.Refusal, "", "images:1")
	f(pair(`{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}`),
		"q1\nq2", "a", interaction.Filtered, contentFilter, "images:1")
	f(pair(`{"error":{"code":"content_filter","message":"no","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`),
		"q1\nq2", "<absent>", interaction.Filtered, contentFilter, "images:1")
	f(pair(`{"choices":[{"message":{"content":""},"finish_reason":"length"}]}`),
		"q1\nq2", "", interaction.Empty, emptyOutput, "images:1")
	f(pair(`{"choices":[{"message":{"content":"[REDACTED]"}}]}`),
		"q1\nq2", "<absent>", interaction.Redacted, redactedText, "images:1")
	f(pair(`"plain words"`), "q1\nq2", "plain words", interaction.OK, "", "images:1")
	f(pair(`"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\ndata: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"x\"}},{\"index\":0,\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"`),
		"q1\nq2", "ab", interaction.OK, "", "sse_reassembled,choices:2,images:1")
	f(pair(`"data: {\"error\":{\"message\":\"boom\"}}\n\n"`), "q1\nq2", "<absent>", interaction.Errored, providerError, "sse_reassembled,images:1")
	f(`{"id":"1","time":"2026-05-04T10:00:00Z","req":{"prompt":"q"},"resp":{"object":"text_completion","choices":[{"text":"a","finish_reason":"stop"}]}}`,
		"q", "a", interaction.OK, "", "")
	f(`{"id":"1","time":"2026-05-04T10:00:00Z","messages":[{"role":"user","content":"q"}],"response":{"choices":[{"message":{"content":"a"}}]}}`,
		"q", "a", interaction.OK, "", "")
	f(`{"id":"1","time":"2026-05-04T10:00:00Z","messages":[{"role":"user","content":"q"}]}`,
		"q", "<absent>", interaction.NoContent, noOutput, "")
	f(`{"id":"1","time":"2026-05-04T10:00:00Z","request":{"messages":[]},"response":{"choices":[]},"status":"failure"}`,
		"<absent>", "<absent>", interaction.Errored, providerError, "")
}

func TestJudgeTrafficIsSkippedWhereverTheMarkStands(t *testing.T) {
	d := newDecoder(t)
	for _, body := range []string{
		`{"input":"q","output":"a","app":"evaluator"}`,
		`{"input":"q","output":"a","metadata":{"purpose":"llm_judge"}}`,
		`{"request":{"messages":[{"role":"user","content":"q"}],"metadata":{"purpose":"llm_judge"}},"response":{"choices":[]}}`,
		`{"request":"{\"messages\":[],\"metadata\":{\"purpose\":\"llm_judge\"}}","response":"a"}`,
	} {
		r := decodeText(t, d, body)
		if r.Outcome != Skip || len(r.Skips) != 1 || r.Skips[0] != judgeTraffic {
			t.Errorf("%s: %+v", body, r)
		}
	}
}

func TestIDsStayShortAndApart(t *testing.T) {
	d := newDecoder(t)
	a := one(t, d, `{"input":"q","output":"a","id":"`+strings.Repeat("é", 400)+`"}`)
	b := one(t, d, `{"input":"q","output":"a","id":"`+strings.Repeat("é", 400)+`x"}`)
	if len(a.ID) != 505 || a.ID == b.ID || a.ID[:440] != b.ID[:440] {
		t.Errorf("%d bytes, same %t", len(a.ID), a.ID == b.ID)
	}
	if n := one(t, d, `{"input":"q","output":"a","id":12345678901234567890123}`); n.ID != "12345678901234567890123" {
		t.Errorf("id %s", n.ID)
	}
}

func TestRecordsAreCountedByOutcome(t *testing.T) {
	d := newDecoder(t)
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg, []Source{{Topic: "t"}})
	for _, body := range []string{`{"input":"q","output":"a"}`, `[{"input":"q","output":"a"},1]`, `[{"messages":[]},{"input":"q","output":"a"}]`, `x`} {
		m.Count("t", decodeText(t, d, body))
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "assay_decode_records_total" {
		t.Fatalf("%v %v", families, err)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		var labels []string
		for _, l := range metric.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		got[strings.Join(labels, " ")] = metric.GetCounter().GetValue()
	}
	want := map[string]float64{
		"envelope=array format=flat outcome=partial source=t":       1,
		"envelope=array format=mixed outcome=records source=t":      1,
		"envelope=none format=flat outcome=records source=t":        1,
		"envelope=none format=unknown outcome=dead_letter source=t": 1,
		"envelope=none format=unknown outcome=partial source=t":     0,
		"envelope=none format=unknown outcome=records source=t":     0,
		"envelope=none format=unknown outcome=score source=t":       0,
		"envelope=none format=unknown outcome=skip source=t":        0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestConfigReportsEveryFaultByItsVariable(t *testing.T) {
	cfg := Defaults()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg.MaxDepth, cfg.MaxElements = 0, 1<<20
	err := cfg.Validate()
	for _, name := range []string{"ASSAY_DECODE_MAX_DEPTH=0", "ASSAY_DECODE_MAX_ELEMENTS=1048576"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// Kafka's buffers are used again: a text that still pointed into one would change under
// a judge's eyes.
func TestNothingDecodedPointsIntoTheRecord(t *testing.T) {
	d := newDecoder(t, Source{Topic: "t", Fields: map[string]string{"tenant": "header:h", "session_id": "key"}})
	for _, path := range sidecars(t) {
		_, rec := load(t, path)
		rec.Topic = "t"
		rec.Key, rec.Headers = []byte("k-1"), append(rec.Headers, interaction.Header{Key: "h", Value: []byte("v-1")})
		res := d.Decode(rec)
		before := fmt.Sprintf("%+v", dump(t, res))
		for _, b := range [][]byte{rec.Value, rec.Key, rec.Headers[len(rec.Headers)-1].Value} {
			for i := range b {
				b[i] = 'Z'
			}
		}
		if after := fmt.Sprintf("%+v", dump(t, res)); after != before {
			t.Errorf("%s: changed with the record's bytes:\n%s\n%s", path, before, after)
		}
	}
}

func dump(t *testing.T, res Result) string {
	t.Helper()
	out, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestADecoderServesManyAtOnce(t *testing.T) {
	d := newDecoder(t, Source{Topic: "t", Fields: map[string]string{"tenant": "metadata.region", "user_id": "metadata.nothing"}})
	rec := interaction.Record{Topic: "t", Time: at(), Value: chatLog()}
	want := dump(t, d.Decode(rec))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 250 {
				if got := dump(t, d.Decode(rec)); got != want {
					t.Errorf("got %s", got)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := d.Unmatched("t"); fmt.Sprint(got) != "[user_id]" {
		t.Errorf("unmatched overrides %v, want user_id", got)
	}
	if got := d.Unmatched("other"); got != nil {
		t.Errorf("unmatched overrides of an unknown topic: %v", got)
	}
}

func TestEnvelopesAreNamedInOrderAndBounded(t *testing.T) {
	zip := func(b string) string {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write([]byte(b))
		w.Close()
		return z.String()
	}
	d := newDecoder(t)
	f := func(body, want string) {
		t.Helper()
		if r := decodeText(t, d, body); r.Envelope != want || r.Outcome != Records {
			t.Errorf("envelope %s, outcome %s, want %s", r.Envelope, r.Outcome, want)
		}
	}
	flat := `{"input":"q","output":"a"}`
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }

	f(flat, "none")
	f("["+flat+"]", "array")
	f(flat+flat, "lines")
	f(zip(zip("["+flat+"]")), "gzip+array")
	f(zip(base64.StdEncoding.EncodeToString([]byte("["+flat+"]"))), "gzip+base64+array")
	f(quote(quote(flat)), "string")
}

func chatLog() []byte {
	prose := strings.Repeat("The parcel left the warehouse on Tuesday and reaches you within three days. ", 8)
	return []byte(`{"id":"log-1","timestamp":"2026-05-04T10:00:00.5Z","app":"parcels","session_id":"s-9","user_id":"u-4","prompt_version":"3","latency_ms":1200,` +
		`"metadata":{"tier":"gold","region":"north"},"request":{"model":"m-1","messages":[{"role":"system","content":"You answer about parcels. ` + prose + `"},` +
		`{"role":"user","content":"Where is it?"},{"role":"assistant","content":"Which one?"},{"role":"user","content":"The blue one. ` + prose[:300] + `"}],"temperature":0},` +
		`"response":{"id":"c-1","object":"chat.completion","created":1777888800,"model":"m-1-2026","choices":[{"index":0,"message":{"role":"assistant","content":"` + prose[:400] + `"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":310,"completion_tokens":80,"total_tokens":390}}}`)
}

func BenchmarkDecodeChatLog2KB(b *testing.B) {
	d := newDecoder(b)
	rec := interaction.Record{Topic: "t", Time: at(), Value: chatLog()}
	if r := d.Decode(rec); len(r.Interactions) != 1 || !r.Interactions[0].Judgeable {
		b.Fatalf("%+v", r)
	}
	b.SetBytes(int64(len(rec.Value)))
	b.ReportAllocs()
	for b.Loop() {
		d.Decode(rec)
	}
}
