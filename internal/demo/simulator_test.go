package demo

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestTheSameOptionsGiveTheSameBytes(t *testing.T) {
	opts := dayOptions()
	opts.Interactions = 2000
	bytesOf := func(o Options) []byte {
		var all bytes.Buffer
		for e := range simulate(t, o).Events() {
			all.Write(e.Record.Key)
			all.Write(e.Record.Value)
			all.WriteString(e.Record.Time.String())
		}
		return all.Bytes()
	}
	first := bytesOf(opts)
	if !bytes.Equal(first, bytesOf(opts)) {
		t.Error("a second simulator gave other bytes")
	}
	// the window in another zone is the same window
	zoned := opts
	zoned.Start = opts.Start.In(time.FixedZone("there", 3600))
	if !bytes.Equal(first, bytesOf(zoned)) {
		t.Error("the zone of the start changed the bytes")
	}
	other := opts
	other.Seed++
	if bytes.Equal(first, bytesOf(other)) {
		t.Error("another seed gave the same bytes")
	}
}

func TestWalksOverEventsAreIndependent(t *testing.T) {
	opts := dayOptions()
	opts.Interactions = 50
	s := simulate(t, opts)
	for e := range s.Events() {
		if len(e.Truths) > 0 {
			break // an unfinished walk must not move the next one
		}
	}
	if got := len(truths(s)); got != 50 {
		t.Errorf("%d interactions in the second walk, want 50", got)
	}
}

func TestEventsLieInTheWindowInOrder(t *testing.T) {
	opts := dayOptions()
	opts.Start = opts.Start.Add(123456 * time.Nanosecond)
	s := simulate(t, opts)
	last := time.Time{}
	lastOne := time.Time{}
	ids := map[string]bool{}
	n := 0
	for e := range s.Events() {
		at := e.Record.Time
		if at.Before(last) {
			t.Fatalf("%s comes after %s", at, last)
		}
		last = at
		for _, tr := range e.Truths {
			n++
			if tr.Time.Before(s.Options().Start) || !tr.Time.Before(opts.End) {
				t.Fatalf("%s at %s is outside the window", tr.ID, tr.Time)
			}
			if tr.Time.Before(lastOne) || tr.Time.After(at) {
				t.Fatalf("%s at %s: out of order, or after its record at %s", tr.ID, tr.Time, at)
			}
			lastOne = tr.Time
			if ids[tr.ID] {
				t.Fatalf("id %s is used twice", tr.ID)
			}
			ids[tr.ID] = true
		}
		if e.Record.Topic != Topic || len(e.Record.Key) == 0 {
			t.Fatalf("record of topic %q with key %q", e.Record.Topic, e.Record.Key)
		}
	}
	if n != opts.Interactions {
		t.Errorf("%d interactions, want %d", n, opts.Interactions)
	}
}

func TestTheDayIsBusyInItsMiddle(t *testing.T) {
	perHour := make([]int, 24)
	for _, tr := range truths(simulate(t, dayOptions())) {
		perHour[int(tr.Time.Sub(dayStart).Hours())]++
	}
	night, noon := perHour[0]+perHour[23], perHour[11]+perHour[12]
	if ratio := float64(noon) / float64(night); ratio < 3 || ratio > 5.5 {
		t.Errorf("the middle has %.1f times the load of the ends (%v), want about 4", ratio, perHour)
	}
}

// Every line of the table holds over a day, within bounds that a right simulator
// breaks once in some ten thousand lines.
func TestClassSharesAreThoseOfTheTable(t *testing.T) {
	s := simulate(t, dayOptions())
	table := s.Quality()
	if len(table) != 3 {
		t.Fatalf("table of %d lines: %+v", len(table), table)
	}
	got := make([]Counts, len(table))
	for _, tr := range truths(s) {
		for i, q := range table {
			if q.fits(tr.App, tr.PromptVersion, tr.Time.Sub(dayStart)) {
				got[i] = got[i].plus(one(tr.Class))
				break
			}
		}
	}
	for i, q := range table {
		n := float64(got[i].Judgeable())
		if n < 400 {
			t.Errorf("%+v fits %g answers only", q, n)
		}
		within := func(what string, k int, p float64) {
			if z := (float64(k) - n*p) / math.Sqrt(n*p*(1-p)); math.Abs(z) > 4 {
				t.Errorf("%s %s: %d of %g %s, want %.3f of them (z %.1f)", q.App, q.PromptVersion, k, n, what, p, z)
			}
		}
		within("good", got[i].Good, q.Good)
		within("partial", got[i].Partial, q.Partial)
		within("wrong", got[i].Wrong, q.Wrong)
	}
}

func TestTheDropIsInItsVersionAndHoursOnly(t *testing.T) {
	opts := dayOptions()
	all := truths(simulate(t, opts))
	rate := func(keep func(Truth) bool) float64 {
		var c Counts
		for _, tr := range all {
			if keep(tr) {
				c = c.plus(one(tr.Class))
			}
		}
		r, ok := c.Rate(CheckPolicy)
		if !ok || c.Judgeable() < 300 {
			t.Fatalf("only %d answers", c.Judgeable())
		}
		return r
	}
	during := func(tr Truth) bool {
		after := tr.Time.Sub(dayStart)
		return after >= opts.Drop.From && after < opts.Drop.To
	}
	is := func(app, version string) func(Truth) bool {
		return func(tr Truth) bool { return tr.App == app && tr.PromptVersion == version }
	}
	if r := rate(func(tr Truth) bool { return during(tr) && is("support", NewPrompt)(tr) }); r < 0.36 || r > 0.54 {
		t.Errorf("%.3f good in the drop, want about 0.45", r)
	}
	for _, healthy := range []func(Truth) bool{
		func(tr Truth) bool { return during(tr) && is("support", OldPrompt)(tr) },
		func(tr Truth) bool { return during(tr) && is("billing-bot", OldPrompt)(tr) },
		func(tr Truth) bool {
			return tr.Time.Sub(dayStart) < opts.Drop.From && is("support", NewPrompt)(tr)
		},
		func(tr Truth) bool {
			return tr.Time.Sub(dayStart) >= opts.Drop.To && is("support", NewPrompt)(tr)
		},
	} {
		if r := rate(healthy); r < 0.93 {
			t.Errorf("%.3f good outside the drop", r)
		}
	}
}

func TestTheNewVersionIsRolledOutGradually(t *testing.T) {
	share := func(all []Truth, from, to float64) float64 {
		newer, n := 0, 0
		for _, tr := range all {
			if h := tr.Time.Sub(dayStart).Hours(); tr.App == "support" && h >= from && h < to {
				n++
				if tr.PromptVersion == NewPrompt {
					newer++
				}
			}
		}
		return float64(newer) / float64(n)
	}
	all := truths(simulate(t, dayOptions()))
	f := func(from, to, low, high float64) {
		t.Helper()
		if got := share(all, from, to); got < low || got > high {
			t.Errorf("hours %g to %g: share %.3f of the new version, want %g to %g", from, to, got, low, high)
		}
	}
	f(0, 1, 0, 0)
	f(4, 5, 0.21, 0.35)
	f(8, 11, 0.45, 0.55)
	f(13, 24, 0.93, 0.97)
	for _, tr := range all {
		if tr.App == "billing-bot" && tr.PromptVersion != OldPrompt {
			t.Fatalf("%s of billing-bot has version %s", tr.ID, tr.PromptVersion)
		}
	}
}

func TestEveryAnswerIsGradedAsSimulated(t *testing.T) {
	s := simulate(t, dayOptions())
	for _, tr := range truths(s) {
		if tr.Class == None {
			if tr.Output != "" {
				t.Fatalf("%s has no class and the output %q", tr.ID, tr.Output)
			}
			continue
		}
		if got, ok := s.Bank().Grade(tr.Question, tr.Output); !ok || got != tr.Class {
			t.Fatalf("%s: %q graded %q %t, want %q", tr.ID, tr.Output, got, ok, tr.Class)
		}
	}
}

// Read as a stranger would: only by the JSON of the record.
func TestRecordsSayWhatIsTrueAboutThem(t *testing.T) {
	type pairs struct {
		ID, Timestamp string
		Request       struct {
			Messages []struct{ Role, Content string }
		}
		Response struct {
			Model   string
			Choices []struct {
				FinishReason string `json:"finish_reason"`
				Message      struct {
					Content   *string
					ToolCalls []any `json:"tool_calls"`
				}
			}
		}
		Time, Question, Answer, Model string
		Metadata                      map[string]string
	}
	seen := map[string]int{}
	check := func(p pairs, tr Truth) {
		t.Helper()
		question, output, at := p.Question, p.Answer, p.Time
		if p.Question == "" {
			last := p.Request.Messages[len(p.Request.Messages)-1]
			if last.Role != "user" {
				t.Fatalf("%s: the last turn is the %s's", tr.ID, last.Role)
			}
			if len(p.Request.Messages) > 2 {
				seen["history"]++
			}
			question, at = last.Content, p.Timestamp
			if c := p.Response.Choices[0]; c.Message.Content != nil {
				output = *c.Message.Content
			} else if len(c.Message.ToolCalls) == 1 && c.FinishReason == "tool_calls" {
				seen["tool call"]++
			} else {
				t.Fatalf("%s: no content and no tool call", tr.ID)
			}
			p.Model = p.Response.Model
			seen["pair"]++
		} else {
			seen["flat"]++
		}
		if output == "" {
			seen["no output"]++
		}
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil || !when.Equal(tr.Time) {
			t.Fatalf("%s: time %q (%v), want %s", tr.ID, at, err, tr.Time)
		}
		m := p.Metadata
		got := []string{p.ID, question, output, p.Model, m["app"], m["prompt_version"], m["tenant"], m["route"], m["reference"], m["criteria"]}
		want := []string{tr.ID, tr.Question, tr.Output, tr.Model, tr.App, tr.PromptVersion, tr.Tenant, tr.Route, tr.Reference, tr.Criteria}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%s: the record says %q, the truth is %q", tr.ID, got[i], want[i])
			}
		}
	}
	opts := dayOptions()
	for e := range simulate(t, opts).Events() {
		value := e.Record.Value
		switch {
		case len(e.Truths) == 0:
			seen["broken"]++
			var p pairs
			if err := json.Unmarshal(value, &p); err == nil && (p.Question != "" || len(p.Request.Messages) > 0) {
				t.Fatalf("a broken record can be read: %s", value)
			}
		case value[0] == '[':
			var many []pairs
			if err := json.Unmarshal(value, &many); err != nil || len(many) != len(e.Truths) {
				t.Fatalf("array of %d for %d truths: %v", len(many), len(e.Truths), err)
			}
			seen["array"]++
			for i := range many {
				check(many[i], e.Truths[i])
			}
		default:
			var p pairs
			if err := json.Unmarshal(value, &p); err != nil || len(e.Truths) != 1 {
				t.Fatalf("%d truths for %s: %v", len(e.Truths), value, err)
			}
			check(p, e.Truths[0])
		}
		if strings.Contains(string(value), `\u00`) {
			t.Fatalf("escaped for HTML: %s", value)
		}
	}
	if seen["broken"] != opts.Broken {
		t.Errorf("%d broken records, want %d", seen["broken"], opts.Broken)
	}
	for what, least := range map[string]int{"pair": 9000, "flat": 1000, "array": 150, "history": 900, "tool call": 80, "no output": 120} {
		if seen[what] < least {
			t.Errorf("%d with %s, want %d at least", seen[what], what, least)
		}
	}
}

func TestBadOptionsAreRefusedWithTheirReason(t *testing.T) {
	f := func(change func(*Options), want string) {
		t.Helper()
		o := dayOptions()
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f(func(o *Options) { o.End = o.Start }, "window")
	f(func(o *Options) { o.Interactions = 0 }, "interactions 0")
	f(func(o *Options) { o.Broken = -1 }, "broken records -1")
	f(func(o *Options) { o.Topic = "" }, "topic is empty")
	f(func(o *Options) { o.Apps = nil }, "no apps")
	f(func(o *Options) { o.Apps[0].Topics = []string{"weather"} }, `no topic "weather"`)
	f(func(o *Options) { o.Apps[0].Weight = math.NaN() }, "positive weight")
	f(func(o *Options) { o.Apps[1].Shares.Good = 0.5 }, "want a sum of 1")
	f(func(o *Options) { o.Drop.Loss = 0.99 }, "has 0.955 to lose")
	f(func(o *Options) { o.Rollout[2].Share = 1.5 }, "rollout point 2")
}

func TestWithoutALossThereIsNoDrop(t *testing.T) {
	o := dayOptions()
	o.Drop.Loss = 0
	for _, q := range simulate(t, o).Quality() {
		if q.Good < 0.94 {
			t.Errorf("%+v", q)
		}
	}
}
