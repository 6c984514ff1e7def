package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// killer ends statements whose client has left. The library cannot interrupt a
// statement, but the engine can be asked to by another connection; the mark, a
// comment in front of the text, is how that one finds it.
type killer struct {
	mu   sync.Mutex // guards conn: one KILL at a time
	conn *conn
	seq  atomic.Uint64
	log  *slog.Logger
}

// watch returns the mark for a statement that is about to run, and the function
// to call when it has ended.
func (k *killer) watch(ctx context.Context) (mark string, done func()) {
	mark = fmt.Sprintf("/* assay-chdb %d */ ", k.seq.Add(1))
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-ended:
		case <-ctx.Done():
			k.killUntil(ended, mark)
		}
	})
	return mark, func() {
		close(ended)
		watching.Wait()
	}
}

// killUntil asks again, because the first time may come before the engine has
// the statement in its list.
func (k *killer) killUntil(ended <-chan struct{}, mark string) {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		k.kill(mark)
		select {
		case <-ended:
			return
		case <-again.C:
		}
	}
}

func (k *killer) kill(mark string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	res, err := k.conn.query("KILL QUERY WHERE startsWith(query, "+quoteString(mark)+") ASYNC", "Null", nil)
	if err != nil {
		k.log.Warn("statement of a client that left was not killed", "err", err)
		return
	}
	res.close()
}
