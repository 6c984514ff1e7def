package engine

import (
	"context"
	"strings"
	"sync/atomic"
)

// A lane is connections that serve one sort of work, and the queue before them.
// The engine runs one statement at a time per connection and several
// connections side by side, so a long scan delays only its own lane.
type lane struct {
	name    string
	free    chan *conn
	waiting atomic.Int64
	queue   int64
}

func newLane(name string, queue int, conns ...*conn) *lane {
	l := &lane{name: name, free: make(chan *conn, len(conns)), queue: int64(queue)}
	for _, c := range conns {
		l.free <- c
	}
	return l
}

// take waits for a connection. Past the queue's length it refuses at once: the
// client's own back-off is better than a place behind hundreds of others.
func (l *lane) take(ctx context.Context) (*conn, error) {
	if l.waiting.Add(1) > l.queue {
		l.waiting.Add(-1)
		return nil, exceptionf(codeTooManyQueries,
			"Too many simultaneous queries: %d wait in lane %s (TOO_MANY_SIMULTANEOUS_QUERIES)", l.queue, l.name)
	}
	defer l.waiting.Add(-1)
	select {
	case c := <-l.free:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *lane) give(c *conn) { l.free <- c }

// lanes are the process's connections.
type lanes struct {
	inserts, monitor, reads *lane
	bodies                  *lane // no connections, only places: inserts whose data are in memory
	all                     []*conn
}

// insertBodies times Config.InsertSpool is the most memory that inserts in
// waiting can take.
const insertBodies = 8

// monitorComment opens the log_comment of everything the monitor asks.
const monitorComment = "assay:monitor"

// pick chooses by log_comment first: the monitor's rollup is an INSERT SELECT of
// seconds and must not stand in the writer's way.
func (l *lanes) pick(k kind, comment string) *lane {
	switch {
	case strings.HasPrefix(comment, monitorComment):
		return l.monitor
	case k == kindInsert || k == kindInsertSQL:
		return l.inserts
	default:
		return l.reads
	}
}
