package pipeline

import (
	"strings"
	"sync"
	"sync/atomic"

	"assay/consumer"
	"assay/sink"
)

// unit is a record with rows on the way. It is resolved when all of them are durable,
// and never when one of them is not: the record is then read again.
//
// It outlives the judging by the time a batch takes, or by an outage of ClickHouse, so
// it holds neither the record's bytes, which would keep a whole fetch in memory, nor its
// interactions.
type unit struct {
	partition *partition
	end       ending
	outcome   consumer.Outcome
	letter    sink.DeadLetter // the record's, should a row be refused
	dead      bool            // the letter is one already: something in the record was bad

	judging atomic.Int32 // judgements that still need the record's texts
	rows    atomic.Int32 // rows that are not durable yet
	failed  atomic.Bool

	mu      sync.Mutex // guards refused; nothing else is locked under it
	refused []string   // why rows can never be stored
}

// ending is what a unit needs of its consumer.Delivery.
type ending interface {
	Resolve(consumer.Outcome)
	Release()
}

// newUnit says what a record waits for, before any of it can end.
func newUnit(pt *partition, letter sink.DeadLetter, jobs []job, dead bool) *unit {
	u := &unit{partition: pt, letter: letter, dead: dead, outcome: consumer.Durable}
	rows := 0
	for _, j := range jobs {
		rows += j.rows()
	}
	if dead {
		rows++
		if len(jobs) == 0 {
			u.outcome = consumer.DeadLettered
		}
	}
	u.judging.Store(int32(len(jobs)))
	u.rows.Store(int32(rows))
	return u
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
		u.end.Resolve(u.outcome)
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
