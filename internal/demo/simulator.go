package demo

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"assay/internal/interaction"
)

// Simulator produces the traffic of an invented shop's assistants. It is immutable
// and safe for concurrent use: every walk over Events gives the same bytes.
type Simulator struct {
	opts  Options
	bank  *Bank
	table []Quality
	apps  []appItems
	run   string // prefix of every id, so that two windows do not share ids
}

type appItems struct {
	App
	items []Item
}

// Event is one record of the log and what is true about it.
type Event struct {
	Record interaction.Record // to be produced as it is: to the partition of its key
	Truths []Truth            // one for each interaction in the record, in order; none if it is broken
}

// Truth is what is known about one logged interaction.
type Truth struct {
	ID            string
	Time          time.Time
	ItemID        string
	Class         Class
	App           string
	Model         string
	PromptVersion string
	Tenant        string
	Route         string
	Question      string
	Reference     string
	Criteria      string
	Output        string // blank for the class none
}

// Of all interactions these shares are not judgeable.
const (
	toolCallShare = 0.012
	emptyShare    = 0.004
)

// Of all records these shares are not the usual request and response.
const (
	arrayShare = 0.02 // 2 to 4 interactions in one record
	flatShare  = 0.12
)

// followUpShare of the conversations have an earlier turn.
const followUpShare = 0.12

// New checks the options and prepares the traffic.
func New(opts Options) (*Simulator, error) {
	bank, err := LoadBank()
	if err != nil {
		return nil, err
	}
	if err := opts.Validate(bank); err != nil {
		return nil, fmt.Errorf("simulator: %w", err)
	}
	// Logs carry milliseconds; a window that does too keeps every event inside.
	opts.Start = opts.Start.UTC().Truncate(time.Millisecond)
	opts.End = opts.End.UTC().Truncate(time.Millisecond)
	s := &Simulator{
		opts:  opts,
		bank:  bank,
		table: opts.quality(),
		run:   fmt.Sprintf("%s-%02x", opts.Start.Format("060102150405"), opts.Seed),
	}
	for _, a := range opts.Apps {
		entry := appItems{App: a}
		for _, it := range bank.items {
			if slices.Contains(a.Topics, it.Topic) {
				entry.items = append(entry.items, it)
			}
		}
		s.apps = append(s.apps, entry)
	}
	return s, nil
}

// Options returns the options in force.
func (s *Simulator) Options() Options { return s.opts }

// Bank returns the question bank behind the traffic.
func (s *Simulator) Bank() *Bank { return s.bank }

// Quality returns the table of class probabilities by app, version and time.
func (s *Simulator) Quality() []Quality { return slices.Clone(s.table) }

// Events iterates over the records in the order of their times.
func (s *Simulator) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		times := s.times()
		broken := 0
		for i := 0; i < len(times); {
			// Broken records are spread evenly, between the interactions.
			for broken < s.opts.Broken && i >= (2*broken+1)*len(times)/(2*s.opts.Broken) {
				if !yield(s.brokenEvent(broken, times[i])) {
					return
				}
				broken++
			}
			rng := s.rng(recordStream, uint64(i))
			form, n := envelope, 1
			switch u := rng.Float64(); {
			case u < arrayShare:
				form, n = array, min(2+rng.IntN(3), len(times)-i)
			case u < arrayShare+flatShare:
				form = flat
			}
			logged := make([]logged, n)
			for k := range logged {
				logged[k] = s.interaction(i+k, times[i+k], form)
			}
			if !yield(s.event(form, logged)) {
				return
			}
			i += n
		}
	}
}

// Independent streams of random numbers, so that a change of one part of the
// simulation leaves the others as they were.
const (
	timeStream uint64 = iota + 1
	recordStream
	interactionStream
)

func (s *Simulator) rng(stream, index uint64) *rand.Rand {
	var key [32]byte
	for i, word := range []uint64{s.opts.Seed, stream, index, 0x6173736179} {
		binary.LittleEndian.PutUint64(key[8*i:], word)
	}
	return rand.New(rand.NewChaCha8(key))
}

// dayDepth is how far the load swings around its mean: at noon it is four times that
// of midnight. The curve belongs to the window, not to the clock, so that the demo
// shows the same day whenever it is started.
const dayDepth = 0.6

// times draws the interactions' times: given their number, those of a Poisson process
// whose rate follows the day.
func (s *Simulator) times() []time.Time {
	rng := s.rng(timeStream, 0)
	length := s.opts.End.Sub(s.opts.Start)
	offsets := make([]time.Duration, s.opts.Interactions)
	for i := range offsets {
		for {
			x := rng.Float64()
			if rng.Float64()*(1+dayDepth) < 1-dayDepth*math.Cos(2*math.Pi*x) {
				offsets[i] = time.Duration(x * float64(length)).Truncate(time.Millisecond)
				break
			}
		}
	}
	slices.Sort(offsets)
	times := make([]time.Time, len(offsets))
	for i, d := range offsets {
		times[i] = s.opts.Start.Add(d)
	}
	return times
}

// logged is an interaction with what only its log line shows.
type logged struct {
	Truth
	Session   string
	History   []turn
	ToolCall  bool
	LatencyMS int
}

type turn struct{ question, answer string }

func (s *Simulator) interaction(index int, at time.Time, form form) logged {
	rng := s.rng(interactionStream, uint64(index))
	after := at.Sub(s.opts.Start)
	app := s.pickApp(rng)
	item := app.items[rng.IntN(len(app.items))]
	l := logged{
		Truth: Truth{
			ID:            fmt.Sprintf("%s-%06d", s.run, index),
			Time:          at,
			ItemID:        item.ID,
			App:           app.Name,
			Model:         pickModel(rng, app.Models),
			PromptVersion: OldPrompt,
			Tenant:        pickTenant(rng),
			Route:         item.Topic,
			Question:      pick(rng, item.Questions),
			Reference:     item.Reference,
			Criteria:      item.Criteria,
		},
		Session:   fmt.Sprintf("chat-%s-%06d", s.run, index),
		LatencyMS: 350 + int(900*rng.ExpFloat64()),
	}
	if newer := rng.Float64() < s.opts.newShare(after); newer && !app.Stays {
		l.PromptVersion = NewPrompt
	}
	l.Class = s.shares(l.App, l.PromptVersion, after).class(rng.Float64())
	l.Output = dress(rng, pick(rng, item.Answers(l.Class)))
	if rng.Float64() < followUpShare {
		earlier := app.items[rng.IntN(len(app.items))]
		l.History = []turn{{pick(rng, earlier.Questions), pick(rng, earlier.Good)}}
	}
	switch u := rng.Float64(); {
	case u < emptyShare:
		l.Class, l.Output = None, ""
	case u < emptyShare+toolCallShare && form != flat: // a flat record has no place for a call
		l.Class, l.Output, l.ToolCall = None, "", true
	}
	return l
}

func (s *Simulator) shares(app, version string, after time.Duration) Shares {
	for _, q := range s.table {
		if q.fits(app, version, after) {
			return q.Shares
		}
	}
	return Shares{Good: 1}
}

func (s *Simulator) pickApp(rng *rand.Rand) appItems {
	var sum float64
	for _, a := range s.apps {
		sum += a.Weight
	}
	u := rng.Float64() * sum
	for _, a := range s.apps {
		if u < a.Weight {
			return a
		}
		u -= a.Weight
	}
	return s.apps[len(s.apps)-1]
}

func pick(rng *rand.Rand, texts []string) string { return texts[rng.IntN(len(texts))] }

func pickModel(rng *rand.Rand, models []string) string {
	return models[max(0, rng.IntN(len(models)+2)-2)]
}

// pickTenant draws a brand of the shop; they are of very different sizes.
func pickTenant(rng *rand.Rand) string {
	switch u := rng.Float64(); {
	case u < 0.55:
		return "tansy-uk"
	case u < 0.80:
		return "tansy-de"
	case u < 0.94:
		return "tansy-dk"
	}
	return "tansy-studio"
}
