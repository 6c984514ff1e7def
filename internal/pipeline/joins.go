package pipeline

import (
	"slices"
	"time"

	"assay/consumer"
	"assay/internal/interaction/decode"
	"assay/sampler"
	"assay/sink"
)

// joins is what a partition knows about records that carry halves of interactions. It
// belongs to the partition loop alone.
//
// A record whose half waits is held: its offset stays unresolved until the record that
// brings the rest, or gives the half up, has its rows durable. The interaction is counted
// with that later record, so what the ledger says is a function of the log.
type joins struct {
	joiner *decode.Joiner
	units  map[int64]*unit // by offset of the records that are held
	queue  []heldSince     // in the order in which they were read, also some that are free
	told   decode.JoinCounts
}

// heldSince is when a record that is held was read.
type heldSince struct {
	offset int64
	since  time.Time
}

// minQueue is how many places in the queue are not worth looking through.
const minQueue = 1024

func newJoins(joiner *decode.Joiner) joins {
	return joins{joiner: joiner, units: make(map[int64]*unit)}
}

// hold keeps a record until its halves are settled.
func (j *joins) hold(offset int64, u *unit) {
	j.units[offset] = u
	if len(j.queue) > 2*len(j.units)+minQueue { // one that waits long keeps those behind it that are free
		j.queue = slices.DeleteFunc(j.queue, func(h heldSince) bool { return j.units[h.offset] == nil })
	}
	j.queue = append(j.queue, heldSince{offset, time.Now()})
}

// take returns the held records among those that wait for nothing any more. Others were
// resolved by an earlier owner or by the clock.
func (j *joins) take(released []int64) []*unit {
	var free []*unit
	for _, offset := range released {
		if u := j.units[offset]; u != nil {
			delete(j.units, offset)
			free = append(free, u)
		}
	}
	for len(j.queue) > 0 && j.units[j.queue[0].offset] == nil {
		j.queue = j.queue[1:]
	}
	return free
}

// overdue returns the held records that have waited too long by the wall clock.
func (j *joins) overdue(now time.Time) []*unit {
	var late []int64
	for _, h := range j.queue {
		if now.Sub(h.since) < j.joiner.Wait() {
			break
		}
		late = append(late, h.offset)
	}
	return j.take(late)
}

// CaughtUp lets go of the offsets of halves whose rest does not come. No record's time can
// tell that while the partition is silent, and a half whose own time is far ahead would
// wait for ever. Only the offset is let go: the half is still known, here and after a
// restart, and the next record decides what becomes of it. Counting it here would count
// it again with that record.
//
// It implements consumer.Partition. Behind a backlog it is not called: there the rest may
// only be unread.
func (pt *partition) CaughtUp(now time.Time) {
	for _, u := range pt.joins.overdue(now) {
		u.free()
	}
}

// markKept makes the ledger say that something of a record is kept for later ones: that
// is how a restart knows that it has to look for halves. Such a record has an interaction,
// or counts as one without.
func markKept(cells []sampler.Cell, logMinute int64) []sampler.Cell {
	found := false
	for i := range cells {
		if cells[i].Decision == "interaction" {
			cells[i].Reason, found = sink.ReasonKept, true
		}
	}
	if !found {
		cells = append(cells, sampler.Cell{Minute: logMinute, Decision: "no_interaction", Reason: sink.ReasonKept})
	}
	return cells
}

// countJoins exports what the joiner has done since the last call; of what an earlier
// owner has counted it only takes note.
func (pt *partition) countJoins(export bool) {
	now, before := pt.joins.joiner.Counts(), pt.joins.told
	pt.joins.told = now
	if !export || now == before {
		return
	}
	for _, c := range []struct {
		outcome string
		n       uint64
	}{{joinJoined, now.Joined - before.Joined}, {joinExpired, now.Expired - before.Expired},
		{joinEarly, now.Early - before.Early}, {joinLate, now.Late - before.Late}} {
		if c.n > 0 {
			pt.pipeline.metrics.joins.WithLabelValues(pt.topic, c.outcome).Add(float64(c.n))
		}
	}
}

// The outcomes of halves, as label values.
const (
	joinJoined  = "joined"  // whole, from several records
	joinExpired = "expired" // given up after join_wait
	joinEarly   = "early"   // given up before that, because a bound was reached
	joinLate    = "late"    // joined after it had been given up
)

func joinOutcomes() []string { return []string{joinJoined, joinExpired, joinEarly, joinLate} }

// finish settles a record that causes no rows.
func (t *taken) finish(end ending) {
	end.Resolve(t.outcome)
	for _, u := range t.frees {
		u.free()
	}
}

// taken is what has to be done about a record: a unit and its judgements, or nothing.
type taken struct {
	unit    *unit // nil: the record needs nothing
	jobs    []job
	labels  []sink.LabelChange
	outcome consumer.Outcome
	frees   []*unit // held records that wait for this one's rows
}
