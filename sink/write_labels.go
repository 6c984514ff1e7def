package sink

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Label is one rater's answer about one interaction: a row of labels. The highest
// revision of a (check, interaction, question, rater) counts.
//
// A label without a check is a foreign score: something that a log says about an
// interaction and that no check asks. It is kept, and nothing is computed from it.
type Label struct {
	Check         string    // or empty: a foreign score
	Time          time.Time // the judged interaction's; 1970 while none is known
	InteractionID string
	Question      string // empty: the check's own; of a foreign score its name
	Rater         string
	Revision      uint64
	Deleted       bool
	Option        string
	Value         *float32 // the option's score
	Passed        *bool
	Pi2           float64 // of being labelled, once judged
	Origin        string  // sampled, volunteered or imported
	SliceID       uint64
	Slice         map[string]string
	Comment       string
	LabelledAt    time.Time
}

// sameAnswer reports whether two labels of one key say the same.
func (l Label) sameAnswer(o Label) bool {
	return l.Deleted == o.Deleted && l.Option == o.Option && l.Pi2 == o.Pi2 && l.Origin == o.Origin && l.Comment == o.Comment &&
		equalTo(l.Value, o.Value) && equalTo(l.Passed, o.Passed)
}

func equalTo[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// The longest texts of a label, in bytes.
const (
	MaxLabelID      = 1024
	MaxLabelRater   = 256
	MaxLabelComment = 8192
)

func labelsTable() table[Label] {
	type L = Label
	origins := set("sampled", "volunteered", "imported")
	return table[L]{
		name: "labels",
		columns: []column[L]{
			dictionary("check", func(r *L) string { return r.Check }),
			moment("ts", func(r *L) time.Time { return r.Time }),
			plain("interaction_id", "String", func(r *L) string { return r.InteractionID }),
			dictionary("question", func(r *L) string { return r.Question }),
			dictionary("rater", func(r *L) string { return r.Rater }),
			plain("revision", "UInt64", func(r *L) uint64 { return r.Revision }),
			plain("deleted", "UInt8", func(r *L) uint8 { return flag(r.Deleted) }),
			dictionary("option", func(r *L) string { return r.Option }),
			plain("value", "Nullable(Float32)", func(r *L) *float32 { return r.Value }),
			plain("passed", "Nullable(UInt8)", func(r *L) *uint8 { return bit(r.Passed) }),
			plain("pi2", "Float64", func(r *L) float64 { return r.Pi2 }),
			plain("origin", "Enum8('sampled' = 1, 'volunteered' = 2, 'imported' = 3)", func(r *L) string { return r.Origin }),
			plain("slice_id", "UInt64", func(r *L) uint64 { return r.SliceID }),
			dictionaryMap("slice", "Map(LowCardinality(String), String)", func(r *L) map[string]string { return r.Slice }),
			plain("comment", "String", func(r *L) string { return r.Comment }),
			moment("labelled_at", func(r *L) time.Time { return r.LabelledAt }),
		},
		validate: func(r *L) error {
			switch {
			case r.Check+r.Question == "" || r.InteractionID == "" || r.Rater == "":
				return errors.New("check, interaction id and rater must not be empty")
			case len(r.InteractionID) > MaxLabelID || len(r.Rater) > MaxLabelRater || len(r.Comment) > MaxLabelComment:
				return fmt.Errorf("interaction id, rater and comment of %d, %d and %d bytes: want at most %d, %d and %d",
					len(r.InteractionID), len(r.Rater), len(r.Comment), MaxLabelID, MaxLabelRater, MaxLabelComment)
			case !(r.Pi2 > 0 && r.Pi2 <= 1):
				return fmt.Errorf("pi2 %v: want above 0, at most 1", r.Pi2)
			case !r.Deleted && r.Passed == nil && r.Check != "":
				return errors.New("a label without a verdict")
			case r.Value != nil && (math.IsNaN(float64(*r.Value)) || math.IsInf(float64(*r.Value), 0)):
				return fmt.Errorf("value %v is not finite", *r.Value)
			}
			return errors.Join(oneOf("origin", r.Origin, origins), storable("time", r.Time), storable("labelling time", r.LabelledAt))
		},
		label: func(r *L) string {
			return fmt.Sprintf("label of check %s interaction %s rater %s", r.Check, r.InteractionID, r.Rater)
		},
	}
}

// A LabelChange is a label as somebody brings it: its time, slice and revision are
// found by WriteLabels. Of a removal only the key counts.
type LabelChange struct {
	Check         string
	Question      string // of a foreign score, without a check: its name
	InteractionID string
	Rater         string
	Option        string
	Value         *float32
	Passed        *bool
	Pi2           float64
	Origin        string
	Comment       string
	Removed       bool

	// Of a label that stands in a log: when it was said, and its place among all that the
	// log says. One that stands before what is stored already changes nothing, so a log may
	// be read again. Zero: the clock says both.
	At       time.Time
	Revision uint64
}

// What became of a LabelChange.
const (
	LabelStored    = "stored"
	LabelCorrected = "corrected" // it replaced another answer of the same rater
	LabelRemoved   = "removed"
	LabelUnchanged = "unchanged" // it was there already, or what was to be removed was not
)

// A LabelOutcome is what became of one LabelChange.
type LabelOutcome struct {
	Outcome string
	Waits   bool // its interaction has no judgement yet: it counts once it has one
}

// labelChunk bounds one lookup: over HTTP its ids travel, as hex and quoted, in one
// parameter of a request, of which a server takes 128 KiB (http_max_field_value_size).
const (
	labelChunk      = 1000
	labelChunkBytes = 32 << 10
)

// WriteLabels stores changes in their order, later ones over earlier ones, and says
// what became of each. Writing the same again changes nothing. After an error the
// changes before it may be stored; writing all of them again is right then.
func (db *DB) WriteLabels(ctx context.Context, changes []LabelChange, now time.Time) ([]LabelOutcome, error) {
	outcomes := make([]LabelOutcome, 0, len(changes))
	for len(changes) > 0 {
		n, bytes := 0, 0
		for n < len(changes) && n < labelChunk && (n == 0 || bytes+len(changes[n].InteractionID) <= labelChunkBytes) {
			bytes += len(changes[n].InteractionID)
			n++
		}
		part, err := db.writeLabels(ctx, changes[:n], now)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, part...)
		changes = changes[n:]
	}
	return outcomes, nil
}

func (db *DB) writeLabels(ctx context.Context, changes []LabelChange, now time.Time) ([]LabelOutcome, error) {
	ids := make([]string, len(changes))
	for i, c := range changes {
		ids[i] = c.InteractionID
	}
	type judged struct{ check, interaction string }
	places := make(map[judged]place)
	found, err := db.places(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		places[judged{p.check, p.interaction}] = p
	}
	have, err := db.labelsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	last, newest := newestLabels(have)
	outcomes := make([]LabelOutcome, len(changes))
	var rows []Label
	for i, c := range changes {
		l := c.label(now)
		key := l.key()
		placed, had := last[key]
		if p, ok := places[judged{c.Check, c.InteractionID}]; had && !placed.waits() {
			// where it is, even if the interaction was found in an earlier minute since
			l.Time, l.SliceID, l.Slice = placed.Time, placed.SliceID, placed.Slice
		} else if ok {
			l.Time, l.SliceID, l.Slice = p.ts, p.sliceID, p.slice
		}
		before := newest[key]
		if c.Revision > 0 && before.Revision > c.Revision {
			outcomes[i] = LabelOutcome{LabelUnchanged, placed.waits() && !before.Deleted}
			continue
		}
		l.Revision = max(l.Revision, before.Revision+1)
		outcomes[i].Waits = l.waits()
		switch stays := had && placed.waits() == l.waits(); {
		case !had && l.Deleted, had && stays && before.sameAnswer(l), had && before.Deleted && l.Deleted:
			outcomes[i] = LabelOutcome{LabelUnchanged, l.waits() && !l.Deleted}
			continue
		case l.Deleted:
			outcomes[i].Outcome, outcomes[i].Waits = LabelRemoved, false
		case !had || before.Deleted:
			outcomes[i].Outcome = LabelStored
		case before.sameAnswer(l):
			outcomes[i].Outcome = LabelUnchanged
		default:
			outcomes[i].Outcome = LabelCorrected
		}
		last[key], newest[key] = l, l
		rows = append(rows, l)
	}
	return outcomes, db.PutLabels(ctx, rows)
}

// newestLabels are the labels that count, by key: where each is, and what it says. A label
// may be there twice, waiting and at its place, until the monitor has moved it: the placed
// one says where, the newer one what. That a waiting one is removed says nothing then: the
// monitor did it.
func newestLabels(have []Label) (last, newest map[labelKey]Label) {
	last, newest = make(map[labelKey]Label), make(map[labelKey]Label)
	for _, l := range have {
		if !l.waits() {
			last[l.key()], newest[l.key()] = l, l
		}
	}
	for _, l := range have {
		switch placed, ok := last[l.key()]; {
		case !l.waits():
		case !ok:
			last[l.key()], newest[l.key()] = l, l
		case !l.Deleted && l.Revision > placed.Revision:
			newest[l.key()] = l
		}
	}
	return last, newest
}

// label is the change as a row without a place. Its revision is the time in
// milliseconds, so that two writers who do not see each other's rows agree mostly on
// which came later.
func (c LabelChange) label(now time.Time) Label {
	l := Label{Check: c.Check, Question: c.Question, Time: time.Unix(0, 0).UTC(), InteractionID: c.InteractionID, Rater: c.Rater,
		Revision: uint64(max(now.UnixMilli(), 1)), Deleted: c.Removed, Pi2: 1, Origin: "imported", LabelledAt: now.UTC()}
	if c.Revision > 0 {
		l.Revision, l.LabelledAt = c.Revision, c.At.UTC()
	}
	if c.Origin != "" {
		l.Origin = c.Origin
	}
	if c.Removed {
		return l
	}
	l.Option, l.Value, l.Passed, l.Pi2, l.Comment = c.Option, c.Value, c.Passed, c.Pi2, c.Comment
	return l
}

// PutLabels stores rows as they are.
func (db *DB) PutLabels(ctx context.Context, rows []Label) error {
	return put(ctx, db, labelsTable(), rows)
}

// placedAtOnce bounds how many labels one PlaceLabels moves.
const placedAtOnce = 10_000

// PlaceLabels moves labels that wait, written since labelled, to interactions that got
// a judgement since judged, and returns how many. The placed row is durable before the
// waiting one is removed, and keeps its revision: a crash between the two, or a
// second monitor, writes the same row again, and a correction that somebody wrote
// meanwhile stays the newer one.
func (db *DB) PlaceLabels(ctx context.Context, labelled, judged time.Time) (int, error) {
	moved := 0
	for {
		waiting, places, err := db.foundLabels(ctx, labelled, judged, placedAtOnce)
		if err != nil || len(waiting) == 0 {
			return moved, err
		}
		placed, gone := make([]Label, len(waiting)), make([]Label, len(waiting))
		for i, l := range waiting {
			gone[i] = l
			gone[i].Deleted = true
			gone[i].Revision++
			placed[i] = l
			placed[i].Time, placed[i].SliceID, placed[i].Slice = places[i].ts, places[i].sliceID, places[i].slice
		}
		if err := db.PutLabels(ctx, placed); err != nil {
			return moved, err
		}
		if err := db.PutLabels(ctx, gone); err != nil {
			return moved, err
		}
		if moved += len(waiting); len(waiting) < placedAtOnce {
			return moved, nil
		}
	}
}
