package demo

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dayStart is a day that has nothing special about it.
var dayStart = time.Date(2026, 3, 10, 17, 20, 0, 0, time.UTC)

func dayOptions() Options { return DefaultOptions(dayStart, dayStart.Add(24*time.Hour)) }

func simulate(t *testing.T, opts Options) *Simulator {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func bank(t *testing.T) *Bank {
	t.Helper()
	b, err := LoadBank()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func truths(s *Simulator) []Truth {
	var all []Truth
	for e := range s.Events() {
		all = append(all, e.Truths...)
	}
	return all
}
