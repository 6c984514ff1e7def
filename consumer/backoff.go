package consumer

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	backoffFirst = 250 * time.Millisecond
	backoffMost  = 10 * time.Second
)

// A backoff paces tries that fail: from 0.25 s to 10 s, each between half and all of
// it, so that partitions that failed together do not come back together.
type backoff struct{ tries int }

func (b *backoff) next() time.Duration {
	d := backoffMost
	if b.tries < 6 {
		d = min(backoffFirst<<b.tries, backoffMost)
	}
	b.tries++
	return d/2 + rand.N(d/2)
}

func (b *backoff) reset() { b.tries = 0 }

// sleep waits, unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
