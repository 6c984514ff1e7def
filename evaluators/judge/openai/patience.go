package openai

import (
	"slices"
	"sync"
	"time"

	"assay/evaluators/judge"
)

const (
	patienceWindow = 1024            // latencies remembered
	patienceLeast  = 100             // before that many the configured limit holds
	patienceEvery  = 64              // latencies between two looks at them
	patienceFactor = 4               // times the 99th percentile
	patienceFloor  = 2 * time.Second // never less
)

// patience is how long one try may take. A judge that answers within a second in 99
// of 100 cases will not answer after ten: a call that hangs is given up at four times
// the running p99, so that a few of them do not hold slots for the whole configured
// limit.
//
// The danger of such a limit is that it feeds itself: a judge that becomes slow for
// everyone is cut off for everyone, and nothing slower is ever seen. So a try that
// was given up counts as having taken twice its limit. A few in a thousand change
// nothing; more than one in a hundred raise the p99 and with it the limit, at once.
type patience struct {
	most time.Duration

	mu      sync.Mutex // guards the fields below; a leaf
	ring    []time.Duration
	at      int
	fresh   int // since the last look
	givenUp int // since the last look
	current time.Duration
}

// limit is how long one try of q may take. Texts and vectors take another time than
// letters do: they have the configured limit, and what they take says nothing about the
// rest.
func (j *Judge) limit(q judge.Question) time.Duration {
	if !q.Kind.HasOptions() {
		return j.cfg.Timeout
	}
	return j.patience.limit()
}

func newPatience(most time.Duration) *patience { return &patience{most: most, current: most} }

func (p *patience) limit() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

func (p *patience) answered(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(took)
}

func (p *patience) gaveUp(limit time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.givenUp++
	p.add(2 * limit)
}

// add remembers a latency. Callers hold mu.
func (p *patience) add(took time.Duration) {
	if len(p.ring) < patienceWindow {
		p.ring = append(p.ring, took)
	} else {
		p.ring[p.at] = took
		p.at = (p.at + 1) % patienceWindow
	}
	p.fresh++
	if len(p.ring) < patienceLeast || (p.fresh < patienceEvery && p.givenUp < patienceWindow/100) {
		return
	}
	p.fresh, p.givenUp = 0, 0
	sorted := slices.Clone(p.ring)
	slices.Sort(sorted)
	p99 := sorted[(len(sorted)*99-1)/100]
	p.current = min(max(patienceFactor*p99, patienceFloor), p.most)
}
