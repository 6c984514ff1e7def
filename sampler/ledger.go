package sampler

import (
	"math"
	"slices"
	"sync"
	"time"
)

// BlockSize is how many offsets a block of the ledger spans: what a restart has to
// count again, at most.
const BlockSize = 32768

// Buckets are kept for reuse: as many as there are records in flight, but no giant that
// one stuck record made.
const (
	maxSpare      = 4096
	maxSpareCells = 256
)

// A Cell is one thing to count about a record: a decision, or that it was an
// interaction, none, or a dead letter.
type Cell struct {
	Minute   int64 // Unix minute of the event; of the log for what has no event
	Check    string
	Version  string
	Stratum  string
	Decision string
	Reason   string
	Pi       float64
	Epoch    uint32
}

// A Count is a cell of a block with its cumulative count: a row of the population.
type Count struct {
	Cell
	Topic       string
	Partition   int
	Block       int64 // offset / BlockSize
	SegmentFrom int64
	N           uint64
	UptoOffset  int64     // N counts every offset of the segment up to it, and none above
	LogTime     time.Time // of the newest counted record of the block
	ChecksHash  string
}

// A Ledger counts the decisions of one partition, cumulatively per block of the log.
//
// What it tells must be exact at any watermark, because a restart under new rules goes
// on after the last offset told, and one under the same rules counts the block again.
// A record's counts may be told once the record is resolved; records resolve in any
// order; remembering counts per record would cost memory per record. So counts stand
// in buckets. A bucket begins with a record that stays open, and takes in all the
// records after it that were resolved at once (filtered, sampled out, no interaction),
// up to the next record that stays open:
//
//	offset   10   11   12   13   14   15
//	         open -    -    open -    open
//	buckets  [10 11 12]     [13 14]   [15 ...
//
// A watermark is the offset of the lowest open record, or the end when none is open.
// When it has passed a bucket's first offset, that record is resolved, and so is the
// whole bucket: nothing else in it was ever open. Flush folds such buckets into their
// blocks.
//
// A count's UptoOffset is the last offset folded, not the watermark's neighbour. It may
// be above: a record that was counted after the watermark was read, and joined the last
// bucket, is folded with it; it needed no row, so nothing is lost by telling early. It
// may be far below: while a restart counts its segment again, the watermark is the
// committed offset, and a row that claimed to reach it would replace the full count of
// the earlier owner by a part.
//
// A record that waits long for another one holds the watermark, and with it the buckets
// of all that came after it. Those whose record is resolved need not stand apart: the
// watermark cannot stop at them any more. Resolve says so, and now and then they are
// merged into the bucket before them. So there are about as many buckets as open records.
//
// A cell knows where it stands in the newest bucket, so that counting costs one lookup
// and no allocation while the same cells come again.
type Ledger struct {
	topic     string
	partition int
	hash      string

	mu      sync.Mutex // guards the fields below; nothing else is locked under it
	from    int64      // counting started here
	names   map[string]uint32
	blocks  []*block // ascending
	buckets []*bucket
	spare   []*bucket
	serial  uint64 // of the newest bucket
	settled int    // buckets whose first record is resolved
}

// Cells are looked up by numbers in place of texts: hashing six strings per decision
// would cost more than the decision.
type cellKey struct {
	minute                                    int64
	pi                                        uint64
	check, version, stratum, decision, reason uint32
	epoch                                     uint32
}

type block struct {
	number  int64
	from    int64 // segment: where counting of this block started
	cells   map[cellKey]*cell
	order   []*cell // as they came, so that flushes are deterministic
	upto    int64   // highest folded offset: the cells' folded counts reach exactly to it
	logTime time.Time
}

type cell struct {
	Cell
	folded  uint64
	told    uint64 // what the last finished flush said
	serial  uint64 // the bucket it was last counted in
	waiting int    // its place there
}

type bucket struct {
	first   int64
	settled bool // the record at first is resolved
	waits   []waiting
	spans   []span // per block, since a bucket may run over borders
}

type waiting struct {
	cell *cell
	n    uint64
}

type span struct {
	block   *block
	last    int64
	logTime time.Time
}

// NewLedger starts a ledger of a partition that counts from segmentFrom on, under the
// rules of that hash.
func NewLedger(topic string, partition int, hash string, segmentFrom int64) *Ledger {
	l := &Ledger{topic: topic, partition: partition, hash: hash, from: segmentFrom, names: make(map[string]uint32)}
	l.open(segmentFrom)
	return l
}

// Count adds a record's cells, in the order of offsets, each offset once. open says
// that the record stays unresolved for now. Offsets below the segment's start belong to
// another segment and are not counted.
func (l *Ledger) Count(offset int64, logTime time.Time, open bool, cells []Cell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset < l.from {
		return
	}
	if open {
		l.open(offset)
	}
	b := l.buckets[len(l.buckets)-1]
	blk := l.block(offset / BlockSize)
	if n := len(b.spans); n == 0 || b.spans[n-1].block != blk {
		b.spans = append(b.spans, span{block: blk})
	}
	s := &b.spans[len(b.spans)-1]
	s.last, s.logTime = offset, logTime
	for i := range cells {
		c := l.cell(blk, &cells[i])
		if c.serial != l.serial {
			c.serial, c.waiting = l.serial, len(b.waits)
			b.waits = append(b.waits, waiting{cell: c})
		}
		b.waits[c.waiting].n++
	}
}

// open begins a bucket at offset.
func (l *Ledger) open(offset int64) {
	b := &bucket{}
	if n := len(l.spare); n > 0 {
		b, l.spare = l.spare[n-1], l.spare[:n-1]
	}
	b.first, b.settled = offset, false
	l.buckets = append(l.buckets, b)
	l.serial++
}

func (l *Ledger) block(number int64) *block {
	if n := len(l.blocks); n > 0 && l.blocks[n-1].number == number {
		return l.blocks[n-1]
	}
	blk := &block{number: number, from: max(l.from, number*BlockSize), cells: make(map[cellKey]*cell)}
	l.blocks = append(l.blocks, blk)
	return blk
}

func (l *Ledger) cell(blk *block, c *Cell) *cell {
	key := cellKey{
		minute: c.Minute, pi: math.Float64bits(c.Pi), epoch: c.Epoch,
		check: l.name(c.Check), version: l.name(c.Version), stratum: l.name(c.Stratum),
		decision: l.name(c.Decision), reason: l.name(c.Reason),
	}
	if known := blk.cells[key]; known != nil {
		return known
	}
	added := &cell{Cell: *c}
	blk.cells[key] = added
	blk.order = append(blk.order, added)
	return added
}

func (l *Ledger) name(text string) uint32 {
	n, ok := l.names[text]
	if !ok {
		n = uint32(len(l.names))
		l.names[text] = n
	}
	return n
}

// Flush returns the cells that changed since the last finished flush, as far as the
// watermark has resolved them. The batch's Done says that they are durable; without it the next flush
// says them again. One flush at a time.
func (l *Ledger) Flush(watermark int64) *Batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fold(watermark)
	batch := &Batch{ledger: l}
	for _, blk := range l.blocks {
		for _, c := range blk.order {
			if c.folded == c.told {
				continue
			}
			batch.cells = append(batch.cells, c)
			batch.counts = append(batch.counts, Count{
				Cell: c.Cell, Topic: l.topic, Partition: l.partition, Block: blk.number, SegmentFrom: blk.from,
				N: c.folded, UptoOffset: blk.upto, LogTime: blk.logTime, ChecksHash: l.hash,
			})
		}
	}
	if len(batch.counts) == 0 {
		l.drop()
	}
	return batch
}

// fold moves the buckets that the watermark has resolved into their blocks.
func (l *Ledger) fold(watermark int64) {
	n := 0
	for n < len(l.buckets) && l.buckets[n].first < watermark {
		b := l.buckets[n]
		for _, w := range b.waits {
			w.cell.folded += w.n
		}
		for _, s := range b.spans {
			s.block.upto, s.block.logTime = s.last, s.logTime
		}
		if b.settled {
			l.settled--
		}
		b.clear()
		n++
	}
	if n == 0 {
		return
	}
	// The last bucket was folded as it stood; what comes now begins a new one, whose
	// records all lie above everything folded.
	next := watermark
	if n == len(l.buckets) && len(l.blocks) > 0 {
		next = max(next, l.blocks[len(l.blocks)-1].upto+1)
	}
	for _, b := range l.buckets[:n] {
		l.keep(b)
	}
	l.buckets = append(l.buckets[:0], l.buckets[n:]...)
	if len(l.buckets) == 0 {
		l.open(next)
	}
}

func (b *bucket) clear() {
	clear(b.waits)
	clear(b.spans)
	b.waits, b.spans = b.waits[:0], b.spans[:0]
}

// keep puts an empty bucket aside for later.
func (l *Ledger) keep(b *bucket) {
	if len(l.spare) < maxSpare && cap(b.waits) <= maxSpareCells {
		l.spare = append(l.spare, b)
	}
}

// mergeFrom is the number of settled buckets below which merging is not worth it.
const mergeFrom = 256

// Resolve says that a record that was counted as open is resolved. It must not be said
// before the watermark can pass the record; not saying it costs memory only.
func (l *Ledger) Resolve(offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, ok := slices.BinarySearchFunc(l.buckets, offset, func(b *bucket, offset int64) int { return int(b.first - offset) })
	if !ok || l.buckets[i].settled {
		return
	}
	l.buckets[i].settled = true
	if l.settled++; l.settled >= mergeFrom && l.settled > len(l.buckets)/2 {
		l.merge()
	}
}

// merge puts settled buckets into the one before them. The newest stays: it is counted
// into.
func (l *Ledger) merge() {
	into := l.buckets[0]
	kept := l.buckets[:1]
	places := make(map[*cell]int)
	for i, b := range l.buckets[1:] {
		if !b.settled || i == len(l.buckets)-2 {
			kept = append(kept, b)
			into = b
			clear(places)
			continue
		}
		if len(places) == 0 {
			for place, w := range into.waits {
				places[w.cell] = place
			}
		}
		for _, w := range b.waits {
			place, ok := places[w.cell]
			if !ok {
				place = len(into.waits)
				places[w.cell] = place
				into.waits = append(into.waits, waiting{cell: w.cell})
			}
			into.waits[place].n += w.n
		}
		for _, s := range b.spans {
			if n := len(into.spans); n > 0 && into.spans[n-1].block == s.block {
				into.spans[n-1] = s
			} else {
				into.spans = append(into.spans, s)
			}
		}
		l.settled--
		b.clear()
		l.keep(b)
	}
	clear(l.buckets[len(kept):])
	l.buckets = kept
}

// drop forgets the blocks that are over: everything in them is folded and told, and a
// newer block has begun.
func (l *Ledger) drop() {
	n := 0
	oldest := l.oldestWaiting()
	for n < len(l.blocks)-1 && l.blocks[n].number < oldest && l.blocks[n].isTold() {
		n++
	}
	if n > 0 {
		clear(l.blocks[:n])
		l.blocks = append(l.blocks[:0], l.blocks[n:]...)
	}
}

// oldestWaiting is the number of the oldest block that some bucket still counts into.
func (l *Ledger) oldestWaiting() int64 {
	for _, b := range l.buckets {
		if len(b.spans) > 0 {
			return b.spans[0].block.number
		}
	}
	return math.MaxInt64
}

func (blk *block) isTold() bool {
	for _, c := range blk.order {
		if c.folded != c.told {
			return false
		}
	}
	return true
}

// A Batch is what one flush has to say.
type Batch struct {
	ledger *Ledger
	counts []Count
	cells  []*cell
}

// Counts are the changed cells.
func (b *Batch) Counts() []Count { return b.counts }

// Done says that the counts are durable.
func (b *Batch) Done() {
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for i, c := range b.cells {
		c.told = b.counts[i].N
	}
	b.cells = nil
	b.ledger.drop()
}
