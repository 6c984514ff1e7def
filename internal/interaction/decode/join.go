package decode

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"assay/internal/interaction"
)

// Some logs write a call in halves: its start in one record, its end in another; the
// question as one event, the answer as the next. A Joiner keeps what has come until the
// rest does, for one partition of one topic (a producer must key by what belongs
// together). It is bounded by time, by count and by bytes, and what it gives up becomes
// an interaction with the reason incomplete: never a bad answer, never nothing.
//
// # For the caller
//
// A partition's owner makes one Joiner with Decoder.NewJoiner, asks it in place of the
// Decoder, in the order of offsets and from one goroutine, and does two things more:
//
//	res := joiner.Decode(rec)
//	if res.Held > 0: keep rec's offset unresolved, on purpose (Delivery.Hold)
//	res.Released:    held offsets that wait for nothing any more. Resolve them once the
//	                 rows of rec's own interactions are durable, not before. Whether
//	                 rec itself is held does not matter: pairs that overlap would wait
//	                 for one another for ever.
//
// A record may be held and carry whole interactions: it is resolved when its own rows
// are durable and it was released. What was joined or given up is among the
// Interactions of the record that caused it and is counted with that record: what a
// record becomes is a function of the log up to it, and of no clock.
//
// Nothing of the Joiner is durable. The first half of a pair may lie below the
// committed offset, resolved long ago, and its second half above it; so a restart
// begins Reach before the record that stands before the first that counts, by the times
// of the log, and throws away what Decode says about the records in between. Then it
// finds the same. Where no record of that stretch was Kept there is nothing to find.
//
// On a partition that stays silent no record's time can tell that a half is too old.
// After Wait by the wall clock its owner may resolve the offset all the same: the half
// is still known here, a restart finds it again, and the next record decides about it.
//
// Decoder.Decode joins within its record only and gives up the rest at once.
//
// # For a family
//
// A family that reads halves declares a joint and calls record.part with a key and the
// part's JSON; facts that several interactions share (a trace's user) go through
// record.note and are asked for with element.noted, in any order within a record.
// Parts of one key come back to the joint in the order of the log.
type Joiner struct {
	d    *Decoder
	src  *source
	wait time.Duration

	byKey   map[string]*half
	waiting halfHeap // ends first on top
	past    []*half  // settled, the oldest first; kept to know a late part when it comes
	bytes   int64    // of all parts and notes
	serial  uint64   // of the newest half

	held map[int64]int // offset -> halves of that record that wait

	notes map[string]note
	noted []noteRef // the oldest first, also those that were said again since

	counts JoinCounts
}

// JoinCounts tell how often halves find each other.
type JoinCounts struct {
	Joined  uint64 // interactions whole, their parts from several records
	Expired uint64 // given up after the wait
	Early   uint64 // given up before it, because a bound was reached
	Late    uint64 // the rest came after that
	Waiting int    // now
}

// A joint is how one family's parts make an interaction.
type joint struct {
	format string
	whole  func(parts []value) bool        // nothing more is needed
	read   func(e *element, parts []value) // in the order of the log; whole or not
}

// half is what has come of one interaction.
type half struct {
	key     string
	joint   *joint
	parts   []value
	bytes   int64
	offsets []int64 // of the records it holds
	state   halfState
	touched bool // by the record that is being read

	// Of the last part, which is where an incomplete interaction stands.
	at      interaction.Position
	logTime time.Time
	around  around

	first  time.Time // log time of the first part; once settled, of the settling
	serial uint64    // order of arrival, among equal times
	place  int       // in the heap
}

type halfState uint8

const (
	halfWaits halfState = iota
	halfGivenUp
	halfWhole
)

// lateHalf is the reason of a part whose interaction is settled already.
const lateHalf = "late_half"

// incompleteHalf is why an interaction whose rest never came is not judged.
const incompleteHalf = "incomplete"

// partCost is what a part or note costs beside its bytes.
const partCost = 128

// NewJoiner starts a joiner of one partition of a topic.
func (d *Decoder) NewJoiner(topic string) *Joiner { return d.newJoiner(d.source(topic)) }

func (d *Decoder) newJoiner(src *source) *Joiner {
	return &Joiner{d: d, src: src, wait: cmp.Or(src.joinWait, defaultJoinWait),
		byKey: make(map[string]*half), held: make(map[int64]int), notes: make(map[string]note)}
}

// defaultJoinWait is how long a half waits, by the times of the log.
const defaultJoinWait = 10 * time.Minute

// Decode reads the partition's next record.
func (j *Joiner) Decode(rec interaction.Record) Result { return j.d.decode(rec, j.src, j) }

// Rest gives up all that waits: at the end of a log that nothing is added to.
func (j *Joiner) Rest() Result {
	r := &record{d: j.d, src: j.src, join: j, rec: interaction.Record{Offset: -1}}
	j.giveUpAll(r)
	return r.finish()
}

// giveUpAll gives up whatever waits.
func (j *Joiner) giveUpAll(r *record) {
	for len(j.waiting) > 0 {
		j.giveUp(r, j.waiting[0], &j.counts.Expired)
	}
	r.res.Held = 0
}

// Wait is how long a half waits for its rest.
func (j *Joiner) Wait() time.Duration { return j.wait }

// Idle reports that nothing is kept: a record without halves and facts for others does
// not change the Joiner, and may be read without it.
func (j *Joiner) Idle() bool { return len(j.byKey) == 0 && len(j.notes) == 0 }

// Reach is how far back in the log a restart begins, for the same interactions to come
// of what follows: a half waits once, its rest may come late for as long again; and a rest
// that has lost its first half must have gone through both itself before a record counts.
// An id that is used again and again over a longer time is no call's.
func (j *Joiner) Reach() time.Duration { return 4 * j.wait }

// Counts returns what the joiner has done so far.
func (j *Joiner) Counts() JoinCounts {
	c := j.counts
	c.Waiting = len(j.waiting)
	return c
}

// A part is one half that a record carries.
type part struct {
	joint   *joint
	key     string
	value   value
	element int
	around  around
}

// part adds a part of the interaction that the family knows by key.
func (r *record) part(j *joint, key string, v value) {
	r.parts = append(r.parts, part{joint: j, key: j.format + "\x00" + key, value: v, element: r.take(), around: r.around})
}

// settle takes in a record's parts and tells which interactions are whole.
func (j *Joiner) settle(r *record) {
	r.res.Kept = len(r.parts)+len(r.notes) > 0
	for len(j.waiting) > 0 && r.rec.Time.Sub(j.waiting[0].first) > j.wait {
		j.giveUp(r, j.waiting[0], &j.counts.Expired)
	}
	for len(j.past) > 0 && r.rec.Time.Sub(j.past[0].first) > j.wait {
		j.drop()
	}
	for len(j.noted) > 0 && j.isStale(j.noted[0], r.rec.Time) {
		j.dropNote()
	}
	for _, n := range r.notes {
		j.keepNote(n, r.rec.Time)
	}
	var touched []*half
	for _, p := range r.parts {
		h := j.byKey[p.key]
		if h == nil {
			h = j.open(r, p)
		}
		if h.state == halfWhole {
			r.res.Skips = append(r.res.Skips, lateHalf)
			continue
		}
		h.add(r, p)
		j.bytes += int64(len(p.value)) + partCost
		if !h.touched {
			h.touched = true
			touched = append(touched, h)
		}
	}
	for _, h := range touched {
		h.touched = false
		switch {
		case h.joint.whole(h.parts):
			j.complete(r, h)
		case h.state == halfGivenUp:
			r.res.Skips = append(r.res.Skips, lateHalf)
		default:
			h.offsets = append(h.offsets, r.rec.Offset)
			j.held[r.rec.Offset]++
		}
	}
	j.bound(r)
	r.res.Held = j.held[r.rec.Offset]
}

func (j *Joiner) open(r *record, p part) *half {
	j.serial++
	h := &half{key: p.key, joint: p.joint, first: r.rec.Time, serial: j.serial}
	j.byKey[p.key] = h
	heap.Push(&j.waiting, h)
	return h
}

// add keeps a part: a copy, since its bytes are the record's.
func (h *half) add(r *record, p part) {
	h.parts = append(h.parts, slices.Clone(p.value))
	h.bytes += int64(len(p.value)) + partCost
	h.at = interaction.Position{Topic: r.rec.Topic, Partition: r.rec.Partition, Offset: r.rec.Offset, Element: p.element}
	h.logTime, h.around = r.rec.Time, p.around
	h.around.event.time = slices.Clone(p.around.event.time)
}

// complete makes the interaction that is whole now.
func (j *Joiner) complete(r *record, h *half) {
	late := h.state == halfGivenUp
	joined := late || len(h.offsets) > 0
	j.read(r, h, func(e *element) {
		if joined {
			e.flag("joined")
		}
		if late {
			e.flag("late_join")
		}
	})
	if joined {
		j.counts.Joined++
	}
	if late {
		j.counts.Late++
	} else {
		heap.Remove(&j.waiting, h.place)
		j.past = append(j.past, h)
		h.first = r.rec.Time
	}
	j.release(r, h)
	j.bytes -= h.bytes
	h.state, h.parts, h.bytes = halfWhole, nil, 0
}

// giveUp makes an incomplete interaction of what waits. The parts are kept for as long
// again: the rest may still come.
func (j *Joiner) giveUp(r *record, h *half, count *uint64) {
	*count++
	j.read(r, h, func(e *element) { e.unfinished = true })
	heap.Remove(&j.waiting, h.place)
	j.past = append(j.past, h)
	// By the log's clock it was settled when its wait was over, however long after that
	// the next record came: else how far a restart must go back would depend on silences.
	if over := h.first.Add(j.wait); r.rec.Offset < 0 || r.rec.Time.After(over) {
		h.first = over
	} else {
		h.first = r.rec.Time
	}
	j.release(r, h)
	h.state = halfGivenUp
}

// read has the family make an interaction of the parts. A defect there must not cost
// the record whose turn it happens to be, nor the release of those that wait.
func (j *Joiner) read(r *record, h *half, mark func(*element)) {
	defer func() {
		if p := recover(); p != nil {
			r.bad(h.at.Element, decoderPanic, "%v", p)
		}
	}()
	own := &record{d: j.d, src: j.src, join: j, many: true, around: h.around,
		rec: interaction.Record{Topic: h.at.Topic, Partition: h.at.Partition, Offset: h.at.Offset, Time: h.logTime}}
	e := newElement(own, h.at.Element)
	mark(e)
	r.named(h.joint.format)
	h.joint.read(e, h.parts)
	for _, p := range h.parts {
		e.override(&object{raw: p})
	}
	if e.skipReason != "" {
		r.res.Skips = append(r.res.Skips, e.skipReason)
		return
	}
	r.res.Interactions = append(r.res.Interactions, e.finish())
}

// release lets go of the records that only this half held.
func (j *Joiner) release(r *record, h *half) {
	for _, offset := range h.offsets {
		if j.held[offset]--; j.held[offset] > 0 {
			continue
		}
		delete(j.held, offset)
		if offset != r.rec.Offset {
			r.res.Released = append(r.res.Released, offset)
		}
	}
	h.offsets = nil
}

// bound keeps the joiner within its limits: first it forgets what is settled, then it
// gives up what has waited longest.
func (j *Joiner) bound(r *record) {
	limit := &j.d.cfg
	over := func() bool { return j.bytes > int64(limit.MaxHeldBytes) }
	for len(j.past) > 0 && (len(j.past) > limit.MaxHeld || over()) {
		j.drop()
	}
	for len(j.noted) > 0 && (len(j.notes) > limit.MaxHeld || len(j.noted) > 2*limit.MaxHeld || over()) {
		j.dropNote()
	}
	for len(j.waiting) > 0 && (len(j.waiting) > limit.MaxHeld || over()) {
		j.giveUp(r, j.waiting[0], &j.counts.Early)
		for len(j.past) > 0 && over() {
			j.drop()
		}
	}
}

func (j *Joiner) drop() {
	h := j.past[0]
	j.past[0] = nil
	j.past = j.past[1:]
	j.bytes -= h.bytes
	delete(j.byKey, h.key)
}

// halfHeap has the half that waits longest, by the log, on top.
type halfHeap []*half

func (h halfHeap) Len() int { return len(h) }
func (h halfHeap) Less(a, b int) bool {
	if d := h[a].first.Compare(h[b].first); d != 0 {
		return d < 0
	}
	return h[a].serial < h[b].serial
}
func (h halfHeap) Swap(a, b int) {
	h[a], h[b] = h[b], h[a]
	h[a].place, h[b].place = a, b
}
func (h *halfHeap) Push(x any) {
	added := x.(*half)
	added.place = len(*h)
	*h = append(*h, added)
}
func (h *halfHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
