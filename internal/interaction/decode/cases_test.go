package decode

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/interaction"
)

// casesDir is the folder of the shared test banks.
func casesDir(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("ASSAY_CASES"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "..", "shared", "cases")
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}

// required are the flags that a case's sidecar must agree on beside the listed ones: we
// may add informative flags, never these.
func required(flag string) bool {
	for _, prefix := range []string{"id_derived", "time_from:", "time_no_zone", "input_truncated", "lossy_utf8",
		"images:", "choices:", "upstream_sampling:", "history_external", "error_sniffed"} {
		if strings.HasPrefix(flag, prefix) {
			return true
		}
	}
	return false
}

type sidecar struct {
	Case   string `json:"case"`
	Format string `json:"format"`
	File   string `json:"file"`
	Group  string `json:"group"`
	Kafka  struct {
		Topic       string            `json:"topic"`
		Partition   int               `json:"partition"`
		Offset      int64             `json:"offset"`
		TimestampMS int64             `json:"timestamp_ms"`
		Key         *string           `json:"key"`
		Headers     map[string]string `json:"headers"`
		Value       string            `json:"value"`
	} `json:"kafka"`
	Outcome string       `json:"outcome"`
	Reason  string       `json:"reason"`
	Records []wantRecord `json:"records"`
	Scores  []wantScore  `json:"scores"`
}

type wantScore struct {
	Name        string   `json:"name"`
	Value       *float64 `json:"value"`
	Label       string   `json:"label"`
	Explanation string   `json:"explanation"`
	TraceID     string   `json:"trace_id"`
	SpanID      string   `json:"span_id"`
	ResponseID  string   `json:"response_id"`
}

type wantRecord struct {
	ID            string             `json:"id"`
	Time          string             `json:"time"`
	Input         *string            `json:"input"`
	Output        *string            `json:"output"`
	OutputSHA256  string             `json:"output_sha256"`
	OutputBytes   int                `json:"output_bytes"`
	Expected      *string            `json:"expected"`
	Criteria      *string            `json:"criteria"`
	Context       []string           `json:"context"`
	Model         *string            `json:"model"`
	Route         *string            `json:"route"`
	PromptVersion *string            `json:"prompt_version"`
	SessionID     *string            `json:"session_id"`
	UserID        *string            `json:"user_id"`
	TraceID       *string            `json:"trace_id"`
	InputTokens   *float64           `json:"input_tokens"`
	OutputTokens  *float64           `json:"output_tokens"`
	LatencyMS     *float64           `json:"latency_ms"`
	Feedback      *wantFeedback      `json:"feedback"`
	Status        string             `json:"status"`
	Judgeable     bool               `json:"judgeable"`
	SkipReason    *string            `json:"skip_reason"`
	Flags         []string           `json:"flags"`
	Error         map[string]*string `json:"error"`
}

type wantFeedback struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// load reads a sidecar and the exact bytes beside it as a Kafka record.
func load(t testing.TB, want string) (sidecar, interaction.Record) {
	t.Helper()
	raw, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	var s sidecar
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	rec := interaction.Record{Topic: s.Kafka.Topic, Partition: s.Kafka.Partition, Offset: s.Kafka.Offset,
		Time: time.UnixMilli(s.Kafka.TimestampMS).UTC()}
	if s.Kafka.Key != nil {
		rec.Key = []byte(*s.Kafka.Key)
	}
	for k, v := range s.Kafka.Headers {
		value := []byte(v)
		if b64, ok := strings.CutPrefix(v, "base64:"); ok {
			if value, err = base64.StdEncoding.DecodeString(b64); err != nil {
				t.Fatalf("%s: header %s: %v", want, k, err)
			}
		}
		rec.Headers = append(rec.Headers, interaction.Header{Key: k, Value: value})
	}
	if s.Kafka.Value != "null" {
		if rec.Value, err = os.ReadFile(filepath.Join(filepath.Dir(want), s.File)); err != nil {
			t.Fatal(err)
		}
		if rec.Value == nil {
			rec.Value = []byte{}
		}
	}
	return s, rec
}

func sidecars(t testing.TB) []string {
	t.Helper()
	root := filepath.Join(casesDir(t), "formats")
	var all []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".want.json") {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no cases under %s", root)
	}
	return all
}

func newDecoder(t testing.TB, sources ...Source) *Decoder {
	t.Helper()
	d, err := New(Defaults(), sources)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// caseSchemas are the schemas that the binary cases were written with.
func caseSchemas(t testing.TB) SchemaRegistry {
	t.Helper()
	dir := filepath.Join(casesDir(t), "formats", "kafka_envelopes")
	avsc, proto := filepath.Join(dir, "schema_41.avsc"), filepath.Join(dir, "interaction.proto")
	return SchemaRegistry{Files: map[string]string{"41": avsc, "89791762-2336-4186-9674-299b90a802e2": avsc, "42": proto}}
}

func TestCasesFormats(t *testing.T) {
	d := newDecoder(t, Source{Topic: "llm-logs", SchemaRegistry: caseSchemas(t)})
	passed, total := 0, 0
	groups := map[string]*Joiner{} // a group's records come in order to one partition
	for _, path := range sidecars(t) {
		total++
		s, rec := load(t, path)
		name := filepath.Join(filepath.Base(filepath.Dir(path)), strings.TrimSuffix(filepath.Base(path), ".want.json"))
		var got Result
		if s.Format == "otel_genai_otlp_proto" && len(rec.Value) == 0 {
			// Nothing but its source says what an empty value is.
			got = newDecoder(t, Source{Topic: rec.Topic, Format: otlpProto}).Decode(rec)
		} else if s.Group == "" {
			got = d.Decode(rec)
		} else {
			if groups[s.Group] == nil {
				groups[s.Group] = d.NewJoiner(rec.Topic)
			}
			got = groups[s.Group].Decode(rec)
		}
		faults := compare(s, got)
		if len(faults) == 0 {
			passed++
		} else {
			t.Errorf("%s (%s):\n  %s", name, s.Case, strings.Join(faults, "\n  "))
		}
	}
	fmt.Printf("formats: %d of %d\n", passed, total)
}

func compare(s sidecar, got Result) []string {
	var faults []string
	f := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if string(got.Outcome) != s.Outcome {
		f("outcome %s (bad %+v, skips %v), want %s", got.Outcome, got.Bad, got.Skips, s.Outcome)
	}
	switch s.Outcome {
	case "skip":
		if reason := strings.ReplaceAll(s.Reason, " ", "_"); len(got.Skips) == 0 || got.Skips[0] != reason {
			f("skips %v, want %s", got.Skips, reason)
		}
	case "dead_letter":
		if reason := strings.ReplaceAll(s.Reason, " ", "_"); len(got.Bad) == 0 || got.Bad[0].Reason != reason {
			f("bad %+v, want %s", got.Bad, reason)
		}
	}
	if len(got.Scores) != len(s.Scores) {
		f("%d scores, want %d", len(got.Scores), len(s.Scores))
		return faults
	}
	for i, want := range s.Scores {
		score := got.Scores[i]
		if score.Name != want.Name || score.Label != want.Label || score.Comment != want.Explanation || score.TraceID != want.TraceID ||
			score.SpanID != want.SpanID || score.ResponseID != want.ResponseID || !reflect.DeepEqual(score.Value, want.Value) {
			f("score %d: %+v, want %+v", i, score, want)
		}
	}
	if len(got.Interactions) != len(s.Records) {
		f("%d interactions, want %d", len(got.Interactions), len(s.Records))
		return faults
	}
	for i, want := range s.Records {
		for _, fault := range differences(want, &got.Interactions[i]) {
			f("[%d] %s", i, fault)
		}
	}
	return faults
}

func differences(want wantRecord, got *interaction.Interaction) []string {
	var faults []string
	differ := func(field string, got, want any) {
		faults = append(faults, fmt.Sprintf("%s = %v, want %v", field, got, want))
	}
	text := func(field string, got, want *string) {
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			differ(field, show(got), show(want))
		}
	}
	str := func(field, got string, want *string) {
		if want == nil {
			want = new(string)
		}
		if got != *want {
			differ(field, got, *want)
		}
	}
	number := func(field string, got *int64, want *float64) {
		if (got == nil) != (want == nil) || got != nil && math.Abs(float64(*got)-*want) > 1e-9 {
			differ(field, got, want)
		}
	}
	str("id", got.ID, &want.ID)
	if at, err := time.Parse(time.RFC3339Nano, want.Time); err != nil || !at.Equal(got.Time) {
		differ("time", got.Time.Format(time.RFC3339Nano), want.Time)
	}
	text("input", got.Input, want.Input)
	if want.OutputSHA256 == "" {
		text("output", got.Output, want.Output)
	} else if got.Output == nil {
		differ("output", nil, want.OutputSHA256)
	} else if sum := sha256.Sum256([]byte(*got.Output)); hex.EncodeToString(sum[:]) != want.OutputSHA256 || len(*got.Output) != want.OutputBytes {
		differ("output", hex.EncodeToString(sum[:]), want.OutputSHA256)
	}
	var expected *string
	if len(got.Expected) > 0 {
		expected = &got.Expected[0]
	}
	text("expected", expected, want.Expected)
	text("criteria", got.Criteria, want.Criteria)
	if !slices.Equal(got.Context, want.Context) {
		differ("context", got.Context, want.Context)
	}
	str("model", got.Model, want.Model)
	route := got.App
	if route == "" {
		route = got.Route
	}
	str("route", route, want.Route)
	str("prompt_version", got.PromptVersion, want.PromptVersion)
	str("session_id", got.SessionID, want.SessionID)
	str("user_id", got.UserID, want.UserID)
	str("trace_id", got.TraceID, want.TraceID)
	number("input_tokens", got.InputTokens, want.InputTokens)
	number("output_tokens", got.OutputTokens, want.OutputTokens)
	if (got.LatencyMS == nil) != (want.LatencyMS == nil) || got.LatencyMS != nil && math.Abs(*got.LatencyMS-*want.LatencyMS) > 1e-9 {
		differ("latency_ms", got.LatencyMS, want.LatencyMS)
	}
	if (got.Feedback == nil) != (want.Feedback == nil) ||
		got.Feedback != nil && (got.Feedback.Name != want.Feedback.Name || math.Abs(got.Feedback.Value-want.Feedback.Value) > 1e-9) {
		differ("feedback", got.Feedback, want.Feedback)
	}
	str("status", string(got.Status), &want.Status)
	str("skip_reason", got.SkipReason, want.SkipReason)
	if got.Judgeable != want.Judgeable {
		differ("judgeable", got.Judgeable, want.Judgeable)
	}
	for _, flag := range want.Flags {
		if !got.HasFlag(flag) {
			differ("flags", got.Flags, want.Flags)
			break
		}
	}
	for _, flag := range got.Flags {
		if required(flag) && !slices.Contains(want.Flags, flag) {
			differ("required flag", flag, "not set")
		}
	}
	if want.Error != nil {
		provider := got.Error
		if provider == nil {
			provider = &interaction.ProviderError{}
		}
		str("error.code", provider.Code, want.Error["code"])
		str("error.type", provider.Type, want.Error["type"])
		str("error.message", provider.Message, want.Error["message"])
	}
	return faults
}

func show(s *string) string {
	if s == nil {
		return "absent"
	}
	return fmt.Sprintf("%.120q", *s)
}

// The index names every case once; a sidecar that is missing from it, or the other way
// round, would make the count above a lie.
func TestCasesFormatsIndexIsComplete(t *testing.T) {
	root := filepath.Join(casesDir(t), "formats")
	raw, err := os.ReadFile(filepath.Join(root, "index.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		var entry struct{ Want string }
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatal(err)
		}
		listed[filepath.Join(root, entry.Want)] = true
	}
	for _, path := range sidecars(t) {
		if !listed[path] {
			t.Errorf("%s is not in the index", path)
		}
		delete(listed, path)
	}
	for path := range listed {
		t.Errorf("%s is in the index only", path)
	}
}
