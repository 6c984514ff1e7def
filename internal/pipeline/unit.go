package pipeline

import (
	"strings"
	"sync"
	"sync/atomic"

	"assay/consumer"
	"assay/sink"
)

// unit is a record with rows on the way, or one that is held for another one. It is
// resolved when all of its rows are durable and nothing holds it, and never when one of
// them is not: the record is then read again.
//
// It outlives the judging by the time a batch takes, or by an outage of ClickHouse, so
// it holds neither the record's bytes, which would keep a whole fetch in memory, nor its
// interactions.
type unit struct {
	partition *partition
	offset    int64
	end       ending
	outcome   consumer.Outcome
	letter    sink.DeadLetter // the record's, should a row be refused
	dead      bool            // the letter is one already: something in the record was bad
	frees     []*unit         // held records that wait for this one's rows

	judging atomic.Int32 // judgements that still need the record's texts
	rows    atomic.Int32 // rows that are not durable yet
	waits   atomic.Int32 // for its rows, and to be freed
	failed  atomic.Bool

	mu      sync.Mutex // guards refused; nothing else is locked under it
	refused []string   // why rows can never be stored
}

// ending is what a unit needs of its consumer.Delivery.
type ending interface {
	Resolve(consumer.Outcome)
	Release()
	Hold()
}

// newUnit says what a record waits for, before any of it can end.
func newUnit(pt *partition, offset int64, letter sink.DeadLetter, t taken, dead, held bool) *unit {
	u := &unit{partition: pt, offset: offset, letter: letter, dead: dead, outcome: t.outcome, frees: t.frees}
	rows := 0
	for _, j := range t.jobs {
		rows += j.rows()
	}
	if rows > 0 {
		u.outcome = consumer.Durable
	}
	if len(t.labels) > 0 { // they end together
		rows++
		u.outcome = consumer.Durable
	}
	if dead {
		rows++
		if len(t.jobs) == 0 {
			u.outcome = consumer.DeadLettered
		}
	}
	u.judging.Store(int32(len(t.jobs)))
	u.rows.Store(int32(rows))
	u.waits.Store(1)
	if held {
		u.waits.Store(2)
	}
	return u
}

// durable ends the wait for the record's rows. Those that wait for them go first: whether
// this record is held for another one is nothing to them, or pairs that overlap would
// wait for one another for ever.
func (u *unit) durable() {
	for _, held := range u.frees {
		held.free()
	}
	if u.waits.Add(-1) == 0 {
		u.resolve()
		return
	}
	u.end.Hold()
}

// free ends the wait of a held record for others.
func (u *unit) free() {
	if u.waits.Add(-1) == 0 {
		u.resolve()
	}
}

// resolve lets the watermark pass, and only then tells the ledger.
func (u *unit) resolve() {
	u.end.Resolve(u.outcome)
	u.partition.ledger.Resolve(u.offset)
}

// judged gives the record's bytes back once nothing is read any more.
func (u *unit) judged() {
	if u.judging.Add(-1) == 0 {
		u.end.Release()
	}
}

// settle takes the end of one row: durable, or not.
func (u *unit) settle(err error) {
	if err != nil {
		u.failed.Store(true)
	}
	u.ended()
}

// refuse takes why a row can never be stored. The bare row in its place ends it.
func (u *unit) refuse(why string) {
	u.mu.Lock()
	u.refused = append(u.refused, why)
	u.mu.Unlock()
}

// ended resolves the record after its last row. Refused rows become one dead letter
// first: a record has one place in that table, so several would replace one another.
func (u *unit) ended() {
	if u.rows.Add(-1) != 0 || u.failed.Load() {
		return
	}
	letter, ok := u.refusal()
	if !ok {
		u.durable()
		return
	}
	u.outcome = consumer.DeadLettered
	u.rows.Store(1)
	// Not here: this is the sink's goroutine, which would have to make room for it.
	pt := u.partition
	pt.letters.put(func() { pt.addDeadLetter(pt.judging, u, letter) })
}

// refusal takes the refused rows as a dead letter, if there are any.
func (u *unit) refusal() (sink.DeadLetter, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.refused) == 0 {
		return sink.DeadLetter{}, false
	}
	letter := u.letter
	reasons := u.refused
	u.refused = nil
	if !u.dead {
		letter.Reason = reasonRowRejected
	} else { // this one will replace it
		reasons = append([]string{letter.Error}, reasons...)
	}
	letter.Error = cut(strings.Join(reasons, "; "), errorRunes)
	return letter, true
}
