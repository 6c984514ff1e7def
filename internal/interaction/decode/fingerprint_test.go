package decode

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheFingerprintChangesWithWhatChangesAReading(t *testing.T) {
	dir := t.TempDir()
	schema := filepath.Join(dir, "call.avsc")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(schema, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`"string"`)
	of := func(change func(*Config, *Source)) string {
		t.Helper()
		cfg := Defaults()
		s := Source{Topic: "t", Fields: map[string]string{"expected": "gold"}, SchemaRegistry: SchemaRegistry{
			Address: "http://registry.example", Password: "one", Files: map[string]string{"7": schema}}}
		change(&cfg, &s)
		d, err := New(cfg, []Source{{Topic: "another"}, s})
		if err != nil {
			t.Fatal(err)
		}
		return d.Fingerprint()
	}
	base := of(func(*Config, *Source) {})
	if len(base) != 16 {
		t.Errorf("fingerprint %q, want 16 digits", base)
	}
	f := func(name string, changes bool, change func(*Config, *Source)) {
		t.Helper()
		if got := of(change); (got != base) != changes {
			t.Errorf("%s: changed %t, want %t", name, got != base, changes)
		}
	}

	f("a limit", true, func(c *Config, _ *Source) { c.MaxTextRunes-- })
	f("the topic", true, func(_ *Config, s *Source) { s.Topic = "u" })
	f("the format", true, func(_ *Config, s *Source) { s.Format = "flat" })
	f("a field's path", true, func(_ *Config, s *Source) { s.Fields["expected"] = "silver" })
	f("the unit", true, func(_ *Config, s *Source) { s.Unit = "root" })
	f("results of tools", true, func(_ *Config, s *Source) { s.ToolResults = "ignore" })
	f("the turn", true, func(_ *Config, s *Source) { s.Turn = "transcript" })
	f("snapshots", true, func(_ *Config, s *Source) { s.Snapshots = "skip" })
	f("updates", true, func(_ *Config, s *Source) { s.Rejudge = true })
	f("the wait for a half", true, func(_ *Config, s *Source) { s.JoinWait = 1 })
	f("the registry's address", true, func(_ *Config, s *Source) { s.SchemaRegistry.Address = "http://other.example" })
	f("a schema's id", true, func(_ *Config, s *Source) { s.SchemaRegistry.Files = map[string]string{"8": schema} })

	f("nothing", false, func(*Config, *Source) {})
	f("a default written out", false, func(_ *Config, s *Source) {
		s.Format, s.Unit, s.ToolResults = "auto", "leaf", "context"
		s.Turn, s.Snapshots = "last_user", "judge"
	})
	f("secrets", false, func(_ *Config, s *Source) {
		s.SchemaRegistry.User, s.SchemaRegistry.Password, s.SchemaRegistry.Token = "u", "two", "three"
	})
	write(`"bytes"`)
	f("what a schema's file says", true, func(*Config, *Source) {})

	one, _ := New(Defaults(), []Source{{Topic: "a"}, {Topic: "b"}})
	two, _ := New(Defaults(), []Source{{Topic: "b"}, {Topic: "a"}})
	if one.Fingerprint() != two.Fingerprint() {
		t.Error("the order of the sources changes the fingerprint")
	}
}
