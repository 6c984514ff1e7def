package demo

import (
	"context"
	"fmt"
	"time"
)

// A batch holds what came due since the last one: at a high speed that is many
// records, and a write for each would be slower than the day.
const (
	playTick  = 20 * time.Millisecond
	playBatch = 500
)

// Play hands the events to produce at speed times the pace of their own times: 720
// shows a day in two minutes, and +Inf goes as fast as produce does. No event comes
// before its time; after a slow produce the rest catches up. Play returns when all
// events are handed over, when ctx ends, or with the first error of produce. The
// slice belongs to produce.
func (s *Simulator) Play(ctx context.Context, speed float64, produce func(ctx context.Context, events []Event) error) error {
	if !(speed > 0) {
		return fmt.Errorf("speed %g: want more than 0", speed)
	}
	began := time.Now()
	var batch []Event
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(batch) == 0 {
			return nil
		}
		full := batch
		batch = nil
		if err := produce(ctx, full); err != nil {
			return fmt.Errorf("produce %d records from %s on: %w", len(full), full[0].Record.Time.Format(time.RFC3339), err)
		}
		return nil
	}
	for e := range s.Events() {
		due := began.Add(time.Duration(float64(e.Record.Time.Sub(s.opts.Start)) / speed))
		if wait := time.Until(due); wait > 0 || len(batch) == playBatch {
			if err := flush(); err != nil {
				return err
			}
			if wait = time.Until(due); wait > 0 {
				if err := sleep(ctx, max(wait, playTick)); err != nil {
					return err
				}
			}
		}
		batch = append(batch, e)
	}
	return flush()
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
