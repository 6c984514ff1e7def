package demo

import (
	"reflect"
	"testing"

	"assay/internal/interaction"
	"assay/internal/interaction/decode"

	"github.com/goccy/go-yaml"
)

// What the product reads from the simulated log, with the sources of checks.yaml, is
// what the simulator meant.
func TestTheDecoderReadsTheTruthBack(t *testing.T) {
	var file struct {
		Sources []struct {
			Topic, Format string
			Fields        map[string]string
		}
	}
	if err := yaml.Unmarshal(Checks(), &file); err != nil {
		t.Fatal(err)
	}
	src := file.Sources[0]
	d, err := decode.New(decode.Defaults(), []decode.Source{{Topic: src.Topic, Format: src.Format, Fields: src.Fields}})
	if err != nil {
		t.Fatal(err)
	}
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	seen := map[string]int{}
	offset := int64(0)
	for e := range simulate(t, dayOptions()).Events() {
		e.Record.Offset = offset
		offset++
		res := d.Decode(e.Record)
		if len(e.Truths) == 0 {
			if len(res.Interactions) > 0 || len(res.Bad) != 1 {
				t.Fatalf("a broken record became %+v", res)
			}
			seen[res.Bad[0].Reason]++
			continue
		}
		if len(res.Interactions) != len(e.Truths) || len(res.Bad) > 0 || len(res.Skips) > 0 {
			t.Fatalf("%d truths became %+v: %s", len(e.Truths), res, e.Record.Value)
		}
		for i, it := range res.Interactions {
			tr := e.Truths[i]
			got := Truth{
				ID: it.ID, Time: it.Time, ItemID: tr.ItemID, Class: tr.Class, App: it.App, Model: it.Model,
				PromptVersion: it.PromptVersion, Tenant: it.Tenant, Route: it.Route,
				Question: text(it.Input), Criteria: text(it.Criteria), Output: text(it.Output),
			}
			if len(it.Expected) == 1 {
				got.Reference = it.Expected[0]
			}
			if !reflect.DeepEqual(got, tr) {
				t.Fatalf("decoded\n%+v\nwant\n%+v\nfrom %s", got, tr, e.Record.Value)
			}
			if it.Judgeable != (tr.Class != None) {
				t.Fatalf("%s of class %s: judgeable %t", tr.ID, tr.Class, it.Judgeable)
			}
			if it.Environment != "demo" || it.SessionID == "" || it.LatencyMS == nil || it.InputTokens == nil {
				t.Fatalf("fields are missing from %+v", it)
			}
			if it.Status != interaction.OK {
				seen[it.SkipReason]++
			}
		}
	}
	for reason, want := range map[string]int{"not_json": 6, "unknown_shape": 2} {
		if seen[reason] != want {
			t.Errorf("%d dead letters for %s, want %d (%v)", seen[reason], reason, want, seen)
		}
	}
	for reason, least := range map[string]int{"tool_call_only": 80, "empty_output": 20} {
		if seen[reason] < least {
			t.Errorf("%d not judgeable for %s, want %d at least (%v)", seen[reason], reason, least, seen)
		}
	}
}
