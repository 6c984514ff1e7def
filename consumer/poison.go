package consumer

import "sync"

// The breaker's window, and how many dead letters it takes to judge a ratio.
const (
	poisonWindow = 1000
	poisonLeast  = 20
)

// A poison breaker tells a broken schema from broken records: when more than a share
// of the last records of a partition became dead letters, it trips, and the partition
// stops instead of emptying the topic into the dead letters. It outlives generations:
// a rebalance mends no schema.
type poison struct {
	max float64

	mu      sync.Mutex // guards the fields below
	dead    [poisonWindow]bool
	at      int // where the next record goes
	filled  int
	count   int // dead ones in the window
	tripped bool
	accept  bool // a person said that all of it may go
}

// observe takes one resolved record and reports whether it trips the breaker.
func (p *poison) observe(dead bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.filled < poisonWindow {
		p.filled++
	} else if p.dead[p.at] {
		p.count--
	}
	p.dead[p.at] = dead
	p.at = (p.at + 1) % poisonWindow
	if !dead {
		return false
	}
	p.count++
	if p.accept || p.tripped || p.count < poisonLeast || float64(p.count) <= p.max*float64(p.filled) {
		return false
	}
	p.tripped = true
	return true
}

func (p *poison) isTripped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tripped
}

// reset forgets what was seen; with accept it never trips again.
func (p *poison) reset(accept bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.filled, p.count, p.tripped = 0, 0, 0, false
	p.accept = p.accept || accept
}
