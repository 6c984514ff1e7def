package sampler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// entry is one record of a model log. What is counted about it is fixed by its offset:
// the ledger's promise is about order and failure, not about decisions.
type entry struct {
	offset int64
	time   time.Time
	cells  []Cell
	open   bool // at the first reading; resolved later
}

func modelCells(r *rand.Rand, offset int64) []Cell {
	minute := 1000 + offset/5000
	if r.IntN(20) == 0 {
		minute -= int64(r.IntN(10)) // late events
	}
	if r.IntN(50) == 0 {
		return []Cell{{Minute: minute, Decision: "dead_lettered", Reason: "not_json"}}
	}
	var cells []Cell
	for range 1 + r.IntN(2) { // elements
		cells = append(cells, Cell{Minute: minute, Decision: "interaction"})
		for _, check := range []string{"a", "b", "c"} {
			c := Cell{Minute: minute, Check: check, Version: "v1", Stratum: "", Epoch: uint32(minute / 60)}
			switch r.IntN(4) {
			case 0:
				c.Decision, c.Reason = "filtered", "when"
			case 1:
				c.Decision, c.Reason = "not_applicable", "missing:expected"
			case 2:
				c.Decision, c.Pi = "sampled_out", 0.1
			case 3:
				c.Decision, c.Pi = "selected", 0.1
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// modelLog has gaps, as compacted and transactional topics do, and spans several blocks.
func modelLog(r *rand.Rand, from int64, n int, openShare float64) []entry {
	var log []entry
	for offset := from; len(log) < n; offset++ {
		if r.IntN(10) == 0 {
			offset += int64(r.IntN(3))
		}
		if r.IntN(2000) == 0 {
			offset += BlockSize / 2
		}
		log = append(log, entry{offset, time.Unix(offset, 0), modelCells(r, offset), r.Float64() < openShare})
	}
	return log
}

// A table is the population as ClickHouse shows it: per key the row of the highest
// upto_offset, the later one where they are equal.
type table map[rowKey]Count

type rowKey struct {
	block, from int64
	cell        Cell
}

func (tb table) insert(rows []Count) {
	for _, row := range rows {
		key := rowKey{row.Block, row.SegmentFrom, row.Cell}
		if old, ok := tb[key]; !ok || row.UptoOffset >= old.UptoOffset {
			tb[key] = row
		}
	}
}

// recount counts the log naively up to and with an offset.
func recount(log []entry, upto int64) map[Cell]uint64 {
	sums := map[Cell]uint64{}
	for _, e := range log {
		if e.offset > upto {
			break
		}
		for _, c := range e.cells {
			sums[c]++
		}
	}
	return sums
}

func (tb table) sums() map[Cell]uint64 {
	sums := map[Cell]uint64{}
	for key, row := range tb {
		sums[key.cell] += row.N
	}
	return sums
}

func sameSums(t *testing.T, what string, got, want map[Cell]uint64) {
	t.Helper()
	for c, n := range want {
		if got[c] != n {
			t.Fatalf("%s: %+v counted %d, want %d", what, c, got[c], n)
		}
	}
	for c, n := range got {
		if want[c] != n {
			t.Fatalf("%s: %+v counted %d, want %d", what, c, n, want[c])
		}
	}
}

// conserved checks the identity that everything is built on: for every check and
// minute, interactions = filtered + not_applicable + sampled_out + selected.
func conserved(t *testing.T, sums map[Cell]uint64) {
	t.Helper()
	interactions, decisions := map[int64]uint64{}, map[string]map[int64]uint64{"a": {}, "b": {}, "c": {}}
	for c, n := range sums {
		switch {
		case c.Decision == "interaction":
			interactions[c.Minute] += n
		case c.Check != "":
			decisions[c.Check][c.Minute] += n
		}
	}
	for check, minutes := range decisions {
		for minute, n := range interactions {
			if minutes[minute] != n {
				t.Fatalf("check %s, minute %d: %d decisions of %d interactions", check, minute, minutes[minute], n)
			}
		}
	}
}

// A worker reads the log from a position, resolves in random order, flushes at random,
// sometimes fails to insert, and is killed at random. It returns what it committed.
type worker struct {
	t         *testing.T
	r         *rand.Rand
	log       []entry
	tb        table
	ledger    *Ledger
	committed int64
	open      []int64
	next      int64
}

// begin starts at the segment that the table knows, as the recovery does.
func begin(t *testing.T, r *rand.Rand, log []entry, tb table, hash string, segmentFrom, committed int64) *worker {
	return &worker{t: t, r: r, log: log, tb: tb, ledger: NewLedger("t", 0, hash, segmentFrom), committed: committed, next: segmentFrom}
}

func (w *worker) watermark() int64 {
	if len(w.open) > 0 {
		return slices.Min(w.open)
	}
	return max(w.next, w.committed)
}

// flush tells the ledger's state up to a watermark that may be older than it.
func (w *worker) flush(watermark int64) {
	batch := w.ledger.Flush(watermark)
	for _, row := range batch.Counts() {
		// New rules would go on after it and never read that record again.
		if len(w.open) > 0 && row.UptoOffset >= slices.Min(w.open) {
			w.t.Fatalf("told up to %d while %d is open", row.UptoOffset, slices.Min(w.open))
		}
	}
	switch w.r.IntN(4) {
	case 0: // the insert failed before it reached the table
		return
	case 1: // it reached the table, but the answer was lost
		w.tb.insert(batch.Counts())
		return
	}
	w.tb.insert(batch.Counts())
	batch.Done()
	w.committed = max(w.committed, watermark)
}

// run reads up to n records and then is killed.
func (w *worker) run(n int) {
	for _, e := range w.log {
		if e.offset < w.next {
			continue
		}
		if n--; n < 0 {
			return
		}
		below := e.offset < w.committed
		open := e.open && !below
		stale := w.watermark()
		w.ledger.Count(e.offset, e.time, open, e.cells)
		w.next = e.offset + 1
		if open {
			w.open = append(w.open, e.offset)
		}
		for len(w.open) > 0 && w.r.IntN(3) == 0 {
			i := w.r.IntN(len(w.open))
			if w.r.IntN(4) > 0 { // and sometimes it is not said
				w.ledger.Resolve(w.open[i])
			}
			w.open = slices.Delete(w.open, i, i+1)
		}
		if w.r.IntN(150) == 0 {
			w.ledger.mu.Lock()
			w.ledger.merge()
			w.ledger.mu.Unlock()
		}
		switch w.r.IntN(200) {
		case 0:
			w.flush(w.watermark())
		case 1:
			// the watermark was read before this record was counted
			w.flush(stale)
		}
	}
}

// finish resolves everything and flushes until it holds.
func (w *worker) finish() {
	w.open = nil
	for {
		batch := w.ledger.Flush(w.watermark())
		w.tb.insert(batch.Counts())
		if len(batch.Counts()) == 0 {
			return
		}
		batch.Done()
	}
}

// segment is where a worker under that hash starts counting: the segment that holds the
// committed offset, or a new one after everything told.
func segment(tb table, hash string, committed int64) int64 {
	newest, from := int64(-1), committed
	newestHash := ""
	for _, row := range tb {
		if row.UptoOffset > newest {
			newest, newestHash = row.UptoOffset, row.ChecksHash
		}
	}
	if newest < 0 {
		return committed
	}
	if newestHash != hash {
		return max(committed, newest+1)
	}
	covering := int64(-1)
	for _, row := range tb {
		if row.Block == committed/BlockSize && row.SegmentFrom <= committed && row.SegmentFrom > covering {
			covering = row.SegmentFrom
		}
	}
	if covering >= 0 {
		from = covering
	}
	return from
}

func TestTheLedgerIsExactAfterAnyOrderAndAnyCrash(t *testing.T) {
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 35))
		start := int64(r.IntN(3 * BlockSize))
		share := []float64{0, 0.01, 0.3, 1}[seed%4]
		log := modelLog(r, start, 3000+r.IntN(3000), share)
		tb := table{}
		committed := start
		for range 6 {
			w := begin(t, r, log, tb, "h", segment(tb, "h", committed), committed)
			w.run(r.IntN(len(log)))
			committed = w.committed
			// What is told reaches exactly as far as it says: nothing missing below,
			// nothing above counted.
			upto := int64(-1)
			for _, row := range tb {
				upto = max(upto, row.UptoOffset)
			}
			if upto >= 0 {
				sameSums(t, fmt.Sprintf("seed %d, upto %d, committed %d", seed, upto, committed), tb.sums(), recount(log, upto))
				conserved(t, tb.sums())
			}
			if last := lastBelow(log, committed); last > upto {
				t.Fatalf("seed %d: committed %d, but the ledger reaches only %d", seed, committed, upto)
			}
		}
		w := begin(t, r, log, tb, "h", segment(tb, "h", committed), committed)
		w.run(len(log))
		w.finish()
		sameSums(t, fmt.Sprintf("seed %d at the end", seed), tb.sums(), recount(log, log[len(log)-1].offset))
		conserved(t, tb.sums())
		if n := len(w.ledger.blocks); n > 1 {
			t.Fatalf("seed %d: %d blocks are still in memory", seed, n)
		}
	}
}

func lastBelow(log []entry, offset int64) int64 {
	last := int64(-1)
	for _, e := range log {
		if e.offset < offset {
			last = e.offset
		}
	}
	return last
}

// When the checks file changes, the offsets up to the last one told belong to the old
// rules and the rest to the new: none to both, none to neither.
func TestNewRulesBeginANewSegment(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 36))
		log := modelLog(r, 100, 4000, 0.2)
		tb := table{}
		committed := int64(100)
		for i := range 5 {
			hash := fmt.Sprintf("h%d", i/2) // the rules change at every second start
			w := begin(t, r, log, tb, hash, segment(tb, hash, committed), committed)
			w.run(r.IntN(2000))
			committed = w.committed
		}
		w := begin(t, r, log, tb, "last", segment(tb, "last", committed), committed)
		w.run(len(log))
		w.finish()
		sameSums(t, fmt.Sprintf("seed %d", seed), tb.sums(), recount(log, log[len(log)-1].offset))
		conserved(t, tb.sums())
	}
}

func TestAnOpenRecordHoldsBackItselfAndWhatFollows(t *testing.T) {
	l := NewLedger("t", 3, "h", 10)
	cell := []Cell{{Minute: 1, Check: "c", Version: "v", Stratum: "", Decision: "sampled_out", Pi: 0.5, Epoch: 0}}
	at := func(offset int64) time.Time { return time.Unix(offset, 0).UTC() }
	l.Count(10, at(10), false, cell)
	l.Count(11, at(11), true, cell) // stays open
	l.Count(12, at(12), false, cell)
	l.Count(13, at(13), true, cell) // stays open
	f := func(watermark int64, want string) {
		t.Helper()
		batch := l.Flush(watermark)
		got := ""
		for _, c := range batch.Counts() {
			got += fmt.Sprintf("n %d upto %d at %d from %d block %d %s/%d %s", c.N, c.UptoOffset, c.LogTime.Unix(), c.SegmentFrom, c.Block, c.Topic, c.Partition, c.ChecksHash)
		}
		if got != want {
			t.Errorf("watermark %d: %q, want %q", watermark, got, want)
		}
	}

	f(11, "n 1 upto 10 at 10 from 10 block 0 t/3 h")
	// not finished: said again
	f(11, "n 1 upto 10 at 10 from 10 block 0 t/3 h")
	f(13, "n 3 upto 12 at 12 from 10 block 0 t/3 h")
	l.Flush(13).Done()
	f(13, "")
	// counted after the watermark was read: it goes with its bucket, and upto says so
	l.Count(14, at(14), false, cell)
	f(14, "n 5 upto 14 at 14 from 10 block 0 t/3 h")
}

// Half of a call may wait for ten minutes for its rest, while hundreds of thousands of
// records come and go.
func TestARecordThatWaitsLongDoesNotKeepWhatCameAfterItApart(t *testing.T) {
	l := NewLedger("t", 0, "h", 0)
	cells := []Cell{{Minute: 1, Decision: "interaction"}, {Minute: 1, Check: "c", Version: "v", Decision: "selected", Pi: 1}}
	l.Count(0, time.Unix(0, 0), true, cells)
	most := 0
	for offset := int64(1); offset <= 3*BlockSize; offset++ {
		l.Count(offset, time.Unix(offset, 0), true, cells)
		if offset > 10 {
			l.Resolve(offset - 10)
		}
		most = max(most, len(l.buckets))
	}
	if most > 1000 {
		t.Errorf("%d buckets with 11 open records", most)
	}
	for offset := int64(3*BlockSize - 9); offset <= 3*BlockSize; offset++ {
		l.Resolve(offset)
	}
	if rows := l.Flush(0).Counts(); len(rows) != 0 {
		t.Fatalf("told %+v while the first record waits", rows)
	}
	sum := uint64(0)
	for _, row := range l.Flush(3*BlockSize + 1).Counts() {
		sum += row.N
		if want := min(row.Block*BlockSize+BlockSize-1, 3*BlockSize); row.UptoOffset != want || row.LogTime.Unix() != want {
			t.Errorf("block %d is told up to %d at %d, want %d", row.Block, row.UptoOffset, row.LogTime.Unix(), want)
		}
	}
	if want := uint64(2 * (3*BlockSize + 1)); sum != want {
		t.Errorf("counted %d, want %d", sum, want)
	}
}

func TestCountsBelowTheSegmentAreNotCounted(t *testing.T) {
	l := NewLedger("t", 0, "h", 100)
	l.Count(99, time.Unix(99, 0), false, []Cell{{Decision: "interaction"}})
	l.Count(100, time.Unix(100, 0), false, []Cell{{Decision: "interaction"}})
	if got := l.Flush(101).Counts(); len(got) != 1 || got[0].N != 1 {
		t.Errorf("%+v, want one interaction", got)
	}
}

func TestBlocksBeginTheirOwnSegments(t *testing.T) {
	l := NewLedger("t", 0, "h", BlockSize-2)
	cell := []Cell{{Minute: 1, Decision: "interaction"}}
	for offset := int64(BlockSize - 2); offset < BlockSize+3; offset++ {
		l.Count(offset, time.Unix(offset, 0), false, cell)
	}
	batch := l.Flush(BlockSize + 3)
	got := ""
	for _, c := range batch.Counts() {
		got += fmt.Sprintf("block %d from %d n %d upto %d; ", c.Block, c.SegmentFrom, c.N, c.UptoOffset)
	}
	if want := "block 0 from 32766 n 2 upto 32767; block 1 from 32768 n 3 upto 32770; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	batch.Done()
	if len(l.blocks) != 1 {
		t.Errorf("%d blocks in memory, want the last one", len(l.blocks))
	}
}

func TestCountingDoesNotAllocateInTheSteadyState(t *testing.T) {
	l := NewLedger("t", 0, "h", 0)
	cells := modelCells(rand.New(rand.NewPCG(1, 1)), 0)
	offset := int64(0)
	step := func() {
		l.Count(offset, time.Unix(1, 0), offset%3 == 0, cells)
		offset++
		if offset%50 == 0 {
			l.fold(offset - 10)
		}
	}
	for range 2000 {
		step()
	}
	if n := testing.AllocsPerRun(5000, step); n > 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func BenchmarkCount(b *testing.B) {
	l := NewLedger("t", 0, "h", 0)
	cells := modelCells(rand.New(rand.NewPCG(2, 1)), 0)
	offset := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		l.Count(offset, time.Unix(1, 0), offset%20 == 0, cells)
		if offset++; offset%4096 == 0 {
			l.Flush(offset - 100).Done()
		}
	}
}
