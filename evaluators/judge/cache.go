package judge

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"maps"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Cache answers a question again without asking: from memory, or from an equal
// question that is in flight right now. Only usable answers are kept; a failure is
// shared with those who waited for it and then forgotten. What comes from the cache
// costs nothing and says so (Cached).
//
// Equal means: the judge's fingerprint, the wording, the options, every field and
// the vote index are. No id and no time is in it, so the same text in two
// interactions is paid for once.
type Cache struct {
	next        Judge
	fingerprint string
	answers     *lru.Cache[cacheKey, Answer] // or nil: nothing is kept
	vectors     *lru.Cache[cacheKey, Answer] // apart and fewer, since one is as large as fifty answers

	mu      sync.Mutex // guards flights; never held while asking
	flights map[cacheKey]*flight
}

type cacheKey [sha256.Size]byte

// vectorShare is how many answers are kept for each vector. 10,000 answers then go with
// 625 vectors, which are 8 MB at 3,072 dimensions.
const vectorShare = 16

// kept is where the answer to q is, or nil.
func (c *Cache) kept(q Question) *lru.Cache[cacheKey, Answer] {
	if q.Kind == Vector {
		return c.vectors
	}
	return c.answers
}

// A flight is a question on its way. Its fields are written before done is closed.
type flight struct {
	done   chan struct{}
	answer Answer
	err    error
	alone  bool // the asker's context ended: says nothing to those who waited
}

// NewCache wraps next, keeping that many answers; with 0 it only joins questions in
// flight. fingerprint is the judge's as configured.
func NewCache(next Judge, fingerprint string, entries int) (*Cache, error) {
	c := &Cache{next: next, fingerprint: fingerprint, flights: make(map[cacheKey]*flight)}
	if entries > 0 {
		var err error
		if c.answers, err = lru.New[cacheKey, Answer](entries); err != nil {
			return nil, err
		}
		if c.vectors, err = lru.New[cacheKey, Answer](max(1, entries/vectorShare)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Ask implements Judge.
func (c *Cache) Ask(ctx context.Context, q Question) (Answer, error) {
	key := keyOf(c.fingerprint, q)
	for {
		if kept := c.kept(q); kept != nil {
			if a, ok := kept.Get(key); ok {
				return free(a), nil
			}
		}
		c.mu.Lock()
		f, joined := c.flights[key]
		if !joined {
			f = &flight{done: make(chan struct{}), alone: true}
			c.flights[key] = f
		}
		c.mu.Unlock()

		if !joined {
			return c.fly(ctx, q, key, f)
		}
		select {
		case <-ctx.Done():
			return Answer{}, ended(ctx, Spent{}, ctx.Err())
		case <-f.done:
		}
		switch {
		case f.alone:
			// The one who asked was cancelled; we were not. Ask ourselves.
		case f.err != nil:
			return Answer{}, withSpent(f.err, Spent{Attempts: SpentOf(f.err).Attempts, Model: SpentOf(f.err).Model})
		default:
			return free(f.answer), nil
		}
	}
}

// fly asks and lands the flight, also when next panics: nobody may wait for ever.
func (c *Cache) fly(ctx context.Context, q Question, key cacheKey, f *flight) (Answer, error) {
	defer func() {
		c.mu.Lock()
		delete(c.flights, key)
		c.mu.Unlock()
		close(f.done)
	}()
	a, err := c.next.Ask(ctx, q)
	f.answer, f.err = a, err
	f.alone = err != nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
	if kept := c.kept(q); err == nil && kept != nil {
		kept.Add(key, a)
	}
	return a, err
}

// free returns a as a copy that cost nothing. The caller may change its detail and
// its probabilities.
func free(a Answer) Answer {
	a.Usage, a.Attempts, a.Latency, a.Cached = Usage{}, 0, 0, true
	a.Probabilities = append([]float64(nil), a.Probabilities...)
	a.Vector = slices.Clone(a.Vector)
	a.Parts = slices.Clone(a.Parts)
	for i, p := range a.Parts {
		a.Parts[i] = slices.Clone(p)
	}
	a.Detail = maps.Clone(a.Detail)
	if a.Detail == nil {
		a.Detail = make(map[string]any, 1)
	}
	a.Detail["cached"] = true
	return a
}

// keyOf hashes length-prefixed parts, so that no text can pass for two.
func keyOf(fingerprint string, q Question) cacheKey {
	h := sha256.New()
	part(h, fingerprint)
	part(h, q.Name)
	part(h, string(q.Kind))
	part(h, q.Text)
	count(h, len(q.Options))
	for _, o := range q.Options {
		part(h, o.Key)
		part(h, o.Text)
	}
	count(h, len(q.Fields))
	for _, f := range q.Fields {
		part(h, f.Name)
		part(h, f.Value)
	}
	part(h, q.Each)
	count(h, q.Vote)
	count(h, q.Order)
	return cacheKey(h.Sum(nil))
}

func part(h hash.Hash, s string) {
	count(h, len(s))
	h.Write([]byte(s))
}

func count(h hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
