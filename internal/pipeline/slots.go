package pipeline

import (
	"context"
	"sync"
)

// Slots bounds how many judgements run at once on one judge and serves partitions in
// turn, so that one partition with a full window cannot keep the others waiting.
//
// Work waits in its partition's queue, which the consumer's window bounds; a deadline
// starts with the slot, because a wait in the queue is back-pressure and not a slow
// judge. A free slot goes to the next partition that has work:
//
//	put(p, work): append to p's queue; if a slot is free, run next()
//	a goroutine that ends its work takes next() itself, or gives the slot back
//
// Every goroutine belongs to the queue whose work it runs: queue.wait returns when
// none of that queue's work is running and none can start any more.
type slots struct {
	limit int

	mu      sync.Mutex // guards the fields below and every queue's; no other lock is taken under it
	running int
	turn    []*queue // queues with work, in the order in which they are served
}

// queue is the waiting work of one partition for one judge.
type queue struct {
	slots *slots

	waiting []func()
	running int
	closed  bool
	idle    chan struct{} // closed when closed && running == 0
}

func newSlots(limit int) *slots { return &slots{limit: max(1, limit)} }

func (s *slots) queue() *queue {
	return &queue{slots: s, idle: make(chan struct{})}
}

// put hands work over and returns at once. A closed queue drops it: the record stays
// unresolved.
func (q *queue) put(work func()) {
	s := q.slots
	s.mu.Lock()
	if q.closed {
		s.mu.Unlock()
		return
	}
	q.waiting = append(q.waiting, work)
	if len(q.waiting) == 1 {
		s.turn = append(s.turn, q)
	}
	start := s.running < s.limit
	if start {
		s.running++
	}
	s.mu.Unlock()
	if start {
		go s.serve()
	}
}

// serve runs work until there is none for its slot.
func (s *slots) serve() {
	var from *queue
	for {
		s.mu.Lock()
		if from != nil {
			from.running--
			from.settle()
		}
		if len(s.turn) == 0 {
			s.running--
			s.mu.Unlock()
			return
		}
		q := s.turn[0]
		s.turn = s.turn[1:]
		work := q.waiting[0]
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
		if len(q.waiting) > 0 {
			s.turn = append(s.turn, q)
		}
		q.running++
		s.mu.Unlock()

		work()
		from = q
	}
}

// settle is called with the lock held.
func (q *queue) settle() {
	if q.closed && q.running == 0 {
		select {
		case <-q.idle:
		default:
			close(q.idle)
		}
	}
}

// drop refuses new work and forgets what has not started.
func (q *queue) drop() {
	s := q.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	q.closed = true
	q.waiting = nil
	for i, other := range s.turn {
		if other == q {
			s.turn = append(s.turn[:i], s.turn[i+1:]...)
			break
		}
	}
	q.settle()
}

// wait returns when nothing of a dropped queue runs any more, or ctx ends.
func (q *queue) wait(ctx context.Context) error {
	select {
	case <-q.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
