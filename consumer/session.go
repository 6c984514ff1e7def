package consumer

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/internal/interaction"
)

// A session is one reading of a partition: from an Assign to a Close. A generation
// has one, or several when the partition has to start over.
type session struct {
	p       *partition
	handler Partition
	tracker *tracker
	below   int64        // offsets under it are only counted again
	again   atomic.Int64 // how many of them were

	resolved [4]prometheus.Counter // by outcome
	restart  context.CancelCauseFunc

	// Of the partition loop alone.
	position int64 // the next offset to ask for
	current  int64 // the offset in the handler's hands
	headers  []interaction.Header
	keys     map[string]string // header keys seen, so that they are kept once
	scratch  []byte            // the last decompressed batch
	table    *crc32.Table
	dropped  int64 // records of aborted transactions and markers

	last int64 // committed; of the committer alone, -1 when nothing is
}

// Why a session ends before its generation does.
var (
	errReplaced = errors.New("the log was replaced")
	errCutOff   = errors.New("the first batch is cut off")
)

// corruptRetry is the time between looks at a batch that cannot be read: a leader on
// another disk may have a good copy.
const corruptRetry = time.Minute

// maxHeaderKeys bounds the header keys that are kept.
const maxHeaderKeys = 256

// resolve closes a record.
func (s *session) resolve(k ticket, outcome Outcome) {
	if !s.tracker.resolve(k) {
		return
	}
	s.resolved[outcome.index()].Inc()
	if s.p.poison.observe(outcome == DeadLettered) {
		s.p.gate.pause(PauseDeadLetter.bit())
		s.p.log.Error("partition stopped: too many dead letters", "max_ratio", s.p.poison.max)
	}
}

func (s *session) release(k ticket) { s.tracker.release(k) }
func (s *session) hold(k ticket)    { s.tracker.hold(k) }

// read fetches and hands out until ctx ends or the partition has to start over, and
// returns why.
func (s *session) read(ctx context.Context) error {
	var (
		buffer []byte
		pause  backoff
	)
	for {
		if err := s.waitTurn(ctx); err != nil {
			return context.Cause(ctx)
		}
		first := s.position
		answer, err := s.p.cluster.fetch(ctx, s.p.topic, s.p.id, first, buffer)
		buffer = nil // a broken exchange may still write to it
		if err == nil {
			s.p.saw(answer)
			if err = s.deliver(ctx, answer); err == nil && !s.tracker.openFrom(first) {
				buffer = s.reusable(answer.buffer)
			}
			if s.position > first {
				pause.reset()
			}
			if err == nil && answer.present && s.position >= answer.end {
				err = s.caughtUp()
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			continue
		}
		if err := s.recoverFrom(ctx, err, &pause); err != nil {
			return err
		}
	}
}

// waitTurn waits until no reason to pause holds and the window has room for something.
func (s *session) waitTurn(ctx context.Context) error {
	if !s.p.gate.open() {
		if err := s.p.gate.wait(ctx); err != nil {
			return err
		}
	}
	if s.tracker.tryRoom() {
		return ctx.Err()
	}
	s.p.gate.pause(s.p.gate.window)
	defer s.p.gate.resume(s.p.gate.window)
	return s.tracker.wait(ctx, 1)
}

// reusable keeps an answer's buffer unless one huge batch has blown it up.
func (s *session) reusable(buffer []byte) []byte {
	if cap(s.scratch) > 2*int(s.p.cfg.MaxBytes) {
		s.scratch = nil
	}
	if cap(buffer) > 2*int(s.p.cfg.MaxBytes) {
		return nil
	}
	return buffer
}

// recoverFrom does what a failed fetch asks for. An error from it ends the session.
func (s *session) recoverFrom(ctx context.Context, err error, pause *backoff) error {
	var crash *panicError
	if errors.As(err, &crash) {
		return err
	}
	switch classify(err) {
	case fetchCorrupt:
		s.p.gate.pause(PauseOffset.bit())
		s.p.log.Error("partition stopped: the log cannot be read", "offset", s.position, "err", err)
		if sleep(ctx, s.p.corruptRetry) != nil {
			return context.Cause(ctx)
		}
		s.p.gate.resume(PauseOffset.bit())
		return nil
	case fetchOutOfRange:
		return s.outOfRange(ctx, pause)
	case fetchMoved:
		if pause.tries < 3 {
			s.p.cluster.refresh()
		}
	}
	if pause.tries == 0 {
		s.p.log.Warn("fetch failed", "offset", s.position, "err", err)
	}
	if sleep(ctx, pause.next()) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// outOfRange compares our position with the log: behind its start lies what retention
// took, beyond its end another log.
func (s *session) outOfRange(ctx context.Context, pause *backoff) error {
	b, err := s.p.cluster.bounds(ctx, s.p.topic, s.p.id)
	switch {
	case err == nil && s.position < b.start:
		s.p.skip(skipRetention, s.position, b.start)
		s.position = b.start
		s.tracker.advance(max(b.start, s.below))
		return nil
	case err == nil && s.position > b.end:
		return errReplaced
	}
	if sleep(ctx, pause.next()) != nil { // a leader that is catching up
		return context.Cause(ctx)
	}
	return nil
}

// deliver hands out an answer's records. A panic of the handler comes back as an
// error with its offset.
func (s *session) deliver(ctx context.Context, answer *fetchAnswer) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{offset: s.current, value: v, stack: debug.Stack()}
		}
	}()
	if !answer.present || len(answer.records) == 0 {
		// nothing to read; below the end an empty answer is a throttled one, or a hole
		// that the broker will step over by itself
		return nil
	}
	var (
		records, size int
		aborted       = newAbortFilter(answer.aborted)
		fetched       = time.Now().UnixMilli()
		rest          = answer.records
		asked         = s.position
	)
	s.headers = nil
	defer func() {
		s.p.records.Add(float64(records))
		s.p.bytes.Add(float64(size))
	}()
	for len(rest) > 0 {
		var b *batch
		b, rest, err = cutBatch(rest, s.table)
		if err != nil {
			return err
		}
		if b == nil { // cut off; it comes whole with the next fetch
			if s.position == asked {
				return fmt.Errorf("fetch %s/%d at %d: %w", s.p.topic, s.p.id, asked, errCutOff)
			}
			return nil
		}
		if b.last < s.position {
			continue
		}
		drop, err := aborted.drops(b)
		if err != nil {
			return err
		}
		if drop {
			s.dropped += int64(b.count)
			s.stepTo(b.last + 1)
			continue
		}
		body, err := b.open(s.scratch, s.p.unpacked)
		if err != nil {
			return err
		}
		if b.attributes&attrCompression != 0 {
			s.scratch = body
		}
		c := cursor{b: body}
		for range b.count {
			w, err := b.next(&c)
			if err != nil {
				return err
			}
			if w.offset < s.position {
				continue
			}
			rec, err := s.record(w)
			if err != nil {
				return err
			}
			n := rec.Bytes()
			if err := s.hand(ctx, rec, n, moment{fetched: fetched, written: w.time}); err != nil {
				return err
			}
			if w.offset >= s.below { // the others were counted by whoever resolved them
				records++
				size += int(n)
			}
			s.position = w.offset + 1
		}
		s.stepTo(b.last + 1)
		if b.attributes&attrCompression != 0 && s.tracker.openFrom(b.base) {
			s.scratch = nil // an open record still looks into it
		}
	}
	return nil
}

// caughtUp tells the handler; a panic in it ends the session like one in Handle.
func (s *session) caughtUp() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{offset: s.current, value: v, stack: debug.Stack()}
		}
	}()
	s.handler.CaughtUp(time.Now())
	return nil
}

// stepTo goes on behind a batch, whether or not its last offsets held records.
func (s *session) stepTo(next int64) {
	s.position = next
	if next > s.below {
		s.tracker.advance(next)
	}
}

// hand gives one record to the handler, once there is room for it.
func (s *session) hand(ctx context.Context, rec interaction.Record, bytes int64, at moment) error {
	if !s.p.gate.open() {
		if err := s.p.gate.wait(ctx); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d := Delivery{Record: rec, Below: rec.Offset < s.below}
	if s.p.panics > 0 {
		d.Fault = s.p.faultAt(rec.Offset)
	}
	s.current = rec.Offset
	if d.Below {
		s.handler.Handle(ctx, d)
		s.again.Add(1)
		return nil
	}
	if !s.tracker.tryAdmit(bytes) {
		s.p.gate.pause(s.p.gate.window)
		err := s.tracker.admit(ctx, bytes)
		s.p.gate.resume(s.p.gate.window)
		if err != nil {
			return err
		}
	}
	d.session = s
	d.ticket = s.tracker.add(rec.Offset, bytes, at)
	s.p.written.Store(at.written)
	s.handler.Handle(ctx, d)
	return nil
}

// record makes a record of what lies on the wire; its bytes stay where they are.
func (s *session) record(w wireRecord) (interaction.Record, error) {
	rec := interaction.Record{
		Topic:     s.p.topic,
		Partition: s.p.id,
		Offset:    w.offset,
		Time:      time.UnixMilli(w.time).UTC(),
		Key:       w.key,
		Value:     w.value,
	}
	if w.nHeaders == 0 {
		return rec, nil
	}
	from := len(s.headers)
	for range w.nHeaders {
		key := w.headers.varbytes()
		name, ok := s.keys[string(key)]
		if !ok {
			name = string(key)
			if len(s.keys) < maxHeaderKeys {
				s.keys[name] = name
			}
		}
		s.headers = append(s.headers, interaction.Header{Key: name, Value: w.headers.varbytes()})
	}
	if w.headers.err != nil {
		return rec, &CorruptError{Offset: w.offset, Reason: "headers"}
	}
	rec.Headers = s.headers[from:len(s.headers):len(s.headers)]
	return rec, nil
}
