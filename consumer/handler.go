package consumer

import (
	"context"
	"time"

	"assay/internal/interaction"
)

// A Handler turns assignments into partition handlers; internal/pipeline is one.
type Handler interface {
	// Assign is called once per generation and partition, before the first fetch, and
	// again when a partition starts over within a generation. It does the recovery
	// scan and says where reading starts. Offsets from there to Committed come with
	// Below set; a start above Committed declares the offsets between as resolved.
	// An error delays the partition: Assign is called again with back-off while the
	// generation lives. ctx ends with the generation.
	Assign(ctx context.Context, a Assignment) (Partition, int64, error)
}

// Assignment is a partition that this process holds for one generation.
type Assignment struct {
	Topic      string
	Partition  int
	Committed  int64 // resolved start: never negative, and inside the log
	LogStart   int64
	LogEnd     int64
	Generation int32

	// Reach tells where a reader has to begin to see all records that are at most so much
	// older than the record that stands before offset, by the log's times. It is offset
	// itself when there is none, and depends on the log alone.
	Reach func(ctx context.Context, offset int64, back time.Duration) (int64, error)
}

// A Partition handles the records of one assignment.
type Partition interface {
	// Handle takes one record, in offset order, from one goroutine. It may block only
	// for CPU work; slow work goes on in goroutines the Partition owns and ends with
	// rec.Resolve. The record's bytes may be used until Handle has returned and the
	// record is resolved or held; after that the consumer reads the next fetch into them.
	//
	// ctx ends when the partition stops handing out records (the drain's first step).
	// It is for waiting inside Handle only. Work that goes on afterwards lives under
	// a context of the Partition's own, which Drain ends.
	Handle(ctx context.Context, rec Delivery)
	// CaughtUp is called now and then, from Handle's goroutine, while the partition has
	// been read to its end. It must not wait for anything.
	CaughtUp(now time.Time)
	// Flush makes what was counted below watermark durable, before it is committed.
	// Only the committer calls it, never twice at once for a partition.
	Flush(ctx context.Context, watermark int64) error
	// Drain gives up what has not started and waits for what runs. When ctx ends it
	// cuts that off (unresolved, no row), waits until it is gone and returns why.
	Drain(ctx context.Context) error
	// FlushRows makes the rows of finished work durable, so that their records are
	// resolved before the last commit.
	FlushRows(ctx context.Context) error
	// Close is the last call; by then Resolve has no effect any more.
	Close()
}

// An Outcome is why a record left the window. Renaming one breaks users' alerts.
type Outcome string

// The outcomes of a record.
const (
	Durable       Outcome = "durable"        // all its rows are in ClickHouse
	NotNeeded     Outcome = "not_needed"     // filtered, sampled out, not applicable
	NoInteraction Outcome = "no_interaction" // a tombstone, or about another record
	DeadLettered  Outcome = "dead_lettered"  // the dead letter is durable
)

func outcomes() []Outcome { return []Outcome{Durable, NotNeeded, NoInteraction, DeadLettered} }

func (o Outcome) index() int {
	switch o {
	case NotNeeded:
		return 1
	case NoInteraction:
		return 2
	case DeadLettered:
		return 3
	default:
		return 0
	}
}

// Delivery is one record with the way to resolve it.
type Delivery struct {
	Record interaction.Record
	// Below says that the record was resolved by an earlier owner: it is counted
	// again and nothing else. Resolving it has no effect.
	Below bool
	// Fault is set when handling the record has panicked twice: the handler makes a
	// dead letter with this reason of it and does not look inside.
	Fault string

	session *session
	ticket  ticket
}

// faultPanic is the Fault of a record whose handling panicked again and again.
const faultPanic = "panic"

// Resolve says that nothing is left to do for the record. Any goroutine may call it,
// at any time; all calls but the first, and every call after the partition was
// revoked, have no effect.
func (d Delivery) Resolve(outcome Outcome) {
	if d.session != nil {
		d.session.resolve(d.ticket, outcome)
	}
}

// Release gives back the record's share of the byte bounds before it is resolved:
// what is left of it is a row at the sink, which has bounds of its own.
func (d Delivery) Release() {
	if d.session != nil {
		d.session.release(d.ticket)
	}
}

// Hold marks the record as waiting on purpose for another one. It keeps its offset
// unresolved, but is no sign of a partition that is stuck, and takes no room in the
// window any more: the handler bounds what it holds. Its bytes must not be used any more.
func (d Delivery) Hold() {
	if d.session != nil {
		d.session.hold(d.ticket)
	}
}
