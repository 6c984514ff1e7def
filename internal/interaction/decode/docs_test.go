package decode

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay/internal/interaction"
)

// example is one fenced block of docs/formats.md: its info string and its text.
type example struct{ info, text string }

func formatsPage(t *testing.T) (page string, examples []example) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "formats.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)\n```$").FindAllStringSubmatch(string(raw), -1) {
		examples = append(examples, example{m[1], m[2]})
	}
	return string(raw), examples
}

// Every example of the page is read as the page says: by its family or out of its
// envelope, with the question and the answer that all of them carry.
func TestThePagesExamplesAreReadAsItSays(t *testing.T) {
	_, examples := formatsPage(t)
	schemas := SchemaRegistry{Files: map[string]string{}}
	for _, ex := range examples {
		if id, ok := strings.CutPrefix(ex.info, "avsc "); ok {
			path := filepath.Join(t.TempDir(), id+".avsc")
			if err := os.WriteFile(path, []byte(ex.text), 0o600); err != nil {
				t.Fatal(err)
			}
			schemas.Files[id] = path
		}
	}
	d := newDecoder(t, Source{Topic: "t", SchemaRegistry: schemas})
	seen := map[string]bool{}
	for _, ex := range examples {
		words := strings.Fields(ex.info)
		if len(words) < 2 || words[0] != "json" && words[0] != "base64" {
			continue
		}
		value := []byte(ex.text)
		if words[0] == "base64" {
			var err error
			if value, err = base64.StdEncoding.DecodeString(ex.text); err != nil {
				t.Fatalf("%s: %v", ex.info, err)
			}
		}
		res := d.Decode(interaction.Record{Topic: "t", Offset: 7, Time: at(), Value: value})
		if res.Outcome != Records || len(res.Interactions) != 1 {
			t.Errorf("%s: %+v", ex.info, res)
			continue
		}
		name := words[1]
		if name == "envelope" {
			name = words[2]
			if !strings.HasPrefix(res.Envelope, name) {
				t.Errorf("%s: envelope %s", ex.info, res.Envelope)
			}
		} else if res.Format != name {
			t.Errorf("%s: read as %s", ex.info, res.Format)
		}
		seen[name] = true
		it := res.Interactions[0]
		if slices.Contains(words, "no_content") {
			if it.SkipReason != noContent {
				t.Errorf("%s: %+v", ex.info, it)
			}
			continue
		}
		if deref(it.Input) != "Where is my parcel?" || deref(it.Output) != "In Lyon." || !it.Judgeable {
			t.Errorf("%s: input %q, output %q, %s", ex.info, deref(it.Input), deref(it.Output), it.SkipReason)
		}
	}
	for _, name := range Formats() {
		if name != auto && !seen[name] {
			t.Errorf("no example of %s", name)
		}
	}
	for _, env := range envelopes() {
		if !seen[env.name] {
			t.Errorf("no example of the envelope %s", env.name)
		}
	}
}

// The page has a row for each format and envelope, and names each reason.
func TestThePageNamesAllFormatsAndReasons(t *testing.T) {
	page, _ := formatsPage(t)
	for _, name := range Formats() {
		if name != auto && !strings.Contains(page, "\n| `"+name+"` | ") {
			t.Errorf("no row for %s", name)
		}
	}
	for _, env := range envelopes() {
		if !strings.Contains(page, "\n| `"+env.name+"` | ") {
			t.Errorf("no row for the envelope %s", env.name)
		}
	}
	for _, reason := range append(Reasons(), tombstone, emptyValue, emptyBatch, jsonNull, streamFragment, judgeTraffic, cdcDelete, cdcUpdate, cdcSnapshot, controlMessage, notText, lateHalf,
		toolCallOnly, contentFilter, providerError, emptyOutput, noChoices, streamIncomplete, redactedText, noOutput, noInput, noContent,
		contentExternal, encryptedText, incompleteHalf) {
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("the reason %s is not named", reason)
		}
	}
}
