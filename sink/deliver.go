package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// The server refuses a block that touches more than 100 partitions
	// (max_partitions_per_insert_block).
	maxParts = 90

	backoffFirst   = 200 * time.Millisecond
	backoffLongest = 30 * time.Second

	// One poison row among 100,000 takes 17 failing inserts to find; that many may
	// follow each other at once, then failing inserts go out once a second.
	errorBurst = 20

	// A schema break is not poison: dead-lettering every row would empty the log into
	// the wrong table. Above one row in 20 the writer stops. Small batches need a floor
	// and a memory of the ones before for that share to mean anything, large ones a
	// ceiling, because each poison row costs some seconds of bisecting.
	poisonShare   = 20
	poisonFloor   = 20
	poisonCeiling = 500
	poisonMemory  = 10_000 // rows; past them what was seen counts half
)

// A poisonWatch counts refused rows among the recent ones of a table.
type poisonWatch struct {
	mu           sync.Mutex // guards the fields below; nothing else is locked under it
	rows, poison int
}

// expect says that so many rows are about to go out.
func (p *poisonWatch) expect(rows int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows > poisonMemory {
		p.rows, p.poison = p.rows/2, p.poison/2
	}
	p.rows += rows
}

// tooMany counts one more refused row and reports whether the schema must be at fault.
func (p *poisonWatch) tooMany() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.poison++
	return p.poison > min(max(p.rows/poisonShare, poisonFloor), poisonCeiling)
}

// An insertFunc stores rows as one block under a token. It is the seam for tests of
// time; everything else is tested against the engine.
type insertFunc[R any] func(ctx context.Context, token string, rows []R) error

// A delivery brings rows of one table to the server and decides what to do about each
// failure.
type delivery[R any] struct {
	table  table[R]
	insert insertFunc[R]
	poison *poisonWatch
	shared
}

func newDelivery[R any](t table[R], insert insertFunc[R], s shared) delivery[R] {
	return delivery[R]{table: t, insert: insert, poison: new(poisonWatch), shared: s}
}

// shared is what the tables of one writer have in common.
type shared struct {
	tokens  *tokens
	breaker *breaker
	pace    *rate.Limiter // of inserts that follow a failed one
	met     *metrics
	log     *slog.Logger
}

// deliver stores rows and returns one fault per row: nil for a durable one, a
// *PoisonError for one that never will be, anything else for a row left open. The
// second result is set when the writer cannot go on. The end of ctx ends inserts in
// flight too.
func (d *delivery[R]) deliver(ctx context.Context, rows []R) (faults []error, stop error) {
	faults = make([]error, len(rows))
	good := make([]int, 0, len(rows))
	for i := range rows {
		if err := d.table.validate(&rows[i]); err != nil {
			faults[i] = &PoisonError{Table: d.table.name, Row: d.table.label(&rows[i]), Err: err}
			d.met.rejected.WithLabelValues(d.table.name, string(rejectedInvalid)).Inc()
			continue
		}
		good = append(good, i)
	}
	for _, block := range d.cut(rows, good) {
		b := blockOf[R]{rows: rows, at: block, faults: faults}
		if stop == nil {
			d.poison.expect(len(block))
			stop = d.store(ctx, &b, block)
		}
		if stop != nil {
			b.leaveOpen(stop)
		}
	}
	return faults, stop
}

// A blockOf is the part of a batch that goes out together.
type blockOf[R any] struct {
	rows   []R
	at     []int // which of rows
	faults []error
	done   map[int]bool // rows with an outcome; nil until the block was split
	poison []int
}

// leaveOpen gives every row without an outcome the reason why. Poison found on the way
// to a stop was no verdict on the row, so those stay open as well.
func (b *blockOf[R]) leaveOpen(why error) {
	for _, i := range b.at {
		if !b.done[i] {
			b.faults[i] = why
		}
	}
	for _, i := range b.poison {
		b.faults[i] = why
	}
}

// cut splits rows so that no block touches too many partitions. Rows keep their order.
func (d *delivery[R]) cut(rows []R, good []int) [][]int {
	if len(good) == 0 {
		return nil
	}
	block := make(map[int64]int) // partition -> which block
	var blocks [][]int
	for _, i := range good {
		part := d.table.part(&rows[i])
		b, known := block[part]
		if !known {
			b = len(block) / maxParts
			block[part] = b
		}
		if b == len(blocks) {
			blocks = append(blocks, make([]int, 0, len(good)))
		}
		blocks[b] = append(blocks[b], i)
	}
	return blocks
}

// store sends some rows of a block and splits them where that is what helps.
func (d *delivery[R]) store(ctx context.Context, b *blockOf[R], at []int) error {
	part := b.rows
	if len(at) != len(b.rows) {
		part = make([]R, len(at))
		for n, i := range at {
			part[n] = b.rows[i]
		}
	}
	err := d.send(ctx, part, len(at) == 1)
	var refused *InsertError
	switch {
	case err == nil:
		d.met.rows.WithLabelValues(d.table.name).Add(float64(len(at)))
		b.settle(at...)
		return nil
	case !errors.As(err, &refused) || refused.Class != Poison && refused.Class != Memory:
		return err
	case len(at) == 1:
		i := at[0]
		b.settle(i)
		b.poison = append(b.poison, i)
		if d.poison.tooMany() {
			refused.Class = Fatal
			return fmt.Errorf("more than one row in %d was refused, so the schema is at fault and not the rows: %w", poisonShare, refused)
		}
		b.faults[i] = &PoisonError{Table: d.table.name, Row: d.table.label(&b.rows[i]), Err: refused.Err}
		d.met.rejected.WithLabelValues(d.table.name, string(rejectedServer)).Inc()
		return nil
	}
	half := len(at) / 2
	if err := d.store(ctx, b, at[:half]); err != nil {
		return err
	}
	return d.store(ctx, b, at[half:])
}

func (b *blockOf[R]) settle(at ...int) {
	if b.done == nil {
		b.done = make(map[int]bool)
	}
	if len(at) == len(b.at) {
		return // the whole block at once: no fault to set, and nothing can follow
	}
	for _, i := range at {
		b.done[i] = true
	}
}

// send repeats one block under one token until the server has it, or refuses it for a
// reason that repeating cannot mend. alone says that the block cannot be split.
func (d *delivery[R]) send(ctx context.Context, rows []R, alone bool) error {
	token := d.tokens.next()
	for try := 1; ; try++ {
		if err := d.breaker.admit(ctx); err != nil {
			return d.stopped(token, len(rows), err)
		}
		err := d.insert(ctx, token, rows)
		if err == nil {
			d.breaker.answered()
			return nil
		}
		class := classify(err)
		d.met.retries.WithLabelValues(d.table.name, class.String()).Inc()
		failure := &InsertError{Table: d.table.name, Token: token, Rows: len(rows), Class: class, Err: err}
		d.log.Debug("insert did not succeed", "table", d.table.name, "token", token, "rows", len(rows), "class", class.String(), "try", try, "err", err)
		pause := time.Duration(0)
		switch class {
		case Transient:
			d.breaker.failed(false)
			pause = backoff(try)
		case Overload, ReadOnly:
			d.breaker.failed(true)
			d.log.Warn("inserts paused", "table", d.table.name, "class", class.String(), "err", err)
		case Memory:
			d.breaker.answered()
			if alone {
				// no row is too large for the server for ever: its memory is short now
				pause = backoff(try)
				break
			}
			return d.paced(ctx, failure)
		case Poison:
			d.breaker.answered()
			return d.paced(ctx, failure)
		default:
			d.breaker.failed(false)
			return failure
		}
		if err := waitFor(ctx, pause, nil); err != nil {
			return d.stopped(token, len(rows), failure)
		}
		if err := d.pace.Wait(ctx); err != nil {
			return d.stopped(token, len(rows), failure)
		}
	}
}

// paced returns the failure when the next insert may go out, so that bisecting keeps
// to the rate of errors as well.
func (d *delivery[R]) paced(ctx context.Context, failure *InsertError) error {
	if err := d.pace.Wait(ctx); err != nil {
		return d.stopped(failure.Token, failure.Rows, failure)
	}
	return failure
}

// stopped says that these rows stay open: they may be stored or not. The cause is only
// told, not wrapped: its class is no reason to do anything more.
func (d *delivery[R]) stopped(token string, rows int, cause error) error {
	return fmt.Errorf("%w with %d rows of %s unsettled (token %s): %v", ErrStopped, rows, d.table.name, token, cause)
}

// backoff is 0.2 s doubling to 30 s, of which up to half is left out at random so that
// processes do not come back together.
func backoff(try int) time.Duration {
	full := backoffLongest
	if try < 9 {
		full = min(backoffFirst<<(try-1), backoffLongest)
	}
	return full/2 + rand.N(full/2+1)
}
