package pipeline

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlotsNeverRunMoreThanTheirLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(3)
		var (
			mu           sync.Mutex
			running, top int
			done         int
		)
		work := func() {
			mu.Lock()
			running++
			top = max(top, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			done++
			mu.Unlock()
		}
		queues := []*queue{s.queue(), s.queue(), s.queue()}
		start := time.Now()
		for i := range 31 {
			queues[i%3].put(work)
		}
		for _, q := range queues {
			defer q.drop()
		}
		time.Sleep(11 * time.Second) // 31 pieces of work, three at once
		synctest.Wait()
		if top != 3 || done != 31 || time.Since(start) != 11*time.Second {
			t.Errorf("at most %d ran at once, %d done", top, done)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running != 0 || len(s.turn) != 0 {
			t.Errorf("%d slots are kept, %d queues wait", s.running, len(s.turn))
		}
	})
}

func TestPartitionsAreServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		var order []string
		work := func(name string) func() {
			return func() {
				time.Sleep(time.Second)
				order = append(order, name)
			}
		}
		long, short := s.queue(), s.queue()
		for range 5 {
			long.put(work("long"))
		}
		synctest.Wait()
		short.put(work("short"))
		short.put(work("short"))
		time.Sleep(7 * time.Second)
		synctest.Wait()
		// the first of long runs already when short comes, and its turn has come again
		want := []string{"long", "long", "short", "long", "short", "long", "long"}
		if len(order) != len(want) {
			t.Fatalf("%v", order)
		}
		for i := range want {
			if order[i] != want[i] {
				t.Fatalf("served %v, want %v", order, want)
			}
		}
		long.drop()
		short.drop()
	})
}

func TestADroppedQueueStartsNothingAndWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2)
		q := s.queue()
		var ran atomic.Int64
		for range 6 {
			q.put(func() { time.Sleep(3 * time.Second); ran.Add(1) })
		}
		synctest.Wait()
		q.drop()
		q.put(func() { ran.Add(100) })

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait returned %v while work ran", err)
		}
		start := time.Now()
		if err := q.wait(t.Context()); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("wait: %v after %s", err, time.Since(start))
		}
		if n := ran.Load(); n != 2 {
			t.Errorf("%d pieces of work ran, want the 2 that had started", n)
		}
		q.drop()
		if err := q.wait(t.Context()); err != nil {
			t.Errorf("wait on an idle queue: %v", err)
		}
	})
}

func TestADroppedQueueGivesItsTurnToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(1)
		busy, gone, last := s.queue(), s.queue(), s.queue()
		done := false
		busy.put(func() { time.Sleep(time.Second) })
		synctest.Wait()
		gone.put(func() { t.Error("ran after its queue was dropped") })
		last.put(func() { done = true })
		gone.drop()
		time.Sleep(time.Second)
		synctest.Wait()
		if !done {
			t.Error("the queue behind the dropped one was not served")
		}
		busy.drop()
		last.drop()
	})
}

func TestAJudgeThatOnlyComputesGetsASlotForEachCore(t *testing.T) {
	if got := slotsFor(0); got != runtime.GOMAXPROCS(0) {
		t.Errorf("%d slots", got)
	}
	if got := slotsFor(100); got != 200 {
		t.Errorf("%d slots for 100 in flight, want twice as many", got)
	}
}
