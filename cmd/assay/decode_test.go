package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// decodeFiles runs `assay decode` on files with these contents.
func decodeFiles(t *testing.T, asJSON bool, o decodeOptions, environ []string, contents ...string) (string, error) {
	t.Helper()
	var paths []string
	for i, text := range contents {
		path := filepath.Join(t.TempDir(), string(rune('a'+i))+".json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	var out bytes.Buffer
	a := &app{environ: environ, out: &out, err: &out, json: asJSON}
	err := a.decode(t.Context(), paths, o)
	return out.String(), err
}

func messages(t *testing.T, out string) []decodedMessage {
	t.Helper()
	var all []decodedMessage
	for line := range strings.Lines(out) {
		var m decodedMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, m)
	}
	return all
}

func TestDecodeShowsWhatAMessageIsReadAs(t *testing.T) {
	out, err := decodeFiles(t, false, decodeOptions{fields: map[string]string{"expected": "gold.text"}}, nil,
		`[{"input":"Where is it?","output":"In Lyon.\nToday.","gold":{"text":"Lyon"}},{"input":"q","output":null}]`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a.json: records, read as flat in array", `In Lyon.\nToday.`, `["Lyon"]`, "no_output", "(absent)"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestDecodeOfLinesIsOneMessageALine(t *testing.T) {
	out, err := decodeFiles(t, true, decodeOptions{lines: true}, nil, "{\"input\":\"q\",\"output\":\"a\"}\n\nnot json\n{\"input\":\"q\",\"output\":\"b\"}")
	if err == nil || !strings.Contains(err.Error(), "1 of 3 messages") {
		t.Errorf("error %v", err)
	}
	all := messages(t, out)
	if len(all) != 3 || all[0].Records[0].ID != "file/0/0" || all[2].Records[0].ID != "file/0/2" ||
		len(all[1].Bad) != 1 || all[1].Bad[0].Reason != "not_json" || !strings.HasSuffix(all[1].Message, "a.json:3") {
		t.Errorf("%+v", all)
	}
}

// Messages come as from one partition: halves find each other, and what never becomes
// whole is shown as that.
func TestDecodeJoinsHalvesAndShowsWhatWaits(t *testing.T) {
	event := func(kind, id, more string) string {
		return `{"batch":[{"id":"e","type":"` + kind + `","body":{"id":"` + id + `","startTime":"2026-05-04T10:00:00Z",` + more + `}}]}`
	}
	out, err := decodeFiles(t, true, decodeOptions{}, nil, event("generation-create", "g", `"input":"q"`), event("generation-create", "lost", `"input":"q"`),
		event("generation-update", "g", `"output":"a","endTime":"2026-05-04T10:00:01Z"`))
	if err != nil {
		t.Fatal(err)
	}
	all := messages(t, out)
	if len(all) != 4 || all[0].Held != 1 || all[2].Records[0].ID != "g" || !all[2].Records[0].Judgeable ||
		all[3].Message != "end of input" || all[3].Records[0].ID != "lost" || all[3].Records[0].SkipReason != "incomplete" {
		t.Errorf("%+v", all)
	}
}

func TestDecodeReadsAsASourceOfTheChecksFileDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "assay.yaml")
	text := `version: 1
sources: [{ topic: calls, format: flat, fields: { output: reply.text } }]
judges: { m: { kind: embedded } }
checks: [{ name: c, evaluator: factuality, coarse: true, reference: { field: expected }, judge: m, sample: { rate: 1 }, pass: [agree] }]
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"ASSAY_CHECKS=" + path}
	body := `{"input":"q","reply":{"text":"a"}}`
	out, err := decodeFiles(t, true, decodeOptions{source: "calls"}, environ, body)
	if err != nil {
		t.Fatal(err)
	}
	if r := messages(t, out)[0].Records[0]; r.Output == nil || *r.Output != "a" || r.ID != "calls/0/0" {
		t.Errorf("%+v", r)
	}
	if _, err := decodeFiles(t, true, decodeOptions{source: "call"}, environ, body); err == nil || !strings.Contains(err.Error(), "has no such topic") {
		t.Errorf("error %v", err)
	}
}

func TestDecodeTakesHeadersAsBytes(t *testing.T) {
	out, err := decodeFiles(t, true, decodeOptions{headers: map[string]string{"ce_id": "base64:ZS0x"}}, nil, `{"input":"q","output":"a"}`)
	if err != nil {
		t.Fatal(err)
	}
	if m := messages(t, out)[0]; m.Records[0].ID != "e-1" || m.Envelope != "cloudevents" {
		t.Errorf("%+v", m)
	}
	if _, err := decodeFiles(t, true, decodeOptions{headers: map[string]string{"x": "base64:*"}}, nil, "{}"); err == nil {
		t.Error("a header that is no base64 was taken")
	}
	if _, err := decodeFiles(t, true, decodeOptions{format: "csv"}, nil, "{}"); err == nil || !strings.Contains(err.Error(), `no format "csv"`) {
		t.Errorf("error %v", err)
	}
}
