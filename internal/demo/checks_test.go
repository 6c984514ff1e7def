package demo

import (
	"slices"
	"testing"

	"assay/internal/checks"

	"github.com/goccy/go-yaml"
)

func TestChecksFileFitsTheSimulatedTraffic(t *testing.T) {
	var file struct {
		Dimensions []string
		Slices     []map[string]string
		Sources    []struct {
			Topic  string
			Fields map[string]string
		}
		Judges map[string]struct{ Kind string }
		Checks []struct {
			Name, Evaluator, Judge string
			Coarse                 bool
			Sample                 struct{ Rate float64 }
			Alert                  struct{ Target, Tolerance float64 }
		}
	}
	if err := yaml.Unmarshal(Checks(), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Sources) != 1 || file.Sources[0].Topic != Topic {
		t.Errorf("sources %+v, want topic %s", file.Sources, Topic)
	}
	if len(file.Checks) != 2 || file.Checks[0].Name != CheckPolicy || file.Checks[1].Name != CheckFacts {
		t.Fatalf("checks %+v", file.Checks)
	}
	if k := file.Judges[file.Checks[0].Judge].Kind; k != "simulated" {
		t.Errorf("%s is judged by kind %q", CheckPolicy, k)
	}
	if k := file.Judges[file.Checks[1].Judge].Kind; k != "embedded" || !file.Checks[1].Coarse {
		t.Errorf("%s is judged by kind %q, coarse %t", CheckFacts, k, file.Checks[1].Coarse)
	}
	tally, all := tallied(t)
	for _, s := range file.Slices {
		if got := tally.Counts(s); got.Total() < 1000 {
			t.Errorf("declared slice %v has %d interactions", s, got.Total())
		}
		for name := range s {
			if !slices.Contains(file.Dimensions, name) {
				t.Errorf("declared slice %v: %s is no dimension", s, name)
			}
		}
	}
	judgeable := tally.Counts(nil).Judgeable()
	for _, c := range file.Checks {
		if n := c.Sample.Rate * float64(judgeable); n < 2000 {
			t.Errorf("%s judges %.0f of %d a day, want 2,000 at least", c.Name, n, len(all))
		}
	}
}

func TestChecksFileIsValid(t *testing.T) {
	file, err := checks.Parse("checks.yaml", Checks(), checks.AllowSimulated())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Checks {
		if c.Alert.Off || c.Alert.Target == 0 || c.Alert.Close == "manual" {
			t.Errorf("%s: alert %+v, want one with a target that closes itself", c.Name, c.Alert)
		}
	}
}

func TestChecksGivesEachCallerItsOwnCopy(t *testing.T) {
	Checks()[0] = 'X'
	if Checks()[0] == 'X' {
		t.Error("a caller changed the file for all others")
	}
}
