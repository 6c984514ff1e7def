package pipeline

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"assay/consumer"
	"assay/evaluators/judge"
	"assay/internal/interaction"
	"assay/sink"
)

// slow answers after a while unless the context ends first.
func slow(d time.Duration) func(context.Context, judge.Question) (judge.Answer, error) {
	return func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		select {
		case <-time.After(d):
			return certain(q), nil
		case <-ctx.Done():
			return judge.Answer{}, ctx.Err()
		}
	}
}

func TestADrainLetsWhatRunsEndAndForgetsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck) // 8 slots
		w.judge.answer = slow(5 * time.Second)
		a := w.fresh()
		for offset := range int64(20) {
			a.read(offset, item(fmt.Sprint("i-", offset)))
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		if err := a.pt.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("drained in %s", took)
		}
		if err := a.pt.FlushRows(t.Context()); err != nil {
			t.Error(err)
		}
		a.pt.Close()
		if got := w.judge.calls.Load(); got != 8 {
			t.Errorf("%d questions, want the 8 that ran", got)
		}
		if a.watermark() != 8 || len(w.store.evaluations) != 8 || len(a.resolved) != 8 {
			t.Errorf("watermark %d, %d rows, %d resolved, want 8 of each", a.watermark(), len(w.store.evaluations), len(a.resolved))
		}
	})
}

func TestADrainCutsOffWhatTakesTooLongWithoutARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.judge.answer = func(ctx context.Context, q judge.Question) (judge.Answer, error) {
			if out, _ := q.Field("output"); out == "quick" {
				return slow(2*time.Second)(ctx, q)
			}
			return slow(40*time.Second)(ctx, q)
		}
		a := w.fresh()
		for offset, output := range []string{"quick", "slow", "quick", "slow"} {
			a.read(int64(offset), fmt.Sprintf(`{"id":"i-%d","input":"q","output":%q}`, offset, output))
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		err := a.pt.Drain(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("drain: %v after %s", err, time.Since(start))
		}
		if err := a.pt.FlushRows(t.Context()); err != nil {
			t.Error(err)
		}
		a.pt.Close()
		w.settle()
		if a.outcome(0) != consumer.Durable || a.outcome(2) != consumer.Durable || a.outcome(1)+a.outcome(3) != "" {
			t.Errorf("outcomes %v", a.resolved)
		}
		for _, e := range w.store.evaluations {
			if e.Status != "ok" {
				t.Errorf("offset %d has a row of a judgement that was cut off: %s (%s)", e.Offset, e.Status, e.Reason)
			}
		}
		if len(w.store.evaluations) != 2 {
			t.Errorf("%d rows, want 2", len(w.store.evaluations))
		}
	})
}

func TestADrainEndsTheWaitForAFullBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.store.full = true
		a := w.fresh()
		a.read(1, item("i-1"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := a.pt.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain: %v", err)
		}
		a.pt.Close()
		if len(w.store.pending) != 0 || a.outcome(1) != "" {
			t.Errorf("%d rows on the way, outcome %q", len(w.store.pending), a.outcome(1))
		}
	})
}

func TestCloseEndsJudgementsThatNobodyDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.judge.answer = slow(time.Hour)
		a := w.fresh()
		for offset := range int64(20) {
			a.read(offset, item(fmt.Sprint("i-", offset)))
		}
		synctest.Wait()
		start := time.Now()
		a.pt.Close()
		a.pt.Close() // twice is harmless
		if time.Since(start) != 0 || w.judge.calls.Load() != 8 || len(a.resolved) != 0 {
			t.Errorf("closed after %s, %d questions, %d resolved", time.Since(start), w.judge.calls.Load(), len(a.resolved))
		}
	})
}

// The sink goes on after a partition is closed: a row that was refused by then has
// nobody left to make a dead letter, and its record is read again.
func TestARowRefusedAfterCloseLeavesItsRecordOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.store.refuse = func(row any) error {
			if _, ok := row.(sink.Evaluation); ok {
				return errors.New("no")
			}
			return nil
		}
		a := w.fresh()
		a.read(1, item("i-1"))
		synctest.Wait()
		a.pt.Close()
		w.settle()
		if a.outcome(1) != "" || len(w.store.letters) != 0 {
			t.Errorf("outcome %q, letters %v", a.outcome(1), w.store.letters)
		}
	})
}

// A partition that is revoked while another one judges must not stop the other, though
// they share a judge's slots.
func TestARevokedPartitionLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.judge.answer = slow(5 * time.Second)
		one := w.assign(w.p, consumer.Assignment{Topic: topic, Partition: 0, LogEnd: 1 << 40})
		two := w.assign(w.p, consumer.Assignment{Topic: topic, Partition: 1, LogEnd: 1 << 40})
		defer two.pt.Close()
		for offset := range int64(20) {
			one.read(offset, item(fmt.Sprint("one-", offset)))
			two.handle(t.Context(), interaction.Record{Topic: topic, Partition: 1, Offset: offset, Time: logTime, Value: []byte(item(fmt.Sprint("two-", offset)))})
		}
		synctest.Wait()
		one.pt.Close()
		time.Sleep(time.Minute)
		w.settle()
		if len(one.resolved) != 0 || len(two.resolved) != 20 {
			t.Errorf("resolved %d and %d, want 0 and 20", len(one.resolved), len(two.resolved))
		}
	})
}

func TestFlushRowsSaysWhenTimeIsUp(t *testing.T) {
	w := newWorld(t, oneCheck)
	a := w.fresh()
	defer a.pt.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.pt.FlushRows(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
}
