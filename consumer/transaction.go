package consumer

import "sort"

// abortedTxn is a transaction that was rolled back: its producer's records from first
// up to the abort marker are not for anybody.
type abortedTxn struct {
	producer int64
	first    int64
}

// An abortFilter leaves out the batches of aborted transactions. It lives for one
// fetch: the broker lists every aborted transaction that reaches into the answer.
type abortFilter struct {
	pending []abortedTxn // by first offset
	active  map[int64]bool
}

func newAbortFilter(list []abortedTxn) *abortFilter {
	sort.Slice(list, func(i, j int) bool { return list[i].first < list[j].first })
	return &abortFilter{pending: list}
}

// drops reports whether a batch holds nothing to read: a marker, or records of an
// aborted transaction. Batches come in log order.
func (f *abortFilter) drops(b *batch) (bool, error) {
	for len(f.pending) > 0 && f.pending[0].first <= b.last {
		if f.active == nil {
			f.active = make(map[int64]bool)
		}
		f.active[f.pending[0].producer] = true
		f.pending = f.pending[1:]
	}
	if b.control() {
		if b.count == 0 { // compaction took the marker
			return true, nil
		}
		aborts, err := b.aborts()
		if err != nil {
			return false, err
		}
		if aborts {
			delete(f.active, b.producer)
		}
		return true, nil
	}
	return b.transactional() && f.active[b.producer], nil
}
