package consumer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/alecthomas/units"
)

func bareTracker(next int64) *tracker {
	return newTracker(next, 1<<20, 1<<40, newBudget(1<<20, 1<<40))
}

// open admits and adds.
func (t *tracker) openOne(tb testing.TB, offset, bytes int64) ticket {
	tb.Helper()
	if err := t.admit(tb.Context(), bytes); err != nil {
		tb.Fatal(err)
	}
	return t.add(offset, bytes, moment{})
}

func TestWatermarkIsTheLowestOpenOffset(t *testing.T) {
	f := func(fetched, resolved []int64, want int64) {
		t.Helper()
		tr, open := bareTracker(10), map[int64]ticket{}
		for _, o := range fetched {
			open[o] = tr.openOne(t, o, 1)
		}
		for _, o := range resolved {
			tr.resolve(open[o])
		}
		if got, _ := tr.watermark(); got != want {
			t.Errorf("fetched %v, resolved %v: watermark %d, want %d", fetched, resolved, got, want)
		}
	}

	// nothing fetched: stay where the assignment put us
	f(nil, nil, 10)
	// 11 is done first and has to wait for 10
	f([]int64{10, 11}, []int64{11}, 10)
	// a gap in the log is not a gap in the work
	f([]int64{10, 14}, []int64{14, 10}, 15)
	// resolving twice is resolving once
	f([]int64{10, 11}, []int64{10, 10}, 11)
}

func TestTheTrackerAgreesWithAModel(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := newBudget(1<<20, 1<<40)
		tr := newTracker(0, 1<<20, 1<<40, b)
		type record struct {
			k     ticket
			bytes int64
		}
		open := map[int64]record{}
		var stale []ticket
		next, last := int64(0), int64(0)
		for step := range 2000 {
			switch r := rng.IntN(10); {
			case r < 5:
				next += int64(rng.IntN(3)) // gaps
				bytes := int64(rng.IntN(100))
				open[next] = record{tr.openOne(t, next, bytes), bytes}
				next++
			case r < 9:
				for o, rec := range open { // any of them
					tr.resolve(rec.k)
					stale = append(stale, rec.k)
					delete(open, o)
					break
				}
			case len(stale) > 0: // a ticket of the past changes nothing
				k := stale[rng.IntN(len(stale))]
				if tr.resolve(k) {
					t.Fatalf("seed %d step %d: stale ticket %v resolved something", seed, step, k)
				}
				tr.release(k)
			default:
				next += 2
				tr.advance(next)
			}
			want, bytes := next, int64(0)
			for o, rec := range open {
				want = min(want, o)
				bytes += rec.bytes
			}
			got, ok := tr.watermark()
			st := tr.state()
			if !ok || got != want || st.open != len(open) || st.bytes != bytes || b.records != int64(len(open)) || b.bytes != bytes {
				t.Fatalf("seed %d step %d: watermark %d want %d, open %d want %d, bytes %d want %d, budget %d/%d",
					seed, step, got, want, st.open, len(open), st.bytes, bytes, b.records, b.bytes)
			}
			if got < last {
				t.Fatalf("seed %d step %d: watermark went back from %d to %d", seed, step, last, got)
			}
			last = got
		}
		tr.revoke()
		for _, rec := range open {
			if tr.resolve(rec.k) {
				t.Fatalf("seed %d: resolved after revoke", seed)
			}
		}
		if _, ok := tr.watermark(); ok || b.records != 0 || b.bytes != 0 {
			t.Fatalf("seed %d: a revoked tracker has a watermark or keeps %d records, %d bytes", seed, b.records, b.bytes)
		}
	}
}

func TestSlotsAreUsedAgain(t *testing.T) {
	tr := bareTracker(0)
	for i := range int64(100_000) {
		tr.resolve(tr.openOne(t, i, 1))
	}
	if n := len(tr.entries); n > 2 {
		t.Errorf("%d slots for one record at a time", n-1)
	}
	if got := testing.AllocsPerRun(1000, func() {
		o, _ := tr.watermark()
		tr.resolve(tr.openOne(t, o, 1))
	}); got != 0 {
		t.Errorf("%v allocations for a record that is resolved at once", got)
	}
}

// A late answer raced the revoke and moved the new owner's offset: whoever comes
// after the revoke must find the door shut.
func TestResolvingBesideARevokeIsAllOrNothing(t *testing.T) {
	for range 200 {
		b := newBudget(100, 1<<20)
		tr := newTracker(0, 100, 1<<20, b)
		var open []ticket
		for i := range int64(20) {
			open = append(open, tr.openOne(t, i, 10))
		}
		var wg sync.WaitGroup
		for _, k := range open {
			wg.Go(func() { tr.resolve(k) })
			wg.Go(func() { tr.release(k) })
		}
		wg.Go(tr.revoke)
		wg.Wait()
		if b.records != 0 || b.bytes != 0 {
			t.Fatalf("budget keeps %d records, %d bytes", b.records, b.bytes)
		}
	}
}

func TestAHeldRecordKeepsItsOffsetButIsNoStandstill(t *testing.T) {
	tr := bareTracker(5)
	first := tr.openOne(t, 5, 1)
	second := tr.openOne(t, 6, 1)
	tr.hold(first)
	if st := tr.state(); st.watermark != 5 || st.progress != 6 || st.held != 1 {
		t.Errorf("%+v, want watermark 5, progress 6, one held", st)
	}
	tr.resolve(second)
	if st := tr.state(); st.watermark != 5 || st.progress != 7 {
		t.Errorf("%+v, want watermark 5, progress 7", st)
	}
	tr.resolve(first)
	if st := tr.state(); st.watermark != 7 || st.held != 0 {
		t.Errorf("%+v, want watermark 7, none held", st)
	}
}

func TestTheWindowIsBoundedByRecordsAndBytes(t *testing.T) {
	f := func(records int, bytes units.Base2Bytes, sizes []int64, wantOpen int) {
		t.Helper()
		tr := newTracker(0, records, bytes, newBudget(1000, 1<<30))
		open := 0
		for i, n := range sizes {
			if !tr.tryAdmit(n) {
				break
			}
			tr.add(int64(i), n, moment{})
			open++
		}
		if open != wantOpen {
			t.Errorf("window %d/%d took %d of %v, want %d", records, bytes, open, sizes, wantOpen)
		}
	}
	f(2, 1000, []int64{1, 1, 1}, 2)
	f(10, 1000, []int64{400, 400, 300}, 2)
	f(10, 1000, []int64{400, 400, 200, 1}, 3)
	// larger than the window: in, but alone
	f(10, 1000, []int64{5000, 1}, 1)
	f(10, 1000, []int64{1, 5000}, 1)
}

func TestReleasedBytesMakeRoomBeforeTheRecordIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTracker(0, 10, 100, newBudget(1000, 1<<30))
		k := tr.openOne(t, 0, 100)
		admitted := make(chan error, 1)
		go func() { admitted <- tr.admit(t.Context(), 50) }()
		synctest.Wait()
		select {
		case <-admitted:
			t.Fatal("admitted into a full window")
		default:
		}
		tr.release(k)
		if err := <-admitted; err != nil {
			t.Fatal(err)
		}
		tr.release(k) // once is enough
		if st := tr.state(); st.bytes != 0 || st.open != 1 {
			t.Errorf("%+v, want one open record without bytes", st)
		}
	})
}

func TestTheBudgetServesWaitersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10, 100)
		take := func(bytes int64) chan error {
			done := make(chan error, 1)
			go func() { done <- b.take(t.Context(), bytes) }()
			synctest.Wait()
			return done
		}
		taken := func(c chan error) bool {
			synctest.Wait()
			return len(c) == 1
		}
		if !taken(take(90)) {
			t.Fatal("no room in an empty budget")
		}
		large, small := take(80), take(5)
		if taken(large) || taken(small) {
			t.Fatal("a small record overtook a large one that waits")
		}
		b.give(1, 90)
		if !taken(large) || !taken(small) {
			t.Fatal("both fit now")
		}
		huge := take(1000)
		b.give(1, 80)
		if taken(huge) {
			t.Fatal("larger than the budget, and not alone")
		}
		b.give(1, 5)
		if !taken(huge) {
			t.Fatal("larger than the budget, but alone")
		}
		b.give(1, 1000)
		if b.records != 0 || b.bytes != 0 {
			t.Fatalf("%d records, %d bytes left", b.records, b.bytes)
		}
	})
}

func TestAWaiterThatGivesUpLeavesNothingBehind(t *testing.T) {
	for range 200 {
		b := newBudget(1, 10)
		if err := b.take(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		took := make(chan bool, 1)
		wg.Go(func() { took <- b.take(ctx, 1) == nil })
		wg.Go(cancel)
		wg.Go(func() { b.give(1, 1) })
		wg.Wait()
		if <-took {
			b.give(1, 1)
		}
		if b.records != 0 || b.bytes != 0 || len(b.waiting) != 0 {
			t.Fatal(fmt.Sprint(b.records, b.bytes, len(b.waiting)))
		}
	}
}
