package decode

import (
	"slices"
	"time"
)

// note keeps a fact that other parts may ask for, for twice as long as a half waits. It
// holds no offset, and one that comes too late is missing.
func (r *record) note(key string, v value) {
	r.notes = append(r.notes, part{key: key, value: v})
}

// noted returns a fact, nil if none came.
func (e *element) noted(key string) value {
	if e.r.join == nil {
		return nil
	}
	return e.r.join.notes[key].value
}

// A note is a fact with the log time of the record that said it last.
type note struct {
	value  value
	at     time.Time
	serial uint64
}

// A noteRef is a note's place in the order of age. One with another serial than its note
// is out of date.
type noteRef struct {
	key    string
	serial uint64
}

func (j *Joiner) keepNote(n part, at time.Time) {
	old, known := j.notes[n.key]
	if known {
		j.bytes -= int64(len(old.value)) + partCost
	}
	j.serial++
	j.notes[n.key] = note{value: slices.Clone(n.value), at: at, serial: j.serial}
	j.noted = append(j.noted, noteRef{n.key, j.serial})
	j.bytes += int64(len(n.value)) + partCost
}

// isStale reports whether a note has been said again since, or too long ago.
func (j *Joiner) isStale(ref noteRef, now time.Time) bool {
	n := j.notes[ref.key]
	return n.serial != ref.serial || now.Sub(n.at) > 2*j.wait
}

func (j *Joiner) dropNote() {
	ref := j.noted[0]
	j.noted = j.noted[1:]
	if n := j.notes[ref.key]; n.serial == ref.serial {
		j.bytes -= int64(len(n.value)) + partCost
		delete(j.notes, ref.key)
	}
}
